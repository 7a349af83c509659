//! Panics belong to the thread of the model that panics, not to the OS thread that runs it.
//!
//! `std` counts the panics that are unwinding in a thread-local, from which
//! [`std::thread::panicking`], the poisoning of locks and the abort on a second panic follow. All
//! threads of a model share one OS thread, so each of them has a count of its own that is put in
//! place while it runs. `std` does not tell where its count is; it is found by looking for the
//! thread-local word that counts along with nested panics.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::statics;

/// The nesting of the panics by which the count is recognised.
const DEPTH: usize = 3;

/// Where `std` counts the panics of this OS thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PanicCount(usize);

/// A thread-local word and what it held before.
type Candidate = (usize, usize);

impl PanicCount {
    /// Finds it; `None` if no thread-local word, or more than one, counts along.
    pub(super) fn find() -> Option<PanicCount> {
        let words = statics::thread_locals().into_iter().flatten();
        let mut candidates: Vec<Candidate> = words.map(|word| (word, read(word))).collect();
        nest(&mut candidates, 1);
        candidates.retain(|&(word, before)| read(word) == before);
        match candidates[..] {
            [(word, _)] => Some(PanicCount(word)),
            _ => None,
        }
    }

    /// Puts another count in place and returns the one that was there.
    #[inline(always)]
    pub(super) fn replace(self, count: usize) -> usize {
        let count_now = std::ptr::with_exposed_provenance_mut::<usize>(self.0);
        // SAFETY: a `Cell` of this OS thread that nothing borrows: `std` only gets and sets it.
        unsafe { std::mem::replace(&mut *count_now, count) }
    }
}

/// Keeps the words that are larger by `depth` during a panic of that depth.
fn nest(candidates: &mut Vec<Candidate>, depth: usize) {
    struct Look<'a>(&'a mut Vec<Candidate>, usize);
    impl Drop for Look<'_> {
        fn drop(&mut self) {
            let Look(candidates, depth) = self;
            let counts = |&(word, before): &Candidate| read(word) == before.wrapping_add(*depth);
            candidates.retain(counts);
            if *depth < DEPTH {
                nest(candidates, *depth + 1);
                candidates.retain(counts);
            }
        }
    }
    let panics = AssertUnwindSafe(|| {
        let _look = Look(candidates, depth);
        resume_unwind(Box::new(()))
    });
    let _: Result<(), _> = catch_unwind(panics);
}

fn read(word: usize) -> usize {
    // SAFETY: an aligned word of a thread-local segment of this OS thread.
    unsafe { std::ptr::with_exposed_provenance::<usize>(word).read_volatile() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_decides_whether_a_thread_is_panicking() {
        struct Ask;
        impl Drop for Ask {
            fn drop(&mut self) {
                let count = PanicCount::find().unwrap();
                assert!(std::thread::panicking());
                assert_eq!(count.replace(0), 1);
                let panicking = std::thread::panicking();
                assert_eq!(count.replace(1), 0);
                assert!(!panicking);
            }
        }
        let panics = || {
            let _ask = Ask;
            resume_unwind(Box::new(()))
        };
        let _: Result<(), _> = catch_unwind(panics);
        assert!(!std::thread::panicking());
    }
}
