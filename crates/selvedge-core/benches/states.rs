//! Measures the cost of a transition in a search over states, on a machine that costs next to
//! nothing.
//!
//! `cargo bench -p selvedge-core --bench states`

use std::fs;

use selvedge_core::op::Rmw;
use selvedge_core::report::NoObserver;
use selvedge_core::states::{Algorithm, Identity, Settings, search};
use selvedge_core::{
    Failure, Function, Location, Machine, MemoryOrder, Op, Outcome, Pending, PendingAccess, Site,
    StateMachine, ThreadId, Value, Width,
};

const THREADS: usize = 5;
const SIZE: u8 = 12;

/// Threads that count round and round, each in memory of its own, so that there are `SIZE` to the
/// power of `THREADS` states.
struct Counters {
    memory: [u8; 256],
    threads: [[u8; 128]; THREADS],
    changed: u32,
}

impl Machine for Counters {
    fn reset(&mut self) {
        self.memory = [0; 256];
        self.threads = [[1; 128]; THREADS];
    }

    fn threads(&self) -> usize {
        THREADS
    }

    fn pending(&self, thread: ThreadId) -> Pending {
        Pending::Op(Op::Update {
            at: Location(thread.0),
            function: Function::memory(Width(1), Rmw::Add(1)),
            order: MemoryOrder::SeqCst,
            failure: MemoryOrder::SeqCst,
        })
    }

    fn initial(&self, _: Location) -> Value {
        0
    }

    fn resume(&mut self, thread: ThreadId, _: Outcome, _: &[u32]) {
        let place = thread.index();
        let next = (self.threads[place][7] + 1) % SIZE;
        self.threads[place][7] = next;
        self.memory[8 * place] = next & 1;
        self.changed = thread.0 + 1;
    }

    fn site(&self, _: ThreadId) -> Site {
        Site(0)
    }

    fn failure(&self) -> Option<Failure> {
        None
    }

    fn refusal(&self) -> Option<String> {
        None
    }
}

impl StateMachine for Counters {
    fn parts(&self) -> usize {
        THREADS + 1
    }

    fn identify(&mut self, part: usize, into: &mut Vec<u8>) {
        self.save(part, into);
    }

    fn save(&mut self, part: usize, into: &mut Vec<u8>) {
        match part.checked_sub(1) {
            None => into.extend_from_slice(&self.memory),
            Some(thread) => into.extend_from_slice(&self.threads[thread]),
        }
    }

    fn restore(&mut self, part: usize, from: &[u8]) {
        match part.checked_sub(1) {
            None => self.memory.copy_from_slice(from),
            Some(thread) => self.threads[thread].copy_from_slice(from),
        }
    }

    fn changed(&mut self, into: &mut Vec<u32>) {
        into.extend([0, self.changed]);
    }

    fn value(&self, location: Location) -> Value {
        self.memory[8 * location.index()].into()
    }

    fn access(&self, _: ThreadId) -> Option<PendingAccess> {
        None
    }

    fn propositions(&self) -> Vec<String> {
        Vec::new()
    }

    fn holds(&mut self, _: usize) -> bool {
        false
    }
}

/// Nanoseconds that this process has run for, whatever else the computer does meanwhile.
fn processor_time() -> u64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|time| time.parse().ok()).unwrap_or(0)
}

fn main() {
    for identity in [Identity::Fingerprint, Identity::Exact] {
        for algorithm in Algorithm::ALL {
            let mut machine = Counters {
                memory: [0; 256],
                threads: [[0; 128]; THREADS],
                changed: 0,
            };
            let settings = Settings {
                algorithm,
                identity,
                switches: None,
                races: true,
                audit: false,
                keep_going: false,
            };
            let start = processor_time();
            let report = search(&mut machine, settings, &mut NoObserver);
            let elapsed = processor_time() - start;
            let counts = report.states.expect("it is a search over states");
            println!(
                "{:12} {identity:?}: {} states, {} transitions, {} ns per transition, {} bytes per state",
                algorithm.name(),
                counts.states,
                counts.transitions,
                elapsed / counts.transitions,
                counts.bytes / counts.states,
            );
        }
    }
}
