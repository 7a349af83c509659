//! The knowledge of the analysis at a place in the code: values, and announcements.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{FlowControl, Instruction, Mnemonic, OpAccess, OpKind};

use selvedge_runtime::symbols;

use super::accesses::{
    ARGUMENTS, Analysis, CHANGED, FRAME_POINTER, PRESERVED, Reference, STACK_POINTER, Surroundings,
    Unannounced, number,
};
use super::callbacks::Extent;
use super::flow;
use super::values::{Base, Value};

/// An announcement that was not made use of yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    address: Value,
    write: bool,
    extent: Extent,
    /// The bytes that were not accessed yet, one bit each; ranges are not counted.
    left: u16,
    /// It says that a class's table will be read.
    table: bool,
}

/// The state of the analysis at a place in the code.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The general registers by number.
    pub(super) registers: [Option<Value>; 16],
    /// Bytes in the frame by address and width.
    pub(super) slots: BTreeMap<(Base, i64, u32), Value>,
    /// Announcements that no access has used.
    pub(super) announced: Vec<Announced>,
    /// The accesses since then that were in a range.
    pub(super) done: Vec<(Value, u32, bool)>,
}

impl State {
    /// Nothing is known.
    pub(super) fn empty() -> State {
        State {
            registers: [None; 16],
            slots: BTreeMap::new(),
            announced: Vec::new(),
            done: Vec::new(),
        }
    }

    /// From here on, everything has to be announced anew.
    pub(super) fn forget_announced(&mut self) {
        self.announced.clear();
        self.done.clear();
    }
}

impl<S: Surroundings> Analysis<'_, S> {
    /// Nothing but the frame is known before `next`, which control may come to from anywhere.
    pub(super) fn unknown(&mut self, next: &[Instruction]) -> State {
        if PRESERVED.iter().any(|&n| self.is_read(n, next)) {
            self.all_kept_escape = true;
        }
        let mut state = State::empty();
        state.registers[FRAME_POINTER] = self.frame_pointer;
        state.registers[STACK_POINTER] = Some(self.values.shifted_frame());
        state
    }

    /// Forgets what the blocks of a loop change.
    pub(super) fn forget<'b>(
        &mut self,
        state: &mut State,
        cycle: impl Iterator<Item = &'b flow::Block>,
        code: &[Instruction],
        next: &[Instruction],
    ) {
        state.forget_announced();
        let before = state.registers;
        let frame = [FRAME_POINTER, STACK_POINTER].map(|n| (n, state.registers[n]));
        for instruction in cycle.flat_map(|block| &code[block.start..block.end]) {
            if matches!(
                instruction.flow_control(),
                FlowControl::Call | FlowControl::IndirectCall
            ) {
                for register in CHANGED {
                    state.registers[register] = None;
                }
            }
            let info = self.factory.info(instruction);
            for used in info.used_registers() {
                let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
                if let Some(register) = number(used.register())
                    && !reads
                {
                    state.registers[register] = None;
                }
            }
            for memory in info.used_memory() {
                let reads = matches!(memory.access(), OpAccess::Read | OpAccess::CondRead);
                let start = frame
                    .iter()
                    .find(|(n, _)| number(memory.base()) == Some(*n));
                if let Some(&(_, Some(start))) = start
                    && !reads
                {
                    let start = start.plus(memory.displacement() as i64);
                    let end = start
                        .offset
                        .wrapping_add(memory.memory_size().size() as i64);
                    state.slots.retain(|&(base, offset, size), _| {
                        base != start.base
                            || offset >= end
                            || offset.wrapping_add(i64::from(size)) <= start.offset
                    });
                }
            }
        }
        // A loop leaves the frame as it was.
        for (n, value) in frame {
            state.registers[n] = value;
        }
        for (n, value) in before.into_iter().enumerate() {
            if state.registers[n].is_none() && self.is_read(n, next) {
                self.escape(value);
            }
        }
    }

    /// The facts that all of `states` agree on before `next`.
    pub(super) fn join(&mut self, states: &[&State], next: &[Instruction]) -> State {
        let (first, others) = states.split_first().expect("a join has something to join");
        let mut joined = (*first).clone();
        for state in others {
            let pairs = joined.registers.iter_mut().zip(&state.registers);
            for (n, (mine, &other)) in pairs.enumerate() {
                if *mine != other {
                    let mine = mine.take();
                    // Either may be what is meant later.
                    if self.is_read(n, next) {
                        self.escape(mine);
                        self.escape(other);
                    }
                }
            }
            for &done in &state.done {
                if !joined.done.contains(&done) {
                    joined.done.push(done);
                }
            }
            joined
                .slots
                .retain(|slot, value| state.slots.get(slot) == Some(value));
            joined.announced.retain_mut(|mine| {
                let same = |other: &&Announced| {
                    Announced {
                        left: mine.left,
                        ..**other
                    } == *mine
                };
                let other = state.announced.iter().find(same);
                mine.left &= other.map_or(0, |other| other.left);
                other.is_some()
            });
        }
        if joined.registers[STACK_POINTER].is_none() {
            joined.registers[STACK_POINTER] = Some(self.values.shifted_frame());
        }
        joined
    }

    /// Control goes back from the end of block `n`: addresses in the frame get out of sight.
    pub(super) fn escape_backwards(
        &mut self,
        n: usize,
        blocks: &[flow::Block],
        code: &[Instruction],
    ) {
        let follows = |block: &&flow::Block| block.before.iter().flatten().any(|&b| b == n);
        for block in blocks[..=n].iter().filter(follows) {
            for register in 0..16 {
                if self.is_read(register, &code[block.start..block.end]) {
                    self.escape(self.state.registers[register]);
                }
            }
        }
    }

    /// Whether a register may be read in `next` or after, before it is written.
    fn is_read(&mut self, register: usize, next: &[Instruction]) -> bool {
        self.reads(register, next).unwrap_or(true)
    }

    /// Whether a register is read in `next` before it is written, if that is decided there.
    fn reads(&mut self, register: usize, next: &[Instruction]) -> Option<bool> {
        if [FRAME_POINTER, STACK_POINTER].contains(&register) {
            return Some(false);
        }
        for instruction in next {
            let mut written = false;
            for used in self.factory.info(instruction).used_registers() {
                if number(used.register()) == Some(register) {
                    match used.access() {
                        OpAccess::Write => written = true,
                        _ => return Some(true),
                    }
                }
            }
            let calls = matches!(
                instruction.flow_control(),
                FlowControl::Call | FlowControl::IndirectCall
            );
            if calls && CHANGED.contains(&register) {
                let mut arguments = ARGUMENTS.iter().take(self.arguments(instruction));
                return Some(arguments.any(|&argument| argument == register));
            }
            if instruction.flow_control() == FlowControl::Return {
                return Some(register == 0);
            }
            if written {
                return Some(false);
            }
        }
        None
    }

    /// How many registers a call may take arguments from that were not set for it just before.
    fn arguments(&self, instruction: &Instruction) -> usize {
        match self.surroundings.reference(instruction) {
            Reference::Function(name) if name.starts_with("__tsan_") => 0,
            Reference::Function(name) => symbols::arguments(&name).unwrap_or(ARGUMENTS.len()),
            _ => ARGUMENTS.len(),
        }
    }

    /// Whether instruction `nth` of block `n` loads a value that is never used.
    pub(super) fn is_dead_load(
        &mut self,
        nth: usize,
        n: usize,
        blocks: &[flow::Block],
        code: &[Instruction],
    ) -> bool {
        let load = &code[nth];
        let loads = matches!(load.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx)
            && load.op0_kind() == OpKind::Register
            && load.op1_kind() == OpKind::Memory;
        let Some(register) = number(load.op0_register()).filter(|_| loads) else {
            return false;
        };
        let mut seen = BTreeSet::new();
        let mut open = vec![(n, nth + 1)];
        while let Some((n, start)) = open.pop() {
            match self.reads(register, &code[start..blocks[n].end]) {
                Some(true) => return false,
                Some(false) => {}
                None => {
                    let leaves = code[blocks[n].end - 1].flow_control();
                    if leaves == FlowControl::IndirectBranch {
                        return false;
                    }
                    for (next, block) in blocks.iter().enumerate() {
                        let follows = block.before.iter().flatten().any(|&b| b == n);
                        if follows && seen.insert(next) {
                            open.push((next, block.start));
                        }
                    }
                }
            }
        }
        true
    }

    /// Notes what a callback announces at the first argument.
    pub(super) fn announce(&mut self, write: bool, extent: Extent, table: bool) {
        let address = self.register(7);
        let left = match extent {
            Extent::Bytes(bytes) => ((1u32 << bytes) - 1) as u16,
            Extent::Range(_) => 0,
        };
        self.state.announced.push(Announced {
            address,
            write,
            extent,
            left,
            table,
        });
    }

    /// Uses up what was announced of these bytes, if all of them were. Tells whether they are the
    /// address of a class's table.
    pub(super) fn is_announced(
        &mut self,
        address: Value,
        unannounced: &Unannounced,
    ) -> Option<bool> {
        let start = |a: &Announced| address.offset.wrapping_sub(a.address.offset);
        let bytes = i64::from(unannounced.operand.bytes);
        let values = &self.values;
        let in_range = self.state.announced.iter().any(|a| match a.extent {
            Extent::Range(size) if a.write == unannounced.write => {
                let inside =
                    start(a) >= 0 && (start(a) as u64).saturating_add(bytes as u64) <= size;
                match a.address.base == address.base {
                    // How far a repeated instruction goes is not known.
                    true => inside,
                    false => values.extends(address, a.address),
                }
            }
            _ => false,
        });
        let access = (address, unannounced.operand.bytes, unannounced.write);
        if in_range && !self.state.done.contains(&access) {
            self.state.done.push(access);
            return Some(false);
        }
        if unannounced.operand.repeated || !(1..=16).contains(&bytes) {
            return None;
        }
        let announced = &mut self.state.announced;
        let covers = |a: &Announced, n: i64| {
            let at = start(a).wrapping_add(n);
            let same = a.address.base == address.base && a.write == unannounced.write;
            same && (0..16).contains(&at) && a.left & (1 << at) != 0
        };
        if !(0..bytes).all(|n| announced.iter().any(|a| covers(a, n))) {
            return None;
        }
        let mut table = false;
        for n in 0..bytes {
            let a = announced.iter_mut().find(|a| covers(a, n))?;
            a.left &= !(1 << start(a).wrapping_add(n));
            table |= a.table;
        }
        Some(table)
    }
}
