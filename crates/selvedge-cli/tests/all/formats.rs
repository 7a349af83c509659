//! The formats for other programs: SARIF, JUnit, GitHub annotations, JSON lines, violation witnesses.

use quick_xml::events::Event;
use serde_json::{Value, json};
use yaml_rust2::{Yaml, YamlLoader};

use crate::common::{Outcome, Sandbox};
use crate::schema::violations;

const LOST_UPDATE: &str = "\
#include <assert.h>
#include <pthread.h>
#include <selvedge.h>
#include <stdatomic.h>
static atomic_int counter;
static void *bump(void *unused) {
  int seen = counter;
  counter = seen + 1;
  return unused;
}
int main(void) {
  pthread_t other;
  int by = selvedge_choose(2);
  pthread_create(&other, 0, bump, 0);
  bump(0);
  pthread_join(other, 0);
  assert(by == 0 || counter == 2);
}
";

const RACE: &str = "\
#include <pthread.h>
static int x;
static void *f(void *unused) { x = 1; return unused; }
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, f, 0);
  x = 2;
  pthread_join(other, 0);
}
";

const FINE: &str = "\
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static void *f(void *unused) { x++; return unused; }
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, f, 0);
  x++;
  pthread_join(other, 0);
}
";

#[track_caller]
fn conforms(schema: &str, value: &Value) {
    let schema = serde_json::from_str(schema).expect("a schema");
    assert_eq!(
        violations(&schema, value),
        Vec::<String>::new(),
        "{value:#}"
    );
}

#[track_caller]
fn sarif(outcome: &Outcome) -> Value {
    let log = outcome.json();
    conforms(include_str!("schemas/sarif.json"), &log);
    log["runs"][0].clone()
}

#[test]
fn sarif_has_the_schedule_as_a_code_flow() {
    let sandbox = Sandbox::with("lost update.c", LOST_UPDATE);
    let run = sarif(
        sandbox
            .run(&["verify", "lost update.c", "--format", "sarif"])
            .ends_with(1),
    );
    let result = &run["results"][0];
    assert_eq!(result["ruleId"], "assertion");
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "assertion");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "lost%20update.c");
    assert_eq!(place["region"]["startLine"], 17);
    let flows = result["codeFlows"][0]["threadFlows"].as_array().unwrap();
    assert_eq!(flows.len(), 2);
    let mut order: Vec<u64> = flows
        .iter()
        .flat_map(|flow| flow["locations"].as_array().unwrap())
        .map(|location| location["executionOrder"].as_u64().unwrap())
        .collect();
    order.sort_unstable();
    assert_eq!(order, (1..=order.len() as u64).collect::<Vec<_>>());
    assert_eq!(run["invocations"][0]["exitCode"], 1);
}

#[test]
fn sarif_names_both_sides_of_a_race_and_what_was_not_explored() {
    let sandbox = Sandbox::with("race.c", RACE);
    let run = sarif(
        sandbox
            .run(&["verify", "race.c", "--format", "sarif"])
            .ends_with(1),
    );
    let result = &run["results"][0];
    let line = |location: &Value| location["physicalLocation"]["region"]["startLine"].clone();
    let mut lines = [
        line(&result["locations"][0]).as_u64(),
        line(&result["relatedLocations"][0]).as_u64(),
    ];
    lines.sort_unstable();
    assert_eq!(lines, [Some(3), Some(7)]);

    let sandbox = Sandbox::with("fine.c", FINE);
    let limited = [
        "verify",
        "fine.c",
        "--format",
        "sarif",
        "--max-executions",
        "1",
    ];
    let run = sarif(sandbox.run(&limited).ends_with(3));
    assert_eq!(run["results"], json!([]));
    let said = &run["invocations"][0]["toolExecutionNotifications"][0];
    assert_eq!(
        said["message"]["text"],
        "incomplete: stopped after 1 executions (--max-executions)"
    );
    let run = sarif(
        sandbox
            .run(&["verify", "fine.c", "--format", "sarif"])
            .ends_with(0),
    );
    assert_eq!(
        run["invocations"][0]["toolExecutionNotifications"],
        json!([])
    );
}

/// The elements of a document with their attributes and text, as a tree. Fails if it is not well
/// formed.
fn xml(text: &str) -> Value {
    let mut reader = quick_xml::Reader::from_str(text);
    let mut stack = vec![json!({ "children": [] })];
    let element = |start: &quick_xml::events::BytesStart<'_>| {
        let attributes: serde_json::Map<String, Value> = start
            .attributes()
            .map(|attribute| {
                let attribute = attribute.expect("an attribute");
                let value = quick_xml::escape::unescape(&attribute.value)
                    .expect("escaped")
                    .into_owned();
                (attribute.key.as_ref().to_owned(), value.into())
            })
            .collect();
        json!({ "name": start.name().as_ref(), "attributes": attributes, "children": [], "text": "" })
    };
    let close = |stack: &mut Vec<Value>| {
        let closed = stack.pop().expect("an open element");
        let parent = stack.last_mut().expect("a parent");
        parent["children"].as_array_mut().unwrap().push(closed);
    };
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Start(start) => stack.push(element(&start)),
            Event::Empty(start) => {
                stack.push(element(&start));
                close(&mut stack);
            }
            Event::End(_) => close(&mut stack),
            Event::Text(text) => {
                let top = stack.last_mut().unwrap();
                let before = top["text"].as_str().unwrap_or_default().to_owned();
                top["text"] = (before + &*text).into();
            }
            Event::GeneralRef(_) | Event::Decl(_) => {}
            Event::Eof => break,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(stack.len(), 1, "an element is left open");
    let root = stack.pop().unwrap();
    root["children"][0].clone()
}

/// Checks the shape of a JUnit document and returns the test case.
#[track_caller]
fn test_case(outcome: &Outcome) -> Value {
    let suites = xml(&outcome.stdout);
    assert_eq!(suites["name"], "testsuites");
    let suite = &suites["children"][0];
    assert_eq!(suite["name"], "testsuite");
    for attribute in ["name", "tests", "failures", "errors", "skipped", "time"] {
        assert!(suite["attributes"][attribute].is_string(), "{attribute}");
    }
    let case = suite["children"][0].clone();
    assert_eq!(case["name"], "testcase");
    let count = |name: &str| {
        let children = case["children"].as_array().unwrap();
        let number = children.iter().filter(|child| child["name"] == name);
        Value::from(number.count().to_string())
    };
    assert_eq!(suite["attributes"]["failures"], count("failure"));
    assert_eq!(suite["attributes"]["errors"], count("error"));
    case
}

#[test]
fn junit_has_one_test_case_for_the_program() {
    let name = "a<&>\"'\u{1}.c";
    let sandbox = Sandbox::with(name, LOST_UPDATE);
    let case = test_case(
        sandbox
            .run(&["verify", name, "--format", "junit"])
            .ends_with(1),
    );
    assert_eq!(case["attributes"]["name"], "a<&>\"'\u{fffd}.c");
    assert_eq!(case["attributes"]["classname"], "selvedge.rc11");
    let failure = &case["children"][0];
    assert_eq!(failure["name"], "failure");
    assert_eq!(failure["attributes"]["type"], "assertion");
    assert_eq!(
        failure["attributes"]["message"],
        "assertion failed: by == 0 || counter == 2"
    );
    assert!(failure["text"].as_str().unwrap().contains("schedule:"));

    let sandbox = Sandbox::with("fine.c", FINE);
    let case = test_case(
        sandbox
            .run(&["verify", "fine.c", "--format", "junit"])
            .ends_with(0),
    );
    let said = case["children"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("verified: no execution fails"), "{said}");
    let limited = [
        "verify",
        "fine.c",
        "--format",
        "junit",
        "--max-executions",
        "1",
    ];
    let case = test_case(sandbox.run(&limited).ends_with(3));
    assert_eq!(case["children"][0]["attributes"]["type"], "incomplete");
}

#[test]
fn github_gets_one_annotation_a_line() {
    let sandbox = Sandbox::with("race.c", RACE);
    let outcome = sandbox.run(&["verify", "race.c", "--format", "github"]);
    let lines: Vec<&str> = outcome.ends_with(1).stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{outcome:?}");
    assert!(
        lines[0].starts_with("::error file=race.c,line="),
        "{outcome:?}"
    );
    assert!(
        lines[1].starts_with("::notice file=race.c,line="),
        "{outcome:?}"
    );
    let sandbox = Sandbox::with("fine.c", FINE);
    let outcome = sandbox.run(&["verify", "fine.c", "--format", "github"]);
    let expected = "::notice file=fine.c,line=1,title=fine.c%3A verified::verified: no execution";
    outcome.ends_with(0).prints(expected);
    let limited = [
        "verify",
        "fine.c",
        "--format",
        "github",
        "--max-executions",
        "1",
    ];
    sandbox
        .run(&limited)
        .ends_with(3)
        .prints("::warning file=fine.c,line=1,");
}

#[test]
fn a_check_without_a_result_tells_so_in_every_format() {
    let sandbox = Sandbox::with("bad.c", "int main(void) { return x; }\n");
    for (file, reason) in [("absent.c", "absent.c"), ("bad.c", "does not compile")] {
        let run = |format: &str| {
            let outcome = sandbox.run(&["verify", file, "--format", format]);
            outcome.ends_with(2).says(reason);
            outcome
        };
        let log = sarif(&run("sarif"));
        let invocation = &log["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false);
        assert_eq!(invocation["exitCode"], 2);
        let problem = &invocation["toolExecutionNotifications"][0];
        assert_eq!(problem["level"], "error");
        let text = problem["message"]["text"].as_str().expect("a text");
        assert!(text.contains(reason), "{text}");
        assert_eq!(log["results"], json!([]));

        let case = test_case(&run("junit"));
        assert_eq!(case["children"][0]["name"], "error");
        let error = case["children"][0].to_string();
        assert!(error.contains(reason), "{case:#}");

        let line = run("github").stdout;
        let begin = format!("::error file={file},line=1,title=");
        assert!(line.starts_with(&begin) && line.contains(reason), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");

        let event: Value = serde_json::from_str(&run("jsonl").stdout).expect("one object");
        assert_eq!(event["event"], "error");
        assert_eq!(event["status"], 2);
        let text = event["text"].as_str().expect("a text");
        assert!(text.contains(reason), "{text}");
        let mut undocumented = Vec::new();
        undocumented_members(&event, &mut undocumented);
        assert_eq!(undocumented, Vec::<String>::new());
        // One object or none.
        assert_eq!(run("json").stdout, "");
    }
}

#[test]
fn json_lines_end_with_the_result() {
    let sandbox = Sandbox::with("fine.c", FINE);
    let outcome = sandbox.run(&["verify", "fine.c", "--format", "jsonl"]);
    let last = outcome.ends_with(0).stdout.lines().last().expect("a line");
    let last: Value = serde_json::from_str(last).expect("an object");
    assert_eq!(last["event"], "result");
    assert_eq!(last["verdict"], "verified");
    assert_eq!(last["executions"], 2);
}

const LONG: &str = "\
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static void *f(void *unused) { for (int i = 0; i < 8; i++) x++; return unused; }
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, f, 0);
  pthread_create(&two, 0, f, 0);
  f(0);
}
";

#[test]
fn json_lines_tell_of_progress_and_every_member_is_documented() {
    let sandbox = Sandbox::with("long.c", LONG);
    let outcome = sandbox.run(&["verify", "long.c", "--format", "jsonl", "--timeout", "2.5"]);
    let mut lines: Vec<Value> = outcome
        .ends_with(3)
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    let result = lines.pop().expect("a result");
    assert!(!lines.is_empty(), "{outcome:?}");
    let mut before = 0;
    for progress in &lines {
        assert_eq!(progress["event"], "progress");
        let executions = progress["executions"].as_u64().expect("a number");
        assert!(executions >= before, "{outcome:?}");
        before = executions;
    }
    assert!(before > 0);
    let mut undocumented = Vec::new();
    for event in [&lines[0], &result] {
        undocumented_members(event, &mut undocumented);
    }
    assert_eq!(undocumented, Vec::<String>::new());
}

fn is_documented(member: &str) -> bool {
    const PAGE: &str = include_str!("../../../../docs/ci.md");
    PAGE.contains(&format!("`{member}`"))
}

/// The members that a bug or an advice can have, from their definitions.
fn possible_members() -> Vec<String> {
    let sources = [
        include_str!("../../../selvedge-page/src/bug.rs"),
        include_str!("../../../selvedge-page/src/advice.rs"),
        include_str!("../../../selvedge-page/src/place.rs"),
    ];
    let lines = sources.iter().flat_map(|source| source.lines());
    let fields = lines.filter_map(|line| line.strip_prefix("    pub ")?.split_once(": "));
    let names = fields.map(|(name, _)| name.to_owned());
    let names: Vec<String> = names
        // The members of a place are among those of what is there.
        .filter(|name| name != "place" && !name.starts_with("fn "))
        .collect();
    for expected in ["call_stacks", "freed", "also_failing", "library"] {
        assert!(names.iter().any(|name| name == expected), "{names:?}");
    }
    names
}

/// The members of `value`, and of what is in it, that docs/ci.md does not name.
fn undocumented_members(value: &Value, found: &mut Vec<String>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        if !is_documented(name) {
            found.push(name.clone());
        }
        undocumented_members(member, found);
    }
    for item in value.as_array().into_iter().flatten() {
        undocumented_members(item, found);
    }
}

#[test]
fn every_member_of_every_kind_of_result_is_documented() {
    const ENDLESS: &str = "\
#include <stdatomic.h>
static atomic_int x;
int main(void) { for (;;) x = !x; }
";
    const STUCK: &str = "\
#include <pthread.h>
#include <stdlib.h>
int main(void) {
  pthread_mutex_t *m = malloc(sizeof *m);
  pthread_mutex_init(m, 0);
  pthread_mutex_lock(m);
  pthread_mutex_lock(m);
}
";
    const ORDERS: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int data, flag;
static void *send(void *unused) {
  atomic_store_explicit(&data, 1, memory_order_relaxed);
  atomic_store_explicit(&flag, 1, memory_order_relaxed);
  return unused;
}
int main(void) {
  pthread_t sender;
  pthread_create(&sender, 0, send, 0);
  if (atomic_load_explicit(&flag, memory_order_relaxed))
    assert(atomic_load_explicit(&data, memory_order_relaxed));
}
";
    let sandbox = Sandbox::new();
    let programs: [(&str, &str, &[&str], i32); 7] = [
        ("lost.c", LOST_UPDATE, &["--preemptions", "2"], 1),
        ("race.c", RACE, &["--keep-going"], 1),
        ("orders.c", ORDERS, &[], 1),
        ("stuck.c", STUCK, &[], 1),
        ("endless.c", ENDLESS, &["--ltl", "F G {x == 0}"], 1),
        ("lost.c", LOST_UPDATE, &["--algorithm", "csdr"], 1),
        (
            "long.c",
            LONG,
            &[
                "--unroll",
                "2",
                "--checkpoint",
                "c",
                "--max-executions",
                "1",
            ],
            3,
        ),
    ];
    let mut undocumented = possible_members();
    undocumented.retain(|name| !is_documented(name));
    for (name, text, options, status) in programs {
        sandbox.write(name, text);
        let command = [&["verify", name, "--format", "jsonl"], options].concat();
        let outcome = sandbox.run(&command);
        let last = outcome.ends_with(status).stdout.lines().last();
        let result = serde_json::from_str(last.expect("a line")).expect("an object");
        undocumented_members(&result, &mut undocumented);
    }
    assert_eq!(undocumented, Vec::<String>::new());
}

fn from_yaml(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::String(text) => text.clone().into(),
        Yaml::Integer(number) => (*number).into(),
        Yaml::Array(items) => items.iter().map(from_yaml).collect(),
        Yaml::Hash(members) => members
            .iter()
            .map(|(key, value)| (key.as_str().expect("a name").to_owned(), from_yaml(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => panic!("unexpected {other:?}"),
    }
}

#[track_caller]
fn witness(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let command = [arguments, &["--witness", "w.yml"]].concat();
    sandbox.run(&command).ends_with(1);
    let text = std::fs::read_to_string(sandbox.path("w.yml")).expect("a witness");
    let documents = YamlLoader::load_from_str(&text).expect("YAML");
    let witness = from_yaml(&documents[0]);
    conforms(include_str!("schemas/witness.json"), &witness);
    for entry in witness.as_array().expect("entries") {
        follows_the_rules(entry);
    }
    witness[0].clone()
}

/// Checks what `schemas/witness.json` cannot express. Both say in our words what the published description of
/// version 2.0 says (`violation-witness-schema.yml` of sv-witnesses).
#[track_caller]
fn follows_the_rules(entry: &Value) {
    let metadata = &entry["metadata"];
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let uuid = text(&metadata["uuid"]);
    let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
    let hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(hexadecimal(&uuid.replace('-', "")), "{uuid}");
    let created = text(&metadata["creation_time"]);
    let shape = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let shape: String = created.chars().map(shape).collect();
    assert_eq!(shape, "0000-00-00T00:00:00Z");

    // Each file has a hash, and every place lies in one of the files.
    let files = metadata["task"]["input_files"].as_array().expect("files");
    let hashes = &metadata["task"]["input_file_hashes"];
    assert_eq!(hashes.as_object().expect("hashes").len(), files.len());
    for file in files {
        let hash = text(&hashes[file.as_str().expect("a name")]);
        assert!(hash.len() == 64 && hexadecimal(&hash), "{file}: {hash}");
    }

    // A segment is some waypoints to avoid and one to follow, which comes last. Only the last segment
    // follows the target, which has no constraint; all others need one, each of its own form.
    let segments = entry["content"].as_array().expect("segments");
    for (n, segment) in segments.iter().enumerate() {
        let waypoints = segment["segment"].as_array().expect("waypoints");
        for (k, waypoint) in waypoints.iter().enumerate() {
            let waypoint = &waypoint["waypoint"];
            let last = k + 1 == waypoints.len();
            let action = if last { "follow" } else { "avoid" };
            assert_eq!(waypoint["action"], action, "{entry:#}");
            let target = last && n + 1 == segments.len();
            assert_eq!(waypoint["type"] == "target", target, "{entry:#}");
            let constraint = &waypoint["constraint"];
            let value = || text(&constraint["value"]);
            let well_formed = match &*text(&waypoint["type"]) {
                "target" | "function_enter" => constraint.is_null(),
                "assumption" => constraint["format"] == "c_expression",
                "function_return" => {
                    constraint["format"] == "acsl_expression"
                        && value().starts_with("\\result == ")
                        && waypoint["location"]["column"].is_u64()
                }
                _ => constraint["format"].is_null() && ["true", "false"].contains(&&*value()),
            };
            assert!(well_formed, "{entry:#}");
            let file = &waypoint["location"]["file_name"];
            assert!(files.contains(file), "{entry:#}");
        }
    }
}

#[test]
fn a_violation_witness_has_the_choices_and_the_target() {
    let sandbox = Sandbox::with("lost.c", LOST_UPDATE);
    let entry = witness(&sandbox, &["verify", "lost.c"]);
    let segments = entry["content"].as_array().unwrap();
    let waypoint = |n: usize| &segments[n]["segment"][0]["waypoint"];
    assert_eq!(segments.len(), 2);
    assert_eq!(waypoint(0)["type"], "function_return");
    assert_eq!(waypoint(0)["constraint"]["value"], "\\result == 1");
    assert_eq!(waypoint(0)["location"]["line"], 13);
    assert_eq!(waypoint(0)["location"]["column"], 29);
    assert_eq!(waypoint(1)["type"], "target");
    assert_eq!(waypoint(1)["location"]["line"], 17);
    let task = &entry["metadata"]["task"];
    assert_eq!(
        task["specification"],
        "CHECK( init(main()), LTL(G ! call(__assert_fail())) )"
    );
    let hash = task["input_file_hashes"]["lost.c"].as_str().unwrap();
    assert_eq!(hash.len(), 64);

    let name = "ra\"ce\\: {x}.c";
    let sandbox = Sandbox::with(name, RACE);
    let entry = witness(&sandbox, &["verify", name]);
    let task = &entry["metadata"]["task"];
    assert_eq!(task["input_files"][0], name);
    assert_eq!(
        task["specification"],
        "CHECK( init(main()), LTL(G ! data-race) )"
    );
}

#[test]
fn the_target_of_a_task_of_sv_comp_is_the_call_of_its_error_function() {
    const TASK: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
void reach_error(void) { assert(0); }
static atomic_int x;
static void *f(void *unused) { x = 1; return unused; }
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, f, 0);
  if (x)
    reach_error();
}
";
    let without_a_definition = TASK.replace(" { assert(0); }", ";");
    for task in [TASK, &without_a_definition] {
        let sandbox = Sandbox::with("task.c", task);
        let entry = witness(&sandbox, &["verify", "task.c"]);
        let target = &entry["content"][0]["segment"][0]["waypoint"];
        assert_eq!(target["location"]["line"], 11);
        assert_eq!(
            entry["metadata"]["task"]["specification"],
            "CHECK( init(main()), LTL(G ! call(reach_error())) )"
        );
    }
}

/// A thread that wakes up without a reason makes a choice as well, but it is no value that a function returns.
#[test]
fn only_values_that_functions_return_are_in_a_witness() {
    const WAKES: &str = "\
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready;
static void *f(void *unused) {
  pthread_mutex_lock(&m);
  ready = 1;
  pthread_cond_signal(&c);
  pthread_mutex_unlock(&m);
  return unused;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, f, 0);
  pthread_mutex_lock(&m);
  if (!ready)
    pthread_cond_wait(&c, &m);
  assert(ready);
}
";
    let sandbox = Sandbox::with("wakes.c", WAKES);
    let entry = witness(&sandbox, &["verify", "wakes.c", "--spurious-wakeups"]);
    assert_eq!(entry["content"].as_array().map(Vec::len), Some(1));
}

#[test]
fn no_witness_is_written_for_what_the_format_cannot_express() {
    const ENDLESS: &str =
        "#include <stdatomic.h>\nstatic atomic_int x;\nint main(void) { while (!x); }";
    let programs = [
        ("endless.c", ENDLESS, "no specification for this kind"),
        ("race.cpp", RACE, "programs in C only"),
    ];
    for (name, text, why) in programs {
        let sandbox = Sandbox::with(name, text);
        let outcome = sandbox.run(&["verify", name, "--witness", "w.yml"]);
        outcome.ends_with(1).says(why);
        assert!(!sandbox.path("w.yml").exists());
    }
}

#[test]
fn no_witness_is_written_without_a_violation() {
    let sandbox = Sandbox::with("fine.c", FINE);
    let outcome = sandbox.run(&["verify", "fine.c", "--witness", "w.yml"]);
    outcome
        .ends_with(0)
        .says("no violation witness was written");
    assert!(!sandbox.path("w.yml").exists());
}

const DEADLOCK: &str = "\
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *u) { pthread_mutex_lock(&b); pthread_mutex_lock(&a); return u; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, f, 0);
  pthread_mutex_lock(&a);
  pthread_mutex_lock(&b);
}
";

const TWO_BUGS: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x, y;
static void *f(void *u) { x = 1; y = 1; return u; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, f, 0);
  assert(x == 0);
  assert(y == 0);
}
";

/// A program with its name, the options of its check, and how that ends.
type Check = (&'static str, &'static str, &'static [&'static str], i32);

/// A check of every kind: bugs with and without a second thread, several bugs, names that mean something in a format,
/// a search that a limit ends, a program that does not compile.
const CHECKS: [Check; 9] = [
    ("lost<&>\"'\u{1}.c", LOST_UPDATE, &[], 1),
    ("a,b:%0A].c", RACE, &[], 1),
    ("race.c", RACE, &["--keep-going"], 1),
    ("two.c", TWO_BUGS, &["--keep-going"], 1),
    ("deadlock.c", DEADLOCK, &[], 1),
    (
        "states.c",
        DEADLOCK,
        &["--model", "sc", "--algorithm", "csdr"],
        1,
    ),
    ("fine.c", FINE, &[], 0),
    ("fine.c", FINE, &["--max-executions", "1"], 3),
    ("bad.c", "int main(void) { return <&>]]>; }\n", &[], 2),
];

#[test]
fn sarif_and_junit_are_well_formed_for_every_kind_of_result() {
    for (name, text, options, status) in CHECKS {
        let sandbox = Sandbox::with(name, text);
        let run = |format: &str| {
            let command = [&["verify", name, "--format", format], options].concat();
            let outcome = sandbox.run(&command);
            outcome.ends_with(status);
            outcome
        };
        let log = sarif(&run("sarif"));
        let bugs = match (name, status) {
            ("two.c", _) => 2,
            (_, 1) => 1,
            _ => 0,
        };
        assert_eq!(
            log["results"].as_array().map(Vec::len),
            Some(bugs),
            "{name}"
        );
        assert_eq!(log["invocations"][0]["exitCode"], status);
        let case = test_case(&run("junit"));
        let children = case["children"].as_array().expect("children");
        let expected = ["system-out", "failure", "error", "error"][status as usize];
        assert_eq!(children.len(), 1, "{case:#}");
        assert_eq!(children[0]["name"], expected, "{case:#}");
    }
}

/// JUnit has no standard of its own. `SELVEDGE_JUNIT_SCHEMA` names a file with the schema that Jenkins'
/// plugin for test results checks documents with.
#[test]
#[ignore = "needs Python with xmlschema, and the schema"]
fn junit_conforms_to_the_schema_of_jenkins() {
    let schema = std::env::var("SELVEDGE_JUNIT_SCHEMA").expect("the schema is named");
    let check = "import sys, xmlschema\nxmlschema.XMLSchema(sys.argv[1]).validate(sys.argv[2])";
    let refused = |document: &str| {
        let sandbox = Sandbox::with("result.xml", document);
        let mut python = std::process::Command::new("python3");
        let python = python.args(["-c", check, &schema]);
        let output = python.arg(sandbox.path("result.xml")).output();
        let output = output.expect("Python runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (!output.status.success()).then_some(said)
    };
    for (name, text, options, status) in CHECKS {
        let sandbox = Sandbox::with(name, text);
        let command = [&["verify", name, "--format", "junit"], options].concat();
        let document = sandbox.run(&command).ends_with(status).stdout.clone();
        assert_eq!(refused(&document), None, "{document}");
        let foreign = document.replace("classname=", "class_name=");
        assert!(refused(&foreign).is_some(), "{foreign}");
    }
}

/// `SELVEDGE_SARIF_SCHEMA` names the file of the standard's own schema.
#[test]
#[ignore = "needs Python with jsonschema, and the schema"]
fn sarif_conforms_to_the_schema_of_the_standard() {
    let schema = std::env::var("SELVEDGE_SARIF_SCHEMA").expect("the schema is named");
    let check = "import json, sys, jsonschema\n\
        schema, log = (json.load(open(path)) for path in sys.argv[1:])\n\
        jsonschema.Draft7Validator(schema).validate(log)";
    for (name, text, options, status) in CHECKS {
        let sandbox = Sandbox::with(name, text);
        let command = [&["verify", name, "--format", "sarif"], options].concat();
        let outcome = sandbox.run(&command);
        sandbox.write("log.sarif", &outcome.ends_with(status).stdout);
        let output = std::process::Command::new("python3")
            .args(["-c", check, &schema])
            .arg(sandbox.path("log.sarif"))
            .output()
            .expect("Python runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
    }
}

/// `SELVEDGE_WITNESS_SCHEMA` names the file of SV-COMP's own schema, or of our `schemas/witness.json`.
#[test]
#[ignore = "needs Python with jsonschema and yaml, and the schema"]
fn witnesses_conform_to_the_schema_of_the_format() {
    let schema = std::env::var("SELVEDGE_WITNESS_SCHEMA").expect("the schema is named");
    let check = "import sys, jsonschema, yaml\n\
        schema, witness = (yaml.safe_load(open(path)) for path in sys.argv[1:])\n\
        checker = jsonschema.validators.validator_for(schema)\n\
        checker(schema, format_checker=jsonschema.FormatChecker()).validate(witness)";
    let sandbox = Sandbox::new();
    let refused = |document: &str| {
        sandbox.write("witness.yml", document);
        let mut python = std::process::Command::new("python3");
        let python = python.args(["-c", check, &schema]);
        let output = python.arg(sandbox.path("witness.yml")).output();
        let output = output.expect("Python runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (!output.status.success()).then_some(said)
    };
    for (name, text, options) in [
        ("lost.c", LOST_UPDATE, &[][..]),
        ("a \"b\".c", RACE, &[]),
        ("#: - *x\u{1}.c", RACE, &[]),
        ("two.c", TWO_BUGS, &["--keep-going"]),
        ("limited.c", LOST_UPDATE, &["--max-executions", "1000"]),
    ] {
        sandbox.write(name, text);
        let command = [&["verify", name, "--witness", "w.yml"], options].concat();
        sandbox.run(&command).ends_with(1);
        let document = std::fs::read_to_string(sandbox.path("w.yml")).expect("a witness");
        assert_eq!(refused(&document), None, "{document}");
        for (member, damaged) in [
            ("follow", "pursue"),
            ("file_name:", "name:"),
            ("uuid: ", "uuid: x"),
        ] {
            let damaged = document.replace(member, damaged);
            let said = refused(&damaged).expect("a witness that is refused");
            assert!(said.contains("ValidationError"), "{said}");
        }
    }
}
