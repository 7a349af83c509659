//! `cargo selvedge check`: a program that is written against `std`.
//!
//! Cargo builds it with a linker that gathers bitcode instead of linking; `selvedge verify`
//! instruments that, the standard library included, and checks it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

use crate::args::Check;
use crate::loom;

/// The only target: naming it keeps build scripts and macros of the host out of this.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds and checks the program.
pub(crate) fn run(check: &Check) -> Result<ExitCode, String> {
    let selvedge = selvedge();
    let program = build(check, &selvedge)?;
    let status = Command::new(&selvedge)
        .arg("verify")
        .arg(program)
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

/// Has cargo build the program; where it is.
fn build(check: &Check, selvedge: &Path) -> Result<PathBuf, String> {
    let flags = Command::new(selvedge).arg("link-rust").output();
    let flags = flags.map_err(|error| {
        format!(
            "cannot run {}: {error}; install it with: cargo install --path crates/selvedge-cli",
            selvedge.display()
        )
    })?;
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let manifest = check.manifest_path.as_ref();
    let manifest = manifest.map(|path| ["--manifest-path".to_owned(), path.display().to_string()]);
    let manifest: Vec<String> = manifest.into_iter().flatten().collect();
    let metadata = loom::metadata(&manifest)?;
    let target = metadata["target_directory"].as_str().unwrap_or("target");
    let target = Path::new(target).join("selvedge").join("check");
    let linker = linker(&target, selvedge)
        .map_err(|error| format!("cannot write to {}: {error}", target.display()))?;
    let mut command = loom::cargo();
    command.args(["build", "--message-format=json-render-diagnostics"]);
    command.args(["--target", TARGET]).args(manifest);
    for (option, value) in [
        ("--bin", &check.bin),
        ("--example", &check.example),
        ("--package", &check.package),
        ("--features", &check.features),
    ] {
        if let Some(value) = value {
            command.args([option, value]);
        }
    }
    command.env("CARGO_TARGET_DIR", &target);
    // Among the flags, since cargo's own setting would apply to build scripts as well.
    let linker = format!("-Clinker={}", linker.display());
    let flags: Vec<&str> = flags.split_whitespace().chain([&*linker]).collect();
    loom::flags(&flags).give(&mut command);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        return Err("the program could not be built".to_owned());
    }
    let programs = programs(&String::from_utf8_lossy(&output.stdout));
    match programs.as_slice() {
        [program] => Ok(program.clone()),
        [] => Err("the package has no program: name one with --bin or --example".to_owned()),
        several => {
            let names = several.iter().filter_map(|path| path.file_name());
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

/// The programs that cargo's messages name.
fn programs(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message["executable"].as_str()?))
    });
    messages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_cargos_messages() {
        let messages = "{\"executable\":\"/a/b\"}\n{\"executable\":null}\nnot a message\n";
        assert_eq!(programs(messages), [PathBuf::from("/a/b")]);
    }
}
