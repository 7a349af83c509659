//! Looking at the program's machine code.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register, UsedMemory,
};

use crate::arena::pointer;
use crate::loader::Range;

/// The frame of the function whose code is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) stack_pointer: usize,
    pub(crate) base_pointer: usize,
}

/// A decoder at `address`; `code` is the memory that may be read.
pub(crate) fn decoder(code: Range, address: usize) -> Option<Decoder<'static>> {
    if !code.contains(address) {
        return None;
    }
    let length = (code.end - address).min(1 << 12);
    // SAFETY: the program's code is mapped and never changes while it is loaded.
    let bytes = unsafe { std::slice::from_raw_parts(pointer::<u8>(address), length) };
    Some(Decoder::with_ip(
        64,
        bytes,
        address as u64,
        DecoderOptions::NONE,
    ))
}

/// Whether an access writes.
pub(crate) fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// Whether the code from `from` up to the call that returns to `to` may have written `target`.
///
/// gcc announces the copy of an aggregate as a write, then a read, and then makes it: between the
/// two announcements there is nothing but the computation of addresses.
pub(crate) fn may_have_written(
    code: Range,
    (from, to): (usize, usize),
    frame: Frame,
    target: Range,
) -> bool {
    let Some(decoder) = decoder(code, from) else {
        return true;
    };
    let mut factory = InstructionInfoFactory::new();
    for instruction in decoder {
        let next = instruction.next_ip() as usize;
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call if next == to => return false,
            _ => return true,
        }
        if next > to {
            return true;
        }
        let info = factory.info(&instruction);
        let written = info
            .used_memory()
            .iter()
            .filter(|memory| writes(memory.access()));
        for memory in written {
            match address_of(memory, frame) {
                Some(address) => {
                    let size = memory.memory_size().size();
                    if address < target.end && target.start < address + size {
                        return true;
                    }
                }
                None => return true,
            }
        }
    }
    true
}

/// The address of a memory operand that is relative to the frame or to the instruction.
fn address_of(memory: &UsedMemory, frame: Frame) -> Option<usize> {
    if memory.index() != Register::None {
        return None;
    }
    let base = match memory.base() {
        Register::RBP => frame.base_pointer,
        Register::RSP => frame.stack_pointer,
        Register::None => 0,
        _ => return None,
    };
    Some(base.wrapping_add(memory.displacement() as usize))
}
