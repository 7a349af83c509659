//! Runs the built command over many programs, two at a time, and collects what is not as expected.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

/// One run of `selvedge verify` and what it must say.
pub(crate) struct Case {
    /// How the table of deviations calls it.
    pub(crate) name: String,
    /// The memory model.
    pub(crate) model: &'static str,
    /// The options and the file.
    pub(crate) arguments: Vec<String>,
    /// `verified` or `bug`.
    pub(crate) verdict: String,
    /// The kind of bug.
    pub(crate) bug: Option<String>,
    /// How many complete executions there are, if that is to be checked.
    pub(crate) executions: Option<u64>,
    /// How many blocked ones, if that is to be checked.
    pub(crate) blocked: Option<u64>,
}

/// A compiler for C and its companion for C++.
#[derive(Clone, Copy)]
pub(crate) struct Compiler {
    c: &'static str,
    cxx: &'static str,
}

impl Compiler {
    const ALL: [Compiler; 2] = [
        Compiler {
            c: "gcc",
            cxx: "g++",
        },
        Compiler {
            c: "clang",
            cxx: "clang++",
        },
    ];

    /// The compilers that are installed.
    pub(crate) fn installed() -> Vec<Compiler> {
        let runs = |name| Command::new(name).arg("--version").output().is_ok();
        let found = Compiler::ALL
            .into_iter()
            .filter(|compiler| runs(compiler.c));
        found.collect()
    }

    /// The command for `file`.
    pub(crate) fn command(self, file: &Path) -> &'static str {
        match file.extension() {
            Some(extension) if extension == "cpp" => self.cxx,
            _ => self.c,
        }
    }
}

/// Runs all cases and fails with a table of those that deviate.
pub(crate) fn check(cases: Vec<Case>) {
    let total = cases.len();
    assert!(total > 0, "there is nothing to check");
    let queue = Mutex::new(cases.into_iter());
    let deviations = Mutex::new(Vec::new());
    let worker = || {
        loop {
            let Some(case) = queue.lock().expect("no worker panics").next() else {
                return;
            };
            if let Err(deviation) = run(&case) {
                let line = (case.name, deviation);
                deviations.lock().expect("no worker panics").push(line);
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(worker);
        scope.spawn(worker);
    });
    let mut deviations = deviations.into_inner().expect("no worker panics");
    deviations.sort();
    let mut table = String::new();
    for (name, deviation) in &deviations {
        let _ = writeln!(table, "{name:<44} {deviation}");
    }
    assert!(
        deviations.is_empty(),
        "{} of {total} checks deviate:\n{table}",
        deviations.len()
    );
}

fn run(case: &Case) -> Result<(), String> {
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge"))
        .args(["verify", "--format", "json", "--timeout", "60"])
        .args(["--model", case.model])
        .args(&case.arguments)
        .output()
        .expect("the command runs");
    let Ok(result) = serde_json::from_slice::<Value>(&output.stdout) else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, stderr.trim()));
    };
    let mut wrong = Vec::new();
    let mut compare = |what: &str, expected: Value, found: &Value| {
        if *found != expected {
            wrong.push(format!("{what} {found} instead of {expected}"));
        }
    };
    compare("verdict", case.verdict.as_str().into(), &result["verdict"]);
    compare("bug", case.bug.clone().into(), &result["bug"]["kind"]);
    for bug in result["bugs"].as_array().into_iter().flatten() {
        compare("a bug", case.bug.clone().into(), &bug["kind"]);
    }
    if let Some(executions) = case.executions {
        compare("executions", executions.into(), &result["executions"]);
    }
    if let Some(blocked) = case.blocked {
        compare("blocked", blocked.into(), &result["blocked"]);
    }
    let status = i32::from(case.verdict == "bug");
    compare("status", status.into(), &output.status.code().into());
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join(", "))
    }
}
