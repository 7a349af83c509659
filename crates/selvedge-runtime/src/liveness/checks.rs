//! Code that the compiler did not write: checks behind stores, and calls that clear frames.

use iced_x86::{FlowControl, Instruction, Mnemonic, Register};

use super::Callees;
use crate::gate::{self, Gate};

/// The instructions of a function without the code that was put in. Checks change nothing, and
/// leave the function only to come back to where they were; a frame that was just allocated holds
/// nothing yet.
pub(super) fn without_checks(
    mut instructions: Vec<Instruction>,
    callees: &Callees,
) -> Vec<Instruction> {
    let clears = |instruction: &Instruction| {
        let target = Some(instruction.near_branch_target() as usize);
        instruction.flow_control() == FlowControl::Call && target == callees.clear_frame
    };
    // Each comes with the instruction before, which pushes the size.
    let next: Vec<bool> = instructions.iter().skip(1).map(clears).collect();
    let mut place = 0;
    instructions.retain(|instruction| {
        place += 1;
        !clears(instruction) && !next.get(place - 1).is_some_and(|&pushes| pushes)
    });
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
