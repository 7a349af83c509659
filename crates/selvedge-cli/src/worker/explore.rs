//! Running an explorer on the program, and telling what it finds.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use selvedge_core::dpor;
use selvedge_core::graph::{Graph, Slot};
use selvedge_core::ltl;
use selvedge_core::report::{
    Bug as RawBug, Counts, Ending, NoObserver, Observer, Report, StateCounts,
};
use selvedge_core::settings::Settings;
use selvedge_core::states::{self, Identity};
use selvedge_core::tracer;
use selvedge_core::trust;
use selvedge_core::with_model;
use selvedge_core::witness;
use selvedge_page::{Origin, Origins};
use selvedge_runtime::NativeMachine;
use selvedge_runtime::peers::processor_time;

use super::counters::Counters;
use super::journal::Watched;
use super::lines;
use super::measure::memory;
use super::protocol::{Bound, FoundBug, HotLoop, Reply, Rerun, SearchTask, Searched};
use crate::describe::{self, Binary};
use crate::explorer::Explorer;
use crate::report::Bug;

/// A loop that goes round more often than this is worth a warning.
const HOT_LOOP: u32 = 1000;

/// A search and everything it needs besides the program.
pub(super) struct Exploration<'a> {
    pub(super) search: &'a SearchTask,
    pub(super) binary: &'a Binary,
    pub(super) counters: &'a Counters,
    pub(super) reply: &'a dyn Fn(Reply),
}

impl<'a> Exploration<'a> {
    /// Explores the program, once or bound by bound.
    pub(super) fn run(&self, machine: &mut Watched<'a>) -> Searched {
        match self.search.rerun {
            Rerun::No => {}
            Rerun::Run(from) => self.journal(machine, from),
            Rerun::Step(step) => {
                self.journal(machine, u64::MAX);
                machine.fatal = Some(step);
            }
        }
        tell_of_long(self.binary, self.reply, machine);
        let origins = RefCell::new(self.origins(machine));
        // The processes of a search over states do not tell each other which lines they reach.
        let watched = self.search.explorer.jobs() == 1 && self.watch_lines(machine);
        let known = RefCell::new(Vec::new());
        let (ended, first_bug) = (Cell::new(0), Cell::new(None));
        let beyond = RefCell::new(None);
        let mut bound = match self.search.bound {
            Bound::None => None,
            Bound::AtMost(bound) => Some(bound),
            Bound::Iterative => Some(0),
        };
        let (report, limited) = loop {
            let mut observer = Watcher {
                exploration: self,
                known: &known,
                ended: &ended,
                before: ended.get(),
                first_bug: &first_bug,
                beyond: &beyond,
                limited: false,
                origins: &origins,
            };
            let settings = Settings {
                keep_going: self.search.keep_going,
                preemptions: bound,
            };
            origins.borrow_mut().restart();
            let report = search(&self.search.explorer, machine, settings, &mut observer);
            let limited = observer.limited;
            match bound {
                Some(k) if self.search.bound == Bound::Iterative && goes_on(&report) => {
                    bound = Some(k + 1);
                }
                _ => break (report, limited),
            }
        };
        let unreached = || lines::unreached(self.binary, &lines::reached(machine.inner()));
        Searched {
            first_bug: first_bug.get(),
            beyond: beyond.take(),
            origins: self.lines(&origins.into_inner(), machine),
            unreached: watched.then(unreached),
            ..self.summarise(report, limited, bound, machine)
        }
    }

    /// Records where executions come from, if that is asked for.
    pub(super) fn origins(&self, machine: &mut Watched<'a>) -> Origins {
        let asked = self.search.origins;
        Origins::new(asked.then(|| machine.note_sites(self.binary)))
    }

    /// The lines that executions come from.
    pub(super) fn lines(&self, origins: &Origins, machine: &Watched<'_>) -> Vec<Origin> {
        let place = |site| describe::place(self.binary, machine.inner(), site, &[]);
        origins.lines(place).unwrap_or_default()
    }

    /// Records which lines are reached, if that is asked for and possible.
    pub(super) fn watch_lines(&self, machine: &mut Watched<'a>) -> bool {
        self.search.origins && lines::watch(self.binary, machine.inner_mut())
    }

    /// Has every step told before it is taken, from the run with number `from` on: what was told
    /// last is how the program came to end this process.
    pub(super) fn journal(&self, machine: &mut Watched<'a>, from: u64) {
        let (binary, reply) = (self.binary, self.reply);
        let mut known = describe::Known::default();
        let tell = move |machine: &NativeMachine, step: Option<&witness::Step>| match step {
            None => reply(Reply::Begin),
            Some(step) => {
                let described = describe::step(binary, machine, &mut known, step);
                reply(Reply::Step(Box::new((described, step.clone()))));
            }
        };
        machine.journal(from, Box::new(tell));
    }

    fn summarise(
        &self,
        report: Report,
        limited: bool,
        bound: Option<u32>,
        machine: &Watched<'_>,
    ) -> Searched {
        let mut counts = report.counts;
        if let Some(limit) = self.search.max_executions.filter(|_| limited) {
            // The one that went over the limit only showed that there are more.
            counts.executions = counts.executions.min(limit);
        }
        let overlooked = machine.inner().overlooked();
        Searched {
            ending: describe::ending(self.binary, machine.inner(), report.ending),
            counts,
            states: report.states,
            bound: bound.filter(|_| beyond(&counts)),
            unrolled: report.unrolled,
            limited,
            hot_loop: hot_loop(self.binary, machine.inner()),
            weak_exchanges: overlooked.weak_exchanges,
            freed_pointers: overlooked.freed_pointers,
            status: overlooked.status,
            threads: overlooked.threads,
            mixed: overlooked.mixed,
            first_bug: None,
            beyond: None,
            memory: memory("VmHWM:"),
            processor_seconds: machine.processor_seconds.clone(),
            origins: Vec::new(),
            unreached: None,
        }
    }
}

/// Has the first execution told that becomes long.
pub(super) fn tell_of_long<'a>(
    binary: &'a Binary,
    reply: &'a dyn Fn(Reply),
    machine: &mut Watched<'a>,
) {
    machine.tell_of_long(Box::new(move |machine| {
        if let Some(hot) = hot_loop(binary, machine) {
            reply(Reply::HotLoop(hot));
        }
    }));
}

/// The loop that went round most often in one execution, if that is worth a warning.
pub(super) fn hot_loop(binary: &Binary, machine: &NativeMachine) -> Option<HotLoop> {
    let (site, calls, rounds) = machine.hottest_loop()?;
    let place = || describe::place(binary, machine, site, &calls);
    (rounds > HOT_LOOP).then(|| (place(), rounds))
}

/// One search.
pub(super) fn search<'a>(
    explorer: &Explorer,
    machine: &mut Watched<'a>,
    settings: Settings,
    observer: &mut impl Observer<Watched<'a>>,
) -> Report {
    let keep_going = settings.keep_going;
    match explorer {
        Explorer::Trust(model) => {
            with_model!(*model, C => trust::search::<C, _>(machine, settings, observer))
        }
        Explorer::Tracer(model) => tracer::search_under(*model, machine, keep_going, observer),
        Explorer::Interleaving(engine) => dpor::search(machine, *engine, settings, observer).0,
        Explorer::CostBounded(measure) => {
            let bound = settings.preemptions.unwrap_or(0);
            dpor::search_within(machine, *measure, bound, keep_going, observer)
        }
        Explorer::Random(sample) => dpor::sample(machine, *sample, keep_going, observer),
        Explorer::States(over) => {
            let settings = states::Settings {
                algorithm: over.algorithm,
                identity: match over.lossless {
                    true => Identity::Exact,
                    false => Identity::Fingerprint,
                },
                switches: settings.preemptions,
                races: over.races,
                // For tests of the runtime; see CONTRIBUTING.md.
                audit: std::env::var_os("SELVEDGE_AUDIT").is_some(),
                keep_going,
            };
            let before = processor_time();
            let copies = machine.copies(over.jobs as usize);
            if matches!(copies, Ok(Some(_))) {
                selvedge_confine::alone();
            }
            let (report, others) = match copies {
                Ok(None) => (states::search(machine, settings, observer), Vec::new()),
                Ok(Some(mut team)) if team.rank() == 0 => {
                    let report = states::search_with(machine, settings, &mut team, observer);
                    (report, team.wait())
                }
                Ok(Some(team)) => {
                    states::search_with(machine, settings, team, &mut NoObserver);
                    // The one with rank 0 speaks for all.
                    std::process::exit(0);
                }
                Err(error) => {
                    let why = format!("cannot start more processes ({error}); --jobs 1 needs none");
                    (Report::refused(why), Vec::new())
                }
            };
            let times = [processor_time() - before].into_iter().chain(others);
            machine.processor_seconds = times.map(|time| time.as_secs_f64()).collect();
            report
        }
        Explorer::Temporal(settings) => ltl::search(machine, settings, observer),
    }
}

/// Whether a larger bound would show more.
fn goes_on(report: &Report) -> bool {
    let ended = matches!(report.ending, Ending::Complete | Ending::Lossy);
    ended && beyond(&report.counts)
}

fn beyond(counts: &Counts) -> bool {
    counts.over_bound > 0 || counts.bound_blocked > 0
}

/// Counts executions, describes bugs, and stops the search when told to.
struct Watcher<'a> {
    exploration: &'a Exploration<'a>,
    /// The bugs that were reported already, under a smaller bound.
    known: &'a RefCell<Vec<(selvedge_core::FailureKind, selvedge_core::Site)>>,
    /// How many executions have ended, also under smaller bounds.
    ended: &'a Cell<u64>,
    /// How many of them under smaller bounds.
    before: u64,
    /// In the how manieth execution the first bug was found.
    first_bug: &'a Cell<Option<u64>>,
    /// A bug beyond the bound.
    beyond: &'a RefCell<Option<Box<Bug>>>,
    /// Whether the limit on executions was passed.
    limited: bool,
    /// Where executions come from.
    origins: &'a RefCell<Origins>,
}

impl Observer<Watched<'_>> for Watcher<'_> {
    fn complete(&mut self, graph: &Graph) {
        self.origins.borrow_mut().complete(graph);
    }

    fn alternative(&mut self, graph: &Graph, slot: Slot) {
        self.origins.borrow_mut().alternative(graph, slot);
    }

    fn bug(&mut self, bug: &RawBug, machine: &Watched<'_>) {
        let number = self.first_bug.get().unwrap_or(self.ended.get() + 1);
        self.first_bug.set(Some(number));
        let key = (bug.failure.kind, bug.failure.site);
        let iterative = self.exploration.search.bound == Bound::Iterative;
        if iterative && self.known.borrow().contains(&key) {
            return;
        }
        self.known.borrow_mut().push(key);
        let described = describe::bug(
            self.exploration.binary,
            machine.inner(),
            bug,
            &describe::Calls::default(),
        );
        (self.exploration.reply)(Reply::Bug(Box::new(FoundBug {
            described,
            raw: bug.clone(),
        })));
    }

    fn bug_beyond(&mut self, bug: &RawBug, machine: &Watched<'_>) {
        let calls = describe::Calls::default();
        let described = describe::bug(self.exploration.binary, machine.inner(), bug, &calls);
        self.beyond.replace(Some(Box::new(described)));
    }

    fn restart(&mut self) {
        self.before = self.ended.get();
        self.origins.borrow_mut().restart();
    }

    fn states(&mut self, counts: &StateCounts) -> ControlFlow<()> {
        let counters = self.exploration.counters;
        counters.tell_states(counts);
        match counters.stop().load(Ordering::Relaxed) {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn progress(&mut self, counts: &Counts) -> ControlFlow<()> {
        let Exploration {
            counters, search, ..
        } = self.exploration;
        counters
            .executions()
            .store(counts.executions, Ordering::Relaxed);
        counters.blocked().store(counts.blocked, Ordering::Relaxed);
        let all = counts.all();
        self.ended.set(self.before + all);
        self.limited = search.max_executions.is_some_and(|limit| all > limit);
        if self.limited || counters.stop().load(Ordering::Relaxed) != 0 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
