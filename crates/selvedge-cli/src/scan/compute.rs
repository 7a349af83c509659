//! The effect of instructions on registers and on the frame.

use iced_x86::{Code, Instruction, Mnemonic, OpAccess, OpKind, Register, UsedMemory};

use super::accesses::{
    Analysis, FRAME_POINTER, PRESERVED, Reference, STACK_POINTER, Surroundings, number,
};
use super::instructions::is_on_scratch;
use super::values::{Region, Value};

impl<S: Surroundings> Analysis<'_, S> {
    /// Follows an instruction that goes on to the next one. `table` says that it reads the address
    /// of a class's table.
    pub(super) fn compute(
        &mut self,
        instruction: &Instruction,
        reference: &Reference,
        table: bool,
    ) {
        match instruction.mnemonic() {
            Mnemonic::Push => {
                let value = self.operand(instruction, 0, reference);
                let stack = self.register(STACK_POINTER).plus(-8);
                self.state.registers[STACK_POINTER] = Some(stack);
                self.store(stack, 8, value);
                return;
            }
            Mnemonic::Pop if instruction.op0_kind() == OpKind::Register => {
                self.pop(instruction.op0_register());
                return;
            }
            Mnemonic::Pushfq => {
                let stack = self.register(STACK_POINTER).plus(-8);
                self.state.registers[STACK_POINTER] = Some(stack);
                self.store(stack, 8, None);
                return;
            }
            Mnemonic::Popfq => {
                let stack = self.register(STACK_POINTER).plus(8);
                self.state.registers[STACK_POINTER] = Some(stack);
                return;
            }
            Mnemonic::Leave => {
                self.state.registers[STACK_POINTER] = self.state.registers[FRAME_POINTER];
                self.pop(Register::RBP);
                return;
            }
            Mnemonic::Cdqe => {
                let value = self.register(0);
                let extend = Code::Movsxd_r64_rm32 as u32;
                self.state.registers[0] = Some(self.values.make(extend, vec![value], 0));
                return;
            }
            _ => {}
        }
        self.stores(instruction, reference);
        self.escape_into_vectors(instruction);
        let result = if table {
            Some(self.values.table())
        } else if is_on_scratch(instruction) {
            // Another value each time.
            None
        } else {
            self.result(instruction, reference)
        };
        let destination = match instruction.op0_kind() {
            OpKind::Register => number(instruction.op0_register()),
            _ => None,
        };
        let written: Vec<usize> = self
            .factory
            .info(instruction)
            .used_registers()
            .iter()
            .filter(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead))
            .filter_map(|used| number(used.register()))
            .collect();
        let moves_stack = written.contains(&STACK_POINTER);
        // A plain store was followed above.
        let stores = destination.is_none() && instruction.mnemonic() == Mnemonic::Mov;
        if result.is_none() && !stores {
            self.escape_from_sight(instruction);
        }
        for register in written {
            self.state.registers[register] = None;
            if Some(register) == destination {
                self.state.registers[register] = result;
            }
        }
        if let (Some(register), Some(result)) = (destination, result)
            && PRESERVED.contains(&register)
            && self.in_frame(result)
        {
            self.kept.insert(result);
        }
        let stack = self.state.registers[STACK_POINTER];
        let in_frame = stack.is_some_and(|stack| self.in_frame(stack));
        if moves_stack && !in_frame {
            let shifted = self.values.shifted_frame();
            self.state.registers[STACK_POINTER] = Some(shifted);
        }
        if self.frame_pointer.is_none()
            && destination == Some(FRAME_POINTER)
            && result.is_some_and(|result| self.values.region(result) == Region::Frame)
        {
            self.frame_pointer = result;
        }
    }

    /// The value of a register.
    pub(super) fn register(&mut self, number: usize) -> Value {
        match self.state.registers[number] {
            Some(value) => value,
            None => {
                let value = self.values.fresh();
                self.state.registers[number] = Some(value);
                value
            }
        }
    }

    /// The part of an address that an operand's register contributes.
    pub(super) fn part(&mut self, register: Register) -> Value {
        match number(register) {
            Some(number) => self.register(number),
            None if register == Register::None => Value::number(0),
            None => self.values.fresh(),
        }
    }

    /// The value of an operand that a relocation tells.
    pub(super) fn refer(&mut self, reference: &Reference) -> Value {
        match reference {
            Reference::Section(section, offset) => self.values.section(*section, *offset),
            Reference::Symbol(symbol, addend) => self.values.symbol(*symbol, *addend),
            Reference::ThreadLocal(symbol, addend) => {
                let symbol = self.values.symbol(*symbol, *addend);
                self.values.make(u32::MAX - 1, vec![symbol], 0)
            }
            _ => self.values.fresh(),
        }
    }

    /// The address of an access.
    pub(super) fn address(&mut self, memory: &UsedMemory, reference: &Reference) -> Value {
        let (base, index) = (memory.base(), memory.index());
        let displacement = memory.displacement() as i64;
        if *reference == Reference::None {
            return self.place(base, index, memory.scale()).plus(displacement);
        }
        let place = self.place(base, index, memory.scale());
        let start = self.refer(reference);
        self.values.sum(start, place, 1)
    }

    /// The part of an address that is in registers.
    pub(super) fn place(&mut self, base: Register, index: Register, scale: u32) -> Value {
        let (base, index) = (self.part(base), self.part(index));
        self.values.sum(base, index, i64::from(scale))
    }

    /// The contents of vectors are not followed: an address in one is as good as handed out.
    fn escape_into_vectors(&mut self, instruction: &Instruction) {
        if instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().is_vector_register()
        {
            self.escape_from_sight(instruction);
        }
    }

    /// Hands out what the operands hold that are registers.
    fn escape_from_sight(&mut self, instruction: &Instruction) {
        let silent = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
        for n in (0..instruction.op_count()).filter(|_| !silent) {
            if instruction.op_kind(n) == OpKind::Register
                && let Some(register) = number(instruction.op_register(n))
                && ![STACK_POINTER, FRAME_POINTER].contains(&register)
                && !(n == 0 && only_writes(instruction))
            {
                self.escape(self.state.registers[register]);
            }
        }
    }

    fn in_frame(&self, value: Value) -> bool {
        matches!(
            self.values.region(value),
            Region::Frame | Region::SomewhereInFrame
        )
    }

    fn pop(&mut self, to: Register) {
        let stack = self.register(STACK_POINTER);
        let value = self.load(stack, 8);
        self.state.registers[STACK_POINTER] = Some(stack.plus(8));
        if let Some(number) = number(to) {
            self.state.registers[number] = value;
        }
    }

    /// Takes up the values that the instruction writes to memory.
    fn stores(&mut self, instruction: &Instruction, reference: &Reference) {
        if instruction.op0_kind() != OpKind::Memory {
            return;
        }
        let uses = self.factory.info(instruction).used_memory().to_vec();
        for memory in uses {
            if matches!(
                memory.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
            ) {
                continue;
            }
            let value = match instruction.mnemonic() {
                Mnemonic::Mov => self.operand(instruction, 1, reference),
                _ => None,
            };
            let address = self.address(&memory, reference);
            self.store(address, memory.memory_size().size() as u32, value);
        }
    }

    fn store(&mut self, address: Value, bytes: u32, value: Option<Value>) {
        if self.values.region(address) != Region::Frame {
            self.escape(value);
            return;
        }
        if let Some(value) = value
            && self.in_frame(value)
        {
            self.held.push((address, value));
        }
        let end = address.offset.wrapping_add(i64::from(bytes));
        let near = (address.base, address.offset.wrapping_sub(64), 0)..(address.base, end, 0);
        let overlapping: Vec<_> = self
            .state
            .slots
            .range(near)
            .map(|(&slot, _)| slot)
            .filter(|&(_, start, size)| start.wrapping_add(i64::from(size)) > address.offset)
            .collect();
        for slot in overlapping {
            self.state.slots.remove(&slot);
        }
        if let Some(value) = value {
            let slot = (address.base, address.offset, bytes);
            self.state.slots.insert(slot, value);
        }
    }

    /// The value in the frame there; always the same until something is stored.
    fn load(&mut self, address: Value, bytes: u32) -> Option<Value> {
        if self.values.region(address) != Region::Frame {
            return None;
        }
        let slot = (address.base, address.offset, bytes);
        if let Some(&value) = self.state.slots.get(&slot) {
            return Some(value);
        }
        self.lost.insert(address);
        let value = self.values.fresh();
        self.state.slots.insert(slot, value);
        Some(value)
    }

    /// The value of an operand, if it can be told.
    fn operand(
        &mut self,
        instruction: &Instruction,
        n: u32,
        reference: &Reference,
    ) -> Option<Value> {
        match instruction.op_kind(n) {
            OpKind::Register => {
                let register = instruction.op_register(n);
                let value = self.register(number(register)?);
                match register.size() {
                    8 => Some(value),
                    4 => Some(self.low(value)),
                    size => Some(self.values.make(size as u32, vec![value], register as u64)),
                }
            }
            OpKind::Memory => {
                if let Reference::Entry(inner) = reference {
                    return Some(self.refer(inner));
                }
                let uses = self.factory.info(instruction).used_memory();
                let memory = *uses.iter().find(|memory| {
                    matches!(memory.access(), OpAccess::Read | OpAccess::ReadWrite)
                })?;
                if matches!(memory.segment(), Register::FS | Register::GS) {
                    return None;
                }
                let address = self.address(&memory, reference);
                self.load(address, memory.memory_size().size() as u32)
            }
            _ => Some(Value::number(instruction.immediate(n) as i64)),
        }
    }

    fn low(&mut self, value: Value) -> Value {
        match value.as_number() {
            Some(number) => Value::number(number & 0xffff_ffff),
            None => self.values.make(Code::Mov_r32_rm32 as u32, vec![value], 0),
        }
    }

    /// The value that the instruction leaves in the register that is its first operand.
    fn result(&mut self, instruction: &Instruction, reference: &Reference) -> Option<Value> {
        if instruction.op0_kind() != OpKind::Register {
            return None;
        }
        let destination = instruction.op0_register();
        number(destination)?;
        let full = destination.size() == 8;
        if !full && destination.size() != 4 {
            return None;
        }
        let same =
            instruction.op1_kind() == OpKind::Register && instruction.op1_register() == destination;
        match instruction.mnemonic() {
            Mnemonic::Mov => self.operand(instruction, 1, reference),
            Mnemonic::Lea => {
                let address = self.effective(instruction, reference);
                Some(if full { address } else { self.low(address) })
            }
            Mnemonic::Xor | Mnemonic::Sub if same => Some(Value::number(0)),
            Mnemonic::Add | Mnemonic::Sub if full => {
                let factor = if instruction.mnemonic() == Mnemonic::Add {
                    1
                } else {
                    -1
                };
                let a = self.operand(instruction, 0, reference)?;
                let b = self.operand(instruction, 1, reference)?;
                Some(self.values.sum(a, b, factor))
            }
            Mnemonic::And if full => {
                let value = self.operand(instruction, 0, reference)?;
                match self.in_frame(value) {
                    true => Some(self.values.shifted_frame()),
                    false => self.made(instruction, reference),
                }
            }
            Mnemonic::Shl | Mnemonic::Sal
                if full && instruction.op1_kind() == OpKind::Immediate8 =>
            {
                let value = self.operand(instruction, 0, reference)?;
                let factor = 1i64.wrapping_shl(u32::from(instruction.immediate8()));
                Some(self.values.sum(Value::number(0), value, factor))
            }
            _ => self.made(instruction, reference),
        }
    }

    fn effective(&mut self, instruction: &Instruction, reference: &Reference) -> Value {
        if instruction.is_ip_rel_memory_operand() {
            return self.refer(reference);
        }
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        let place = self.place(base, index, instruction.memory_index_scale());
        match reference {
            Reference::None => place.plus(instruction.memory_displacement64() as i64),
            _ => {
                let start = self.refer(reference);
                self.values.sum(start, place, 1)
            }
        }
    }

    /// The result of an instruction that does the same whenever its operands are the same.
    fn made(&mut self, instruction: &Instruction, reference: &Reference) -> Option<Value> {
        if instruction.rflags_read() != 0 || instruction.is_stack_instruction() {
            return None;
        }
        let info = self.factory.info(instruction);
        let mut read = Vec::new();
        for used in info.used_registers() {
            let reads = !matches!(used.access(), OpAccess::Write | OpAccess::CondWrite);
            match number(used.register()) {
                Some(register) if reads => read.push(register),
                // The contents of vectors are not followed.
                None if reads && !used.register().is_segment_register() => return None,
                _ => {}
            }
        }
        let mut operands = Vec::new();
        let from_memory =
            (0..instruction.op_count()).find(|&n| instruction.op_kind(n) == OpKind::Memory);
        if let Some(n) = from_memory {
            operands.push(self.operand(instruction, n, reference)?);
            // The registers only say where.
            let destination = instruction.op0_register().full_register().number();
            read.retain(|&register| {
                register == destination
                    && !matches!(
                        instruction.mnemonic(),
                        Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd
                    )
            });
        }
        for register in read {
            let value = self.register(register);
            self.escape(Some(value));
            operands.push(value);
        }
        let constant = (0..instruction.op_count())
            .find(|&n| is_immediate(instruction.op_kind(n)))
            .map_or(0, |n| instruction.immediate(n));
        Some(
            self.values
                .make(instruction.code() as u32, operands, constant),
        )
    }
}

fn is_immediate(kind: OpKind) -> bool {
    !matches!(kind, OpKind::Register | OpKind::Memory)
        && !matches!(
            kind,
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        )
}

/// Whether the first operand is not read.
fn only_writes(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Mov
            | Mnemonic::Movzx
            | Mnemonic::Movsx
            | Mnemonic::Movsxd
            | Mnemonic::Movq
            | Mnemonic::Movd
            | Mnemonic::Lea
            | Mnemonic::Pop
    )
}
