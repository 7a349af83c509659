//! `selvedge irs verify` and `irs stat`: what they print, what they write, and that nothing gets lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use selvedge_irs_format::{Class, Contents, Flags, InputPart, View, weaker};
use serde_json::Value;

use crate::common::Sandbox;

pub(crate) fn example(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c");
    root.join(name)
}

/// Runs the command and returns what it prints, as JSON.
fn verify(sandbox: &Sandbox, arguments: &[&str], status: i32) -> Value {
    let mut all = vec!["irs", "verify", "--format", "json", "-o", "p.irs"];
    all.extend(arguments);
    let outcome = sandbox.run(&all);
    assert_eq!(
        outcome.status,
        Some(status),
        "{}{}",
        outcome.stdout,
        outcome.stderr
    );
    serde_json::from_str(&outcome.stdout).expect("one object of JSON")
}

pub(crate) fn prefix(sandbox: &Sandbox) -> Vec<u8> {
    let bytes = fs::read(sandbox.path("p.irs")).expect("the file is there");
    View::new(&bytes).expect("and whole");
    bytes
}

#[test]
fn a_bug_is_kept_away_by_a_constraint_that_is_named() {
    let sandbox = Sandbox::with(
        "lost.c",
        &fs::read_to_string(example("event_counter_lost.c")).unwrap(),
    );
    let told = verify(&sandbox, &["lost.c"], 1);
    assert_eq!(told["verdict"], "bug");
    assert_eq!(told["bugs"][0]["kind"], "assertion");
    let constraints = told["constraints"].as_array().unwrap();
    assert!(!constraints.is_empty());
    for constraint in constraints {
        assert_eq!(constraint["bug"], 0);
        assert_eq!(constraint["place"]["file"], "lost.c");
    }
    let bytes = prefix(&sandbox);
    let view = View::new(&bytes).unwrap();
    assert!(view.flags().contains(Flags::BUG));
    assert!(!view.flags().contains(Flags::COMPLETE));
    assert_eq!(view.inputs().next().unwrap().waits(), constraints.len());
    let counted: Vec<_> = view
        .sites()
        .filter(|site| site.class == Class::Counted)
        .collect();
    assert!(
        counted
            .iter()
            .all(|site| site.file == "lost.c" && !site.function.is_empty())
    );
}

/// Fourteen threads of the document's Indexer: three constraints for each pair that meets, 512 traces.
#[test]
fn a_proof_in_pieces_comes_to_the_same_end() {
    let sandbox = Sandbox::new();
    let source = example("indexer.c");
    let source = source.to_str().unwrap();
    let mut earlier: Option<Vec<u8>> = None;
    let mut left = Vec::new();
    for budget in [1, 10, 30, 100, 300] {
        let budget = budget.to_string();
        let limit = ["--max-executions", &budget, source, "--", "-DTHREADS=14"];
        let told = verify(&sandbox, &limit, 3);
        left.push(told["constraints"].as_array().unwrap().len());
        let now = prefix(&sandbox);
        if let Some(earlier) = &earlier {
            let (old, new) = (View::new(earlier).unwrap(), View::new(&now).unwrap());
            weaker(old, new).unwrap();
            assert!(old.traces() <= new.traces());
            assert!(old.generation() < new.generation());
        }
        earlier = Some(now);
    }
    assert_eq!(left[0], 9);
    assert!(left.is_sorted_by(|one, two| one >= two), "{left:?}");
    let told = verify(&sandbox, &[source, "--", "-DTHREADS=14"], 0);
    assert_eq!(told["traces"], 512);
    assert_eq!(told["constraints"].as_array().unwrap().len(), 0);
    assert_eq!(told["resumed"], true);
    let bytes = prefix(&sandbox);
    assert!(View::new(&bytes).unwrap().flags().contains(Flags::COMPLETE));
}

/// Proofs by several processes come to the same end: traces, constraints, and the bugs that these keep away.
#[test]
fn proofs_do_not_depend_on_the_number_of_processes() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/irs");
    for (source, options, status) in [
        (example("micro.c"), &["--plain", "sc"][..], 0),
        (example("philosophers.c"), &[], 1),
        (example("ttas_lock.c"), &[], 0),
        (example("producer_consumer.c"), &[], 0),
        (tests.join("lost_update.c"), &["--plain", "sc"], 1),
        (tests.join("lost_signal.c"), &["--plain", "sc"], 1),
    ] {
        let results = ["1", "2", "5"].map(|jobs| {
            let sandbox = Sandbox::new();
            let mut all = vec!["irs", "verify", "--format", "json", "-o", "p.irs"];
            all.extend(["--jobs", jobs, source.to_str().unwrap()]);
            all.extend(options);
            let mut command = sandbox.command(&all);
            // Otherwise nothing would be divided.
            let child = command.env("SELVEDGE_SLICE", "3ms").spawn();
            let outcome = sandbox.finish(child.expect("the command starts"));
            assert_eq!(outcome.status, Some(status), "{jobs} {outcome:?}");
            let mut told: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
            told["seconds"] = Value::Null;
            let bytes = prefix(&sandbox);
            let contents = Contents::read(View::new(&bytes).unwrap());
            (
                told.to_string(),
                contents.sites,
                histories(&contents.inputs),
            )
        });
        assert_eq!(results[0], results[1], "{}", source.display());
        assert_eq!(results[0], results[2], "{}", source.display());
    }
}

/// How much of a thread's doings a file knows: their order depends on who met them first.
fn histories(inputs: &[InputPart]) -> Vec<usize> {
    let threads = inputs.iter().flat_map(|input| &input.threads);
    threads.map(|thread| thread.histories.len()).collect()
}

#[test]
fn a_program_with_too_many_inputs_is_refused() {
    let text =
        "unsigned selvedge_choose(unsigned);\nint main(void) { return selvedge_choose(N) == N; }\n";
    let sandbox = Sandbox::with("inputs.c", text);
    let told = verify(&sandbox, &["inputs.c", "--", "-DN=4096"], 0);
    assert_eq!(told["inputs"], 4096);
    sandbox
        .run(&["irs", "verify", "inputs.c", "--anew", "--", "-DN=4097"])
        .ends_with(2)
        .says("the program has more than 4096 inputs");
}

/// The first schedule is the one that is asked for, and all of them lead to the same end.
#[test]
fn the_order_of_threads_can_be_chosen() {
    let sandbox = Sandbox::new();
    let source = example("lastzero.c");
    let source = source.to_str().unwrap();
    for (order, first) in [("ascending", 5), ("descending", 9), ("turns", 5)] {
        let begin = ["--anew", "--order", order, "--max-executions", "1", source];
        let told = verify(&sandbox, &begin, 3);
        assert_eq!(told["initial"], first, "{order}: {told}");
        let told = verify(&sandbox, &[source], 0);
        assert_eq!(told["traces"], 64);
    }
}

/// Kills the verifier at some moment of its work, again and again: the file is whole each time,
/// never asks for more than before, and the proof comes to its end.
fn killed(times: u64) {
    let sandbox = Sandbox::new();
    let source = example("micro.c");
    let source = source.to_str().unwrap();
    let arguments = ["irs", "verify", "-o", "p.irs", "--plain", "sc", source];
    let mut earlier: Option<Vec<u8>> = None;
    for round in 0..times {
        let mut child = sandbox
            .command(&arguments)
            .spawn()
            .expect("the command starts");
        // Nobody cares which moments these are, as long as they differ.
        sleep(Duration::from_millis(60 + round * 7919 % 311));
        child.kill().expect("it can be killed");
        child.wait().expect("and is gone");
        let Ok(now) = fs::read(sandbox.path("p.irs")) else {
            assert!(earlier.is_none(), "the file is gone");
            continue;
        };
        let new = View::new(&now).unwrap_or_else(|damage| panic!("round {round}: {damage}"));
        if let Some(earlier) = &earlier {
            weaker(View::new(earlier).unwrap(), new).unwrap();
        }
        earlier = Some(now);
    }
    // Whoever is killed cannot clean up.
    fs::remove_dir_all(sandbox.path("tmp")).expect("the directory is there");
    fs::create_dir(sandbox.path("tmp")).expect("and again");
    let told = verify(&sandbox, &["--plain", "sc", source], 0);
    assert_eq!(told["traces"], 51_318);
}

#[test]
fn a_verifier_that_is_killed_leaves_a_whole_file() {
    killed(6);
}

#[test]
#[ignore = "takes a minute"]
fn a_verifier_that_is_killed_a_hundred_times_leaves_a_whole_file() {
    killed(100);
}

#[test]
fn each_input_has_constraints_of_its_own() {
    let sandbox = Sandbox::with(
        "input.c",
        "#include <pthread.h>\n\
         #include <assert.h>\n\
         #include <stdatomic.h>\n\
         unsigned selvedge_choose(unsigned);\n\
         static atomic_int x;\n\
         static void *add(void *unused) { int v = x; x = v + 1; return unused; }\n\
         int main(void) {\n\
             pthread_t a, b;\n\
             unsigned apart = selvedge_choose(2);\n\
             pthread_create(&a, 0, add, 0);\n\
             if (apart) pthread_join(a, 0);\n\
             pthread_create(&b, 0, add, 0);\n\
             if (!apart) pthread_join(a, 0);\n\
             pthread_join(b, 0);\n\
             assert(x == 2);\n\
         }\n",
    );
    let told = verify(&sandbox, &["input.c"], 1);
    assert_eq!(told["inputs"], 2);
    assert_eq!(told["constraints"].as_array().unwrap().len(), 1);
    assert_eq!(told["constraints"][0]["input"][0], 0);
    let bytes = prefix(&sandbox);
    let view = View::new(&bytes).unwrap();
    assert_eq!(view.input(&[0]).unwrap().waits(), 1);
    assert_eq!(view.input(&[1]).unwrap().waits(), 0);
}

#[test]
fn another_program_is_not_taken_for_this_one() {
    let sandbox = Sandbox::new();
    let source = example("event_counter.c");
    let source = source.to_str().unwrap();
    verify(&sandbox, &[source], 0);
    let other = example("lastzero.c");
    let told = verify(&sandbox, &[other.to_str().unwrap()], 0);
    assert_eq!(told["resumed"], false);
    assert_eq!(told["traces"], 64);
    sandbox.write("p.irs", "something else");
    let outcome = sandbox.run(&["irs", "verify", source, "-o", "p.irs"]);
    assert_eq!(outcome.status, Some(2));
    assert!(
        outcome.stderr.contains("not a prefix file"),
        "{}",
        outcome.stderr
    );
    assert_eq!(fs::read(sandbox.path("p.irs")).unwrap(), b"something else");
}

/// A compiler may announce two stores and make them as one: then the value of the first is not
/// known when it is needed.
#[test]
fn stores_that_are_made_at_once_are_not_misread() {
    let sandbox = Sandbox::with(
        "merged.c",
        "#include <assert.h>\n\
         #include <pthread.h>\n\
         static int z, w[2];\n\
         static void *adds(void *unused) { z++; return unused; }\n\
         static void *sets(void *unused) { w[0] = 1; w[1] = 1; return unused; }\n\
         int main(void) {\n\
             pthread_t a, b;\n\
             pthread_create(&a, 0, adds, 0);\n\
             pthread_create(&b, 0, sets, 0);\n\
             pthread_join(a, 0);\n\
             pthread_join(b, 0);\n\
             assert(w[0] != 1);\n\
         }\n",
    );
    for (level, status) in [("-O0", &[1][..]), ("-O2", &[1, 3])] {
        let outcome = sandbox.run(&["verify", "--plain", "sc", "merged.c", "--", level]);
        let found = outcome.status.is_some_and(|code| status.contains(&code));
        assert!(found, "{level}: {}{}", outcome.stdout, outcome.stderr);
    }
}

/// The same function adds to a variable of its thread and to one that all share.
#[test]
fn an_access_that_cannot_be_counted_is_refused() {
    let sandbox = Sandbox::with(
        "mixed.c",
        "#include <pthread.h>\n\
         static int shared;\n\
         static void add(int *to) { (*to)++; }\n\
         static void *work(void *unused) {\n\
             int own = 0;\n\
             add(&own);\n\
             add(&shared);\n\
             return unused;\n\
         }\n\
         int main(void) {\n\
             pthread_t a, b;\n\
             pthread_create(&a, 0, work, 0);\n\
             pthread_create(&b, 0, work, 0);\n\
             pthread_join(a, 0);\n\
             pthread_join(b, 0);\n\
         }\n",
    );
    let outcome = sandbox.run(&["irs", "verify", "--plain", "sc", "mixed.c"]);
    assert_eq!(outcome.status, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("mixed.c:3"), "{}", outcome.stderr);
    assert!(!sandbox.path("mixed.irs").exists());
}

#[test]
fn statistics_and_a_picture() {
    let sandbox = Sandbox::new();
    let source = example("indexer.c");
    verify(
        &sandbox,
        &["--max-executions", "8", source.to_str().unwrap()],
        3,
    );
    let outcome = sandbox.run(&["irs", "stat", "p.irs", "--svg", "p.svg", "--format", "json"]);
    assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
    let told: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let bytes = prefix(&sandbox);
    let contents = Contents::read(View::new(&bytes).unwrap());
    assert_eq!(told["constraints"], contents.waits());
    assert_eq!(told["initial_constraints"], 6);
    let svg = fs::read_to_string(sandbox.path("p.svg")).unwrap();
    assert_eq!(svg.matches("marker-end").count(), contents.waits());
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
}
