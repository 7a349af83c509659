//! The program does something that was not verified.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use super::image;
use super::plan::{self, ANY};
use super::serial;
use super::sys;
use super::thread::{self, Thread};

/// The reaction to a divergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// End the program.
    Abort,
    /// Say so, and let it run on without any order.
    Warn,
    /// Say so, and let its threads run on one at a time.
    Serial,
}

static REPORTED: AtomicBool = AtomicBool::new(false);

/// The running thread came to `site` where it should have come to `expected`. What it does there is
/// no event any more, if the program goes on at all: that is the answer.
#[cold]
pub(crate) fn report(me: &Thread, site: usize, expected: usize) -> bool {
    let mut text = Text::new();
    let _ = write!(
        text,
        "the program left what was verified: thread {} came to ",
        me.index
    );
    name(&mut text, site);
    if expected != ANY {
        let _ = write!(text, " as its event {}, not to ", me.next);
        name(&mut text, expected);
    }
    happened(&mut text);
    false
}

/// Something is wrong with the prefix or with the program that it is for.
#[cold]
pub(crate) fn refuse(what: fmt::Arguments<'_>) {
    let mut text = Text::new();
    let _ = text.write_fmt(what);
    happened(&mut text);
}

fn happened(text: &mut Text) {
    let policy = image::policy();
    let first = !REPORTED.swap(true, Ordering::AcqRel);
    if first {
        let end = match policy {
            Policy::Abort => "; it is stopped\n",
            Policy::Warn => "; it runs on unconstrained\n",
            Policy::Serial => "; it runs on with one thread at a time\n",
        };
        let _ = text.write_str(end);
        sys::complain(text.bytes());
    }
    match policy {
        Policy::Abort => stop(first),
        Policy::Warn => plan::publish(&plan::FREE),
        Policy::Serial => {
            plan::leave();
            serial::join(thread::current());
        }
    }
}

/// Ends the process. A second thread waits for the first one, which may not have said why yet.
fn stop(first: bool) -> ! {
    const A_WHILE: i64 = 1_000_000_000;
    if !first {
        let never = 0;
        sys::futex_wait(&raw const never, 0, A_WHILE);
    }
    // SAFETY: nothing to rely on.
    unsafe { sys::abort() }
}

/// Writes a place so that the user can look it up.
fn name(text: &mut Text, site: usize) {
    // The call, not what comes after it.
    let offset = site.wrapping_sub(image::base()).wrapping_sub(1);
    let _ = write!(text, "{offset:#x} (addr2line -fe PROGRAM {offset:#x})");
}

/// A message.
struct Text {
    bytes: [u8; 400],
    length: usize,
}

impl Text {
    fn new() -> Text {
        let mut text = Text {
            bytes: [0; 400],
            length: 0,
        };
        let _ = text.write_str("selvedge: ");
        text
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            let Some(at) = self.bytes.get_mut(self.length) else {
                return Err(fmt::Error);
            };
            *at = byte;
            self.length += 1;
        }
        Ok(())
    }
}
