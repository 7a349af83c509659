//! The program that a command is about.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::compile::Program;
use crate::problem::Problem;
use crate::project;

/// The files to compile, and the way.
#[derive(Args, Clone, Debug)]
pub(crate) struct Sources {
    /// C and C++ source files of the program, or an executable that was built with `selvedge cc`
    #[arg(value_name = "FILE", required_unless_present = "build_dir")]
    pub(crate) files: Vec<PathBuf>,

    /// Flags for the compiler; they win over those of Selvedge (`-g -O0`). After an executable, its
    /// arguments
    #[arg(value_name = "COMPILER-FLAGS", last = true)]
    pub(crate) flags: Vec<String>,

    /// Compiler to use [default: $CC or $CXX, then cc, gcc, clang or c++, g++, clang++]
    #[arg(long, value_name = "COMPILER", help_heading = "Program under test")]
    pub(crate) cc: Option<String>,

    /// Check a program of the build in DIR, which has a compile_commands.json
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Program under test",
        conflicts_with = "files"
    )]
    pub(crate) build_dir: Option<PathBuf>,

    /// The program of that build to check
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Program under test",
        requires = "build_dir"
    )]
    pub(crate) target: Option<String>,

    /// A source file with functions that take the place of those that are not modelled
    #[arg(long, value_name = "FILE", help_heading = "Program under test")]
    pub(crate) stub: Vec<PathBuf>,
}

impl Sources {
    /// The executable that the program is given as.
    pub(super) fn executable(&self) -> Option<&Path> {
        match &self.files[..] {
            [file] if project::is_executable(file) => Some(file),
            _ => None,
        }
    }

    /// The program that lists test cases: an executable, or a program that `cargo selvedge check` has built.
    pub(super) fn with_cases(&self) -> Option<&Path> {
        match &self.files[..] {
            [file] if project::is_rust(file) => Some(file),
            _ => self.executable(),
        }
    }

    /// The program that is asked about.
    pub(crate) fn program(&self) -> Result<Program, Problem> {
        let program = |files: &[PathBuf]| Program {
            directory: None,
            files: files.iter().chain(&self.stub).cloned().collect(),
            flags: self.flags.clone(),
            recorded: Vec::new(),
            compiler: self.cc.clone(),
            expressions: Vec::new(),
            marks: false,
            spurious_failures: false,
            environment: false,
            kept: false,
            strict: true,
        };
        let target = match (&self.build_dir, self.executable()) {
            (Some(directory), _) => project::of_build(directory, self.target.as_deref())?,
            (None, Some(executable)) => project::of_executable(executable)?,
            (None, None) => {
                let (target, others) = project::of_objects(&self.files)?;
                return Ok(target.with(program(&others)));
            }
        };
        Ok(target.with(program(&[])))
    }

    /// The name of the program in reports.
    pub(crate) fn names(&self) -> Vec<String> {
        let files = self.files.iter().map(|file| file.display().to_string());
        files.chain(self.target.clone()).collect()
    }

    /// The end of a command line that asks about the same program.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let compiler = self.cc.iter().flat_map(|cc| ["--cc", cc]);
        let dashes = (!self.flags.is_empty()).then_some("--");
        let flags = dashes
            .into_iter()
            .chain(self.flags.iter().map(String::as_str));
        let files = self.files.iter().map(|file| file.as_os_str());
        let directory = self.build_dir.iter();
        let directory = directory.flat_map(|path| [OsStr::new("--build-dir"), path.as_os_str()]);
        let target = self.target.iter();
        let target = target.flat_map(|name| [OsStr::new("--target"), OsStr::new(name)]);
        let stubs = self.stub.iter();
        let stubs = stubs.flat_map(|stub| [OsStr::new("--stub"), stub.as_os_str()]);
        files
            .chain(directory)
            .chain(target)
            .chain(stubs)
            .chain(compiler.chain(flags).map(OsStr::new))
            .map(OsStr::to_owned)
            .collect()
    }
}
