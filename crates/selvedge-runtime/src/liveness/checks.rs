//! The checks behind stores, which the compiler did not write.

use iced_x86::{FlowControl, Instruction, Mnemonic, Register};

use crate::gate::{self, Gate};

/// The instructions of a function without the checks that were put in: those change nothing, and
/// leave the function only to come back to where they were.
pub(super) fn without_checks(mut instructions: Vec<Instruction>) -> Vec<Instruction> {
    let mut last: Option<Instruction> = None;
    instructions.retain(|instruction| {
        let branches = matches!(
            instruction.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        let follows = |before: &Instruction| match instruction.mnemonic() {
            Mnemonic::Jmp => before.mnemonic() == Mnemonic::Jrcxz,
            _ => branches && before.mnemonic() != Mnemonic::Jmp,
        };
        let check = uses_gate(instruction) || last.as_ref().is_some_and(follows);
        last = check.then_some(*instruction);
        !check
    });
    instructions
}

/// Whether an instruction accesses the gate, which no code of the program does.
fn uses_gate(instruction: &Instruction) -> bool {
    let absolute = !instruction.is_ip_rel_memory_operand()
        && instruction.memory_base() == Register::None
        && instruction.memory_index() == Register::None;
    let address = instruction.memory_displacement64() as usize;
    absolute && (gate::ADDRESS..gate::ADDRESS + size_of::<Gate>()).contains(&address)
}
