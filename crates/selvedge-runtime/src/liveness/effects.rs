//! The parts of its frame and the callee-saved registers that one instruction reads and overwrites.

use std::collections::HashMap;

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

use super::dataflow::{FRAME_LIMIT, REGISTERS, Span};

/// The effects of an instruction, as spans of bits (see [`super::dataflow`]).
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    pub(super) reads: Vec<Span>,
    pub(super) overwrites: Vec<Span>,
}

/// Follows addresses of the frame through registers, so that an address that is only passed to a
/// callback does not count as taken. For what happens between basic blocks see [`super::addresses`].
pub(super) struct Tracker<'a> {
    callbacks: &'a HashMap<usize, String>,
    factory: InstructionInfoFactory,
    /// Registers that hold the frame pointer plus an offset.
    pub(super) addresses: Vec<(Register, i64)>,
    /// The lowest offset whose address escapes; everything above may be what it points to.
    pub(super) escaped: i64,
}

/// Something the analysis does not understand.
pub(super) struct Unknown;

impl<'a> Tracker<'a> {
    pub(super) fn new(callbacks: &'a HashMap<usize, String>) -> Tracker<'a> {
        Tracker {
            callbacks,
            factory: InstructionInfoFactory::new(),
            addresses: Vec::new(),
            escaped: 0,
        }
    }

    pub(super) fn escape(&mut self, offset: i64) {
        self.escaped = self.escaped.min(offset);
    }

    fn address_in(&self, register: Register) -> Option<i64> {
        let held = self
            .addresses
            .iter()
            .find(|(held, _)| *held == register.full_register());
        held.map(|&(_, offset)| offset)
    }

    /// The effects of the next instruction of the block.
    pub(super) fn effects(&mut self, instruction: &Instruction) -> Result<Effects, Unknown> {
        let mut effects = Effects::default();
        if matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        ) {
            self.call(instruction, &mut effects);
            return Ok(effects);
        }
        if instruction.mnemonic() == Mnemonic::Lea && instruction.memory_base() == Register::RBP {
            if instruction.memory_index() != Register::None {
                return Err(Unknown);
            }
            let offset = instruction.memory_displacement64() as i64;
            self.registers(instruction, &mut effects);
            self.assign(instruction.op0_register(), Some(offset));
            return Ok(effects);
        }
        let copies = instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_kind() == OpKind::Register
            && instruction.op1_kind() == OpKind::Register
            && instruction.op0_register().size() == 8;
        if copies {
            let offset = self.address_in(instruction.op1_register());
            self.registers(instruction, &mut effects);
            self.assign(instruction.op0_register(), offset);
            return Ok(effects);
        }
        self.memory(instruction, &mut effects)?;
        self.registers(instruction, &mut effects);
        Ok(effects)
    }

    fn assign(&mut self, register: Register, offset: Option<i64>) {
        let register = register.full_register();
        self.addresses.retain(|(held, _)| *held != register);
        if let Some(offset) = offset {
            self.addresses.push((register, offset));
        }
    }

    /// Accesses to the frame, through the frame pointer or an address of the frame.
    fn memory(&mut self, instruction: &Instruction, effects: &mut Effects) -> Result<(), Unknown> {
        let used = self.factory.info(instruction).used_memory().to_vec();
        let implicit = matches!(
            instruction.mnemonic(),
            Mnemonic::Push | Mnemonic::Pop | Mnemonic::Ret | Mnemonic::Leave
        );
        for memory in used {
            let (base, index) = (memory.base(), memory.index());
            if base == Register::RSP && !implicit {
                return Err(Unknown);
            }
            let start = match base {
                Register::RBP if !implicit => 0,
                base => match self.address_in(base) {
                    Some(offset) => offset,
                    None => continue,
                },
            };
            // The index can be negative, so that any variable might be meant.
            if index != Register::None {
                return Err(Unknown);
            }
            let start = start + memory.displacement() as i64;
            let size = memory.memory_size().size() as i64;
            if size == 0 {
                self.escape(start);
                continue;
            }
            // Above the frame pointer lie the caller's business and arguments on the stack.
            if start >= 0 {
                continue;
            }
            let span = Span::of_frame(start, size).ok_or(Unknown)?;
            match memory.access() {
                OpAccess::Write => effects.overwrites.push(span),
                OpAccess::NoMemAccess | OpAccess::None | OpAccess::CondWrite => {}
                _ => effects.reads.push(span),
            }
        }
        Ok(())
    }

    /// Accesses to registers. An address of the frame that is read by anything but a copy, a call or an
    /// access through it is used in a way that is not followed.
    fn registers(&mut self, instruction: &Instruction, effects: &mut Effects) {
        let used = self.factory.info(instruction).used_registers().to_vec();
        let through = [instruction.memory_base(), instruction.memory_index()];
        let stored: Vec<Register> = (1..instruction.op_count())
            .filter(|&operand| instruction.op_kind(operand) == OpKind::Register)
            .map(|operand| instruction.op_register(operand).full_register())
            .collect();
        let transparent = matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Lea)
            && instruction.op0_kind() == OpKind::Register
            && instruction.op1_kind() == OpKind::Register;
        for register in used {
            let full = register.register().full_register();
            let reads = !matches!(register.access(), OpAccess::Write | OpAccess::CondWrite);
            let writes = !matches!(register.access(), OpAccess::Read | OpAccess::CondRead);
            let only_through = instruction.mnemonic() != Mnemonic::Lea
                && through.contains(&full)
                && !stored.contains(&full);
            if reads
                && !transparent
                && !only_through
                && let Some(offset) = self.address_in(full)
            {
                self.escape(offset);
            }
            if writes {
                self.assign(full, None);
            }
            let Some(bit) = REGISTERS.iter().position(|&tracked| tracked == full) else {
                continue;
            };
            let whole = register.access() == OpAccess::Write && register.register().size() >= 4;
            if whole {
                effects.overwrites.push(Span::of_register(bit));
            } else {
                effects.reads.push(Span::of_register(bit));
            }
        }
    }

    /// A call: what it gets to know of the frame, and the registers it clobbers.
    fn call(&mut self, instruction: &Instruction, effects: &mut Effects) {
        let target = instruction.near_branch_target() as usize;
        let callback = match instruction.flow_control() {
            FlowControl::Call => self.callbacks.get(&target),
            _ => None,
        };
        for (register, offset) in std::mem::take(&mut self.addresses) {
            // A function does not look at registers that it preserves.
            let preserved = REGISTERS.contains(&register);
            match callback.and_then(|name| passed(name, register)) {
                Some(0) => {}
                Some(size) => match Span::of_frame(offset, size) {
                    Some(span) => effects.reads.push(span),
                    None => self.escape(offset),
                },
                None if preserved || (callback.is_some() && !is_argument(register)) => {}
                None => self.escape(offset),
            }
            if preserved {
                self.addresses.push((register, offset));
            }
        }
        if instruction.flow_control() == FlowControl::IndirectCall {
            self.registers(instruction, effects);
        }
    }
}

fn is_argument(register: Register) -> bool {
    use Register::{R8, R9, RCX, RDI, RDX, RSI};
    [RDI, RSI, RDX, RCX, R8, R9].contains(&register)
}

/// How many bytes the callback `name` reads through an address in `register`; it keeps no address.
/// `None` if that is not known.
fn passed(name: &str, register: Register) -> Option<i64> {
    let name = name.strip_prefix("__tsan_")?;
    let announces = ["read", "write", "volatile", "unaligned", "func"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    match register {
        Register::RDI if announces => Some(0),
        Register::RSI if name.contains("compare_exchange_") && !name.ends_with("_val") => {
            let bits = name.strip_prefix("atomic")?.split('_').next()?;
            Some(bits.parse::<i64>().ok()? / 8)
        }
        _ => None,
    }
}

impl Span {
    /// Bytes of the frame from `offset` (negative) on.
    fn of_frame(offset: i64, size: i64) -> Option<Span> {
        let start = offset + FRAME_LIMIT;
        (start >= 0).then(|| Span {
            start: start as usize,
            end: ((start + size).min(FRAME_LIMIT)) as usize,
        })
    }

    fn of_register(bit: usize) -> Span {
        let start = FRAME_LIMIT as usize + bit;
        Span {
            start,
            end: start + 1,
        }
    }
}
