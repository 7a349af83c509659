//! Builds small programs, loads them, and drives them one step at a time.
#![allow(unreachable_pub)]

pub mod checks;
pub mod driver;
pub mod ends;
pub mod many;
pub mod programs;
pub mod search;

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge_runtime::{NativeMachine, Protection, Settings, support};
use tempfile::TempDir;

/// How the test binary calls `test`, a function of the file that asks.
#[track_caller]
pub fn full_name(test: &str) -> String {
    let file = Path::new(Location::caller().file());
    let module = file.file_stem().expect("a source file").to_string_lossy();
    format!("{module}::{test}")
}

/// Runs `case`, which is all of `test`, in a process of its own: only one program can be loaded per
/// process.
#[track_caller]
pub fn isolated(test: &str, case: impl FnOnce()) {
    isolated_with(test, &[], case);
}

/// The same without one of the protections.
#[track_caller]
pub fn isolated_without(test: &str, protection: Protection, case: impl FnOnce()) {
    let name = format!("{protection:?}");
    isolated_with(test, &[(Protection::VARIABLE, &name)], case);
}

#[track_caller]
fn isolated_with(test: &str, variables: &[(&str, &str)], case: impl FnOnce()) {
    const VARIABLE: &str = "SELVEDGE_ISOLATED_TEST";
    let test = full_name(test);
    if env::var_os(VARIABLE).is_some_and(|name| name == *test) {
        return case();
    }
    let output = Command::new(env::current_exe().expect("the test binary"))
        .args([&test, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, &test)
        .envs(variables.iter().copied())
        .output()
        .expect("the test binary runs");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("1 passed"), "{} ({})", text, output.status);
}

/// Ends an isolated test at once: a program that failed while it was being loaded leaves the dynamic
/// linker locked by this thread, so that an orderly exit from another one would wait for ever.
pub fn leave_if_equal(actual: &str, expected: &str) -> ! {
    use std::io::Write as _;
    let equal = actual == expected;
    let mut output = std::io::stdout();
    let _ = if equal {
        writeln!(output, "1 passed")
    } else {
        writeln!(output, "{actual:?} instead of {expected:?}")
    };
    let _ = output.flush();
    // SAFETY: ends the process without running anything.
    unsafe { libc::_exit(i32::from(!equal)) }
}

/// How to build a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    pub compiler: &'static str,
    pub level: &'static str,
}

/// The build of most programs.
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

    /// The same for C++.
    pub fn cxx(self) -> Build {
        let compiler = if self.compiler == "gcc" {
            "g++"
        } else {
            "clang++"
        };
        Build { compiler, ..self }
    }

    /// The flags for marks, which rounds of loops are counted by, where `settings` bound them.
    pub fn marks(self, settings: &Settings) -> &'static [&'static str] {
        match (settings.unroll.is_set(), self.compiler) {
            (false, _) => &[],
            (true, "gcc" | "g++") => &["-fsanitize-coverage=trace-pc"],
            (true, _) => &["-fsanitize-coverage=bb,no-prune,trace-pc"],
        }
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
        Program::build_from(build, "program.c", source, &[])
    }

    /// Builds the C++ program `source`.
    pub fn build_cxx(build: Build, source: &str) -> Program {
        Program::build_from(build.cxx(), "program.cc", source, &["-std=c++17"])
    }

    /// Builds the C program `source` without checks behind its stores.
    pub fn build_unchecked(build: Build, source: &str) -> Program {
        Program::build_with(build, "program.c", source, &[], str::to_owned)
    }

    /// Builds a program from a file of the given name, with further compiler flags.
    pub fn build_from(build: Build, name: &str, source: &str, flags: &[&str]) -> Program {
        Program::build_with(build, name, source, flags, checks::insert)
    }

    fn build_with(
        build: Build,
        name: &str,
        source: &str,
        flags: &[&str],
        change: impl Fn(&str) -> String,
    ) -> Program {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| directory.path().join(name);
        let cxx = name.ends_with(".cc");
        fs::write(at(name), source).expect("the source is written");
        fs::write(at("selvedge.h"), support::HEADER).expect("the header is written");
        let driver = if build.compiler.starts_with("clang") {
            "clang"
        } else {
            "gcc"
        };
        let mut objects = vec![
            at("program.o"),
            support_object(driver, "stubs.s", &support::stub_assembly(), &[]),
            support_object(driver, "shim.c", support::SHIM, support::SHIM_FLAGS),
        ];
        if cxx {
            let shim = support::SHIM_CXX;
            objects.push(support_object(
                build.compiler,
                "shim.cc",
                shim,
                support::SHIM_FLAGS,
            ));
        }
        let volatile = if build.compiler.starts_with("clang") {
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
                "-mtls-dialect=gnu",
                "-Wno-tsan",
            ]
        };
        compiler(
            Command::new(build.compiler)
                .args([
                    "-g",
                    build.level,
                    "-fPIC",
                    "-fsanitize=thread",
                    "-fno-builtin",
                ])
                .args([
                    "-ftls-model=global-dynamic",
                    "-fstack-clash-protection",
                    "-fno-omit-frame-pointer",
                ])
                .args(volatile)
                .args(flags)
                .args(["-S", "-o"])
                .args([at("program.s"), at(name)]),
        );
        let text = fs::read_to_string(at("program.s")).expect("the assembly is read");
        fs::write(at("program.s"), change(&text)).expect("the assembly is written");
        compiler(
            Command::new(build.compiler)
                .args(["-c", "-o"])
                .args([at("program.o"), at("program.s")]),
        );
        link(build.compiler, &directory, &objects, &[]);
        Program { directory }
    }

    /// Builds a C++ program that is linked with further flags.
    pub fn link_with(compiler: &'static str, source: &str, flags: &[&str]) -> Program {
        let build = Build {
            compiler,
            level: "-O0",
        };
        let program = Program::build_from(build, "program.cc", source, &[]);
        let objects = [
            program.path().join("program.o"),
            support_object("gcc", "stubs.s", &support::stub_assembly(), &[]),
            support_object("gcc", "shim.c", support::SHIM, support::SHIM_FLAGS),
            support_object(compiler, "shim.cc", support::SHIM_CXX, support::SHIM_FLAGS),
        ];
        link(compiler, &program.directory, &objects, flags);
        program
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

fn link(driver: &str, directory: &TempDir, objects: &[PathBuf], flags: &[&str]) {
    compiler(
        Command::new(driver)
            .args(["-shared", "-o"])
            .arg(directory.path().join("program.so"))
            .args(objects)
            .args(flags)
            .args(support::LINK_FLAGS),
    );
}

/// The object of a support file, which many tests share.
fn support_object(driver: &str, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (driver, source, flags).hash(&mut hasher);
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let object = shared.join(format!("{:016x}-{name}.o", hasher.finish()));
    if !object.exists() {
        let directory = tempfile::tempdir_in(shared).expect("a temporary directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at(name), source).expect("the source is written");
        compiler(
            Command::new(driver)
                .args(flags)
                .args(["-c", "-o"])
                .args([at("object.o"), at(name)]),
        );
        fs::rename(at("object.o"), &object).expect("the object is moved");
    }
    object
}

fn compiler(command: &mut Command) {
    let output = command.output().expect("the compiler runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
