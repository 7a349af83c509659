//! `cargo selvedge check`: a program, or tests, written against `std`.
//!
//! Cargo builds it with a linker that gathers bitcode instead of linking; `selvedge verify`
//! instruments that, the standard library included, and checks it. Each test is a run of the program with
//! its name as the argument.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::args::Check;
use crate::build::{self, Executable};
use crate::{loom, run};

/// The only target: naming it keeps build scripts and macros of the host out of this.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds and checks the program.
pub(crate) fn run(check: &Check) -> Result<ExitCode, String> {
    let selvedge = selvedge();
    let build = Build::new(check)?;
    let program = build.run(&selvedge)?;
    let mut command = Command::new(&selvedge);
    command.arg("verify").arg(&program);
    if build.has_tests() {
        let names = build.tests()?;
        let list = program.with_extension("tests");
        fs::write(&list, names.join("\n"))
            .map_err(|error| format!("cannot write {}: {error}", list.display()))?;
        command.args(["--test-case", "*"]);
    }
    let status = command
        .args(&check.options)
        .status()
        .map_err(|error| format!("cannot run {}: {error}", selvedge.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(4)))
}

/// The `selvedge` command: beside this program, or on the path.
fn selvedge() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.with_file_name("selvedge");
    match beside.is_file() {
        true => beside,
        false => "selvedge".into(),
    }
}

/// The target that cargo is to build.
struct Build<'a> {
    check: &'a Check,
    /// The options that choose it on cargo's command line.
    chosen: Vec<String>,
    /// Where the instrumented program is built.
    target: PathBuf,
}

impl Build<'_> {
    fn new(check: &Check) -> Result<Build<'_>, String> {
        if !check.filters.is_empty() && !check.lib && check.test.is_none() {
            return Err("names choose among tests: say which with --test or --lib".to_owned());
        }
        let manifest = check.manifest_path.as_ref();
        let manifest =
            manifest.map(|path| ["--manifest-path".to_owned(), path.display().to_string()]);
        let mut chosen: Vec<String> = manifest.into_iter().flatten().collect();
        let metadata = loom::metadata(&chosen)?;
        let target = metadata["target_directory"].as_str().unwrap_or("target");
        let target = Path::new(target).join("selvedge").join("check");
        for (option, value) in [
            ("--bin", &check.bin),
            ("--example", &check.example),
            ("--test", &check.test),
            ("--package", &check.package),
            ("--features", &check.features),
        ] {
            if let Some(value) = value {
                chosen.extend([option.to_owned(), value.clone()]);
            }
        }
        if check.lib {
            chosen.push("--lib".to_owned());
        }
        Ok(Build {
            check,
            chosen,
            target,
        })
    }

    fn has_tests(&self) -> bool {
        self.check.lib || self.check.test.is_some()
    }

    fn cargo(&self) -> Command {
        let mut command = loom::cargo();
        match self.has_tests() {
            true => command.args(["test", "--no-run"]),
            false => command.arg("build"),
        };
        command.arg("--message-format=json-render-diagnostics");
        command.args(&self.chosen).stderr(Stdio::inherit());
        command
    }

    /// Has cargo build the instrumented program; where it is.
    fn run(&self, selvedge: &Path) -> Result<PathBuf, String> {
        let flags = Command::new(selvedge).arg("link-rust").output();
        let flags = flags.map_err(|error| {
            format!(
                "cannot run {}: {error}; install it with: cargo install --path crates/selvedge-cli",
                selvedge.display()
            )
        })?;
        let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
        let linker = linker(&self.target, selvedge)
            .map_err(|error| format!("cannot write to {}: {error}", self.target.display()))?;
        let mut command = self.cargo();
        command.args(["--target", TARGET]);
        command.env("CARGO_TARGET_DIR", &self.target);
        // Among the flags, since cargo's own setting would apply to build scripts as well.
        let linker = format!("-Clinker={}", linker.display());
        let flags: Vec<&str> = flags.split_whitespace().chain([&*linker]).collect();
        loom::flags(&flags).give(&mut command);
        Ok(built(command, self.has_tests())?.path)
    }

    /// The names of the tests that the user chose. An ordinary build of the tests lists them.
    fn tests(&self) -> Result<Vec<String>, String> {
        let names = run::listed(&built(self.cargo(), true)?, [].into_iter())?;
        let filters = &self.check.filters;
        let chosen = |name: &String| filters.iter().any(|filter| name.contains(filter));
        let names: Vec<String> = match filters.is_empty() {
            true => names,
            false => names.into_iter().filter(chosen).collect(),
        };
        match names.is_empty() {
            true => Err("there is no such test".to_owned()),
            false => Ok(names),
        }
    }
}

/// The one program that cargo builds.
fn built(mut command: Command, with_tests: bool) -> Result<Executable, String> {
    let output = command.output();
    let output = output.map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        return Err("the program could not be built".to_owned());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut programs = build::executables(&messages, with_tests);
    match programs.len() {
        1 => Ok(programs.remove(0)),
        0 => Err(
            "the package has no program: name one with --bin, --example, --test or --lib"
                .to_owned(),
        ),
        _ => {
            let names = programs
                .iter()
                .filter_map(|program| program.path.file_name());
            let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
            Err(format!(
                "the package has several programs: name one with --bin: {}",
                names.join(", ")
            ))
        }
    }
}

/// A linker for rustc: `selvedge link-rust`.
fn linker(target: &Path, selvedge: &Path) -> std::io::Result<PathBuf> {
    fs::create_dir_all(target)?;
    let path = target.join("linker");
    let selvedge = selvedge.display().to_string().replace('\'', "'\\''");
    let text = format!("#!/bin/sh\nexec '{selvedge}' link-rust \"$@\"\n");
    loom::write_if_new(&path, &text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}
