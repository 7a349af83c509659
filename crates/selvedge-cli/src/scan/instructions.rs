//! Instructions that Selvedge cannot see the effect of.
//!
//! Instrumented code reports each access through a callback. What is refused here never comes with
//! one: inline assembly, and the few builtins that compilers leave alone.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use selvedge_runtime::support::STORES_SCRATCH;

/// Why an instruction cannot be in a program under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The instruction.
    pub(super) what: String,
    /// The code to write instead.
    pub(super) help: &'static str,
}

const ATOMICS: &str = "use the atomics of <stdatomic.h> or <atomic>, or the __atomic builtins; \
                       clang expands fetch_max and fetch_min in place: write them as a \
                       compare-exchange loop";
const NO_ASSEMBLY: &str = "replace the inline assembly by C";

/// Tells whether `instruction` has to be refused.
pub(super) fn refusal(instruction: &Instruction) -> Option<Refusal> {
    if is_on_scratch(instruction) {
        return None;
    }
    let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
    let refuse = |what: String, help| Some(Refusal { what, help });
    let touches_memory =
        (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory);
    if instruction.has_lock_prefix() {
        return refuse(
            format!("the bare atomic instruction `lock {name}`"),
            ATOMICS,
        );
    }
    match instruction.mnemonic() {
        Mnemonic::Xchg | Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b
            if touches_memory =>
        {
            refuse(format!("the bare atomic instruction `{name}`"), ATOMICS)
        }
        Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence => refuse(
            format!("the bare fence `{name}`"),
            "use atomic_thread_fence",
        ),
        Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int => refuse(
            format!("a raw system call (`{name}`)"),
            "call the C library's function for it, if Selvedge models that",
        ),
        Mnemonic::Int1 | Mnemonic::Int3 | Mnemonic::Into => refuse(
            format!("the trap instruction `{name}`"),
            "call abort() instead",
        ),
        Mnemonic::Rdtsc
        | Mnemonic::Rdtscp
        | Mnemonic::Rdpmc
        | Mnemonic::Rdrand
        | Mnemonic::Rdseed => refuse(
            format!("`{name}`, which gives another result in every run"),
            "use clock_gettime or rand, which Selvedge keeps the same",
        ),
        Mnemonic::Xbegin | Mnemonic::Xend | Mnemonic::Xabort | Mnemonic::Xtest => {
            refuse(format!("the hardware transaction `{name}`"), "use a mutex")
        }
        Mnemonic::Wrfsbase | Mnemonic::Wrgsbase => refuse(
            format!("`{name}`, which moves the thread's own data"),
            NO_ASSEMBLY,
        ),
        _ if instruction.is_privileged() => {
            refuse(format!("the privileged instruction `{name}`"), NO_ASSEMBLY)
        }
        _ if touches_memory && reaches_thread_data(instruction) => refuse(
            format!("`{name}` on the host's thread-local data"),
            "leave out -ftls-model and __attribute__((tls_model(…))), and inline assembly on %fs",
        ),
        _ => None,
    }
}

/// Whether an instruction's operand is the scratch word, where inline assembly does what a callback
/// has done to memory.
pub(super) fn is_on_scratch(instruction: &Instruction) -> bool {
    let memory = (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory);
    let address = instruction.memory_displacement64();
    memory
        && instruction.memory_base() == Register::None
        && instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None
        && (STORES_SCRATCH as u64..STORES_SCRATCH as u64 + 16).contains(&address)
}

/// Thread-local data at a fixed distance from `%fs` belongs to the host's thread, not to the
/// program's. The stack protector's canary is read there, which is harmless.
fn reaches_thread_data(instruction: &Instruction) -> bool {
    const CANARY: u64 = 0x28;
    let segment = instruction.memory_segment();
    let canary = instruction.memory_base() == Register::None
        && instruction.memory_index() == Register::None
        && instruction.memory_displacement64() == CANARY;
    (segment == Register::FS && !canary) || segment == Register::GS
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn refused(bytes: &[u8]) -> Option<String> {
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        refusal(&decoder.decode()).map(|refusal| refusal.what)
    }

    #[test]
    fn bare_atomics_are_refused() {
        let lock_incl = [0xf0, 0xff, 0x00];
        assert_eq!(
            refused(&lock_incl).unwrap(),
            "the bare atomic instruction `lock inc`"
        );
        let xchg_memory = [0x87, 0x07];
        assert_eq!(
            refused(&xchg_memory).unwrap(),
            "the bare atomic instruction `xchg`"
        );
        let xchg_registers = [0x87, 0xd8];
        assert_eq!(refused(&xchg_registers), None);
    }

    #[test]
    fn system_calls_and_clocks_are_refused() {
        assert!(
            refused(&[0x0f, 0x05])
                .unwrap()
                .contains("raw system call (`syscall`)")
        );
        assert!(
            refused(&[0xcd, 0x80])
                .unwrap()
                .contains("raw system call (`int`)")
        );
        assert!(refused(&[0x0f, 0x31]).unwrap().contains("`rdtsc`"));
    }

    #[test]
    fn a_pause_and_a_canary_are_fine() {
        assert_eq!(refused(&[0xf3, 0x90]), None);
        let canary = [0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0];
        assert_eq!(refused(&canary), None);
        let thread_pointer = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
        assert!(refused(&thread_pointer).is_some());
    }
}
