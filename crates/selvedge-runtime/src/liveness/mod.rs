//! Which parts of a stopped thread's stack its future can depend on.
//!
//! Unoptimised code keeps every variable and every temporary in its stack frame. When a loop comes back to
//! where it was, most of those hold leftovers of the last iteration that will be overwritten before
//! anything reads them. Two states that differ only in such leftovers are the same state, so they
//! must not count when iterations are compared.
//!
//! For functions with an ordinary frame pointer the classical backward analysis over the machine
//! code tells, for each call, which bytes of the frame and which callee-saved registers may be read
//! afterwards. Whatever is not understood counts as live: a variable whose address is taken, a
//! function with an indirect jump, code without a frame pointer.

mod dataflow;
mod effects;

use std::collections::HashMap;

use crate::arena::pointer;
use crate::gate::Registers;
use crate::loader::{Function, Image};

/// What is live in one frame while a call returns to a certain place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiveFrame {
    /// Offset from the frame pointer of each word with live bytes, and the mask of those.
    words: Box<[(i32, u64)]>,
    /// Bit n: the n-th of [`dataflow::REGISTERS`] is live.
    registers: u8,
}

/// What is known of the program's functions.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    functions: Vec<Function>,
    callbacks: HashMap<usize, String>,
    sites: HashMap<usize, Option<LiveFrame>>,
}

impl Liveness {
    /// Nothing is analysed yet.
    pub(crate) fn new(image: &Image) -> Liveness {
        let place = |function: &Function| Function {
            start: function.start + image.base,
            end: function.end + image.base,
            name: function.name.clone(),
        };
        let callback = |function: &&Function| function.name.starts_with("__tsan_");
        let functions = image.functions.iter();
        Liveness {
            callbacks: functions
                .clone()
                .filter(callback)
                .map(|function| (function.start + image.base, function.name.clone()))
                .collect(),
            functions: functions.map(place).collect(),
            sites: HashMap::new(),
        }
    }

    /// What is live in the frame of the function that a call returns to at `site`; `None` if that
    /// function is not understood.
    fn at(&mut self, site: usize) -> Option<&LiveFrame> {
        if !self.sites.contains_key(&site) {
            self.analyse(site);
        }
        self.sites.get(&site)?.as_ref()
    }

    /// Analyses the function around `site`, for all of its calls.
    #[cold]
    fn analyse(&mut self, site: usize) {
        self.sites.insert(site, None);
        let after = self
            .functions
            .partition_point(|function| function.start < site);
        let Some(function) = after.checked_sub(1).map(|index| &self.functions[index]) else {
            return;
        };
        if site > function.end {
            return;
        }
        // SAFETY: the range of a function of the loaded program, whose code stays as it is.
        let code = unsafe {
            std::slice::from_raw_parts(
                pointer::<u8>(function.start).cast_const(),
                function.end - function.start,
            )
        };
        let calls = dataflow::live_at_calls(code, function.start as u64, &self.callbacks);
        self.sites
            .extend(calls.into_iter().map(|(site, frame)| (site, Some(frame))));
    }

    /// Feeds everything that the thread's future can depend on to `hash`, as pairs of words: the
    /// registers, and the stack from `stack_pointer` up to `stack_top`.
    pub(crate) fn visit(
        &mut self,
        site: usize,
        registers: &Registers,
        stack_pointer: usize,
        stack_top: usize,
        mut hash: impl FnMut(usize, usize),
    ) {
        let live = self.at(site).map_or(u8::MAX, |frame| frame.registers);
        let keep = |bit: u32, value: usize| if live & (1 << bit) == 0 { 0 } else { value };
        hash(keep(0, registers.rbx), registers.rbp);
        hash(keep(1, registers.r12), keep(2, registers.r13));
        hash(keep(3, registers.r14), keep(4, registers.r15));
        let (mut site, mut frame_pointer, mut at) = (site, registers.rbp, stack_pointer);
        while let Some(frame) = self.at(site) {
            let plausible = frame_pointer >= at && frame_pointer + 16 <= stack_top;
            if !plausible || frame_pointer % 8 != 0 {
                break;
            }
            for &(offset, mask) in &frame.words {
                let word = frame_pointer.wrapping_add_signed(offset as isize);
                if word >= at {
                    hash(read(word) & mask as usize, offset as usize);
                }
            }
            let (caller, back) = (read(frame_pointer), read(frame_pointer + 8));
            hash(caller, back);
            (site, at) = (back, frame_pointer + 16);
            frame_pointer = caller;
        }
        while at + 8 <= stack_top {
            hash(read(at), 0);
            at += 8;
        }
    }
}

/// A word of the running thread's stack.
fn read(address: usize) -> usize {
    // SAFETY: callers pass aligned addresses between the stack pointer and the top of the stack.
    unsafe { pointer::<usize>(address).read() }
}
