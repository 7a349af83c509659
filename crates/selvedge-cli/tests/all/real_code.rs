//! Libraries from Debian's packages, checked as they are, and once more with something taken out of
//! them: the rows of the table in `docs/real-code.md`. `.ci/run` installs the packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Sandbox, compilers};

/// A check of the table.
struct Row {
    command: String,
    result: String,
}

/// The checks of each library, by its name.
type Libraries = BTreeMap<String, Vec<Row>>;

/// Names and values that commands refer to.
type Variables = Vec<(String, String)>;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real")
}

/// The documentation's table by libraries, and the variables that its commands use.
fn table() -> (Libraries, Variables) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/real-code.md");
    let page = fs::read_to_string(page).expect("the page exists");
    let script = page.split("```").nth(1).expect("variables").lines().skip(1);
    let variables = script.filter_map(|line| line.split_once('='));
    let variables = variables.map(|(name, value)| (name.into(), value.trim_matches('\'').into()));
    let mut libraries = Libraries::new();
    let mut library = String::new();
    for line in page.lines().filter(|line| line.contains("| `verify ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, _, command, result, time, _] = cells[..] else {
            panic!("not a row of the table: {line}");
        };
        assert!(time.ends_with(" s"), "{line}");
        if !name.is_empty() {
            name.clone_into(&mut library);
        }
        libraries.entry(library.clone()).or_default().push(Row {
            command: command.trim_matches('`').to_owned(),
            result: result.to_owned(),
        });
    }
    (libraries, variables.collect())
}

/// Runs every check of the library whose name begins like this.
#[track_caller]
fn check(library: &str) {
    let (libraries, variables) = table();
    let mut found = libraries
        .iter()
        .filter(|(name, _)| name.starts_with(library));
    let (_, rows) = found.next().expect("a library of the table");
    assert!(rows.iter().any(|row| row.result.starts_with("verified")));
    assert!(rows.iter().any(|row| !row.result.starts_with("verified")));
    for row in rows {
        for compiler in compilers() {
            // C++ takes long to compile, so that one compiler has to do.
            if compiler == "gcc" || !row.command.contains(".cc") {
                check_row(row, compiler, &variables);
            }
        }
    }
}

#[track_caller]
fn check_row(row: &Row, compiler: &str, variables: &[(String, String)]) {
    // Directories of source packages are somewhere else in every place where this runs.
    let elsewhere = |name: &str| std::env::var(name).ok();
    let mut script = String::new();
    for (name, value) in variables {
        let value = elsewhere(name).unwrap_or_else(|| value.clone());
        let used = row.command.contains(&format!("${name}"));
        if used && !value.starts_with('-') && !directory().join(&value).exists() {
            eprintln!(
                "{value} is not there (set {name}): {} is left out",
                row.command
            );
            return;
        }
        script += &format!("{name}='{value}'\n");
    }
    let language = if row.command.contains(".cc") {
        "c++"
    } else {
        ""
    };
    let compiler = match (compiler, language) {
        ("gcc", "c++") => "g++",
        (compiler, _) => compiler,
    };
    let options = format!("verify --timeout 120 --cc {compiler} ");
    let command = row.command.replacen("verify ", &options, 1);
    let output = run(&format!("{script}selvedge {command}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let context = format!("{command}\n{text}\n{errors}");
    match row.result.strip_prefix("verified, ") {
        Some(executions) => {
            assert_eq!(output.status.code(), Some(0), "{context}");
            // The figures are those of gcc.
            let counted = text.contains(&format!("({executions} under "));
            assert!(counted || compiler == "clang", "{context}");
        }
        None => {
            assert_eq!(output.status.code(), Some(1), "{context}");
            let bug = row.result.trim_end_matches(", see below");
            assert!(text.starts_with(&format!("bug: {bug}")), "{context}");
        }
    }
}

fn run(script: &str) -> Output {
    let binaries = Path::new(env!("CARGO_BIN_EXE_selvedge")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("PATH", path);
    let command = command.current_dir(directory()).env_remove("CC");
    command.output().expect("sh runs")
}

#[test]
#[ignore = "needs libboost-dev"]
fn boost_lockfree() {
    check("Boost.Lockfree");
}

#[test]
#[ignore = "needs libconcurrentqueue-dev and libreaderwriterqueue-dev"]
fn moodycamel() {
    check("moodycamel");
}

#[test]
#[ignore = "needs libck-dev"]
fn concurrency_kit() {
    check("Concurrency Kit");
}

#[test]
#[ignore = "needs libdpdk-dev"]
fn dpdk() {
    check("DPDK");
}

#[test]
#[ignore = "needs liburcu-dev and its source"]
fn userspace_rcu() {
    check("userspace RCU");
}

#[test]
#[ignore = "needs libtbb-dev"]
fn one_tbb() {
    check("oneTBB");
}

#[test]
#[ignore = "needs the source of libzstd"]
fn zstd() {
    check("zstd");
}

#[test]
#[ignore = "needs libgtest-dev"]
fn google_test() {
    check("GoogleTest");
}

#[test]
#[ignore = "needs libboost-dev and libck-dev"]
fn advice_names_the_lines_of_libraries() {
    let run = |arguments: &[&str]| {
        let sandbox = Sandbox::new();
        let mut command = sandbox.command(arguments);
        let output = command.current_dir(directory()).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let boost = run(&["verify", "boost_queue.cc", "--", "-DWEAK"]);
    let expected = "advice: boost_queue.cc:16: in boost::lockfree::queue<int, …>::pop<int> \
                    (/usr/include/boost/lockfree/queue.hpp:418)\n          make the load of ";
    assert!(boost.contains(expected), "{boost}");
    // The accesses are inline assembly in functions that compilers do not instrument.
    let ring = run(&["verify", "ck_ring.c"]);
    let expected = "advice: ck_ring.c:41: in _ck_ring_enqueue_sp (/usr/include/ck_ring.h:200)\n          \
                    make the store to ring.p_tail memory_order_release (it is relaxed)\n        \
                    ck_ring.c:53: in _ck_ring_dequeue_sc (/usr/include/ck_ring.h:229)\n          \
                    make the load of ring.p_tail memory_order_acquire (it is relaxed)\n";
    assert!(ring.contains(expected), "{ring}");
}
