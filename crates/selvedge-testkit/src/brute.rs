//! Every interleaving of a machine under sequential consistency.

use std::collections::{HashMap, HashSet};

use selvedge_core::interleave::Run;
use selvedge_core::{EventId, Location, Machine, Op, Pending, Stop, ThreadId};

use crate::execution::{Execution, Record};

/// Everything that can happen.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// The classes of complete executions.
    pub complete: HashSet<Execution>,
    /// The classes of executions that end with a thread that waits for what never comes, or spins
    /// on values that nobody will change.
    pub stuck: HashSet<Execution>,
    /// Whether some thread can fail.
    pub fails: bool,
}

/// Runs every interleaving, each prefix class once. `None` if there are more than `limit` of those.
pub fn brute_force<M: Machine>(machine: &mut M, limit: usize) -> Option<Outcomes> {
    let mut search = Brute {
        visited: HashSet::new(),
        outcomes: Outcomes::default(),
        limit,
    };
    search.visit(machine, &mut Vec::new())?;
    Some(search.outcomes)
}

struct Brute {
    visited: HashSet<Execution>,
    outcomes: Outcomes,
    limit: usize,
}

impl Brute {
    fn visit<M: Machine>(
        &mut self,
        machine: &mut M,
        decisions: &mut Vec<(ThreadId, u32)>,
    ) -> Option<()> {
        let mut run = Run::new(machine);
        let mut newest: HashMap<Location, EventId> = HashMap::new();
        let mut execution = Execution::default();
        for &(thread, choice) in decisions.iter() {
            record(&mut run, &mut execution, &mut newest, thread, choice);
        }
        let threads = run.machine().threads();
        execution.threads.resize(threads, Vec::new());
        let pending = |thread| run.machine().pending(ThreadId(thread));
        let all = 0..threads as u32;
        let stopped = |stop| all.clone().any(|t| pending(t) == Pending::Stopped(stop));
        self.outcomes.fails |= stopped(Stop::Failed);
        let options: Vec<(ThreadId, u32)> = all
            .clone()
            .map(|thread| (ThreadId(thread), run.alternatives(ThreadId(thread))))
            .filter(|&(_, alternatives)| alternatives > 0)
            .collect();
        if options.is_empty() {
            match end(run.machine(), &execution, &newest) {
                End::Complete => drop(self.outcomes.complete.insert(execution)),
                End::Stuck => drop(self.outcomes.stuck.insert(execution)),
                End::Assumed | End::Stale => {}
            }
            return Some(());
        }
        if !self.visited.insert(execution) {
            return Some(());
        }
        if self.visited.len() > self.limit {
            return None;
        }
        for (thread, alternatives) in options {
            for choice in 0..alternatives {
                decisions.push((thread, choice));
                self.visit(machine, decisions)?;
                decisions.pop();
            }
        }
        Some(())
    }
}

/// How an execution ended in which no thread can take a step.
pub(crate) enum End {
    Complete,
    Stuck,
    /// An assumption does not hold.
    Assumed,
    /// A thread spins on values that are out of date. The execution in which it reads the newest ones stands for
    /// this one.
    Stale,
}

pub(crate) fn end<M: Machine>(
    machine: &M,
    execution: &Execution,
    newest: &HashMap<Location, EventId>,
) -> End {
    let (mut waits, mut failed, mut assumed) = (false, false, false);
    for thread in (0..machine.threads() as u32).map(ThreadId) {
        match machine.pending(thread) {
            Pending::Op(_) => waits = true,
            Pending::Stopped(Stop::Spinning { since }) => {
                waits = true;
                if stale(execution, thread, since, newest) {
                    return End::Stale;
                }
            }
            Pending::Stopped(Stop::Assumed) => assumed = true,
            Pending::Stopped(Stop::Failed) => failed = true,
            _ => {}
        }
    }
    if assumed {
        End::Assumed
    } else if waits && !failed {
        End::Stuck
    } else {
        End::Complete
    }
}

/// Whether the iteration that began with event `since` of `thread` read a value that is out of date.
/// An update that writes is two events.
fn stale(
    execution: &Execution,
    thread: ThreadId,
    since: u32,
    newest: &HashMap<Location, EventId>,
) -> bool {
    let mut events = 0;
    let iteration = execution.threads[thread.index()].iter().filter(|record| {
        let first = events;
        events += if record.source.is_some() && record.wrote.is_some() {
            2
        } else {
            1
        };
        first >= since
    });
    let mut reads = iteration.filter_map(|record| Some((record.at?, record.source?)));
    reads.any(|(at, source)| {
        let newest = newest.get(&at).copied();
        origin(execution, source) != origin(execution, newest)
    })
}

/// The write that brought the value of `write` about: updates that left it as it was do not count.
fn origin(execution: &Execution, mut write: Option<EventId>) -> Option<EventId> {
    while let Some(id) = write {
        let record = &execution.threads[id.thread.index()][id.index as usize];
        match record.source {
            Some(source) if record.read == record.wrote => write = source,
            _ => break,
        }
    }
    write
}

/// Takes one step and writes down what it did.
pub(crate) fn record<M: Machine>(
    run: &mut Run<'_, M>,
    execution: &mut Execution,
    newest: &mut HashMap<Location, EventId>,
    thread: ThreadId,
    choice: u32,
) {
    if execution.threads.len() <= thread.index() {
        execution.threads.resize(thread.index() + 1, Vec::new());
    }
    let id = EventId {
        thread,
        index: execution.threads[thread.index()].len() as u32,
    };
    let several = run.alternatives(thread) > 1;
    let performed = run.step(thread, choice);
    let reads = matches!(performed.op, Op::Load { .. } | Op::Update { .. });
    let source = performed.op.location().filter(|_| reads);
    let source = source.map(|location| newest.get(&location).copied());
    let silent = performed.op.location().is_none();
    execution.threads[thread.index()].push(Record {
        at: performed.op.location(),
        read: (reads || silent).then_some(performed.read),
        source,
        wrote: performed.wrote,
        choice: if several { choice } else { 0 },
    });
    if let (Some(location), Some(_)) = (performed.op.location(), performed.wrote) {
        newest.insert(location, id);
        execution.coherence.entry(location).or_default().push(id);
    }
}
