//! Agreement between processes that search one program together: the number of each thread, and facts
//! about the program that hold beyond one execution.

use std::collections::HashSet;

use selvedge_core::spawned::{self, SpawnPath};
use selvedge_core::{Fact, Portable, ThreadId};

use crate::arena::IMAGE_SHADOW;
use crate::machine::NativeMachine;
use crate::runtime::{Runtime, with};
use crate::shadow::{Cell, halves};

/// Facts about threads have this bit; the others are about halves of words of the program's globals.
const THREAD: Fact = 1 << 63;
/// The fact that some thread looks whether a mutex is held.
const LOCK_IS_TRIED: Fact = THREAD - 1;

/// Facts that the whole search relied on, and facts that were found to hold.
#[derive(Default)]
pub(crate) struct Facts {
    /// Not told yet.
    relied: Vec<Fact>,
    learned: Vec<(Fact, Fact)>,
    /// All that are about threads.
    threads_relied_on: HashSet<Fact>,
    threads_entered: HashSet<Fact>,
    /// Some thread looks whether a mutex is held, and it was relied on that none does.
    lock_is_tried: bool,
    relies_on_locks: bool,
}

impl Facts {
    /// Whether some thread looks whether a mutex is held.
    pub(crate) fn locks_are_tried(&self) -> bool {
        self.lock_is_tried
    }

    /// Notes that the search relies on no thread trying a lock.
    pub(crate) fn rely_on_locks(&mut self) {
        if !self.relies_on_locks {
            self.relies_on_locks = true;
            self.relied.push(LOCK_IS_TRIED);
        }
    }

    /// It happens. Whether it was relied on not to.
    pub(crate) fn try_lock(&mut self) -> bool {
        if !self.lock_is_tried {
            self.lock_is_tried = true;
            self.learned.push((LOCK_IS_TRIED, LOCK_IS_TRIED));
        }
        std::mem::take(&mut self.relies_on_locks)
    }

    /// Plain accesses are relied on not to touch these bytes of the word of `cell`.
    pub(crate) fn rely_on_word(&mut self, cell: *mut Cell, mask: u8) {
        if let Some(word) = word(cell) {
            let halves = halves(mask);
            let both = (0..2).filter(|half| halves >> half & 1 != 0);
            self.relied.extend(both.map(|half| 2 * word + half));
        }
    }

    /// A plain access touches these halves of the word of `cell` for the first time.
    #[cold]
    pub(crate) fn touch_word(&mut self, cell: *mut Cell, halves: u8) {
        let Some(word) = word(cell) else { return };
        for half in (0..2).filter(|half| halves >> half & 1 != 0) {
            let fact = 2 * word + half;
            match self.learned.last_mut() {
                // Arrays are mostly touched in order.
                Some((_, last)) if *last + 1 == fact => *last = fact,
                _ => self.learned.push((fact, fact)),
            }
        }
    }
}

/// The number of the word of globals that has this cell.
fn word(cell: *mut Cell) -> Option<u64> {
    let offset = (cell as usize).checked_sub(IMAGE_SHADOW)?;
    Some((offset / size_of::<Cell>()) as u64)
}

/// The fact that another thread reaches into the slot of the thread with this path.
fn entered(path: &[u32]) -> Fact {
    let step = |hash: u64, &place: &u32| (hash ^ u64::from(place)).wrapping_mul(0x0100_0000_01b3);
    path.iter().fold(0xcbf2_9ce4_8422_2325, step) | THREAD
}

impl Runtime {
    fn spawned(&self) -> Vec<(ThreadId, u32)> {
        spawned::spawned(self.threads.iter().map(|thread| &thread.children[..]))
    }

    fn path(&self, thread: usize) -> SpawnPath {
        spawned::paths(&self.spawned()).swap_remove(thread)
    }

    /// The slot of `thread` is relied on to be its own.
    #[cold]
    pub(crate) fn rely_on_slot(&mut self, thread: usize) {
        let fact = entered(&self.path(thread));
        self.facts.threads_relied_on.insert(fact);
        self.facts.relied.push(fact);
    }

    /// Another thread reaches into the slot of `thread` for the first time.
    #[cold]
    pub(crate) fn enter_slot(&mut self, thread: usize) {
        let fact = entered(&self.path(thread));
        if self.facts.threads_entered.insert(fact) {
            self.facts.learned.push((fact, fact));
        }
    }

    /// A number is given to `thread` in this process.
    pub(crate) fn recall_slot(&mut self, thread: usize) {
        if !self.facts.threads_entered.is_empty() {
            let fact = entered(&self.path(thread));
            let known = self.facts.threads_entered.contains(&fact);
            self.threads[thread].quiet.set(known, false);
        }
    }

    /// Gives the first numbers to threads that are created so, and further ones to the others that are
    /// known.
    fn renumber(&mut self, spawned: &[(ThreadId, u32)]) {
        let Some(children) = spawned::renumbered(&self.spawned(), spawned) else {
            return;
        };
        while self.threads.len() < children.len() {
            if let Err(problem) = self.add_thread() {
                unreachable!("{problem} where there was one before");
            }
        }
        for (thread, children) in self.threads.iter_mut().zip(children) {
            thread.children = children;
        }
        for (number, path) in spawned::paths(&self.spawned()).iter().enumerate() {
            let fact = entered(path);
            let relied = self.facts.threads_relied_on.contains(&fact);
            let known = self.facts.threads_entered.contains(&fact);
            self.threads[number].quiet.set(known, relied);
        }
    }

    fn learn(&mut self, facts: &[(Fact, Fact)]) {
        for &(first, last) in facts {
            if first == LOCK_IS_TRIED {
                self.facts.lock_is_tried = true;
            } else if first & THREAD == 0 {
                for fact in first..=last {
                    self.learn_touched(fact);
                }
            } else {
                self.facts.threads_entered.extend(first..=last);
            }
        }
        for number in 0..self.threads.len() {
            let fact = entered(&self.path(number));
            if self.facts.threads_entered.contains(&fact) {
                self.threads[number].quiet.set(true, false);
            }
        }
    }

    /// A plain access touches half of a word in some process.
    fn learn_touched(&mut self, fact: Fact) {
        let address = self.image.whole.start + (fact / 2) as usize * 8;
        if let Some(cell) = self.shadow.cell(address) {
            // SAFETY: cells are mapped while the program is loaded.
            unsafe { (*cell).always |= 1 << (fact % 2) };
        }
    }
}

impl Portable for NativeMachine {
    fn spawned(&self) -> Vec<(ThreadId, u32)> {
        with(|runtime| runtime.spawned())
    }

    fn number_threads(&mut self, spawned: &[(ThreadId, u32)]) {
        with(|runtime| runtime.renumber(spawned));
    }

    fn relied_on(&mut self) -> Vec<Fact> {
        with(|runtime| std::mem::take(&mut runtime.facts.relied))
    }

    fn learned(&mut self) -> Vec<(Fact, Fact)> {
        with(|runtime| std::mem::take(&mut runtime.facts.learned))
    }

    fn learn(&mut self, facts: &[(Fact, Fact)]) {
        with(|runtime| runtime.learn(facts));
    }
}
