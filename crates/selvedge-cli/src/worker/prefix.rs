//! The state of a proof as a prefix file.

use std::collections::{BTreeMap, HashMap};

use selvedge_core::irs::{self, Demand, Doing, Happening, History, Reason, Verified};
use selvedge_core::{Site, ThreadId};
use selvedge_irs_format::{Branch, Class, InputPart, Kind, NONE, SiteEntry, ThreadPart, Wait};

/// The bug that `demand` keeps away.
pub(super) fn bug_of(input: &irs::Relaxed, demand: &Demand) -> Option<usize> {
    let kept = input.kept.iter().find(|kept| kept.demand == *demand)?;
    match kept.reason {
        Reason::Bug(bug) => Some(bug),
        Reason::Stuck | Reason::Spins => None,
    }
}

/// Whether some demand keeps a bug away.
pub(super) fn has_bug(input: &irs::Relaxed) -> bool {
    input
        .demands
        .iter()
        .any(|demand| bug_of(input, demand).is_some())
}

/// The places where threads are created and joined.
pub(super) fn thread_sites(verified: &Verified) -> impl Iterator<Item = Site> + '_ {
    let threads = verified.inputs.iter().flat_map(|input| {
        let threads = input.threads().into_iter().map(|(thread, _)| thread);
        threads.flat_map(|thread| input.histories(thread))
    });
    threads.filter_map(|history| match history.event {
        Happening::Thread(site) => Some(site),
        Happening::At(_) | Happening::End => None,
    })
}

/// The waits for one input.
pub(super) fn part(
    input: &irs::Relaxed,
    sites: &BTreeMap<Site, u32>,
    entries: &[SiteEntry],
) -> InputPart {
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
            histories: branches(input.histories(thread), |after, event| match event {
                Happening::At(site) => {
                    let site = sites.get(&site).copied()?;
                    let tracked = entries[site as usize].tracked;
                    tracked.then_some(Branch::Event { after, site })
                }
                Happening::Thread(site) => {
                    let site = sites.get(&site).copied()?;
                    Some(Branch::Thread { after, site })
                }
                Happening::End => Some(Branch::Thread { after, site: NONE }),
            }),
        }
    };
    InputPart {
        values: input.inputs.iter().map(|&value| value.into()).collect(),
        threads: threads.iter().map(describe).collect(),
    }
}

/// The histories without the sites that are not tracked, which may make some of them equal.
fn branches(
    histories: &[History],
    tracked: impl Fn(u32, Happening) -> Option<Branch>,
) -> Vec<Branch> {
    let mut branches = Vec::new();
    let mut known: HashMap<(u32, Happening), u32> = HashMap::new();
    let mut numbers = vec![0; histories.len()];
    for (index, history) in histories.iter().enumerate().skip(1) {
        let after = numbers[history.parent as usize];
        numbers[index] = match tracked(after, history.event) {
            None => after,
            Some(branch) => *known.entry((after, history.event)).or_insert_with(|| {
                branches.push(branch);
                branches.len() as u32
            }),
        };
    }
    let events = branches.len();
    for (history, &from) in histories.iter().zip(&numbers) {
        let repeats = history.repeats.iter().map(|&to| numbers[to as usize]);
        let repeats = repeats.filter(|&to| to != from);
        branches.extend(repeats.map(|to| Branch::Repeat { from, to }));
        branches.extend(history.open.then_some(Branch::Open { at: from }));
    }
    branches[events..].sort_unstable_by_key(|branch| match *branch {
        Branch::Repeat { from, to } => (from, to),
        Branch::Open { at } => (at, NONE),
        Branch::Event { .. } | Branch::Thread { .. } => (NONE, NONE),
    });
    branches.dedup();
    branches
}

/// Tells initial traces apart: what is counted, and which waits there were at first.
pub(super) fn lineage(sites: &[SiteEntry], verified: &Verified) -> [u8; 16] {
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

/// The same as the file has it.
pub(super) fn kind(doing: Doing) -> Kind {
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
