//! The failures of programs under test.

use serde::{Deserialize, Serialize};

use crate::ids::{Site, ThreadId};

/// The kind of a bug; its serialised name is part of the command line's contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// `assert`, `reach_error` and the like.
    Assertion,
    /// `abort`, `std::terminate` without an exception.
    Abort,
    /// No thread can go on and one has not finished.
    Deadlock,
    /// A thread spins on values that nothing can change any more.
    Livelock,
    /// Two conflicting accesses, one of them not atomic, unordered by happens-before.
    DataRace,
    /// An access to freed memory, or one that nothing orders before the `free`.
    UseAfterFree,
    /// `free` of a block that was freed before.
    DoubleFree,
    /// `free` of something that is no block.
    BadFree,
    /// An access outside of a heap block.
    HeapOverflow,
    /// An access through a null pointer.
    NullDereference,
    /// An access to memory that does not exist or may not be written.
    WildAccess,
    /// A thread outgrew its stack.
    StackOverflow,
    /// An uncaught C++ exception.
    UncaughtException,
    /// A loop without any visible operation ran past the watchdog.
    EndlessLoop,
    /// A mutex, or another object, was used against its rules.
    ObjectMisuse,
    /// Memory that is still allocated at the end and that nothing can free.
    Leak,
    /// The program raised a fatal signal (`SIGFPE`, `SIGILL`, `raise`, `kill`).
    Signal,
    /// A system call that a program under test may not make: it would reach beyond its process.
    ForbiddenCall,
    /// An execution that never ends does not satisfy a formula of temporal logic.
    LtlViolation,
    /// From some point on, no thread passes a progress mark any more.
    NonProgress,
    /// From some point on, a thread that has not ended does not get on any more.
    Starvation,
}

impl FailureKind {
    /// Whether it is a matter of executions that never end: its witness has a cycle.
    pub fn is_endless(self) -> bool {
        matches!(
            self,
            FailureKind::LtlViolation | FailureKind::NonProgress | FailureKind::Starvation
        )
    }

    /// Whether nothing that the program does afterwards has a meaning. Which of two conflicting
    /// accesses is blamed may then depend on the order in which unordered steps were run.
    pub fn is_undefined_behaviour(self) -> bool {
        matches!(
            self,
            FailureKind::DataRace
                | FailureKind::UseAfterFree
                | FailureKind::DoubleFree
                | FailureKind::BadFree
                | FailureKind::HeapOverflow
                | FailureKind::NullDereference
                | FailureKind::WildAccess
                | FailureKind::StackOverflow
        )
    }
}

/// A bug as the machine sees it, in the thread it stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its kind.
    pub kind: FailureKind,
    /// One line for people, without the position.
    pub message: String,
    /// The thread it happened in.
    pub thread: ThreadId,
    /// Where.
    pub site: Site,
    /// The other access of a race, the `free` of a use after free, …: thread, place, and what
    /// it was.
    pub other: Option<Other>,
}

/// The second party of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Other {
    /// Its thread.
    pub thread: ThreadId,
    /// Its place.
    pub site: Site,
    /// The access there, such as `write of 4 bytes`.
    pub what: String,
    /// The events of its thread before it, if they were counted.
    #[serde(default)]
    pub events: Option<u32>,
}
