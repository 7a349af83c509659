//! Building the tests.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::args::Build;
use crate::loom;

/// A program with tests in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Executable {
    /// The package and the target, for people.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Where tests expect to be run.
    pub(crate) directory: PathBuf,
}

/// Builds all tests with Selvedge in the place of loom and tells where they are.
pub(crate) fn build(build: &Build) -> Result<Vec<Executable>, String> {
    let replacement = loom::replace(&build.cargo)?;
    let mut command = loom::cargo();
    command.args([
        "test",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]);
    command.args(&replacement.arguments);
    if std::env::var_os("CARGO_TARGET_DIR").is_none() {
        // Other flags than the user's own builds have: each would undo the other's work.
        command.env("CARGO_TARGET_DIR", &replacement.target);
    }
    if build.release {
        command.arg("--release");
    }
    loom::flags(&["--cfg", &build.cfg]).give(&mut command);
    command.args(&build.cargo);
    command.stderr(Stdio::inherit());
    let output = command
        .output()
        .map_err(|e| format!("cargo cannot be run: {e}"))?;
    if !output.status.success() {
        return Err("the tests could not be built".to_owned());
    }
    Ok(executables(&String::from_utf8_lossy(&output.stdout), true))
}

/// The programs that cargo's messages name: those with tests, or those without.
pub(crate) fn executables(messages: &str, with_tests: bool) -> Vec<Executable> {
    let mut found = Vec::new();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let has_tests = message["profile"]["test"].as_bool() == Some(true);
        let wanted = has_tests == with_tests;
        let (Some(path), true) = (message["executable"].as_str(), wanted) else {
            continue;
        };
        let manifest = PathBuf::from(message["manifest_path"].as_str().unwrap_or("."));
        let directory = manifest.parent().map(PathBuf::from).unwrap_or_default();
        let package = directory
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let target = message["target"]["name"].as_str().unwrap_or("?");
        found.push(Executable {
            name: match package {
                Some(package) if package != target => format!("{package}::{target}"),
                _ => target.to_owned(),
            },
            path: path.into(),
            directory,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_in_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/a/queue/Cargo.toml","target":{"name":"loom"},"profile":{"test":true},"executable":"/a/target/loom-1"}
{"reason":"compiler-artifact","manifest_path":"/a/queue/Cargo.toml","target":{"name":"queue"},"profile":{"test":false},"executable":null}
not a message"#;
        let expected = Executable {
            name: "queue::loom".to_owned(),
            path: "/a/target/loom-1".into(),
            directory: "/a/queue".into(),
        };
        assert_eq!(executables(messages, true), [expected]);
        assert_eq!(executables(messages, false), []);
    }
}
