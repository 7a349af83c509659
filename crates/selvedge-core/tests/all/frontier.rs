//! The frontier of a divided search, against one that looks through a list.

use selvedge_core::failure::FailureKind;
use selvedge_core::random::Random;
use selvedge_core::report::same_bug;
use selvedge_core::trust::{Counts, Ending, Found, Frontier, Known, UnitId};
use selvedge_core::{Failure, Site, ThreadId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Bug(Failure);

impl Known for Bug {
    fn failure(&self) -> &Failure {
        &self.0
    }
}

/// A part of the tree: what was found there, or a unit with its share.
#[derive(Clone, Debug)]
enum Part {
    Done(u64, Vec<Failure>),
    Open { id: UnitId, share: f64, taken: bool },
}

/// All parts in the order of the tree, each found by looking.
struct List(Vec<Part>);

impl List {
    fn open(&self) -> impl Iterator<Item = (UnitId, f64, bool)> {
        self.0.iter().filter_map(|part| match *part {
            Part::Open { id, share, taken } => Some((id, share, taken)),
            Part::Done(..) => None,
        })
    }

    fn largest(&self) -> Option<UnitId> {
        let free = self.open().filter(|&(.., taken)| !taken);
        Some(free.max_by(|a, b| a.1.total_cmp(&b.1))?.0)
    }

    fn set_taken(&mut self, number: UnitId, value: bool) {
        for part in &mut self.0 {
            if let Part::Open { id, taken, .. } = part
                && *id == number
            {
                *taken = value;
            }
        }
    }

    fn position(&self, number: UnitId) -> Option<usize> {
        let is = |part: &Part| matches!(part, Part::Open { id, .. } if *id == number);
        self.0.iter().position(is)
    }

    fn bugs(&self, end: usize) -> Vec<Failure> {
        let mut bugs: Vec<Failure> = Vec::new();
        for part in &self.0[..end] {
            let Part::Done(_, more) = part else { continue };
            for bug in more {
                if !bugs.iter().any(|known| same_bug(known, bug)) {
                    bugs.push(bug.clone());
                }
            }
        }
        bugs
    }

    fn executions(&self) -> u64 {
        let counts = self.0.iter().map(|part| match part {
            Part::Done(executions, _) => *executions,
            Part::Open { .. } => 0,
        });
        counts.sum()
    }
}

fn bug(number: u64) -> Failure {
    Failure {
        kind: FailureKind::Assertion,
        message: format!("bug {number}"),
        thread: ThreadId::MAIN,
        site: Site(number),
        other: None,
    }
}

#[test]
fn the_frontier_is_the_list_of_all_parts() {
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let mut frontier: Frontier<u64, Bug> = Frontier::new(0);
        let mut list = List(vec![Part::Open {
            id: 1,
            share: 1.0,
            taken: false,
        }]);
        let mut taken = Vec::new();
        // Deep and narrow trees use the room between two places up.
        let wide = 1 + random.below(6);
        for step in 0..400 {
            if random.once_in(3) && !taken.is_empty() {
                let id = taken.swap_remove(random.below(taken.len() as u64) as usize);
                frontier.give_back(id);
                list.set_taken(id, false);
            }
            let next = match random.once_in(4) {
                true => frontier.take_first(),
                false => {
                    let next = frontier.take();
                    assert_eq!(next.map(|(id, _)| id), list.largest(), "seed {seed} {step}");
                    next
                }
            };
            if let Some((id, _)) = next {
                list.set_taken(id, true);
                taken.push(id);
            }
            let Some(&id) = taken.get(random.below(taken.len() as u64 + 1) as usize) else {
                continue;
            };
            if random.once_in(2) {
                answer(&mut frontier, &mut list, id, wide, &mut random);
            }
            taken.retain(|&id| list.position(id).is_some());
            compare(&frontier, &list, &format!("seed {seed}, step {step}"));
            if random.once_in(40) {
                let bytes = postcard::to_stdvec(&frontier).expect("it can be serialised");
                frontier = postcard::from_bytes(&bytes).expect("and read again");
                taken.iter().for_each(|&id| list.set_taken(id, false));
                taken.clear();
            }
        }
    }
}

fn answer(
    frontier: &mut Frontier<u64, Bug>,
    list: &mut List,
    id: UnitId,
    wide: u64,
    random: &mut Random,
) {
    let at = list.position(id).expect("it is open");
    let ends = random.once_in(100);
    let executions = random.below(5);
    let bugs: Vec<Failure> = match random.once_in(5) {
        true => vec![bug(random.below(4))],
        false => Vec::new(),
    };
    let share = list.open().find(|open| open.0 == id).expect("it is open").1;
    let parts = random.below(wide + 1);
    let rest: Vec<(u64, f64)> = (0..parts)
        .map(|_| (0, share / (parts + random.below(2)) as f64))
        .collect();
    let newest = list.open().map(|open| open.0).max().unwrap_or(0);
    let found = Found {
        counts: Counts {
            executions,
            ..Counts::default()
        },
        bugs: bugs.iter().cloned().map(Bug).collect(),
        ending: ends.then_some(Ending::FirstBug),
        ..Found::default()
    };
    frontier.answer(id, found, rest.clone());
    let first = (newest + 1..newest + 10_000).find(|&new| frontier.wants(new));
    let done = Part::Done(executions, bugs);
    let opened = rest.iter().enumerate().map(|(n, &(_, share))| Part::Open {
        id: first.map_or(0, |first| first + n as u64),
        share,
        taken: false,
    });
    match ends {
        true => {
            list.0.truncate(at);
            list.0.push(done);
        }
        false => {
            let parts: Vec<Part> = std::iter::once(done).chain(opened).collect();
            list.0.splice(at..=at, parts);
        }
    }
}

fn compare(frontier: &Frontier<u64, Bug>, list: &List, what: &str) {
    assert_eq!(frontier.units(), list.open().count(), "{what}");
    assert_eq!(frontier.is_done(), list.open().next().is_none(), "{what}");
    let free = list.open().filter(|&(.., taken)| !taken).count();
    assert_eq!(frontier.waiting(), free, "{what}");
    let left: f64 = list.open().map(|(_, share, _)| share).sum();
    assert!((frontier.left() - left).abs() < 1e-9, "{what}");
    assert_eq!(frontier.counts().executions, list.executions(), "{what}");
    assert_eq!(frontier.found().counts.executions, list.executions());
    let told = |bugs: Vec<Failure>| bugs.into_iter().map(|bug| bug.message).collect::<Vec<_>>();
    let all = list.bugs(list.0.len());
    assert_eq!(frontier.bugs(), all.len(), "{what}");
    let found = frontier.found().bugs.into_iter().map(|bug| bug.0).collect();
    assert_eq!(told(found), told(all), "{what}");
    for (id, ..) in list.open() {
        let at = list.position(id).expect("it is open");
        assert!(frontier.wants(id), "{what}");
        assert_eq!(
            told(frontier.known_before(id)),
            told(list.bugs(at)),
            "{what}"
        );
    }
}
