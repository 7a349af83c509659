//! Every execution of a machine that a memory model allows, by trying every source of each read and
//! every place of each write.

use std::collections::BTreeMap;

use selvedge_core::graph::Kind;
use selvedge_core::model::order;
use selvedge_core::op::Effect;
use selvedge_core::{EventId, Location, Machine, Op, Outcome, Pending, Stop, ThreadId, Value};

use crate::axioms::{Axioms, Candidate, Does, Event};
use crate::brute::{End, Outcomes, end};
use crate::execution::{Execution, Record};
use crate::relation::Relation;

/// Tries everything. `None` if there are more than `limit` prefixes.
///
/// Steps are taken in an order that respects causality, which all models do; of all such orders of one
/// execution only the lexicographically least is followed (lower threads first), so each prefix
/// is met once. A prefix that is not consistent is given up: no model forbids a part
/// of what it allows.
pub fn allowed<M: Machine>(machine: &mut M, model: Axioms, limit: usize) -> Option<Outcomes> {
    let mut outcomes = Outcomes::default();
    let mut ended = |_: &M, _: &Trace, execution, end| match end {
        End::Complete => drop(outcomes.complete.insert(execution)),
        End::Stuck => drop(outcomes.stuck.insert(execution)),
        End::Assumed | End::Stale => {}
    };
    let fails = for_each_end(machine, model, limit, &mut ended)?;
    Some(Outcomes { fails, ..outcomes })
}

/// The same; `ended` is called with the steps of each execution. Tells whether some thread can fail.
pub(crate) fn for_each_end<M: Machine>(
    machine: &mut M,
    model: Axioms,
    limit: usize,
    ended: &mut dyn FnMut(&M, &Trace, Execution, End),
) -> Option<bool> {
    let mut search = Search {
        model,
        limit,
        visited: 0,
        fails: false,
        ended,
    };
    search.visit(machine, &mut Trace::default())?;
    Some(search.fails)
}

/// One operation with everything that was decided about it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) id: EventId,
    pub(crate) op: Op,
    read: Option<Value>,
    /// The step it reads from; `None` inside for the initial value.
    pub(crate) source: Option<Option<EventId>>,
    pub(crate) wrote: Option<Value>,
    /// How many writes of the location come before it.
    position: usize,
    choice: u32,
}

/// The steps so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) steps: Vec<Step>,
    pub(crate) coherence: BTreeMap<Location, Vec<EventId>>,
}

impl Trace {
    fn push(&mut self, step: Step) {
        if let (Some(location), Some(_)) = (step.op.location(), step.wrote) {
            let writes = self.coherence.entry(location).or_default();
            writes.insert(step.position, step.id);
        }
        self.steps.push(step);
    }

    fn pop(&mut self) {
        let step = self.steps.pop().expect("a step was pushed");
        if let (Some(location), Some(_)) = (step.op.location(), step.wrote) {
            let writes = self.coherence.get_mut(&location);
            let writes = writes.expect("the write is there");
            writes.remove(step.position);
            if writes.is_empty() {
                self.coherence.remove(&location);
            }
        }
    }

    fn writes(&self, location: Location) -> &[EventId] {
        self.coherence.get(&location).map_or(&[], Vec::as_slice)
    }

    fn written(&self, id: EventId) -> Value {
        let step = self.steps.iter().find(|step| step.id == id);
        step.and_then(|step| step.wrote).expect("a write")
    }

    fn execution(&self, threads: usize) -> Execution {
        let mut execution = Execution {
            threads: vec![Vec::new(); threads],
            coherence: self.coherence.clone(),
        };
        for step in &self.steps {
            execution.threads[step.id.thread.index()].push(Record {
                at: step.op.location(),
                read: step.read,
                source: step.source,
                wrote: step.wrote,
                choice: step.choice,
            });
        }
        execution
    }

    fn replay<M: Machine>(&self, machine: &mut M) {
        machine.reset();
        for step in &self.steps {
            let updates = matches!(step.op, Op::Update { .. });
            let outcome = Outcome {
                read: step.read.unwrap_or_default(),
                wrote: step.wrote.filter(|_| updates),
            };
            machine.resume(step.id.thread, outcome, &[]);
        }
    }

    /// Whether `step` could have come earlier, before a step of a higher thread.
    fn comes_too_late(&self, step: &Step) -> bool {
        let thread = step.id.thread;
        let needed = |earlier: &&Step| {
            let own = earlier.id.thread == thread;
            let source = step.source == Some(Some(earlier.id));
            let creation = earlier.op == Op::Create { child: thread };
            let joined = match step.op {
                Op::Join { child } => child == earlier.id.thread,
                Op::JoinAll => true,
                _ => false,
            };
            own || source || creation || joined
        };
        let skipped = self.steps.iter().rev().take_while(|step| !needed(step));
        skipped.into_iter().any(|other| other.id.thread > thread)
    }

    /// The events and relations of the steps. `None` if there are more events than a relation has room for.
    fn candidate(&self, threads: usize) -> Option<Candidate> {
        let mut built = Builder {
            steps: vec![Vec::new(); threads],
            ..Builder::default()
        };
        for location in self.steps.iter().filter_map(|step| step.op.location()) {
            if !built.initial.iter().any(|&(known, _)| known == location) {
                let event = built.add(None, Does::Write, Some(location), None);
                built.initial.push((location, event));
            }
        }
        for thread in 0..threads as u32 {
            let begin = built.add(Some(thread), Does::Thread, None, None);
            built.begin.push(begin);
            for step in self.steps.iter().filter(|step| step.id.thread.0 == thread) {
                built.step(step);
            }
            let end = built.add(Some(thread), Does::Thread, None, None);
            built.end.push(end);
        }
        (built.events.len() <= Relation::LARGEST).then(|| built.finish(self))
    }
}

/// Events by what they belong to.
#[derive(Default)]
struct Builder {
    events: Vec<Event>,
    initial: Vec<(Location, usize)>,
    begin: Vec<usize>,
    end: Vec<usize>,
    /// The first and the last event of each step; they differ for updates that write.
    steps: Vec<Vec<(usize, usize)>>,
}

impl Builder {
    fn add(
        &mut self,
        thread: Option<u32>,
        does: Does,
        location: Option<Location>,
        op: Option<(&Op, Kind)>,
    ) -> usize {
        let relaxed = selvedge_core::MemoryOrder::Relaxed;
        self.events.push(Event {
            thread,
            does,
            location: location.map(|location| location.0),
            order: op.map_or(relaxed, |(op, kind)| order(op, kind)),
            update: matches!(op, Some((Op::Update { .. }, _))),
        });
        self.events.len() - 1
    }

    fn step(&mut self, step: &Step) {
        let thread = Some(step.id.thread.0);
        let op = &step.op;
        let location = op.location();
        let mut add = |does, kind| self.add(thread, does, location, Some((op, kind)));
        let events = match (step.source, step.wrote) {
            (Some(_), Some(_)) => {
                let read = add(Does::Read, Kind::ReadHalf);
                (read, add(Does::Write, Kind::WriteHalf))
            }
            (source, wrote) => {
                let event = match op {
                    Op::Fence { .. } => add(Does::Fence, Kind::Silent),
                    Op::Choose { .. } => add(Does::Nothing, Kind::Silent),
                    _ if source.is_some() => add(Does::Read, Kind::Read),
                    _ if wrote.is_some() => add(Does::Write, Kind::Write),
                    _ => add(Does::Thread, Kind::Silent),
                };
                (event, event)
            }
        };
        self.steps[step.id.thread.index()].push(events);
    }

    fn of(&self, id: EventId) -> (usize, usize) {
        self.steps[id.thread.index()][id.index as usize]
    }

    fn initial(&self, location: Location) -> usize {
        let mut all = self.initial.iter();
        let found = all.find(|&&(known, _)| known == location);
        found.expect("every location has an initial write").1
    }

    fn finish(self, trace: &Trace) -> Candidate {
        let size = self.events.len();
        let (mut asw, mut rf, mut co, mut rmw) = (vec![], vec![], vec![], vec![]);
        for step in &trace.steps {
            let (first, last) = self.of(step.id);
            match step.op {
                Op::Create { child } => asw.push((first, self.begin[child.index()])),
                Op::Join { child } => asw.push((self.end[child.index()], first)),
                Op::JoinAll => {
                    let all = self.end.iter().enumerate();
                    let others = all.filter(|&(thread, _)| thread != step.id.thread.index());
                    asw.extend(others.map(|(_, &end)| (end, first)));
                }
                _ => {}
            }
            if let (Some(source), Some(location)) = (step.source, step.op.location()) {
                let write = source.map_or_else(|| self.initial(location), |id| self.of(id).1);
                rf.push((write, first));
            }
            if first != last {
                rmw.push((first, last));
            }
        }
        for (&location, writes) in &trace.coherence {
            let writes = writes.iter().map(|&id| self.of(id).1);
            let all: Vec<usize> = [self.initial(location)].into_iter().chain(writes).collect();
            for (index, &later) in all.iter().enumerate() {
                co.extend(all[..index].iter().map(|&earlier| (earlier, later)));
            }
        }
        // Events of one thread stand side by side, in program order.
        let ranges = self.begin.iter().zip(&self.end);
        let po = ranges.flat_map(|(&begin, &end)| {
            (begin..=end).flat_map(move |a| (a + 1..=end).map(move |b| (a, b)))
        });
        Candidate {
            po: Relation::of_pairs(size, po),
            asw: Relation::of_pairs(size, asw),
            rf: Relation::of_pairs(size, rf),
            co: Relation::of_pairs(size, co),
            rmw: Relation::of_pairs(size, rmw),
            events: self.events,
        }
    }
}

struct Search<'a, M> {
    model: Axioms,
    limit: usize,
    visited: usize,
    fails: bool,
    ended: &'a mut dyn FnMut(&M, &Trace, Execution, End),
}

impl<M: Machine> Search<'_, M> {
    fn visit(&mut self, machine: &mut M, trace: &mut Trace) -> Option<()> {
        trace.replay(machine);
        let threads = machine.threads();
        self.visited += 1;
        if self.visited > self.limit {
            return None;
        }
        let all = (0..threads as u32).map(ThreadId);
        let failed = Pending::Stopped(Stop::Failed);
        self.fails |= all.clone().any(|thread| machine.pending(thread) == failed);
        let mut options = Vec::new();
        let mut newest_goes_on = false;
        for thread in all {
            let mut own = options_of(machine, trace, thread);
            newest_goes_on |= own.newest_goes_on;
            options.append(&mut own.steps);
        }
        if !newest_goes_on {
            let newest = trace.coherence.iter();
            let newest = newest.filter_map(|(&at, writes)| Some((at, *writes.last()?)));
            let execution = trace.execution(threads);
            let end = end(machine, &execution, &newest.collect());
            (self.ended)(machine, trace, execution, end);
        }
        for step in options {
            if trace.comes_too_late(&step) {
                continue;
            }
            trace.push(step);
            if trace.candidate(threads)?.is_consistent(self.model) {
                self.visit(machine, trace)?;
            }
            trace.pop();
        }
        Some(())
    }
}

/// A possible next step of a thread.
#[derive(Default)]
struct Options {
    steps: Vec<Step>,
    /// Whether it can go on with the newest values.
    newest_goes_on: bool,
}

fn options_of<M: Machine>(machine: &M, trace: &Trace, thread: ThreadId) -> Options {
    let mut options = Options::default();
    let Pending::Op(op) = machine.pending(thread) else {
        return options;
    };
    let own = trace.steps.iter().filter(|step| step.id.thread == thread);
    let index = own.count() as u32;
    let step = Step {
        id: EventId { thread, index },
        op,
        read: None,
        source: None,
        wrote: None,
        position: 0,
        choice: 0,
    };
    let ended = |other: ThreadId| {
        use Stop::{Failed, Finished};
        match machine.pending(other) {
            Pending::Absent => true,
            Pending::Stopped(stop) => matches!(stop, Finished | Failed),
            Pending::Op(_) => false,
        }
    };
    let Some(at) = op.location() else {
        let choices = match op {
            Op::Choose { alternatives } => alternatives,
            Op::Join { child } => u32::from(ended(child)),
            Op::JoinAll => {
                let mut others = (0..machine.threads() as u32).map(ThreadId);
                u32::from(others.all(|other| other == thread || ended(other)))
            }
            _ => 1,
        };
        options.newest_goes_on = choices > 0;
        options.steps.extend((0..choices).map(|choice| Step {
            read: Some(choice.into()),
            choice,
            ..step.clone()
        }));
        return options;
    };
    let writes = trace.writes(at);
    for position in 0..=writes.len() {
        if let Op::Store { value, .. } = op {
            options.newest_goes_on = true;
            options.steps.push(Step {
                wrote: Some(value),
                position,
                ..step.clone()
            });
            continue;
        }
        let source = position.checked_sub(1).map(|before| writes[before]);
        let value = source.map_or_else(|| machine.initial(at), |id| trace.written(id));
        let effect = match op {
            Op::Update { function, .. } => function.apply(value),
            _ => Effect::Keep,
        };
        options.newest_goes_on |= position == writes.len() && effect != Effect::Block;
        let read = Step {
            read: Some(value),
            source: Some(source),
            position,
            ..step.clone()
        };
        match (effect, op) {
            (Effect::Block, _) => {}
            (Effect::Choose(alternatives), Op::Update { function, .. }) => {
                options.steps.extend((0..alternatives).map(|choice| Step {
                    wrote: Some(function.choose(value, choice)),
                    choice,
                    ..read.clone()
                }));
            }
            (Effect::Write(value), _) => options.steps.push(Step {
                wrote: Some(value),
                ..read
            }),
            _ => options.steps.push(read),
        }
    }
    options
}
