//! Programs as machines whose states can be saved.

use selvedge_core::{
    Location, Machine as _, Pending, PendingAccess, StateMachine, ThreadId, Value,
};

use super::{Part, States, decode, heap_of};
use crate::machine::NativeMachine;
use crate::posix::state::encode;
use crate::posix::temporal;
use crate::runtime::{Runtime, with};

impl StateMachine for NativeMachine {
    fn parts(&self) -> usize {
        with(|runtime| heap_of(runtime.threads.len()) - 1)
    }

    fn identify(&mut self, part: usize, into: &mut Vec<u8>) {
        with(|runtime| match Part::of(part) {
            Part::Shared => runtime.identify_shared(into),
            Part::Stack(thread) => runtime.identify_stack(thread, into),
            Part::Heap(thread) => runtime.identify_heap(thread, into),
        });
    }

    fn save(&mut self, part: usize, into: &mut Vec<u8>) {
        let number = with(|runtime| match Part::of(part) {
            Part::Shared => {
                let image = runtime.save_shared();
                runtime.states.add_shared(image)
            }
            Part::Stack(thread) => {
                let image = runtime.save_stack(thread);
                runtime.states.add_stack(image)
            }
            Part::Heap(thread) => {
                let image = runtime.save_heap(thread);
                runtime.states.add_heap(image)
            }
        });
        into.extend_from_slice(&number.to_le_bytes());
    }

    fn restore(&mut self, part: usize, from: &[u8]) {
        let number = number_of(from);
        with(|runtime| runtime.states.known.forget());
        with(|runtime| match (Part::of(part), number) {
            (Part::Shared, Some(number)) => runtime.restore_shared(number),
            (Part::Shared, None) => {}
            (Part::Stack(thread), number) => runtime.restore_stack(thread, number),
            (Part::Heap(thread), number) => runtime.restore_heap(thread, number),
        });
    }

    fn kept(&self) -> usize {
        with(|runtime| {
            let States {
                bytes,
                lists,
                pieces,
                ..
            } = &runtime.states;
            bytes + lists.bytes() + pieces.bytes()
        })
    }

    fn pack(&mut self, part: usize, saved: &[u8], into: &mut Vec<u8>) {
        let number = number_of(saved).expect("contents that are not empty");
        with(|runtime| match Part::of(part) {
            Part::Shared => encode(&runtime.states.shared[number], into),
            Part::Stack(_) => runtime.pack_stack(number, into),
            Part::Heap(_) => runtime.pack_heap(number, into),
        });
    }

    fn unpack(&mut self, part: usize, packed: &[u8], into: &mut Vec<u8>) {
        let number = with(|runtime| {
            runtime.locations.catch_up(&runtime.shadow);
            match Part::of(part) {
                Part::Shared => runtime.states.add_shared(decode(packed)),
                Part::Stack(_) => {
                    let image = runtime.unpack_stack(packed);
                    runtime.states.add_stack(image)
                }
                Part::Heap(_) => {
                    let image = runtime.unpack_heap(packed);
                    runtime.states.add_heap(image)
                }
            }
        });
        into.extend_from_slice(&number.to_le_bytes());
    }

    fn origin(&self, thread: ThreadId) -> (ThreadId, u32) {
        with(|runtime| {
            let children = |parent: usize| runtime.threads[parent].children.iter();
            let places = (0..runtime.threads.len()).find_map(|parent| {
                let place = children(parent).position(|&child| child == thread.0)?;
                Some((ThreadId(parent as u32), place as u32))
            });
            places.expect("every thread but main was created by another")
        })
    }

    fn introduce(&mut self, parent: ThreadId, place: u32) {
        with(|runtime| runtime.introduce(parent.index(), place as usize));
    }

    fn forget_newest(&mut self) {
        with(Runtime::forget_newest);
    }

    fn changed(&mut self, into: &mut Vec<u32>) {
        with(|runtime| {
            for (index, word) in runtime.states.changed.iter_mut().enumerate() {
                let mut bits = std::mem::take(word);
                while bits != 0 {
                    into.push(64 * index as u32 + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        });
    }

    fn value(&self, location: Location) -> Value {
        with(|runtime| runtime.locations.initial(location, runtime.run))
    }

    fn access(&self, thread: ThreadId) -> Option<PendingAccess> {
        with(|runtime| runtime.pending_access(thread.index()))
    }

    fn ends_with_main(&self) -> bool {
        true
    }

    fn marks_progress(&self, thread: ThreadId) -> bool {
        match self.pending(thread) {
            Pending::Op(op) => with(|runtime| runtime.is_progress_mark(op)),
            _ => false,
        }
    }

    fn propositions(&self) -> Vec<String> {
        with(|runtime| {
            let asked = runtime.settings.propositions.iter();
            asked.map(ToString::to_string).collect()
        })
    }

    fn holds(&mut self, proposition: usize) -> bool {
        temporal::holds(proposition)
    }
}

/// The number of an image; contents that are empty have none.
fn number_of(saved: &[u8]) -> Option<usize> {
    let number = saved.first_chunk();
    number.map(|&bytes| u32::from_le_bytes(bytes) as usize)
}
