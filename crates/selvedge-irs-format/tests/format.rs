//! Reading returns what was written, and damaged files are refused.

use selvedge_irs_format::{
    Branch, Class, Contents, Damage, Flags, InputPart, Kind, NONE, NotWeaker, SiteEntry,
    ThreadPart, View, Wait, weaker,
};

fn wait(event: u32, thread: u32, count: u32) -> Wait {
    let bug = 0;
    Wait {
        event,
        thread,
        count,
        bug,
    }
}

fn thread(parent: u32, child: u32, waits: Vec<Wait>) -> ThreadPart {
    ThreadPart {
        parent,
        child,
        limit: 4,
        waits,
        events: vec![Some(0), None, Some(1), Some(0)],
        histories: vec![
            Branch::Event { after: 0, site: 0 },
            Branch::Event { after: 1, site: 1 },
            Branch::Repeat { from: 2, to: 1 },
            Branch::Open { at: 2 },
            Branch::Thread { after: 2, site: 1 },
            Branch::Thread {
                after: 3,
                site: NONE,
            },
        ],
    }
}

fn site(function: &str, class: Class) -> SiteEntry {
    SiteEntry {
        function: function.to_owned(),
        occurrence: 0,
        offset: 17,
        file: "prog.c".to_owned(),
        line: 3,
        class,
        kind: Kind::Store,
        alone: class == Class::Free,
        tracked: class == Class::Counted,
    }
}

fn example(waits: Vec<Wait>) -> Contents {
    let threads = vec![
        thread(NONE, 0, Vec::new()),
        thread(0, 0, waits),
        thread(0, 1, vec![wait(2, 1, 3)]),
    ];
    Contents {
        fingerprint: [7; 16],
        lineage: [9; 16],
        generation: 3,
        flags: Flags::PLAIN_EVENTS.with(Flags::BUG),
        traces: 8,
        estimate: Some(4096),
        initial_waits: 12,
        sites: vec![site("worker", Class::Counted), site("main", Class::Free)],
        inputs: vec![
            InputPart {
                values: vec![0, 1],
                threads: threads.clone(),
            },
            InputPart {
                values: vec![1, 1],
                threads,
            },
        ],
        resume: b"whatever".to_vec(),
    }
}

#[test]
fn what_is_written_is_read_again() {
    let contents = example(vec![wait(1, 2, 1), wait(1, 0, 2), wait(3, 2, 2)]);
    let bytes = contents.to_bytes();
    let view = View::new(&bytes).unwrap();
    assert_eq!(Contents::read(view), contents);
    assert_eq!(view.input(&[1, 1]).unwrap().waits(), 4);
    assert!(view.input(&[1]).is_none());
}

#[test]
fn every_changed_byte_and_every_cut_is_noticed() {
    let bytes = example(vec![wait(1, 2, 1)]).to_bytes();
    for index in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[index] ^= 0x40;
        assert!(View::new(&damaged).is_err(), "byte {index}");
        assert!(View::new(&bytes[..index]).is_err(), "cut at {index}");
    }
    assert_eq!(View::new(b"#!/bin/sh").unwrap_err(), Damage::Foreign);
    assert_eq!(View::new(&bytes[..100]).unwrap_err(), Damage::Length);
}

#[test]
fn waits_of_unknown_threads_are_inconsistent() {
    let bytes = example(vec![wait(1, 3, 1)]).to_bytes();
    assert_eq!(View::new(&bytes).unwrap_err(), Damage::Structure);
    let own = example(vec![wait(1, 1, 1)]).to_bytes();
    assert_eq!(View::new(&own).unwrap_err(), Damage::Structure);
}

#[test]
fn histories_of_unknown_ones_are_inconsistent() {
    for wrong in [
        Branch::Event { after: 5, site: 0 },
        Branch::Event { after: 0, site: 2 },
        Branch::Thread { after: 5, site: 0 },
        Branch::Repeat { from: 1, to: 5 },
        Branch::Open { at: 5 },
    ] {
        let mut contents = example(vec![]);
        contents.inputs[0].threads[1].histories.push(wrong);
        let bytes = contents.to_bytes();
        assert_eq!(
            View::new(&bytes).unwrap_err(),
            Damage::Structure,
            "{wrong:?}"
        );
    }
}

#[test]
fn a_later_file_may_ask_for_less_but_not_for_more() {
    let old = example(vec![wait(1, 2, 2), wait(3, 0, 1)]).to_bytes();
    let check = |waits| {
        let new = example(waits).to_bytes();
        weaker(View::new(&old).unwrap(), View::new(&new).unwrap())
    };
    assert_eq!(check(vec![]), Ok(()));
    assert_eq!(check(vec![wait(1, 2, 1)]), Ok(()));
    assert_eq!(
        check(vec![wait(2, 2, 2)]),
        Ok(()),
        "a later event waits instead"
    );
    assert_eq!(
        check(vec![wait(0, 2, 1)]),
        Err(NotWeaker::Stricter(wait(0, 2, 1)))
    );
    let mut other = example(vec![]);
    other.sites.insert(1, site("added", Class::Free));
    let more = other.to_bytes();
    assert_eq!(
        weaker(View::new(&old).unwrap(), View::new(&more).unwrap()),
        Ok(())
    );
    other.sites[0].tracked = false;
    let other = other.to_bytes();
    let changed = weaker(View::new(&old).unwrap(), View::new(&other).unwrap());
    assert_eq!(changed, Err(NotWeaker::Tracking));
    let mut other = example(vec![]);
    other.lineage = [1; 16];
    let other = other.to_bytes();
    let unrelated = weaker(View::new(&old).unwrap(), View::new(&other).unwrap());
    assert_eq!(unrelated, Err(NotWeaker::Unrelated));
}
