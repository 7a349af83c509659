//! Proving schedules, and keeping the prefix file up to date while that goes on.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use selvedge_core::irs::{
    self, Demand, Doing, Impossible, Outcome, Reason, Saved, Settings, Verified,
};
use selvedge_core::report::{Bug as RawBug, Ending};
use selvedge_core::{Site, ThreadId};
use selvedge_irs_format::{
    Class, Contents, Flags, InputPart, Kind, NONE, SiteEntry, ThreadPart, View, Wait,
};

use super::journal::Watched;
use super::protocol::{Constraint, Counters, FoundBug, Relax, Relaxed, Reply, Summary};
use crate::args::Plain;
use crate::describe::{self, Binary};
use crate::input;
use crate::report::Place;

/// The file is not written more often than this: what is proven in between would be lost if the
/// process were killed, and nothing else.
const PAUSE: Duration = Duration::from_millis(100);

/// A step is interrupted this long after the file was last written, so that the file knows of it.
const STEP: Duration = Duration::from_millis(250);

/// A proof and everything it needs besides the program.
pub(super) struct Prover<'a> {
    pub(super) request: &'a Relax,
    pub(super) binary: &'a Binary,
    pub(super) counters: &'a Counters,
    pub(super) reply: &'a dyn Fn(Reply),
}

impl Prover<'_> {
    /// Proves as much as the limits allow for.
    pub(super) fn run(&self, machine: &mut Watched<'_>, plain: Plain) -> Relaxed {
        let base = machine.inner().load_base();
        let earlier = self.earlier();
        let saved = match earlier.as_ref().map(|contents| State::read(contents, base)) {
            None => None,
            Some(Some(saved)) => Some(saved),
            Some(None) => return Relaxed::Changed,
        };
        let settings = Settings {
            order: self.request.order,
            ..Settings::default()
        };
        machine.inner_mut().note_silent();
        let mut writer = Writer {
            prover: self,
            base,
            flags: match plain {
                Plain::Race => Flags::default(),
                Plain::Sc => Flags::PLAIN_EVENTS,
            },
            lineage: earlier.as_ref().map(|contents| contents.lineage),
            generation: earlier.as_ref().map_or(0, |contents| contents.generation),
            written: None,
            known: None,
            limited: false,
            refused: None,
        };
        let result = irs::verify(machine, settings, saved, &mut writer);
        let (verified, outcome) = match result {
            Ok(result) => result,
            Err(impossible) => return impossible_in_words(impossible),
        };
        let ending = match outcome {
            Outcome::Done => None,
            Outcome::Ended(ending) => Some(ending),
        };
        if let Some(what) = writer.refused {
            return Relaxed::Impossible(what);
        }
        // Also if nothing more was proven: the step that was interrupted is in the file.
        writer.write(&verified, ending.is_none());
        Relaxed::Proven {
            summary: self.summary(&verified, base),
            ending,
            limited: writer.limited,
        }
    }

    /// Why events cannot be counted at run time: an access that is one now and none then, because
    /// nobody else knew the memory at that time.
    fn uncountable(&self, machine: &Watched<'_>, verified: &Verified, base: u64) -> Option<String> {
        let mut counted = verified.counted.iter();
        let site = counted.find(|&&site| machine.inner().was_silent(site))?;
        let place = self.place(base, *site);
        Some(format!(
            "the access at {place} is sometimes made to memory that no other thread can know, so that its turns \
             cannot be counted"
        ))
    }

    /// What the file holds, if that is to be taken up.
    fn earlier(&self) -> Option<Contents> {
        let bytes = input::read(&self.request.output).ok();
        let bytes = bytes.filter(|_| self.request.resume)?;
        let view = View::new(&bytes).ok()?;
        (view.fingerprint() == self.request.fingerprint).then(|| Contents::read(view))
    }

    fn place(&self, base: u64, site: Site) -> Place {
        let call = site.0.wrapping_sub(base).wrapping_sub(1);
        Place::nearest(self.binary.frames(call))
    }

    fn summary(&self, verified: &Verified, base: u64) -> Summary {
        let mut constraints = Vec::new();
        for input in &verified.inputs {
            for demand in input.demands.iter() {
                let (later, earlier) = input.ends(demand);
                constraints.push(Constraint {
                    input: input.inputs.clone(),
                    thread: demand.thread.0,
                    event: demand.event,
                    place: self.place(base, later),
                    source: demand.source.0,
                    count: demand.count,
                    source_place: self.place(base, earlier),
                    bug: bug_of(input, demand),
                });
            }
        }
        Summary {
            initial: verified.initial as u64,
            traces: verified.traces(),
            estimate: verified.inputs.iter().map(irs::Relaxed::estimate).sum(),
            inputs: verified.inputs.len() as u64,
            constraints,
        }
    }
}

/// The bug that `demand` keeps away.
fn bug_of(input: &irs::Relaxed, demand: &Demand) -> Option<usize> {
    let kept = input.kept.iter().find(|kept| kept.demand == *demand)?;
    match kept.reason {
        Reason::Bug(bug) => Some(bug),
        Reason::Stuck | Reason::Spins => None,
    }
}

fn impossible_in_words(impossible: Impossible) -> Relaxed {
    Relaxed::Impossible(match impossible {
        Impossible::Changed => return Relaxed::Changed,
        Impossible::Refused(what) => what,
        Impossible::NoTrace(inputs) if inputs.is_empty() => {
            "no schedule was found under which the program does not fail".to_owned()
        }
        Impossible::NoTrace(inputs) => format!(
            "no schedule was found under which the program does not fail with input {inputs:?}"
        ),
        Impossible::TooManyInputs(most) => {
            format!("the program has more than {most} inputs (choices before the first thread)")
        }
        Impossible::Ended(Ending::Stopped) => {
            "stopped before a first schedule was proven".to_owned()
        }
        Impossible::Ended(Ending::Refused(what)) => what,
        Impossible::Ended(Ending::Nondeterministic(what)) => what.to_string(),
        Impossible::Ended(ending) => format!("the search ended: {ending:?}"),
    })
}

/// What the verifier finds again in a file: numbers of threads and sites mean the same only where
/// the program was loaded at the same address.
#[derive(serde::Serialize, serde::Deserialize)]
struct State {
    base: u64,
    saved: Saved,
}

impl State {
    fn read(contents: &Contents, base: u64) -> Option<Saved> {
        let state: State = serde_json::from_slice(&contents.resume).ok()?;
        (state.base == base).then_some(state.saved)
    }
}

/// Writes the file as the proof goes on, and stops it when told to.
struct Writer<'a> {
    prover: &'a Prover<'a>,
    base: u64,
    flags: Flags,
    lineage: Option<[u8; 16]>,
    generation: u64,
    written: Option<Instant>,
    /// How many waits and traces the file had then, and whether it was the last one.
    known: Option<(usize, u64, bool)>,
    limited: bool,
    /// Why nothing that is proven could be enforced.
    refused: Option<String>,
}

impl irs::Watcher<Watched<'_>> for Writer<'_> {
    fn bug(&mut self, bug: &RawBug, machine: &Watched<'_>) {
        let calls = describe::Calls::default();
        let described = describe::bug(self.prover.binary, machine.inner(), bug, &calls);
        (self.prover.reply)(Reply::Bug(Box::new(FoundBug {
            described,
            raw: bug.clone(),
        })));
    }

    fn progress(&mut self, explored: u64) -> ControlFlow<()> {
        let Prover {
            counters, request, ..
        } = self.prover;
        counters.executions().store(explored, Ordering::Relaxed);
        self.limited = request.max_executions.is_some_and(|limit| explored > limit);
        if self.limited || counters.stop().load(Ordering::Relaxed) != 0 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn pauses(&mut self) -> bool {
        self.written.is_some_and(|last| last.elapsed() >= STEP)
    }

    fn proven(&mut self, verified: &Verified, machine: &Watched<'_>) -> ControlFlow<()> {
        self.refused = self.prover.uncountable(machine, verified, self.base);
        if self.refused.is_some() {
            return ControlFlow::Break(());
        }
        if self.written.is_none_or(|last| last.elapsed() >= PAUSE) {
            self.write(verified, false);
        }
        ControlFlow::Continue(())
    }
}

impl Writer<'_> {
    fn write(&mut self, verified: &Verified, done: bool) {
        let known = Some((verified.demands(), verified.traces(), done));
        // Programs that run need not look at a file that asks for the same.
        self.generation += u64::from(known != self.known);
        self.known = known;
        let contents = self.contents(verified, done);
        (self.prover.reply)(Reply::Prefix(contents.to_bytes()));
        self.written = Some(Instant::now());
    }

    fn contents(&mut self, verified: &Verified, done: bool) -> Contents {
        let mut doing: BTreeMap<Site, Doing> = BTreeMap::new();
        let sites = verified.inputs.iter().flat_map(irs::Relaxed::sites);
        // What the end of the process does is called from nowhere.
        for (site, what) in sites.filter(|(site, _)| site.0 > self.base) {
            let known = doing.entry(site).or_insert(what);
            if *known != what {
                *known = Doing::Mixed;
            }
        }
        let shared = verified.inputs.iter().flat_map(irs::Relaxed::shared);
        let shared: HashSet<Site> = shared.collect();
        let numbers: BTreeMap<Site, u32> = doing.keys().copied().zip(0..).collect();
        let sites: Vec<SiteEntry> = doing
            .iter()
            .map(|(&site, &what)| SiteEntry {
                alone: !shared.contains(&site),
                ..self.site(site, what, verified.counted.contains(&site))
            })
            .collect();
        let lineage = *self
            .lineage
            .get_or_insert_with(|| lineage(&sites, verified));
        let state = State {
            base: self.base,
            saved: verified.save(),
        };
        let inputs = verified.inputs.iter().map(|input| part(input, &numbers));
        let mut flags = self.flags;
        if verified.complete() && done {
            flags = flags.with(Flags::COMPLETE);
        }
        if verified.inputs.iter().any(has_bug) {
            flags = flags.with(Flags::BUG);
        }
        let estimate: u64 = verified.inputs.iter().map(irs::Relaxed::estimate).sum();
        Contents {
            fingerprint: self.prover.request.fingerprint,
            lineage,
            generation: self.generation,
            flags,
            traces: verified.traces(),
            estimate: Some(estimate),
            initial_waits: verified.initial as u64,
            sites,
            inputs: inputs.collect(),
            resume: serde_json::to_vec(&state).unwrap_or_default(),
        }
    }

    fn site(&self, site: Site, what: Doing, counted: bool) -> SiteEntry {
        let address = site.0.wrapping_sub(self.base);
        let (function, occurrence, offset) = match self.prover.binary.call_site(address) {
            Some((function, occurrence, offset)) => (function.to_owned(), occurrence, offset),
            None => (String::new(), 0, address as u32),
        };
        let place = self.prover.place(self.base, site);
        SiteEntry {
            function,
            occurrence,
            offset,
            file: place.file.unwrap_or_default(),
            line: place.line.unwrap_or_default(),
            class: if counted { Class::Counted } else { Class::Free },
            kind: kind(what),
            alone: false,
        }
    }
}

fn has_bug(input: &irs::Relaxed) -> bool {
    input
        .demands
        .iter()
        .any(|demand| bug_of(input, demand).is_some())
}

/// What one input asks for.
fn part(input: &irs::Relaxed, sites: &BTreeMap<Site, u32>) -> InputPart {
    let threads = input.threads();
    let index = |thread: ThreadId| {
        let found = threads.iter().position(|&(other, _)| other == thread);
        found.map_or(NONE, |index| index as u32)
    };
    let describe = |&(thread, place): &(ThreadId, Option<irs::EventPlace>)| {
        let limit = input.demands.limit(thread);
        let mut waits: Vec<Wait> = input
            .demands
            .iter()
            .filter(|demand| demand.thread == thread)
            .map(|demand| Wait {
                event: demand.event,
                thread: index(demand.source),
                count: demand.count,
                bug: bug_of(input, demand).map_or(0, |bug| bug as u32 + 1),
            })
            .collect();
        waits.sort_by_key(|wait| (wait.event, wait.thread));
        // One more than matters: a compiler may announce the second event of a statement before the
        // first.
        let listed = if limit > 0 { limit as usize + 1 } else { 0 };
        let events = input.events(thread).iter().take(listed);
        ThreadPart {
            parent: place.map_or(NONE, |place| index(place.0)),
            child: place.map_or(0, |place| place.1),
            limit,
            waits,
            events: events
                .map(|site| site.and_then(|site| sites.get(&site).copied()))
                .collect(),
        }
    };
    InputPart {
        values: input.inputs.iter().map(|&value| value.into()).collect(),
        threads: threads.iter().map(describe).collect(),
    }
}

/// Tells initial traces apart: what is counted, and which waits there were at first.
fn lineage(sites: &[SiteEntry], verified: &Verified) -> [u8; 16] {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut add = |text: &str| {
        for byte in text.bytes() {
            hash = (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    };
    for site in sites.iter().filter(|site| site.class == Class::Counted) {
        add(&format!(
            "{} {} {};",
            site.function, site.occurrence, site.offset
        ));
    }
    for input in &verified.inputs {
        add(&format!("{:?} {:?};", input.inputs, input.schedule()));
    }
    hash.to_le_bytes()
}

fn kind(doing: Doing) -> Kind {
    match doing {
        Doing::Mixed => Kind::Mixed,
        Doing::Load => Kind::Load,
        Doing::Store => Kind::Store,
        Doing::Update => Kind::Update,
        Doing::Fence => Kind::Fence,
        Doing::Create => Kind::Create,
        Doing::Join => Kind::Join,
        Doing::Choice => Kind::Choice,
        Doing::Mutex => Kind::Mutex,
        Doing::ReadWriteLock => Kind::ReadWriteLock,
        Doing::Semaphore => Kind::Semaphore,
        Doing::Condition => Kind::Condition,
        Doing::Barrier => Kind::Barrier,
        Doing::Once => Kind::Once,
        Doing::Destroy => Kind::Destroy,
    }
}
