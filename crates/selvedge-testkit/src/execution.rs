//! A finished execution in a form that can be compared.

use std::collections::BTreeMap;

use selvedge_core::graph::{Graph, INIT, Kind, Slot};
use selvedge_core::{EventId, Function, Location, Op, ThreadId, Value};

/// The effect of one operation. Operations are counted, not events: an update is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// The location touched.
    pub at: Option<Location>,
    /// The value read or picked, if it read or picked one.
    pub read: Option<Value>,
    /// The write that was read; `None` inside for the initial value.
    pub source: Option<Option<EventId>>,
    /// The value written, if it wrote one.
    pub wrote: Option<Value>,
    /// The number of the alternative that was taken.
    pub choice: u32,
}

/// Program order, reads-from and coherence of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Execution {
    /// The operations of each thread.
    pub threads: Vec<Vec<Record>>,
    /// The order of the writes to each location that has any.
    pub coherence: BTreeMap<Location, Vec<EventId>>,
}

impl Execution {
    /// The class of an explorer's graph. Reads that are parked at an object are left out.
    pub fn of(graph: &Graph) -> Execution {
        let mut execution = Execution {
            threads: vec![Vec::new(); graph.threads()],
            coherence: BTreeMap::new(),
        };
        for thread in (0..graph.threads() as u32).map(ThreadId) {
            for &slot in graph.thread(thread) {
                let event = graph.event(slot);
                let records = &mut execution.threads[thread.index()];
                match event.kind {
                    Kind::Parked if waits(event.op) => {}
                    Kind::WriteHalf => {
                        let half = records.last_mut().expect("a read half comes first");
                        half.wrote = Some(event.wrote);
                    }
                    kind => records.push(Record {
                        at: event.op.location(),
                        read: (kind != Kind::Write).then_some(event.read),
                        source: kind.reads().then(|| operation(graph, event.source)),
                        wrote: (kind == Kind::Write).then_some(event.wrote),
                        choice: event.choice,
                    }),
                }
            }
        }
        for &location in graph.locations() {
            let writes = graph.coherence(location).iter();
            let writes: Vec<EventId> = writes.filter_map(|&slot| operation(graph, slot)).collect();
            if !writes.is_empty() {
                execution.coherence.insert(location, writes);
            }
        }
        execution
    }
}

/// Whether a parked `op` was not performed, instead of being tried again and again.
fn waits(op: Op) -> bool {
    matches!(
        op,
        Op::Update {
            function: Function::Object(_),
            ..
        }
    )
}

/// The operation that the event in `slot` belongs to.
fn operation(graph: &Graph, slot: Slot) -> Option<EventId> {
    if slot == INIT {
        return None;
    }
    let id = graph.event(slot).id;
    let before = &graph.thread(id.thread)[..id.index as usize];
    let operations = before
        .iter()
        .filter(|&&slot| graph.event(slot).kind != Kind::ReadHalf)
        .count();
    Some(EventId {
        thread: id.thread,
        index: operations as u32,
    })
}
