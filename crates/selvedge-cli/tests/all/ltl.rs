//! Temporal logic on C programs, as the command offers it.

use std::fs;
use std::path::Path;

use crate::common::{Outcome, Sandbox, compilers};

fn example(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ltl");
    fs::read_to_string(directory.join(name)).expect("the example")
}

fn with(name: &str) -> Sandbox {
    Sandbox::with("program.c", &example(name))
}

fn verify(sandbox: &Sandbox, arguments: &[&str]) -> Outcome {
    let all: Vec<&str> = ["verify", "program.c"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    sandbox.run(&all)
}

#[test]
fn every_example_comes_out_as_its_comment_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ltl");
    let mut commands = 0;
    for entry in fs::read_dir(directory).expect("the examples") {
        let path = entry.expect("an example").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let sandbox = with(name);
        let text = fs::read_to_string(&path).expect("it can be read");
        let comment = text.split("*/").next().expect("a comment");
        // A command may be followed by its result in the next line.
        let comment = comment.replace("\n *       ", " ");
        for line in comment
            .lines()
            .filter(|line| line.contains("selvedge verify"))
        {
            let (options, result) = line.rsplit_once("  ").expect("the result stands apart");
            let options = options.split_once(name).expect("the file is named").1;
            let mut words: Vec<&str> = Vec::new();
            for (n, part) in options.split('\'').enumerate() {
                match n % 2 {
                    0 => words.extend(part.split_whitespace()),
                    _ => words.push(part),
                }
            }
            let status = match result.trim() {
                "verified" => 0,
                "a bug" => 1,
                other => panic!("{name}: {other}"),
            };
            for cc in compilers() {
                let all: Vec<&str> = ["--cc", cc]
                    .into_iter()
                    .chain(words.iter().copied())
                    .collect();
                verify(&sandbox, &all).ends_with(status);
                commands += 1;
            }
        }
    }
    assert!(commands >= 11, "{commands}");
}

#[test]
fn a_counterexample_is_a_lasso() {
    let sandbox = with("peterson.c");
    let outcome = verify(&sandbox, &["--ltl", "G (wants -> F inside)"]);
    outcome
        .ends_with(1)
        .says("this check is under sc")
        .prints("bug: violated formula: G (wants -> F inside) does not hold: then the cycle repeats for ever")
        .prints("schedule: S0---P1--(--)*\n")
        .prints("store wants = true")
        .prints("from here on for ever:")
        .prints("everything is as it was before step 6");
    let outcome = verify(
        &sandbox,
        &["--ltl", "G (wants -> F inside)", "--format", "json"],
    );
    let json = outcome.json();
    assert_eq!(json["bug"]["kind"], "ltl-violation");
    assert_eq!(json["bug"]["cycle"], 6);
    assert_eq!(json["bug"]["trace"].as_array().map(Vec::len), Some(7));
    assert_eq!(json["algorithm"], "ltl");
    let fair = ["--ltl", "G (wants -> F inside)", "--fair"];
    let outcome = verify(&sandbox, &fair);
    outcome
        .ends_with(0)
        .prints("verified: G (wants -> F inside) holds in every weakly fair execution");
}

#[test]
fn what_is_violated_already_needs_no_cycle() {
    let sandbox = with("peterson.c");
    let outcome = verify(&sandbox, &["--ltl", "G !{count == 1}"]);
    outcome
        .ends_with(1)
        .prints("G !{count == 1} does not hold: whatever comes next");
    assert!(!outcome.stdout.contains(")*"), "{outcome:?}");
    // The program ends, and the last state stays as it is.
    let ends = Sandbox::with(
        "program.c",
        "static volatile int x; int main(void) { x = 1; }\n",
    );
    verify(&ends, &["--ltl", "F G {x == 1}"]).ends_with(0);
    let outcome = verify(&ends, &["--ltl", "G F {x == 0}"]);
    outcome
        .ends_with(1)
        .prints("schedule: S0-()*\n")
        .prints("then nothing changes any more")
        .prints("the program has ended; nothing changes any more");
}

#[test]
fn the_end_of_the_process_may_come_late() {
    let text = "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n\
        static atomic_int x;\n\
        static void *run(void *a) { for (;;) x = !x; return a; }\n\
        int main(void) { static pthread_t t; pthread_create(&t, 0, run, 0); exit(0); }\n";
    let sandbox = Sandbox::with("program.c", text);
    let check = |formula: &str, status: i32| {
        verify(&sandbox, &["--ltl", formula]).ends_with(status);
    };
    check("G {x == 0}", 1);
    check("F !any.moves", 1);
    check("G (T0.ended -> G !any.moves)", 0);
    verify(&sandbox, &["--ltl", "F !any.moves", "--fair"]).ends_with(0);
}

#[test]
fn what_nobody_asks_about_is_no_step() {
    let text = "#include <pthread.h>\n#include <stdatomic.h>\n#include \"selvedge.h\"\n\
        static atomic_int x;\n\
        static void *run(void *a) { selvedge_prop(\"p\", x++); selvedge_progress(); return a; }\n\
        int main(void) { static pthread_t t; pthread_create(&t, 0, run, 0); run(0); pthread_join(t, 0); }\n";
    let sandbox = Sandbox::with("program.c", text);
    let executions = |arguments: &[&str]| {
        let all: Vec<&str> = arguments
            .iter()
            .copied()
            .chain(["--format", "json"])
            .collect();
        verify(&sandbox, &all).ends_with(0).json()["executions"].clone()
    };
    assert_eq!(executions(&[]), 2);
    assert_eq!(executions(&["--algorithm", "optimal-dpor"]), 2);
}

#[test]
fn a_lasso_can_be_run_again() {
    let sandbox = with("peterson.c");
    let options = [
        "--ltl",
        "G (wants -> F {count == 1})",
        "--trace-out",
        "trace.json",
    ];
    verify(&sandbox, &options).ends_with(1);
    let outcome = sandbox.run(&["replay", "trace.json"]);
    outcome
        .ends_with(1)
        .prints("violated formula")
        .prints("everything is as it was before step");
    sandbox
        .run(&["replay", "trace.json", "--in-process"])
        .ends_with(1);
    // In another program the same steps lead elsewhere.
    let other = example("peterson.c").replace("count--", "count += 0");
    sandbox.write("program.c", &other);
    sandbox.run(&["replay", "trace.json"]).says("has changed");
    // A cycle that does not come back is no cycle.
    let other =
        example("peterson.c").replace("while (flag[other] &&", "while (++turns, flag[other] &&");
    let other = other.replace(
        "static atomic_int count;",
        "static atomic_int count, turns;",
    );
    sandbox.write("program.c", &other);
    sandbox.run(&["replay", "trace.json"]).ends_with(2);
}

#[test]
fn bugs_are_bugs() {
    let text = "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\
        static atomic_int x;\n\
        static void *run(void *a) { for (;;) x = !x; return a; }\n\
        int main(void) { static pthread_t t; pthread_create(&t, 0, run, 0); for (;;) assert(x < 1); }\n";
    let sandbox = Sandbox::with("program.c", text);
    let outcome = verify(&sandbox, &["--ltl", "true"]);
    outcome.ends_with(1).prints("bug: assertion failed: x < 1");
    let racy = text
        .replace("atomic_int x", "int x")
        .replace("assert(x < 1)", "x = 2");
    sandbox.write("program.c", &racy);
    verify(&sandbox, &["--ltl", "true"])
        .ends_with(1)
        .prints("data race");
    verify(
        &sandbox,
        &["--ltl", "G F {x < 2}", "--plain", "sc", "--fair"],
    )
    .ends_with(0);
    verify(
        &sandbox,
        &["--ltl", "F G {x < 2}", "--plain", "sc", "--fair"],
    )
    .ends_with(1);
}

#[test]
fn cxx_programs_have_expressions_too() {
    let text = "#include <atomic>\n#include <thread>\n\
        namespace shop { static std::atomic<int> open{0}; }\n\
        int main() { std::thread t([] { for (;;) shop::open = 1 - shop::open; }); for (;;) shop::open.load(); }\n";
    let sandbox = Sandbox::with("program.cc", text);
    let check = |formula: &str| sandbox.run(&["verify", "program.cc", "--fair", "--ltl", formula]);
    check("G F {shop::open == 1}").ends_with(0);
    check("F G {shop::open.load()}").ends_with(1);
}

#[test]
fn wrong_requests_are_refused_with_a_reason() {
    let sandbox = with("peterson.c");
    let wrong = |arguments: &[&str], words: &[&str]| {
        let outcome = verify(&sandbox, arguments);
        outcome.ends_with(2);
        for word in words {
            outcome.says(word);
        }
    };
    wrong(
        &["--ltl", "G (wants"],
        &["this `(` is not closed", "G (wants\n        ^"],
    );
    wrong(&["--ltl", "count == 1"], &["in braces"]);
    wrong(
        &["--ltl", "G wnats"],
        &[
            "nothing in the program is named \"wnats\"",
            "selvedge_prop(\"wnats\"",
        ],
    );
    wrong(
        &["--ltl", "G {nonsense}"],
        &["nonsense", "does not compile"],
    );
    wrong(&["--ltl", "G {count = 1}"], &["assigns"]);
    wrong(&["--ltl", "G {run(0)}"], &["calls run"]);
    wrong(&["--fair"], &["--fair needs --ltl"]);
    wrong(&["--ltl", "true", "--model", "rc11"], &["--model sc only"]);
    wrong(
        &["--ltl", "true", "--property", "starvation"],
        &["cannot be used with"],
    );
    wrong(
        &["--ltl", "true", "--max-executions", "3"],
        &["knows states"],
    );
    let compared = sandbox.run(&["compare", "program.c", "--ltl", "true"]);
    compared.ends_with(2).says("compare does not take --ltl");
    sandbox.write(
        "null.c",
        "static int *p; int main(void) { static int x; p = &x; }\n",
    );
    let died = sandbox.run(&["verify", "null.c", "--ltl", "F {*p == 0}"]);
    died.ends_with(2).says("guard pointers");
    let guarded = ["verify", "null.c", "--ltl", "F {p && *p == 0}"];
    sandbox.run(&guarded).ends_with(0);
    sandbox.write("more.c", "int more;\n");
    wrong(&["more.c", "--ltl", "G {count < 2}"], &["one file only"]);
    sandbox.write("program.c", "int main(void) { for (;;); }\n");
    wrong(&["--property", "non-progress"], &["no progress marks"]);
}
