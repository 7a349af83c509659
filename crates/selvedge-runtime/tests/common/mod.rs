//! Builds small programs, loads them, and drives them one step at a time.
#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod driver;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge_runtime::{NativeMachine, Settings, support};
use tempfile::TempDir;

/// Runs `case` in a process of its own: only one program can be loaded per process.
pub fn isolated(test: &str, case: impl FnOnce()) {
    const VARIABLE: &str = "SELVEDGE_ISOLATED_TEST";
    if env::var_os(VARIABLE).is_some_and(|name| name == test) {
        return case();
    }
    let output = Command::new(env::current_exe().expect("the test binary"))
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, test)
        .output()
        .expect("the test binary runs");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("1 passed"), "{} ({})", text, output.status);
}

/// How to build a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    pub compiler: &'static str,
    pub level: &'static str,
}

/// What most programs are built with.
pub const GCC: Build = Build {
    compiler: "gcc",
    level: "-O0",
};
/// The same with clang.
pub const CLANG: Build = Build {
    compiler: "clang",
    level: "-O0",
};
/// gcc, optimising.
pub const GCC_O2: Build = Build {
    compiler: "gcc",
    level: "-O2",
};
/// clang, optimising.
pub const CLANG_O2: Build = Build {
    compiler: "clang",
    level: "-O2",
};

impl Build {
    pub fn available(self) -> bool {
        Command::new(self.compiler)
            .arg("--version")
            .output()
            .is_ok()
    }

    /// The builds among `builds` whose compiler is installed.
    pub fn installed(builds: &[Build]) -> impl Iterator<Item = Build> {
        builds.iter().copied().filter(|build| build.available())
    }
}

/// A program that was built and can be loaded.
pub struct Program {
    directory: TempDir,
}

impl Program {
    /// Builds the C program `source`.
    pub fn build(build: Build, source: &str) -> Program {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("program.c"), source).expect("the source is written");
        fs::write(at("stubs.s"), support::stub_assembly()).expect("the stubs are written");
        let volatile = if build.compiler == "clang" {
            [
                "-mllvm",
                "-tsan-distinguish-volatile",
                "-mllvm",
                "-tsan-instrument-read-before-write",
            ]
        } else {
            [
                "--param",
                "tsan-distinguish-volatile=1",
                "-fno-builtin-memset",
                "-Wno-tsan",
            ]
        };
        compiler(
            Command::new(build.compiler)
                .args(["-g", build.level, "-fPIC", "-fsanitize=thread"])
                .args(volatile)
                .args(["-c", "-o"])
                .args([at("program.o"), at("program.c")]),
        );
        compiler(Command::new(build.compiler).args(["-shared", "-o"]).args([
            at("program.so"),
            at("program.o"),
            at("stubs.s"),
        ]));
        Program { directory }
    }

    pub fn library(&self) -> PathBuf {
        self.directory.path().join("program.so")
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Loads it.
    pub fn load(&self, settings: Settings) -> NativeMachine {
        NativeMachine::load(&self.library(), settings).expect("the program loads")
    }
}

fn compiler(command: &mut Command) {
    let output = command.output().expect("the compiler runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
