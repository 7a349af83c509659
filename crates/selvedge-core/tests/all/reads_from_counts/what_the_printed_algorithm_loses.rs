//! Programs that lose classes to rules weaker than those of the search.

use selvedge_core::op::Rmw;
use selvedge_testkit::Instruction as I;

use super::{X, Y, Z, both, ra, sc};

#[test]
fn a_write_has_to_be_declared_to_every_read() {
    let workers = vec![
        vec![I::Load(0, X)],
        vec![I::Load(0, X)],
        vec![I::Load(0, Y), I::Store(X, 1)],
    ];
    assert_eq!(both(workers), 4);
}

#[test]
fn declaring_to_the_closest_read_is_not_enough_with_updates() {
    let workers = vec![
        vec![I::Store(X, 1), I::Load(0, Y), I::Store(Y, 1), I::Load(0, Y)],
        vec![
            I::compare_exchange(0, Y, 0, 0),
            I::compare_exchange(0, X, 1, 2),
        ],
    ];
    assert_eq!(ra(workers), 5);
}

#[test]
fn schedules_have_to_declare_their_writes() {
    let workers = vec![
        vec![
            I::Load(0, X),
            I::fetch_add(0, X, 2),
            I::compare_exchange(0, X, 0, 1),
        ],
        vec![I::memory(0, X, Rmw::Exchange(2)), I::Load(0, X)],
    ];
    assert_eq!(ra(workers), 6);
}

#[test]
fn updates_compete_for_what_they_read() {
    assert_eq!(both(vec![vec![I::fetch_add(0, X, 1)]; 2]), 2);
    assert_eq!(both(vec![vec![I::fetch_add(0, X, 1)]; 5]), 120);
}

#[test]
fn the_read_at_the_end_of_a_schedule_stays_open() {
    let workers = vec![
        vec![I::compare_exchange(0, X, 0, 1)],
        vec![I::compare_exchange(0, X, 0, 2), I::Store(X, 3)],
    ];
    assert_eq!(ra(workers), 3);
}

#[test]
fn under_sc_it_stays_open_for_loads_and_stores_too() {
    let workers = vec![
        vec![I::Store(Y, 1), I::Load(0, X)],
        vec![I::Load(0, Z), I::Store(X, 1), I::Load(1, Y), I::Store(X, 2)],
    ];
    assert_eq!(sc(workers), 5);
}
