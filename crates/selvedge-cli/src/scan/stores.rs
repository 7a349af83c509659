//! Announced stores, and whether the flags matter after them.
//!
//! The value of an announced store is known once its instruction has run. So a check is put behind
//! each such instruction (see [`crate::compile::checks`]); the cheap form of the check changes the
//! processor's flags.

use iced_x86::{FlowControl, Instruction, Mnemonic, RflagsBits};

use super::accesses::Unannounced;

/// A store that a callback announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Store {
    /// The access.
    pub(crate) access: Unannounced,
    /// Whether the instructions that follow read flags that were set before it.
    pub(crate) flags: bool,
}

/// The flags that compilers use.
const STATUS: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// How far the code is followed.
const STEPS: usize = 64;

/// Whether the flags may be read after instruction `nth` of `code` before they are set.
pub(super) fn flags_matter(code: &[Instruction], nth: usize) -> bool {
    let mut open = STATUS;
    let mut next = nth + 1;
    for _ in 0..STEPS {
        let Some(instruction) = code.get(next) else {
            return true;
        };
        if instruction.rflags_read() & open != 0 {
            return true;
        }
        match instruction.flow_control() {
            FlowControl::Next => next += 1,
            // No flag outlives a call or a return.
            FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return => return false,
            FlowControl::UnconditionalBranch => {
                let target = instruction.near_branch_target();
                match code.binary_search_by_key(&target, Instruction::ip) {
                    Ok(place) => next = place,
                    // Another function: the jump stands for a call.
                    Err(_) => return false,
                }
            }
            _ => return true,
        }
        if !may_keep_flags(instruction) {
            open &= !instruction.rflags_modified();
        }
        if open == 0 {
            return false;
        }
    }
    true
}

/// Whether an instruction that sets flags leaves them alone for some operands.
fn may_keep_flags(instruction: &Instruction) -> bool {
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let shifts = matches!(
        instruction.mnemonic(),
        Mnemonic::Shl
            | Mnemonic::Shr
            | Mnemonic::Sar
            | Mnemonic::Sal
            | Mnemonic::Shld
            | Mnemonic::Shrd
            | Mnemonic::Rol
            | Mnemonic::Ror
            | Mnemonic::Rcl
            | Mnemonic::Rcr
    );
    repeated || shifts
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn matter(code: &[u8]) -> bool {
        let code: Vec<Instruction> = Decoder::with_ip(64, code, 0, DecoderOptions::NONE)
            .iter()
            .collect();
        flags_matter(&code, 0)
    }

    const STORE: [u8; 2] = [0x89, 0x10]; // mov %edx, (%rax)

    #[test]
    fn a_comparison_before_a_store_reaches_the_jump_after_it() {
        assert!(matter(&[&STORE[..], &[0x75, 0x00, 0xc3]].concat())); // jne
        assert!(matter(
            &[&STORE[..], &[0x89, 0x10, 0x0f, 0x94, 0xc0]].concat()
        )); // mov; sete %al
    }

    #[test]
    fn flags_that_are_set_again_do_not_matter() {
        assert!(!matter(&[&STORE[..], &[0x39, 0xc8, 0x75, 0x00]].concat())); // cmp; jne
        assert!(!matter(&[&STORE[..], &[0xc3]].concat())); // ret
        assert!(!matter(&[&STORE[..], &[0xe8, 0, 0, 0, 0]].concat())); // call
    }

    #[test]
    fn an_increment_keeps_the_carry() {
        let code = [&STORE[..], &[0xff, 0xc0, 0x72, 0x00]].concat(); // inc; jb
        assert!(matter(&code));
    }
}
