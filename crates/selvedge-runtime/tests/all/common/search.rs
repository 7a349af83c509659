//! Checks whole programs with the search, and says in one line what must come out.

use std::collections::BTreeSet;

use selvedge_core::model::{Rc11, SequentialConsistency};
use selvedge_core::trust::{self, Ending, NoObserver};
use selvedge_core::{FailureKind, Machine};
use selvedge_runtime::{NativeMachine, Settings};

use super::{Build, CLANG, GCC, Program};

/// The result of a search.
#[derive(Debug)]
pub struct Checked {
    pub executions: u64,
    pub blocked: u64,
    pub bugs: BTreeSet<(FailureKind, String)>,
    pub ending: Ending,
}

impl Checked {
    /// Searches all executions of a loaded program.
    pub fn search(machine: &mut NativeMachine) -> Checked {
        machine.reset();
        let all = trust::Settings {
            keep_going: true,
            ..trust::Settings::default()
        };
        let report = trust::search::<SequentialConsistency, _>(machine, all, &mut NoObserver);
        if report.ending == Ending::Complete && report.bugs.is_empty() {
            // A program without bugs under sequential consistency has none under a weak model
            // either.
            let weak = trust::search::<Rc11, _>(machine, all, &mut NoObserver);
            assert_eq!(weak.ending, Ending::Complete);
            assert!(
                weak.bugs.is_empty(),
                "under rc11: {:?}",
                weak.bugs[0].failure
            );
        }
        let bugs = report.bugs.into_iter().map(|bug| bug.failure);
        Checked {
            executions: report.counts.executions,
            blocked: report.counts.blocked,
            bugs: bugs
                .map(|failure| (failure.kind, failure.message))
                .collect(),
            ending: report.ending,
        }
    }

    /// All was explored and nothing is wrong.
    #[track_caller]
    pub fn is_fine(&self) -> &Checked {
        assert_eq!(self.ending, Ending::Complete, "{self:?}");
        assert!(self.bugs.is_empty(), "{self:?}");
        assert!(self.executions > 0, "{self:?}");
        self
    }

    /// All is fine, in this many executions.
    #[track_caller]
    pub fn is_fine_in(&self, executions: u64) {
        self.is_fine();
        assert_eq!(self.executions, executions, "{self:?}");
    }

    /// There are bugs, all of this kind, and a message contains the text.
    #[track_caller]
    pub fn has_bug(&self, kind: FailureKind, text: &str) -> &Checked {
        let found = self
            .bugs
            .iter()
            .any(|(k, message)| *k == kind && message.contains(text));
        assert!(found, "{self:?}");
        assert!(self.bugs.iter().all(|(k, _)| *k == kind), "{self:?}");
        self
    }

    /// The program was refused in these words.
    #[track_caller]
    pub fn is_refused(&self, text: &str) {
        match &self.ending {
            Ending::Refused(what) => assert!(what.contains(text), "{self:?}"),
            _ => panic!("not refused: {self:?}"),
        }
    }
}

/// Checks a C program with the given settings, built with gcc.
pub fn check_with(settings: Settings, source: &str) -> Checked {
    let flags = GCC.marks(&settings);
    let program = Program::build_from(GCC, "program.c", source, flags);
    Checked::search(&mut program.load(settings))
}

/// Checks a C program, built with gcc.
pub fn check(source: &str) -> Checked {
    check_with(Settings::default(), source)
}

/// Checks a C program with every compiler there is; all must say the same.
pub fn check_all(source: &str, mut expect: impl FnMut(&Checked)) {
    for build in Build::installed(&[GCC, CLANG]) {
        let program = Program::build(build, source);
        let checked = Checked::search(&mut program.load(Settings::default()));
        expect(&checked);
    }
}

/// Checks a C++ program with the given settings, built with g++.
pub fn check_cxx_with(settings: Settings, source: &str) -> Checked {
    let flags = [GCC.marks(&settings), &["-std=c++17"]].concat();
    let build = GCC.cxx();
    let program = Program::build_from(build, "program.cc", source, &flags);
    Checked::search(&mut program.load(settings))
}

/// Checks a C++ program, built with g++.
pub fn check_cxx(source: &str) -> Checked {
    check_cxx_with(Settings::default(), source)
}

/// Checks a C++ program, built with g++, where another compiler would tell nothing new.
pub fn check_cxx_once(source: &str, expect: impl FnOnce(&Checked)) {
    expect(&check_cxx(source));
}

/// Checks a C++ program with every compiler there is; all must say the same.
pub fn check_cxx_all(source: &str, mut expect: impl FnMut(&Checked)) {
    for build in Build::installed(&[GCC, CLANG]) {
        let program = Program::build_cxx(build, source);
        let checked = Checked::search(&mut program.load(Settings::default()));
        expect(&checked);
    }
}
