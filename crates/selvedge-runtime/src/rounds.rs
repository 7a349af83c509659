//! Rounds of loops, which `--unroll` bounds.
//!
//! A loop counts the rounds in which its thread performs a visible operation, in the function itself
//! or in one that it calls. It begins anew each time it is entered. The operation that would be the
//! first in one round too many is not performed. A function that calls itself, directly or through others,
//! makes a round with each call inside of a call, as if the calls were a loop.
//!
//! Frame pointers tell activations of functions apart: a mark in a frame shows that all frames below
//! it are gone, and the first mark of an activation lies in no loop.

use std::collections::HashMap;

use crate::liveness::{Liveness, Mark};
use crate::runtime::Runtime;

/// How many rounds loops may make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unroll {
    /// Any loop, unless its function is named below.
    pub rounds: Option<u32>,
    /// The loops of a function, by its symbol.
    pub functions: Vec<(String, u32)>,
}

impl Unroll {
    /// Bounds all loops.
    pub fn all(rounds: u32) -> Unroll {
        Unroll {
            rounds: Some(rounds),
            functions: Vec::new(),
        }
    }

    /// Whether any loop is bounded.
    pub fn is_set(&self) -> bool {
        self.rounds.is_some() || !self.functions.is_empty()
    }

    /// How many rounds the loops of `function` may make.
    fn of(&self, function: &str) -> u32 {
        let named = self.functions.iter().rfind(|(name, _)| name == function);
        let named = named.map(|(_, rounds)| *rounds);
        named.or(self.rounds).unwrap_or(u32::MAX)
    }
}

/// The loops of the program, as far as marks in them were passed.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    /// Marks, by where their callbacks return to.
    marks: HashMap<usize, Mark>,
    /// How many rounds each loop may make.
    limits: Vec<u32>,
}

impl Loops {
    /// The mark whose callback returns to `site`; its loops are numbered within the program. The first of
    /// them are the calls of its function inside of one another.
    fn mark(&mut self, site: usize, liveness: &Liveness, unroll: &Unroll) -> Option<&Mark> {
        if !self.marks.contains_key(&site) {
            let (function, marks) = liveness.marks_around(site)?;
            let first = self.limits.len() as u32;
            let numbers = marks.iter().flat_map(|mark| &mark.loops);
            let count = numbers.max().map_or(0, |&last| last + 1);
            let limits = std::iter::repeat_n(unroll.of(function), count as usize + 1);
            self.limits.extend(limits);
            for mut mark in marks {
                mark.loops
                    .iter_mut()
                    .for_each(|number| *number += first + 1);
                mark.loops.insert(0, first);
                self.marks.insert(mark.site, mark);
            }
        }
        self.marks.get(&site)
    }
}

/// A loop that a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Active {
    /// The frame pointer of the function.
    frame: usize,
    number: u32,
    /// Rounds with a visible operation before the present one.
    rounds: u32,
    /// Whether the present round has had one.
    visible: bool,
}

/// The loops that a thread is in, outermost first.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    active: Vec<Active>,
    /// The loops at the thread's earlier operations, one after the other.
    earlier: Vec<Active>,
    /// The number of events before each of those, and where its part of `earlier` begins.
    arrivals: Vec<(u32, usize)>,
}

impl Rounds {
    /// Becomes as `other`, without giving memory back.
    pub(crate) fn assign(&mut self, other: &Rounds) {
        let Rounds {
            active,
            earlier,
            arrivals,
        } = other;
        self.active.clone_from(active);
        self.earlier.clone_from(earlier);
        self.arrivals.clone_from(arrivals);
    }

    /// The thread begins.
    pub(crate) fn begin(&mut self) {
        self.active.clear();
        self.earlier.clear();
        self.arrivals.clear();
    }

    /// The thread passes a mark in the function with this frame pointer. The first loop of the mark stands
    /// for its function: calls of the same one around this call are earlier rounds.
    fn passes(&mut self, frame: usize, mark: &Mark) {
        self.leave_below(frame);
        let outside = self.active.iter().rposition(|active| active.frame != frame);
        let start = outside.map_or(0, |last| last + 1);
        let known = self.active[start..].iter().map(|active| active.number);
        let stays = known
            .zip(&mark.loops)
            .take_while(|(one, other)| one == *other);
        let stays = stays.count();
        self.active.truncate(start + stays);
        for (depth, &number) in mark.loops.iter().enumerate().skip(stays) {
            let around = |active: &&Active| active.number == number && active.visible;
            let rounds = match depth {
                0 => self.active.iter().filter(around).count() as u32,
                _ => 0,
            };
            self.active.push(Active {
                frame,
                number,
                rounds,
                visible: false,
            });
        }
        if mark.begins_round
            && let Some(innermost) = self.active.last_mut()
            && std::mem::take(&mut innermost.visible)
        {
            innermost.rounds += 1;
        }
    }

    /// Forgets the loops of functions whose frames lie below `address`.
    fn leave_below(&mut self, address: usize) {
        while self.active.pop_if(|last| last.frame < address).is_some() {}
    }

    /// The thread is about to perform its operation number `event`. Whether that is one round too
    /// many.
    fn arrives(&mut self, event: u32, stack_pointer: usize, limits: &[u32]) -> bool {
        self.leave_below(stack_pointer);
        let over = |active: &Active| active.rounds >= limits[active.number as usize];
        if self.active.iter().any(over) {
            return true;
        }
        self.active
            .iter_mut()
            .for_each(|active| active.visible = true);
        while let Some((_, start)) = self.arrivals.pop_if(|(before, _)| *before >= event) {
            self.earlier.truncate(start);
        }
        self.arrivals.push((event, self.earlier.len()));
        self.earlier.extend_from_slice(&self.active);
        false
    }

    /// The thread is to go on as if it had just come to its operation number `event`.
    fn returns_to(&mut self, event: u32) {
        let found = self.arrivals.partition_point(|&(before, _)| before < event);
        let Some(&(_, start)) = self.arrivals.get(found) else {
            return;
        };
        let next = self.arrivals.get(found + 1);
        let end = next.map_or(self.earlier.len(), |&(_, start)| start);
        self.active.clear();
        self.active.extend_from_slice(&self.earlier[start..end]);
    }
}

impl Runtime {
    /// The running thread passes the mark whose callback returns to `site`.
    pub(crate) fn passes_mark(&mut self, site: usize, frame: usize) {
        let mark = self.loops.mark(site, &self.liveness, &self.settings.unroll);
        if let Some(mark) = mark {
            self.threads[self.running].rounds.passes(frame, mark);
        }
    }

    /// Whether the running thread's next operation would begin a round that is not allowed.
    pub(crate) fn is_round_too_many(&mut self, stack_pointer: usize) -> bool {
        let running = self.running;
        let thread = &mut self.threads[running];
        let event = thread.clock[running];
        thread
            .rounds
            .arrives(event, stack_pointer, &self.loops.limits)
    }

    /// The running thread's last iteration, since its operation number `event`, does not count.
    pub(crate) fn forget_rounds(&mut self, event: u32) {
        self.threads[self.running].rounds.returns_to(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mark in these loops of the function that number 9 stands for.
    fn mark(loops: &[u32], begins_round: bool) -> Mark {
        Mark {
            site: 0,
            loops: [&[9], loops].concat(),
            begins_round,
        }
    }

    /// The limits of loops 0 and 1; functions have none.
    fn limits(loops: [u32; 2]) -> Vec<u32> {
        let mut limits = vec![u32::MAX; 10];
        limits[..2].copy_from_slice(&loops);
        limits
    }

    #[test]
    fn a_loop_counts_from_zero_each_time_it_is_entered() {
        let mut rounds = Rounds::default();
        for event in (0..30).step_by(3) {
            rounds.passes(900, &mark(&[], false));
            for round in 0..3 {
                rounds.passes(900, &mark(&[0], true));
                let over = rounds.arrives(event + round, 800, &limits([2, 0]));
                assert_eq!(over, round == 2);
            }
        }
    }

    #[test]
    fn rounds_without_visible_operations_do_not_count() {
        let mut rounds = Rounds::default();
        for _ in 0..100 {
            rounds.passes(900, &mark(&[0], true));
        }
        assert!(!rounds.arrives(0, 800, &limits([1, 0])));
    }

    #[test]
    fn a_loop_counts_the_operations_of_the_functions_it_calls() {
        let mut rounds = Rounds::default();
        for event in 0..3 {
            rounds.passes(900, &mark(&[0], true));
            rounds.passes(700, &mark(&[], false));
            rounds.passes(700, &mark(&[1], true));
            let over = rounds.arrives(event, 600, &limits([2, 1]));
            assert_eq!(over, event == 2);
        }
    }

    #[test]
    fn a_call_inside_of_a_call_of_the_same_function_is_a_round() {
        let mut rounds = Rounds::default();
        let limits = [2; 10];
        // Three calls, one after the other, of a function that calls itself twice.
        for event in (0..9).step_by(3) {
            for depth in 0..3 {
                let frame = 900 - 100 * depth;
                rounds.passes(frame, &mark(&[], false));
                let over = rounds.arrives(event + depth as u32, frame - 50, &limits);
                assert_eq!(over, depth == 2);
            }
        }
    }

    #[test]
    fn an_iteration_can_be_taken_back() {
        let mut rounds = Rounds::default();
        rounds.passes(900, &mark(&[0], true));
        assert!(!rounds.arrives(0, 800, &limits([2, 0])));
        for _ in 0..10 {
            rounds.passes(900, &mark(&[0], true));
            assert!(!rounds.arrives(1, 800, &limits([2, 0])));
            rounds.passes(900, &mark(&[0], true));
            rounds.returns_to(0);
        }
    }
}
