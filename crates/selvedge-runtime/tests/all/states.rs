//! States that are saved and restored, against running every interleaving from the start.

use std::collections::{BTreeSet, HashMap, HashSet};

use selvedge_core::{Effect, Machine, Op, Outcome, Pending, StateMachine, Stop, ThreadId};
use selvedge_runtime::peers::Team;
use selvedge_runtime::{NativeMachine, Settings};

use crate::common::driver::threads;
use crate::common::ends::{End, end, ends, plain_sc};
use crate::common::{Build, CLANG, CLANG_O2, GCC, GCC_O2, Program, isolated};

const BUILDS: [Build; 4] = [GCC, CLANG, GCC_O2, CLANG_O2];

fn stateful() -> Settings {
    Settings {
        stateful: true,
        ..Settings::default()
    }
}

/// Whether `thread` can take a step.
fn enabled(machine: &NativeMachine, thread: ThreadId) -> bool {
    let Pending::Op(op) = machine.pending(thread) else {
        return false;
    };
    match op {
        Op::Join { child } => machine.pending(child).has_ended(),
        Op::JoinAll => threads(machine).all(|t| t == thread || machine.pending(t).has_ended()),
        Op::Update { at, function, .. } => function.apply(machine.value(at)) != Effect::Block,
        _ => true,
    }
}

fn step(machine: &mut NativeMachine, thread: ThreadId) {
    let Pending::Op(op) = machine.pending(thread) else {
        panic!("{thread} is stopped")
    };
    let mut outcome = Outcome::default();
    match op {
        Op::Load { at, .. } => outcome.read = machine.value(at),
        Op::Update { at, function, .. } => {
            outcome.read = machine.value(at);
            outcome.wrote = match function.apply(outcome.read) {
                Effect::Write(value) => Some(value),
                Effect::Choose(_) => Some(function.choose(outcome.read, 0)),
                Effect::Keep => None,
                Effect::Block => panic!("{thread} is blocked"),
            };
        }
        _ => {}
    }
    machine.resume(thread, outcome, &[]);
}

/// Whether nothing happens after the present state.
fn is_over(machine: &NativeMachine) -> bool {
    threads(machine).any(|t| {
        matches!(
            machine.pending(t),
            Pending::Stopped(Stop::Failed | Stop::Refused | Stop::Exited)
        )
    })
}

type Parts = Vec<Vec<u8>>;

fn identity(machine: &mut NativeMachine) -> Parts {
    let mut parts: Parts = Vec::new();
    for part in 0..machine.parts() {
        let mut bytes = Vec::new();
        machine.identify(part, &mut bytes);
        parts.push(bytes);
    }
    while parts.last().is_some_and(Vec::is_empty) {
        parts.pop();
    }
    parts
}

fn image(machine: &mut NativeMachine, identity: &Parts) -> Parts {
    let image = |(part, identity): (usize, &Vec<u8>)| {
        let mut bytes = Vec::new();
        if !identity.is_empty() {
            machine.save(part, &mut bytes);
        }
        bytes
    };
    identity.iter().enumerate().map(image).collect()
}

fn restore(machine: &mut NativeMachine, image: &Parts) {
    for part in 0..machine.parts() {
        machine.restore(part, image.get(part).map_or(&[], |bytes| bytes));
    }
}

/// The states of a program.
#[derive(Debug, Default)]
struct Space {
    states: usize,
    finals: BTreeSet<Parts>,
    ends: BTreeSet<End>,
}

/// All states, by saving and restoring.
fn space(machine: &mut NativeMachine) -> Space {
    let mut space = Space::default();
    let mut known: HashSet<Parts> = HashSet::new();
    machine.reset();
    let first = identity(machine);
    let mut open = vec![image(machine, &first)];
    let mut identities: HashMap<usize, Parts> = HashMap::from([(0, first.clone())]);
    known.insert(first);
    while let Some(state) = open.pop() {
        let expected = identities.remove(&open.len()).expect("its identity");
        restore(machine, &state);
        assert_eq!(identity(machine), expected, "restored as it was saved");
        space.states += 1;
        let able: Vec<_> = threads(machine).filter(|&t| enabled(machine, t)).collect();
        if able.is_empty() || is_over(machine) {
            space.ends.insert(end(machine));
            space.finals.insert(expected);
            continue;
        }
        for thread in able {
            restore(machine, &state);
            let mut before = Vec::new();
            machine.changed(&mut before);
            let old = identity(machine);
            step(machine, thread);
            let mut changed = Vec::new();
            machine.changed(&mut changed);
            let next = identity(machine);
            for part in 0..old.len().max(next.len()) {
                if old.get(part).map_or(&[][..], |b| b) != next.get(part).map_or(&[][..], |b| b) {
                    assert!(changed.contains(&(part as u32)), "part {part} changed");
                }
            }
            if is_over(machine) {
                space.ends.insert(end(machine));
                space.finals.insert(next);
            } else if known.insert(next.clone()) {
                let image = image(machine, &next);
                identities.insert(open.len(), next);
                open.push(image);
            }
        }
        assert!(space.states < 100_000, "too many states");
    }
    space
}

/// The same by running every interleaving from the start.
fn runs(machine: &mut NativeMachine, limit: usize) -> Option<Space> {
    let mut space = Space::default();
    let mut path: Vec<(usize, usize)> = Vec::new();
    for _ in 0..limit {
        machine.reset();
        let mut depth = 0;
        loop {
            let able: Vec<_> = threads(machine).filter(|&t| enabled(machine, t)).collect();
            if able.is_empty() || is_over(machine) {
                break;
            }
            if depth == path.len() {
                path.push((0, able.len()));
            }
            assert_eq!(path[depth].1, able.len(), "the same again");
            step(machine, able[path[depth].0]);
            depth += 1;
        }
        space.ends.insert(end(machine));
        space.finals.insert(identity(machine));
        while path.last().is_some_and(|&(at, of)| at + 1 == of) {
            path.pop();
        }
        match path.last_mut() {
            Some(last) => last.0 += 1,
            None => return Some(space),
        }
    }
    None
}

/// Compares the two for a program, built in several ways; returns the number of states each time.
fn compare(source: &str) -> Vec<usize> {
    let mut counts = Vec::new();
    for build in Build::installed(&BUILDS) {
        let program = Program::build(build, source);
        let mut machine = program.load(stateful());
        let found = space(&mut machine);
        let expected = runs(&mut machine, 200_000).expect("few interleavings");
        assert_eq!(found.ends, expected.ends, "{build:?}");
        assert!(found.finals == expected.finals, "{build:?}");
        counts.push(found.states);
        drop(machine);
        assert_eq!(found.ends, ends(build, source, plain_sc()), "{build:?}");
    }
    counts
}

#[test]
fn counters() {
    isolated("counters", || {
        compare(
            "#include <pthread.h>
             #include <assert.h>
             int x; _Thread_local int mine = 3;
             void *add(void *p) { int r = x; mine++; x = r + 1; return 0; }
             int main(void) {
                 pthread_t a, b;
                 pthread_create(&a, 0, add, 0);
                 pthread_create(&b, 0, add, 0);
                 pthread_join(a, 0);
                 pthread_join(b, 0);
                 assert(x == 2);
                 return 0;
             }",
        );
    });
}

#[test]
fn mutexes_and_conditions() {
    isolated("mutexes_and_conditions", || {
        compare(
            "#include <pthread.h>
             pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
             pthread_cond_t c = PTHREAD_COND_INITIALIZER;
             int ready;
             void *wait(void *p) {
                 pthread_mutex_lock(&m);
                 while (!ready) pthread_cond_wait(&c, &m);
                 ready--;
                 pthread_mutex_unlock(&m);
                 return p;
             }
             int main(void) {
                 pthread_t a;
                 pthread_create(&a, 0, wait, 0);
                 pthread_mutex_lock(&m);
                 ready = 1;
                 pthread_mutex_unlock(&m);
                 pthread_cond_signal(&c);
                 pthread_join(a, 0);
                 return 0;
             }",
        );
    });
}

#[test]
fn heaps() {
    isolated("heaps", || {
        compare(
            "#include <pthread.h>
             #include <stdlib.h>
             #include <stdatomic.h>
             struct node { int value; struct node *next; };
             _Atomic(struct node *) top;
             void *push(void *p) {
                 struct node *n = malloc(sizeof *n);
                 n->value = 1;
                 struct node *old = atomic_exchange(&top, n);
                 free(old);
                 return 0;
             }
             int main(void) {
                 pthread_t a;
                 pthread_create(&a, 0, push, 0);
                 push(0);
                 pthread_join(a, 0);
                 free(atomic_load(&top));
                 return 0;
             }",
        );
    });
}

#[test]
fn frames_and_arguments() {
    isolated("frames_and_arguments", || {
        compare(
            "#include <pthread.h>
             #include <semaphore.h>
             #include <string.h>
             pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
             pthread_cond_t c = PTHREAD_COND_INITIALIZER;
             sem_t s; int n; char text[20];
             int deep(int k) { return k == 0 ? n++ : deep(k - 1) + 1; }
             void *work(void *p) {
                 deep(2);
                 strcpy(text, p);
                 sem_post(&s);
                 return 0;
             }
             int main(void) {
                 pthread_t a;
                 sem_init(&s, 0, 0);
                 pthread_create(&a, 0, work, \"hello\");
                 deep(1);
                 sem_wait(&s);
                 pthread_join(a, 0);
                 return text[0] != 'h';
             }",
        );
    });
}

/// A program that never ends has few states all the same.
#[test]
fn endless_loops() {
    isolated("endless_loops", || {
        let source = "#include <pthread.h>
             #include <stdlib.h>
             #include <unistd.h>
             pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
             int turn;
             void *other(void *p) {
                 for (;;) {
                     int *box = malloc(4);
                     pthread_mutex_lock(&m);
                     *box = turn;
                     turn = !*box;
                     pthread_mutex_unlock(&m);
                     free(box);
                     usleep(10);
                 }
             }
             int main(void) {
                 pthread_t a;
                 pthread_create(&a, 0, other, 0);
                 other(0);
             }";
        for build in Build::installed(&BUILDS) {
            let program = Program::build(build, source);
            let mut machine = program.load(stateful());
            let found = space(&mut machine);
            assert!(found.ends.is_empty(), "{:?}", found.ends);
            assert!(found.states < 400, "{} states", found.states);
        }
    });
}

#[test]
fn detached_threads_and_thread_specific_data() {
    isolated("detached_threads_and_thread_specific_data", || {
        compare(
            "#include <pthread.h>
             #include <stdlib.h>
             pthread_key_t key; int n;
             void done(void *p) { __atomic_fetch_add(&n, 1, __ATOMIC_SEQ_CST); free(p); }
             void *work(void *p) {
                 pthread_setspecific(key, malloc(8));
                 return 0;
             }
             int main(void) {
                 pthread_t a, b;
                 pthread_attr_t attributes;
                 pthread_key_create(&key, done);
                 pthread_attr_init(&attributes);
                 pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
                 pthread_create(&a, &attributes, work, 0);
                 pthread_create(&b, 0, work, 0);
                 pthread_join(b, 0);
                 return __atomic_load_n(&n, __ATOMIC_SEQ_CST);
             }",
        );
    });
}

#[test]
fn cpp_threads() {
    isolated("cpp_threads", || {
        let source = "#include <thread>
             #include <mutex>
             #include <vector>
             #include <stdexcept>
             std::mutex m; std::vector<int> all;
             int main() {
                 std::thread a([] {
                     std::lock_guard<std::mutex> guard(m);
                     try { if (all.empty()) throw std::runtime_error(\"empty\"); }
                     catch (std::exception &) { all.push_back(1); }
                 });
                 { std::lock_guard<std::mutex> guard(m); all.push_back(2); }
                 a.join();
             }";
        for build in Build::installed(&[GCC]) {
            let program = Program::build_cxx(build, source);
            let mut machine = program.load(stateful());
            let found = space(&mut machine);
            let expected = runs(&mut machine, 100_000).expect("few interleavings");
            assert_eq!(found.ends, BTreeSet::from([End::Complete]));
            assert_eq!(found.ends, expected.ends);
            assert!(found.finals == expected.finals);
        }
    });
}

/// Copies of the process stand in the same state and tell each other what they see.
#[test]
fn copies_of_the_process_see_the_same() {
    isolated("copies_of_the_process_see_the_same", || {
        let source = "#include <pthread.h>
             int x;
             void *add(void *p) { x++; return 0; }
             int main(void) { pthread_t a; pthread_create(&a, 0, add, 0); x++; return 0; }";
        let program = Program::build(GCC, source);
        let mut machine = program.load(stateful());
        let mut team = Team::fork(&mut machine, 3).expect("three processes");
        let found = space(&mut machine);
        let mut own: Vec<u8> = found.finals.iter().flatten().flatten().copied().collect();
        own.push(team.rank() as u8);
        for size in [1, 3_000_000] {
            let long: Vec<u8> = own.iter().copied().cycle().take(own.len() * size).collect();
            let all = team.exchange(&vec![long; 3]).expect("everybody is there");
            for (rank, message) in all.iter().enumerate() {
                assert_eq!(message.len(), own.len() * size);
                let (last, rest) = message.split_last().expect("a message");
                assert_eq!(usize::from(*last), rank);
                assert_eq!(rest[..own.len() - 1], own[..own.len() - 1]);
            }
            own.truncate(1);
            own[0] = team.rank() as u8;
        }
        if team.rank() != 0 {
            // SAFETY: ends the process without running anything.
            unsafe { libc::_exit(0) };
        }
    });
}

/// One that ends before its time, as after a panic, ends the first one in the same way, and that
/// one all others.
#[test]
fn who_loses_a_member_ends_like_it() {
    isolated("who_loses_a_member_ends_like_it", || {
        let program = Program::build(GCC, "int main(void) { return 0; }");
        let mut machine = program.load(stateful());
        // SAFETY: the child goes on where the parent is, and needs none of its other threads.
        let first = unsafe { libc::fork() };
        if first == 0 {
            let mut team = Team::fork(&mut machine, 3).expect("three processes");
            if team.rank() == 2 {
                // SAFETY: ends the process without running anything.
                unsafe { libc::_exit(101) };
            }
            let _ = team.exchange(&vec![Vec::new(); 3]);
            // SAFETY: the same.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: waits for a child, and writes how it ended into a local.
        let ended = unsafe { libc::waitpid(first, &raw mut status, 0) };
        assert_eq!(ended, first);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 101);
    });
}
