//! Finds the parts of a stopped thread's stack that its future can depend on.
//!
//! Unoptimised code keeps every variable and every temporary in its stack frame. When a loop comes
//! back to where it was, most of those hold leftovers of the last iteration that will be
//! overwritten before anything reads them. Two states that differ only in such leftovers are the
//! same state, so they must not count when iterations are compared.
//!
//! For functions with an ordinary frame pointer the classical backward analysis over the machine
//! code tells, for each call, which bytes of the frame and which callee-saved registers may be read
//! afterwards. Whatever is not understood counts as live: a variable whose address is taken, a
//! function with an indirect jump, code without a frame pointer.

mod addresses;
mod checks;
mod dataflow;
mod effects;
mod flow;
mod loops;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::arena::pointer;
use crate::gate::Registers;
use crate::lines::Covered;
use crate::loader::{Function, Image};
use crate::support::CLEAR_FRAME;
pub(crate) use loops::Mark;

/// The live part of one frame while a call returns to a certain place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiveFrame {
    /// The words with live bytes, lowest first.
    words: Box<[LiveWord]>,
    /// Bit n: the n-th of [`dataflow::REGISTERS`] is live.
    registers: u8,
    /// If the call tells that the function was entered: the words that have been written before,
    /// lowest first. The rest of the frame is leftovers of others.
    written: Option<Box<[LiveWord]>>,
}

/// A word of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LiveWord {
    /// Where it is, from the frame pointer.
    offset: i32,
    /// Its live bytes.
    mask: u64,
    /// If it holds a register of the caller's, which of [`dataflow::REGISTERS`]: live only if that is.
    saves: Option<usize>,
}

/// The analysed functions of the program.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    functions: Vec<Function>,
    callees: Callees,
    sites: HashMap<usize, Option<u32>>,
    frames: Vec<LiveFrame>,
    /// Answers that were given before, by a part of the site: hashing is too slow for every read.
    recent: Vec<(usize, Option<u32>)>,
    /// Where the code has traps, and what belongs there.
    pub(crate) covered: Rc<[Covered]>,
}

/// Functions whose calls are special, by address.
#[derive(Debug, Default)]
struct Callees {
    callbacks: HashMap<usize, String>,
    /// The functions that never return.
    endings: HashSet<usize>,
    /// The functions that can return twice, the second time from anywhere.
    twice: HashSet<usize>,
    /// The one that marks the beginning of a basic block.
    mark: Option<usize>,
    /// The one that clears a frame.
    clear_frame: Option<usize>,
}

/// Functions that never return.
const ENDINGS: [&str; 14] = [
    "__assert_fail",
    "__clang_call_terminate",
    "__cxa_rethrow",
    "__cxa_throw",
    "__stack_chk_fail",
    "_Exit",
    "_Unwind_Resume",
    "_ZSt9terminatev",
    "_exit",
    "abort",
    "exit",
    "pthread_exit",
    "quick_exit",
    "thrd_exit",
];
/// The function that compilers call at the beginning of a basic block, if asked to.
pub(crate) const MARK: &str = "__sanitizer_cov_trace_pc";
/// Functions that can return twice.
const TWICE: [&str; 4] = ["setjmp", "_setjmp", "__sigsetjmp", "vfork"];
/// Frames that are larger are left as they are.
const LARGEST: usize = 1 << 14;
/// How many answers are kept at hand.
const RECENT: usize = 1024;

impl Liveness {
    /// Nothing is analysed yet.
    pub(crate) fn new(image: &Image) -> Liveness {
        let place = |function: &Function| Function {
            start: function.start + image.base,
            end: function.end + image.base,
            name: function.name.clone(),
        };
        let functions = image.functions.iter();
        let mut callees = Callees::default();
        for function in functions.clone() {
            let address = function.start + image.base;
            if function.name == MARK {
                callees.mark = Some(address);
            }
            if function.name == CLEAR_FRAME {
                callees.clear_frame = Some(address);
            }
            if function.name.starts_with("__tsan_") || function.name == MARK {
                callees.callbacks.insert(address, function.name.clone());
            } else if ENDINGS.contains(&function.name.as_str()) {
                callees.endings.insert(address);
            } else if TWICE.contains(&function.name.as_str()) {
                callees.twice.insert(address);
            }
        }
        Liveness {
            callees,
            functions: functions.map(place).collect(),
            sites: HashMap::new(),
            frames: Vec::new(),
            covered: Rc::default(),
            recent: vec![(0, None); RECENT],
        }
    }

    /// The live part of the frame of the function that a call returns to at `site`; `None` if that
    /// function is not understood.
    #[inline(always)]
    fn at(&mut self, site: usize) -> Option<&LiveFrame> {
        let slot = site % RECENT;
        let (known, number) = self.recent[slot];
        let number = if known == site {
            number
        } else {
            self.look_up(site)
        };
        number.map(|number| &self.frames[number as usize])
    }

    #[cold]
    fn look_up(&mut self, site: usize) -> Option<u32> {
        if !self.sites.contains_key(&site) {
            self.analyse(site);
        }
        let number = self.sites.get(&site).copied().flatten();
        self.recent[site % RECENT] = (site, number);
        number
    }

    /// Analyses the function around `site`, for all of its calls.
    #[cold]
    fn analyse(&mut self, site: usize) {
        self.sites.insert(site, None);
        let Some((function, code)) = self.function_around(site) else {
            return;
        };
        let calls = dataflow::live_at_calls(&code, function.start as u64, &self.callees);
        for (site, frame) in calls {
            self.sites.insert(site, Some(self.frames.len() as u32));
            self.frames.push(frame);
        }
    }

    /// The function with a call that returns to `site`, and its machine code.
    fn function_around(&self, site: usize) -> Option<(&Function, Cow<'static, [u8]>)> {
        let after = self
            .functions
            .partition_point(|function| function.start < site);
        let function = &self.functions[after.checked_sub(1)?];
        if site > function.end {
            return None;
        }
        // SAFETY: the range of a function of the loaded program, whose code stays as it is.
        let code = unsafe {
            std::slice::from_raw_parts(
                pointer::<u8>(function.start).cast_const(),
                function.end - function.start,
            )
        };
        let mut code = Cow::Borrowed(code);
        let first = self.covered.partition_point(|&(at, _)| at < function.start);
        let traps = self.covered[first..].iter();
        for &(at, byte) in traps.take_while(|&&(at, _)| at < function.end) {
            code.to_mut()[at - function.start] = byte;
        }
        Some((function, code))
    }

    /// The marks in the function around `site`, and that function's name.
    pub(crate) fn marks_around(&self, site: usize) -> Option<(&str, Vec<Mark>)> {
        let (function, code) = self.function_around(site)?;
        let marks = loops::marks(&code, function.start as u64, &self.callees);
        Some((&function.name, marks))
    }

    /// Feeds everything that the thread's future can depend on to `hash`, as pairs of words: the
    /// registers, and the stack from `stack_pointer` up to `stack_top`. `counts` says what a word
    /// of the stack counts as, given its address and what is there.
    pub(crate) fn visit(
        &mut self,
        site: usize,
        registers: &Registers,
        (stack_pointer, stack_top): (usize, usize),
        counts: impl Fn(usize, usize) -> usize,
        mut hash: impl FnMut(usize, usize),
    ) {
        let live = self.at(site).map_or(u8::MAX, |frame| frame.registers);
        let keep = |bit: u32, value: usize| if live & (1 << bit) == 0 { 0 } else { value };
        hash(keep(0, registers.rbx), registers.rbp);
        hash(keep(1, registers.r12), keep(2, registers.r13));
        hash(keep(3, registers.r14), keep(4, registers.r15));
        let stack = (stack_pointer, stack_top);
        let mut at = self.walk(site, registers.rbp, stack, |frame, at, frame_pointer| {
            for (word, mask) in frame.words_from(at, frame_pointer) {
                let offset = word.wrapping_sub(frame_pointer) as i32;
                hash(counts(word, read(word)) & mask, offset as usize);
            }
            hash(read(frame_pointer), read(frame_pointer + 8));
        });
        while at + 8 <= stack_top {
            hash(counts(at, read(at)), 0);
            at += 8;
        }
    }

    /// Makes everything zero in the frame, from `stack_pointer` on, of a function that has just
    /// been entered and tells of it at `site`, that it has not written yet: variables without a
    /// value have the same one however the thread came here.
    pub(crate) fn begin_frame(&mut self, site: usize, stack_pointer: usize, frame_pointer: usize) {
        let Some(written) = self.at(site).and_then(|frame| frame.written.as_ref()) else {
            return;
        };
        let plausible = (stack_pointer..stack_pointer + LARGEST).contains(&frame_pointer);
        if !plausible || !frame_pointer.is_multiple_of(8) {
            return;
        }
        let mut next = stack_pointer;
        for word in written {
            let at = frame_pointer.wrapping_add_signed(word.offset as isize);
            if at >= next {
                clear(next, at);
                write(at, read(at) & word.mask as usize);
                next = at + 8;
            }
        }
        clear(next, frame_pointer);
    }

    /// Makes everything zero on the stack of a stopped thread, from `stack_pointer` up to
    /// `stack_top`, that its future does not depend on: where it counts for something later, it is
    /// the same however the thread came here.
    pub(crate) fn clear_dead(
        &mut self,
        site: usize,
        frame_pointer: usize,
        stack_pointer: usize,
        stack_top: usize,
    ) {
        let stack = (stack_pointer, stack_top);
        self.walk(site, frame_pointer, stack, |frame, at, frame_pointer| {
            let mut next = at;
            for (word, mask) in frame.words_from(at, frame_pointer) {
                clear(next, word);
                write(word, read(word) & mask);
                next = word + 8;
            }
            clear(next, frame_pointer);
        });
    }

    /// Calls `found` for the frames that are understood, innermost first, each with where it begins
    /// and its frame pointer. Returns where the rest of the stack begins.
    fn walk(
        &mut self,
        site: usize,
        frame_pointer: usize,
        (stack_pointer, stack_top): (usize, usize),
        mut found: impl FnMut(Walked<'_>, usize, usize),
    ) -> usize {
        let (mut site, mut frame_pointer, mut at) = (site, frame_pointer, stack_pointer);
        loop {
            let plausible = frame_pointer >= at && frame_pointer + 16 <= stack_top;
            if !plausible || frame_pointer % 8 != 0 || self.at(site).is_none() {
                return at;
            }
            let back = read(frame_pointer + 8);
            let wanted = self.at(back).map_or(u8::MAX, |caller| caller.registers);
            if let Some(frame) = self.at(site) {
                found(Walked { frame, wanted }, at, frame_pointer);
            }
            (site, at) = (back, frame_pointer + 16);
            frame_pointer = read(frame_pointer);
        }
    }
}

/// A frame on a stack.
struct Walked<'a> {
    frame: &'a LiveFrame,
    /// The registers that are live in its caller.
    wanted: u8,
}

impl Walked<'_> {
    /// The words with live bytes, from address `at` on, each with the mask of those.
    fn words_from(
        &self,
        at: usize,
        frame_pointer: usize,
    ) -> impl Iterator<Item = (usize, usize)> + '_ {
        let dead = |word: &&LiveWord| {
            let saves = word.saves;
            saves.is_some_and(|register| self.wanted & (1 << register) == 0)
        };
        let words = self.frame.words.iter().filter(move |word| !dead(word));
        let words = words.map(move |word| {
            let address = frame_pointer.wrapping_add_signed(word.offset as isize);
            (address, word.mask as usize)
        });
        words.filter(move |&(word, _)| word >= at)
    }
}

/// Zeroes the words of a stopped thread's stack from `start` up to `end`.
fn clear(start: usize, end: usize) {
    if start < end {
        // SAFETY: a part of the stack between its stack pointer and its top; no fiber runs.
        unsafe { pointer::<u8>(start).write_bytes(0, end - start) };
    }
}

/// Sets a word of a stopped thread's stack.
fn write(address: usize, value: usize) {
    // SAFETY: as for `read`; no fiber runs.
    unsafe { pointer::<usize>(address).write(value) };
}

/// A word of a thread's stack.
pub(crate) fn read(address: usize) -> usize {
    // SAFETY: callers pass aligned addresses between the stack pointer and the top of the stack.
    unsafe { pointer::<usize>(address).read() }
}
