//! The names that programs may refer to: nothing that C++'s library needs is unknown, and the shims
//! define the names that they list.

use std::process::Command;

use selvedge_runtime::symbols::{Symbol, classify};

use crate::common::programs::program;
use crate::common::{GCC, Program};

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The undefined dynamic symbols of a shared object, without their versions.
fn undefined(library: &str) -> Vec<String> {
    output("nm", &["-D", "-u", library])
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .map(|name| name.split('@').next().unwrap_or(name).to_owned())
        .collect()
}

#[test]
fn all_of_the_cxx_library_can_be_linked() {
    let archive = output("g++", &["-print-file-name=libstdc++.a"]);
    let source = "int main() { return 0; }";
    let flags = [
        // The shim stands in for a few of them.
        "-Wl,--allow-multiple-definition",
        "-Wl,--whole-archive",
        archive.trim(),
        "-Wl,--no-whole-archive",
    ];
    let program = Program::link_with("g++", source, &flags);
    for name in undefined(&program.library().display().to_string()) {
        let class = classify(&name);
        assert_eq!(class, Symbol::Known, "{name}");
    }
}

#[test]
fn a_c_program_needs_nothing_unknown() {
    let source = program(
        "#include <ctype.h>\n#include <math.h>\n",
        "double x = sqrt(strtod(\"2\", 0)) + lround(2.5); return isalpha((int)x) + abs(-3);",
    );
    let program = Program::build(GCC, &source);
    for name in undefined(&program.library().display().to_string()) {
        assert_eq!(classify(&name), Symbol::Known, "{name}");
    }
}

#[test]
fn an_unknown_function_is_unknown() {
    assert_eq!(classify("gtk_main"), Symbol::Unknown);
    assert!(matches!(classify("mmap"), Symbol::Refused(reason) if reason.contains("malloc")));
}
