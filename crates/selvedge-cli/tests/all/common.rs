//! Runs the command in a directory of its own and looks at everything it leaves behind.
#![allow(unreachable_pub)]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The compilers to test with: the system's, and clang where it is installed.
pub fn compilers() -> Vec<&'static str> {
    static ALL: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let installed = |name: &&str| Command::new(name).arg("--version").output().is_ok();
        ["gcc", "clang"].into_iter().filter(installed).collect()
    });
    assert!(!ALL.is_empty(), "these tests need a C compiler");
    ALL.clone()
}

/// A directory with source files and a temporary directory that must be empty afterwards.
pub struct Sandbox {
    directory: TempDir,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("tmp")).expect("a directory");
        Sandbox { directory }
    }

    /// A sandbox with one file.
    pub fn with(name: &str, text: &str) -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.write(name, text);
        sandbox
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the file is written");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The command with these arguments, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.args(arguments).current_dir(self.directory.path());
        command
            .env("TMPDIR", self.path("tmp"))
            .env("XDG_CACHE_HOME", cache);
        command
            .env_remove("CC")
            .env_remove("CXX")
            .env("LC_ALL", "C");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.finish(self.command(arguments).spawn().expect("the command starts"))
    }

    /// Waits for the command, and checks that it leaves nothing behind.
    pub fn finish(&self, mut child: Child) -> Outcome {
        let pid = child.id();
        let mut stderr = child.stderr.take().expect("standard error is piped");
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr
                .read_to_end(&mut text)
                .expect("standard error can be read");
            String::from_utf8_lossy(&text).into_owned()
        });
        let output = child.wait_with_output().expect("the command ends");
        let stderr = errors.join().expect("the reader ends");
        let outcome = Outcome {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr,
        };
        let left: Vec<_> = fs::read_dir(self.path("tmp"))
            .expect("a directory")
            .collect();
        assert!(
            left.is_empty(),
            "temporary files are left behind: {left:?}\n{outcome:?}"
        );
        assert_eq!(
            workers_of(pid),
            Vec::<u32>::new(),
            "a process is left behind\n{outcome:?}"
        );
        outcome
    }
}

/// The workers that run for the command with this process number.
pub fn workers_of(command: u32) -> Vec<u32> {
    let tail = format!("--parent\0{command}\0");
    let processes = fs::read_dir("/proc").expect("there is a /proc");
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).ends_with(&tail)
        })
        .collect()
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How the command ended and what it said.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Checks the exit status.
    #[track_caller]
    pub fn ends_with(&self, status: i32) -> &Outcome {
        assert_eq!(self.status, Some(status), "{self:?}");
        self
    }

    /// Checks that all of it went to standard error.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Outcome {
        assert!(self.stderr.contains(text), "{text:?} is not in {self:?}");
        self
    }

    /// Checks what is printed on standard output.
    #[track_caller]
    pub fn prints(&self, text: &str) -> &Outcome {
        assert!(self.stdout.contains(text), "{text:?} is not in {self:?}");
        self
    }

    /// Standard output without what differs from run to run.
    pub fn timeless(&self) -> String {
        let statistics = |line: &str| line.ends_with(" per second");
        let kept = self.stdout.lines().filter(|line| !statistics(line));
        kept.collect::<Vec<_>>().join("\n")
    }

    /// The one object on standard output.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
