//! Proving schedules, and keeping the prefix file up to date while that goes on.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use selvedge_core::Site;
use selvedge_core::irs::{
    self, Doing, Explored, Impossible, Outcome, Part, Saved, Settings, Verified,
};
use selvedge_core::report::{Bug as RawBug, Ending};
use selvedge_irs_format::{Class, Contents, Flags, InputPart, SiteEntry, View};

use super::counters::Counters;
use super::explore::tell_of_long;
use super::helpers::Helpers;
use super::journal::Watched;
use super::prefix::{bug_of, has_bug, kind, lineage, part, thread_sites};
use super::protocol::{Constraint, FoundBug, Relax, Relaxed, Reply, Summary};
use crate::args::Plain;
use crate::describe::{self, Binary};
use crate::input;
use crate::pool::forced_budget;
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

impl<'a> Prover<'a> {
    /// Proves as much as the limits allow for.
    pub(super) fn run(&self, machine: &mut Watched<'a>, plain: Plain) -> Relaxed {
        let base = machine.inner().load_base();
        let earlier = self.earlier();
        let (saved, untracked) = match earlier.as_ref().map(|contents| State::read(contents, base))
        {
            None => (None, HashSet::new()),
            Some(Some(state)) => (Some(state.saved), state.untracked),
            Some(None) => return Relaxed::Changed,
        };
        let settings = Settings {
            order: self.request.order,
            ..Settings::default()
        };
        machine.inner_mut().note_eventless();
        tell_of_long(self.binary, self.reply, machine);
        let helpers = match Helpers::begin(machine, self.request.jobs, self.counters) {
            Ok(helpers) => helpers,
            Err(why) => return Relaxed::Impossible(why),
        };
        let mut writer = Writer {
            prover: self,
            base,
            flags: flags(plain, self.request.ends),
            lineage: earlier.as_ref().map(|contents| contents.lineage),
            generation: earlier.as_ref().map_or(0, |contents| contents.generation),
            written: None,
            // For tests; see CONTRIBUTING.md.
            step: forced_budget().time.unwrap_or(STEP),
            known: None,
            untracked,
            helpers,
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
        if machine.inner().was_modified() {
            return Relaxed::Modified;
        }
        // Also if nothing more was proven: the step that was interrupted is in the file.
        writer.write(&verified, machine, ending.is_none());
        Relaxed::Proven {
            summary: self.summary(&verified, base),
            ending,
            limited: writer.limited,
        }
    }

    /// Why events cannot be counted at run time: an access that sometimes is no event, because no other
    /// thread could reach the memory at that time.
    fn uncountable(&self, machine: &Watched<'_>, verified: &Verified, base: u64) -> Option<String> {
        let mut counted = verified.counted.iter();
        let site = counted.find(|&&site| machine.inner().was_eventless(site))?;
        let place = self.place(base, *site);
        Some(format!(
            "the access at {place} sometimes touches memory that only its own thread can reach, so it cannot be \
             counted at run time"
        ))
    }

    /// The contents of the file, if the proof in it is to be continued.
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

/// Data that all files of a proof have in common.
fn flags(plain: Plain, ends: bool) -> Flags {
    let flags = match plain {
        Plain::Race => Flags::default(),
        Plain::Sc => Flags::PLAIN_EVENTS,
    };
    if ends { flags.with(Flags::ENDS) } else { flags }
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
        Impossible::Endless => format!("no execution ends within {} steps", irs::LONGEST),
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

/// The state of the verifier in a file: numbers of threads and sites mean the same only if the
/// program was loaded at the same address.
#[derive(serde::Serialize, serde::Deserialize)]
struct State {
    base: u64,
    saved: Saved,
    /// See [`Writer`].
    untracked: HashSet<Site>,
}

impl State {
    fn read(contents: &Contents, base: u64) -> Option<State> {
        let state: State = serde_json::from_slice(&contents.resume).ok()?;
        (state.base == base).then_some(state)
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
    /// When a step is interrupted.
    step: Duration,
    /// How many waits and traces the file had then, and whether it was the last one.
    known: Option<(usize, u64, bool)>,
    /// Places where a running program cannot compare accesses: they were no event or several at times, or they are the
    /// results of creating and joining threads, which are recorded without them.
    untracked: HashSet<Site>,
    helpers: Helpers,
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
        let due = self.written.is_some_and(|last| last.elapsed() >= self.step);
        due || self.helpers.is_idle(self.prover.counters)
    }

    fn helpers(&self) -> usize {
        self.helpers.count()
    }

    fn ask(&mut self, parts: Vec<Part>) {
        self.helpers.ask(&parts, self.prover.counters);
    }

    fn answers(&mut self) -> Vec<Explored> {
        self.helpers.answers(self.prover.counters)
    }

    fn proven(&mut self, verified: &Verified, machine: &Watched<'_>) -> ControlFlow<()> {
        for noted in self.helpers.uncommon() {
            machine.inner().add_uncommon_accesses(&noted);
        }
        if machine.inner().was_modified() {
            return ControlFlow::Break(());
        }
        self.refused = self.prover.uncountable(machine, verified, self.base);
        if self.refused.is_some() {
            return ControlFlow::Break(());
        }
        if self.written.is_none_or(|last| last.elapsed() >= PAUSE) {
            self.write(verified, machine, false);
        }
        ControlFlow::Continue(())
    }
}

impl Writer<'_> {
    fn write(&mut self, verified: &Verified, machine: &Watched<'_>, done: bool) {
        let known = Some((verified.demands(), verified.traces(), done));
        // Programs that run need not look at a file that asks for the same.
        self.generation += u64::from(known != self.known);
        self.known = known;
        let contents = self.contents(verified, machine, done);
        (self.prover.reply)(Reply::Prefix(contents.to_bytes()));
        self.written = Some(Instant::now());
    }

    fn contents(&mut self, verified: &Verified, machine: &Watched<'_>, done: bool) -> Contents {
        self.untracked.extend(thread_sites(verified));
        let mut doing: BTreeMap<Site, Doing> = BTreeMap::new();
        let sites = verified.inputs.iter().flat_map(irs::Relaxed::sites);
        // The events at the end of the process have no call site.
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
            .map(|(&site, &what)| {
                let entry = self.site(site, what, verified.counted.contains(&site));
                let alone = !shared.contains(&site);
                SiteEntry {
                    alone,
                    tracked: self.is_users(&entry.function)
                        && self.is_tracked(site, alone, what, machine),
                    ..entry
                }
            })
            .collect();
        let lineage = *self
            .lineage
            .get_or_insert_with(|| lineage(&sites, verified));
        let state = State {
            base: self.base,
            saved: verified.save(),
            untracked: self.untracked.clone(),
        };
        let inputs = verified
            .inputs
            .iter()
            .map(|input| part(input, &numbers, &sites));
        let inputs: Vec<InputPart> = inputs.collect();
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
            inputs,
            resume: serde_json::to_vec(&state).unwrap_or_default(),
        }
    }

    /// Whether a function is part of what the user has compiled.
    fn is_users(&self, function: &String) -> bool {
        let functions = &self.prover.request.functions;
        functions.binary_search(function).is_ok()
    }

    /// Whether events at `site` are compared with histories at run time.
    fn is_tracked(&mut self, site: Site, alone: bool, what: Doing, machine: &Watched<'_>) -> bool {
        if machine.inner().was_eventless(site) || machine.inner().was_parted(site) {
            self.untracked.insert(site);
        }
        let address = site.0.wrapping_sub(self.base) as u32;
        let plain = self.flags.contains(Flags::PLAIN_EVENTS);
        let access = plain && matches!(what, Doing::Load | Doing::Store);
        let untracked = self.untracked.contains(&site)
            || self.prover.request.untracked.contains(&address)
            // Executables have no callback there.
            || access && alone;
        !untracked
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
            tracked: false,
        }
    }
}
