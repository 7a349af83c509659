//! With `SELVEDGE_AUDIT` set, the whole state after steps were taken back is compared with what it
//! was before them.

use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::arena::pointer;
use crate::posix::state;
use crate::runtime::Runtime;

/// The state before each step.
pub(super) struct Audit(Vec<Vec<(String, u64)>>);

impl Audit {
    /// If that is asked for.
    pub(super) fn asked() -> Option<Audit> {
        std::env::var_os("SELVEDGE_AUDIT").map(|_| Audit(Vec::new()))
    }

    pub(super) fn push(&mut self, step: usize, now: Vec<(String, u64)>) {
        self.0.truncate(step);
        self.0.push(now);
    }

    /// Compares with what was there before step number `step`.
    pub(super) fn compare(&self, step: usize, now: &[(String, u64)]) {
        let before = &self.0[step];
        let differs = before.iter().zip(now).find(|(one, other)| one != other);
        if let Some((one, other)) = differs {
            panic!(
                "taking back a step left a difference: {} / {}",
                one.0, other.0
            );
        }
        assert_eq!(
            before.len(),
            now.len(),
            "taking back a step left a difference"
        );
    }

    /// Digests of all parts of the state.
    pub(super) fn look(runtime: &Runtime) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        let mut memory = Vec::new();
        for (range, _) in runtime.snapshot.changing() {
            memory.push((
                format!("globals {:#x}", range.start),
                range.start,
                range.end,
            ));
        }
        let existing = |&&index: &&u32| runtime.exists(index as usize);
        for &index in runtime.started.iter().filter(existing) {
            let thread = &runtime.threads[index as usize];
            let (start, end) = thread.heap.in_use();
            memory.push((format!("heap {index}"), start, end));
            let live = thread.context.stack_pointer();
            let end = thread.slot.locals_range().end;
            memory.push((format!("slot {index}"), live, end));
            let fields = (
                (
                    thread.pending,
                    thread.site,
                    thread.float.word(),
                    &thread.clock,
                ),
                (thread.spawned, thread.result, thread.published),
                (&thread.parts, &thread.settling),
                (thread.heap.blocks(), thread.visible_stack, &thread.foreign),
                (
                    thread.stopped_at,
                    thread.open_range,
                    &thread.in_flight,
                    thread.repeated,
                ),
                (thread.quiet.moments(), thread.frames.depth(), live),
            );
            all.push((format!("thread {index} {fields:?}"), 0));
            all.push((format!("calls {index}"), digest(thread.frames.bytes())));
            all.push((format!("spin {index}"), thread.spin.digest()));
            all.push((format!("local {index} {}", state::words(index as usize)), 0));
        }
        for (name, start, end) in memory {
            // SAFETY: memory of the program, and no fiber runs.
            let bytes = unsafe { std::slice::from_raw_parts(pointer::<u8>(start), end - start) };
            let mut cells = DefaultHasher::new();
            for word in (start & !7..end).step_by(8) {
                if let Some(cell) = runtime.shadow.cell(word) {
                    runtime.shadow.digest(cell, runtime.run, &mut cells);
                }
            }
            all.push((format!("cells of {name}"), cells.finish()));
            all.push((name, digest(bytes)));
        }
        all.push((format!("locations {}", runtime.locations.words()), 0));
        let ends = runtime
            .started
            .iter()
            .map(|&index| runtime.ends[index as usize]);
        let ends: Vec<_> = ends.collect();
        let shared = (
            (
                &runtime.started,
                ends,
                runtime.heap_used,
                runtime.failure.is_some(),
            ),
            (
                runtime.refusal.is_some(),
                &runtime.compared,
                &runtime.written_addresses,
            ),
        );
        all.push((text(&shared), 0));
        all
    }
}

fn text(value: &impl Debug) -> String {
    format!("{value:?}")
}

fn digest(bytes: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    bytes.hash(&mut hash);
    hash.finish()
}
