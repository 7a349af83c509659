//! Describes failures of a program, with their places.

use std::panic::Location as Caller;

use selvedge_core::failure::Other;
use selvedge_core::{Failure, FailureKind, Pending, Site, Stop, ThreadId};

use super::race::{Access, AccessKind};
use super::state::State;
use crate::token::Late;

/// A place in the source of the program under test.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SourcePlace {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Sites of panics have no static description; they are numbered from here on.
const PANICS: u64 = 1 << 63;

/// The site of a call.
pub(crate) fn site_of(caller: &'static Caller<'static>) -> Site {
    Site(ptr_of(caller))
}

fn ptr_of(caller: &'static Caller<'static>) -> u64 {
    std::ptr::from_ref(caller).expose_provenance() as u64
}

impl State {
    /// The running thread begins to panic.
    pub(super) fn panics(&mut self, message: String, place: Option<(String, u32, u32)>) {
        let site = self.panic_site(place);
        self.current().panic = Some((message, site));
    }

    /// The running thread panics and cannot unwind, which will abort the process.
    pub(super) fn cannot_unwind(&mut self, why: &str, place: Option<(String, u32, u32)>) {
        let site = self.panic_site(place);
        let thread = self.current();
        // The panic before is the one that could not be unwound.
        let (cause, site) = thread.panic.take().unwrap_or_else(|| (String::new(), site));
        let message = match cause.is_empty() {
            true => why.to_owned(),
            false => format!("{cause} ({why})"),
        };
        thread.panic = Some((message, site));
    }

    pub(super) fn panic_site(&mut self, place: Option<(String, u32, u32)>) -> Site {
        match place {
            None => Site(0),
            Some((file, line, column)) => {
                let place = SourcePlace { file, line, column };
                let known = self.panics.iter().position(|known| *known == place);
                let index = known.unwrap_or_else(|| {
                    self.panics.push(place);
                    self.panics.len() - 1
                });
                Site(PANICS | index as u64)
            }
        }
    }

    /// The panic of the running thread was not caught.
    pub(super) fn fail_with_panic(&mut self, message: String) {
        let thread = self.running();
        let (message, site) = self
            .current()
            .panic
            .take()
            // Other code took care of the panic.
            .unwrap_or((message, Site(0)));
        self.fail(Failure {
            kind: FailureKind::Assertion,
            message,
            thread,
            site,
            other: None,
        });
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.current().pending = Pending::Stopped(Stop::Failed);
        self.failure.get_or_insert(failure);
    }

    /// The running thread used freed memory after its last event.
    pub(super) fn fail_late(&mut self, failure: Failure) {
        self.late = Some(Late {
            thread: self.running as u32,
            events: self.threads[self.running].counted(self.running),
        });
        self.fail(failure);
    }

    pub(super) fn refuse(&mut self, what: String) {
        self.current().pending = Pending::Stopped(Stop::Refused);
        self.refusal.get_or_insert(what);
    }

    pub(super) fn start_over(&mut self) {
        self.again = true;
        self.refuse("the search starts over".to_owned());
    }

    pub(super) fn race(
        &self,
        message: String,
        site: Site,
        other: &Access,
        kind: AccessKind,
    ) -> Failure {
        Failure {
            kind: FailureKind::DataRace,
            message,
            thread: self.running(),
            site,
            other: Some(Other {
                thread: ThreadId(other.thread),
                site: other.site,
                what: kind.noun().to_owned(),
                events: Some(other.epoch),
            }),
        }
    }

    /// Where `site` is in the source.
    pub(crate) fn place_of(&self, site: Site) -> SourcePlace {
        let unknown = SourcePlace {
            file: "?".to_owned(),
            line: 0,
            column: 0,
        };
        match site.0 {
            0 => unknown,
            PANICS.. => match self.panics.get((site.0 & !PANICS) as usize) {
                Some(place) => place.clone(),
                None => unknown,
            },
            address => {
                let caller = std::ptr::with_exposed_provenance::<Caller<'static>>(address as usize);
                // SAFETY: a site that is no panic is the address of a static description of a call.
                let caller = unsafe { &*caller };
                SourcePlace {
                    file: caller.file().to_owned(),
                    line: caller.line(),
                    column: caller.column(),
                }
            }
        }
    }
}

impl std::fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
