//! The meaning of an instruction of inline assembly in the memory model.

use iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

use crate::scan::Operand;

const ACQUIRE: u32 = 2;
const RELEASE: u32 = 3;
pub(super) const SEQ_CST: u32 = 5;

/// The operations that take an instruction's place.
pub(super) enum Meaning {
    /// Nothing does.
    Itself,
    Fence(u32),
    /// The time, in two registers, and zero in a third one.
    Clock {
        processor: bool,
    },
    /// A load before it, a store after it.
    Access {
        load: bool,
        store: bool,
        operand: Operand,
    },
    /// An update: which, and what it is given.
    Update {
        name: &'static str,
        given: Given,
        operand: Operand,
    },
    /// A compare-exchange of 16 bytes.
    Wide {
        operand: Operand,
    },
}

/// The operand of an update.
pub(super) enum Given {
    Register(Register),
    Number(i64),
    /// The expected value is in `rax`; this register has the new one.
    Exchanged(Register),
    /// This register has the number of a bit, counted from the operand on in both directions. The update is
    /// given that bit, or all others.
    Bit {
        register: Register,
        others: bool,
    },
}

/// The meaning of an instruction; `None` if it is not known.
pub(super) fn meaning(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
) -> Option<Meaning> {
    match instruction.mnemonic() {
        Mnemonic::Mfence => return Some(Meaning::Fence(SEQ_CST)),
        Mnemonic::Lfence => return Some(Meaning::Fence(ACQUIRE)),
        Mnemonic::Sfence => return Some(Meaning::Fence(RELEASE)),
        Mnemonic::Rdtsc => return Some(Meaning::Clock { processor: false }),
        Mnemonic::Rdtscp => return Some(Meaning::Clock { processor: true }),
        Mnemonic::Lea | Mnemonic::Nop | Mnemonic::Pause => return Some(Meaning::Itself),
        _ => {}
    }
    let info = factory.info(instruction);
    let memory: Vec<UsedMemory> = info.used_memory().to_vec();
    let [memory] = memory.as_slice() else {
        return memory.is_empty().then_some(Meaning::Itself);
    };
    let explicit = (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory);
    let elsewhere = matches!(memory.segment(), Register::FS | Register::GS);
    let bytes = memory.memory_size().size() as u32;
    if !explicit || elsewhere || instruction.has_rep_prefix() || instruction.has_repne_prefix() {
        return None;
    }
    let operand = Operand {
        base: memory.base(),
        index: memory.index(),
        scale: memory.scale(),
        displacement: memory.displacement() as i64,
        relocated: instruction.is_ip_rel_memory_operand(),
        bytes,
        repeated: false,
    };
    if instruction.mnemonic() == Mnemonic::Cmpxchg16b && instruction.has_lock_prefix() {
        return Some(Meaning::Wide { operand });
    }
    if !matches!(bytes, 1 | 2 | 4 | 8) {
        return None;
    }
    if instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg {
        return update(instruction, operand);
    }
    let (load, store) = match memory.access() {
        OpAccess::Read => (true, false),
        OpAccess::Write => (false, true),
        OpAccess::ReadWrite => (true, true),
        _ => return None,
    };
    // The address is told again for the store. Bits beyond the operand may be meant.
    let moved = info.used_registers().iter().any(|used| {
        let register = used.register().full_register();
        let address = [memory.base(), memory.index()].map(Register::full_register);
        address.contains(&register) && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
    });
    let bits = matches!(
        instruction.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    ) && instruction.op1_kind() == OpKind::Register;
    let leaves = instruction.flow_control() != iced_x86::FlowControl::Next;
    if store && moved || bits || leaves || instruction.is_stack_instruction() {
        return None;
    }
    Some(Meaning::Access {
        load,
        store,
        operand,
    })
}

fn update(instruction: &Instruction, operand: Operand) -> Option<Meaning> {
    let number = instruction.op_count() > 1 && instruction.op1_kind() != OpKind::Register;
    let register = || {
        let other = match instruction.op0_kind() {
            OpKind::Memory => instruction.op1_register(),
            _ => instruction.op0_register(),
        };
        let high = matches!(
            other,
            Register::AH | Register::BH | Register::CH | Register::DH
        );
        let usable = other.is_gpr() && !high && other.full_register() != Register::RSP;
        usable.then(|| other.full_register())
    };
    let given = || match instruction.op1_kind() {
        OpKind::Register => Some(Given::Register(register()?)),
        _ => Some(Given::Number(instruction.try_immediate(1).ok()? as i64)),
    };
    let bit = |others: bool| {
        if instruction.op1_kind() == OpKind::Register {
            register()?;
            let register = instruction.op1_register();
            return Some(Given::Bit { register, others });
        }
        let bit = instruction.try_immediate(1).ok()?;
        let mask = 1_i64 << (bit % u64::from(8 * operand.bytes));
        Some(Given::Number(if others { !mask } else { mask }))
    };
    let (name, given) = match instruction.mnemonic() {
        Mnemonic::Add | Mnemonic::Or if number && operand.base == Register::RSP => {
            return matches!(instruction.try_immediate(1), Ok(0))
                .then_some(Meaning::Fence(SEQ_CST));
        }
        Mnemonic::Add => ("fetch_add", given()?),
        Mnemonic::Sub => ("fetch_sub", given()?),
        Mnemonic::And => ("fetch_and", given()?),
        Mnemonic::Or => ("fetch_or", given()?),
        Mnemonic::Xor => ("fetch_xor", given()?),
        Mnemonic::Inc => ("fetch_add", Given::Number(1)),
        Mnemonic::Dec => ("fetch_sub", Given::Number(1)),
        Mnemonic::Not => ("fetch_xor", Given::Number(-1)),
        Mnemonic::Bts => ("fetch_or", bit(false)?),
        Mnemonic::Btr => ("fetch_and", bit(true)?),
        Mnemonic::Btc => ("fetch_xor", bit(false)?),
        Mnemonic::Xadd => ("fetch_add", Given::Register(register()?)),
        Mnemonic::Xchg => ("exchange", Given::Register(register()?)),
        Mnemonic::Cmpxchg => ("compare_exchange_val", Given::Exchanged(register()?)),
        _ => return None,
    };
    Some(Meaning::Update {
        name,
        given,
        operand,
    })
}
