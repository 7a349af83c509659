//! Writes the code that takes the place of an instruction of inline assembly.

use std::fmt::Write as _;

use iced_x86::Register;
use selvedge_runtime::support::STORES_SCRATCH as SCRATCH;

use super::meaning::{Given, Meaning, SEQ_CST};
use crate::compile::announce::{self, LOWERED, RED_ZONE, SAVED};
use crate::compile::assembly::line_to;
use crate::compile::fresh::Fresh;
use crate::scan::Operand;

const RELAXED: u32 = 0;

pub(super) struct Writer {
    pub(super) text: String,
    /// How many callbacks there are by now.
    pub(super) count: usize,
    pub(super) fresh: Option<Fresh>,
    pub(super) vectors: Vec<u32>,
}

impl Writer {
    pub(super) fn statement(&mut self, meaning: &Meaning, code: &str) -> Option<()> {
        match meaning {
            Meaning::Itself => line_to(&mut self.text, &format!("\t{code}")),
            Meaning::Fence(order) => {
                let arguments = format!("\tmovl ${order}, %edi\n");
                self.call("__tsan_atomic_thread_fence", 0, &arguments, "");
            }
            Meaning::Clock { processor } => {
                let result = format!("\tmovq %rax, {SCRATCH:#x}\n");
                self.call("selvedge_cycles", 0, "", &result);
                line_to(&mut self.text, &format!("\tmovl {SCRATCH:#x}, %eax"));
                line_to(&mut self.text, &format!("\tmovl {:#x}, %edx", SCRATCH + 4));
                if *processor {
                    line_to(&mut self.text, "\tmovl $0, %ecx");
                }
            }
            Meaning::Access {
                load,
                store,
                operand,
            } => {
                let name = |what: &str| format!("__tsan_atomic{}_{what}", 8 * operand.bytes);
                if *load {
                    let address = self.address(operand, code, 0)?;
                    let arguments = format!("\tleaq {address}, %rdi\n\tmovl ${RELAXED}, %esi\n");
                    let result = format!("\tmovq %rax, {SCRATCH:#x}\n");
                    self.call(&name("load"), 0, &arguments, &result);
                }
                self.on_scratch(code)?;
                if *store {
                    let address = self.address(operand, code, 0)?;
                    let arguments = format!(
                        "\tleaq {address}, %rdi\n\tmovq {SCRATCH:#x}, %rsi\n\tmovl ${RELAXED}, %edx\n"
                    );
                    self.call(&name("store"), 0, &arguments, "");
                }
            }
            Meaning::Update {
                name,
                given,
                operand,
            } => {
                let name = format!("__tsan_atomic{}_{name}", 8 * operand.bytes);
                let address = self.address(operand, code, 16)?;
                let from =
                    |register: Register| format!("{:?}", register.full_register()).to_lowercase();
                let mut arguments = match given {
                    Given::Register(register) | Given::Bit { register, .. } => {
                        format!("\tpushq $0\n\tpushq %{}\n", from(*register))
                    }
                    Given::Number(number) => {
                        format!("\tpushq $0\n\tpushq ${}\n", i32::try_from(*number).ok()?)
                    }
                    Given::Exchanged(register) => {
                        format!("\tpushq %{}\n\tpushq %rax\n", from(*register))
                    }
                };
                let _ = write!(
                    arguments,
                    "\tleaq {address}, %rdi\n\tpopq %rsi\n\tpopq %rdx\n"
                );
                if let Given::Bit { others, .. } = given {
                    arguments += bit_at(operand.bytes)?;
                    arguments += if *others { "\tnotq %rsi\n" } else { "" };
                }
                arguments += &match given {
                    Given::Exchanged(_) => {
                        format!("\tmovl ${SEQ_CST}, %ecx\n\tmovl ${SEQ_CST}, %r8d\n")
                    }
                    _ => format!("\tmovl ${SEQ_CST}, %edx\n"),
                };
                let result = format!("\tmovq %rax, {SCRATCH:#x}\n");
                self.call(&name, 0, &arguments, &result);
                match given {
                    Given::Bit { register, .. } => self.carry(*register),
                    _ => self.on_scratch(code)?,
                }
            }
            Meaning::Wide { operand } => {
                let address = self.address(operand, code, 32)?;
                let arguments = format!(
                    "\tpushq %rcx\n\tpushq %rbx\n\tpushq %rdx\n\tpushq %rax\n\tleaq {address}, %rdi\n\
                     \tpopq %rsi\n\tpopq %rdx\n\tpopq %rcx\n\tpopq %r8\n\tmovl ${SEQ_CST}, %r9d\n"
                );
                let result = format!(
                    "\tmovq %rax, {SCRATCH:#x}\n\tmovq %rdx, {:#x}\n",
                    SCRATCH + 8
                );
                self.call(
                    "__tsan_atomic128_compare_exchange_val",
                    SEQ_CST,
                    &arguments,
                    &result,
                );
                self.on_scratch(code)?;
            }
        }
        Some(())
    }

    /// The operand's address, while a callback is prepared and this many bytes more are on the stack.
    fn address(&self, operand: &Operand, code: &str, more: i64) -> Option<String> {
        let red_zone = if self.fresh.is_some() { 0 } else { RED_ZONE };
        announce::address(operand, code, red_zone + LOWERED + more)
    }

    /// Writes an instruction with the scratch word for its operand.
    fn on_scratch(&mut self, code: &str) -> Option<()> {
        let open = code.find('(')?;
        let end = open + code[open..].find(')')?;
        let start = code[..open].rfind([',', ' ', '\t'])? + 1;
        if code[end + 1..].contains('(') || code[start..open].contains(['%', '*', ':']) {
            return None;
        }
        let (before, after) = (&code[..start], &code[end + 1..]);
        line_to(&mut self.text, &format!("\t{before}{SCRATCH:#x}{after}"));
        Some(())
    }

    /// Sets the carry flag to the bit that `register` tells, modulo its size, of the scratch word. No other flag is
    /// defined after an instruction on bits, and moves change none.
    fn carry(&mut self, register: Register) {
        let other = match register.full_register() {
            Register::RAX => "rcx",
            _ => "rax",
        };
        let named = format!("{register:?}").to_lowercase();
        let part = match register.size() {
            8 => other.to_owned(),
            4 => format!("e{}", &other[1..]),
            _ => other[1..].to_owned(),
        };
        let kept = SCRATCH + 8;
        let _ = write!(
            self.text,
            "\tmovq %{other}, {kept:#x}\n\tmovq {SCRATCH:#x}, %{other}\n\tbt %{named}, %{part}\n\
             \tmovq {kept:#x}, %{other}\n"
        );
    }

    /// Calls `name`, and keeps all registers.
    fn call(&mut self, name: &str, on_stack: u32, arguments: &str, result: &str) {
        let n = self.count;
        self.count += 1;
        let fresh = self.fresh.as_ref();
        let red_zone = if fresh.is_some() { 0 } else { RED_ZONE };
        let mut code = format!(".Lselvedge_inline_{n}:\n\tleaq -{red_zone}(%rsp), %rsp\n");
        code += match fresh.is_some_and(Fresh::leaves_flags) {
            true => "\tpushq $0\n",
            false => "\tpushfq\n",
        };
        for register in SAVED {
            // Values that a callback left in registers belong to no one.
            code += &match fresh.is_some_and(|fresh| register != "rbx" && !fresh.has(register)) {
                true => "\tpushq $0\n".to_owned(),
                false => format!("\tpushq %{register}\n"),
            };
        }
        code += arguments;
        code += "\tmovq %rsp, %rbx\n\tpushq $0\n\tpushq $0\n\taddq $8, %rsp\n\tandq $-16, %rsp\n";
        let vectors: Vec<u32> = match fresh {
            Some(fresh) => (0..16).filter(|n| fresh.has(&format!("xmm{n}"))).collect(),
            None => self.vectors.clone(),
        };
        let _ = writeln!(code, "\tsubq ${}, %rsp", 16 * vectors.len());
        for (place, n) in vectors.iter().enumerate() {
            let _ = writeln!(code, "\tmovaps %xmm{n}, {}(%rsp)", 16 * place);
        }
        if on_stack > 0 {
            let _ = writeln!(code, "\tpushq $0\n\tpushq ${on_stack}");
        }
        let _ = writeln!(code, "\tcall {name}@PLT");
        if on_stack > 0 {
            code += "\taddq $16, %rsp\n";
        }
        for (place, n) in vectors.iter().enumerate() {
            let _ = writeln!(code, "\tmovaps {}(%rsp), %xmm{n}", 16 * place);
        }
        code += result;
        code += "\tmovq %rbx, %rsp\n";
        for register in SAVED.iter().rev() {
            let _ = writeln!(code, "\tpopq %{register}");
        }
        let _ = writeln!(
            code,
            "\tpopfq\n\tleaq {red_zone}(%rsp), %rsp\n.Lselvedge_inlined_{n}:"
        );
        self.text += &code;
    }
}

/// Moves the address in `rdi` to the operand of so many bytes that has the bit with the signed number in `rsi`,
/// and leaves that bit of it in `rsi`.
fn bit_at(bytes: u32) -> Option<&'static str> {
    match bytes {
        2 => Some(
            "\tmovswq %si, %rax\n\tsarq $4, %rax\n\tleaq (%rdi,%rax,2), %rdi\n\
             \tmovl %esi, %ecx\n\tandl $15, %ecx\n\tmovl $1, %esi\n\tshll %cl, %esi\n",
        ),
        4 => Some(
            "\tmovslq %esi, %rax\n\tsarq $5, %rax\n\tleaq (%rdi,%rax,4), %rdi\n\
             \tmovl %esi, %ecx\n\tmovl $1, %esi\n\tshll %cl, %esi\n",
        ),
        8 => Some(
            "\tmovq %rsi, %rax\n\tsarq $6, %rax\n\tleaq (%rdi,%rax,8), %rdi\n\
             \tmovl %esi, %ecx\n\tmovl $1, %esi\n\tshlq %cl, %rsi\n",
        ),
        _ => None,
    }
}
