//! Inline assembly with a known meaning.
//!
//! Libraries write fences, atomic operations and relaxed accesses as inline assembly, which no
//! compiler announces. An instruction in such a block that accesses memory is split in two: a
//! callback performs the access, as an atomic operation of the memory model, and puts the value
//! that it read into a scratch word; then the instruction itself runs on that word, so that
//! registers and flags become what they would be. A store is made the other way round.
//!
//! `lock`ed instructions and `xchg` are `seq_cst` updates, other accesses are relaxed, `mfence` and
//! `lock` with a zero on the stack are `seq_cst` fences. What is not understood stays as it is, for
//! the scan to refuse.

use std::fmt::Write as _;

use iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};
use selvedge_runtime::support::STORES_SCRATCH as SCRATCH;

use super::announce::{self, LOWERED, RED_ZONE, SAVED, table};
use super::assembly::{line_to, without_comment};
use super::fresh::{self, Fresh};
use crate::scan::Operand;

/// The section that tells where callbacks were put in: two addresses for each.
pub(crate) const SECTION: &str = ".selvedge.inline";

const RELAXED: u32 = 0;
const ACQUIRE: u32 = 2;
const RELEASE: u32 = 3;
const SEQ_CST: u32 = 5;

/// What takes an instruction's place.
enum Meaning {
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

/// What an update is given.
enum Given {
    Register(Register),
    Number(i64),
    /// What is expected in `rax`, and this is put there.
    Exchanged(Register),
}

/// Rewrites the blocks of inline assembly in `text`, which are marked, given the instructions of each
/// that is in a function. `None` if there is nothing to do.
pub(super) fn rewrite(text: &str, blocks: &[Option<Vec<Instruction>>]) -> Option<String> {
    if text.contains(".intel_syntax") || text.contains("%ymm") || text.contains("%zmm") {
        return None;
    }
    let mut written = String::with_capacity(text.len() * 2);
    let lines: Vec<&str> = text.lines().collect();
    let mut count = 0;
    let mut number = 0;
    while number < lines.len() {
        let line = lines[number];
        line_to(&mut written, line);
        number += 1;
        let block = line.strip_prefix(".Lselvedge_begin_");
        let Some(block) = block.and_then(|rest| rest.strip_suffix(':')?.parse::<usize>().ok())
        else {
            continue;
        };
        let end = format!(".Lselvedge_end_{block}:");
        let length = lines[number..].iter().position(|line| *line == end)?;
        let inside = &lines[number..number + length];
        if let Some(Some(code)) = blocks.get(block)
            && let Some(replaced) = replace(&lines, (number, inside), code, count)
        {
            written += &replaced.text;
            count = replaced.count;
            number += length;
        }
    }
    if count == 0 {
        return None;
    }
    table(&mut written, SECTION, count, |n| {
        format!(".Lselvedge_inline_{n}, .Lselvedge_inlined_{n}")
    });
    Some(written)
}

struct Replaced {
    text: String,
    /// How many callbacks there are by now.
    count: usize,
}

/// Rewrites one block. `None` if it need not or cannot be.
fn replace(
    all: &[&str],
    (number, inside): (usize, &[&str]),
    code: &[Instruction],
    count: usize,
) -> Option<Replaced> {
    let statements = statements(inside)?;
    let instructions = statements.iter().filter(|s| s.is_instruction()).count();
    if instructions != code.len() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let meanings: Option<Vec<Meaning>> = code.iter().map(|i| meaning(&mut factory, i)).collect();
    let meanings = meanings?;
    if meanings
        .iter()
        .all(|meaning| matches!(meaning, Meaning::Itself))
    {
        return None;
    }
    // The first of the marks is before the block.
    let before = &all[..number];
    let fresh = Fresh::before(before).filter(|fresh| {
        instructions == 1
            && statements
                .iter()
                .all(|statement| fresh.explains(&statement.code))
    });
    let mut writer = Writer {
        text: String::new(),
        count,
        vectors: fresh::vectors(all, number),
        fresh,
    };
    let mut meanings = meanings.iter();
    for statement in &statements {
        for label in &statement.labels {
            line_to(&mut writer.text, &format!("{label}:"));
        }
        match statement.is_instruction() {
            true => writer.statement(meanings.next()?, &statement.code)?,
            false => line_to(&mut writer.text, &format!("\t{}", statement.code)),
        }
    }
    Some(Replaced {
        text: writer.text,
        count: writer.count,
    })
}

/// Labels, and an instruction or a line number after them.
struct Statement {
    labels: Vec<String>,
    code: String,
}

impl Statement {
    fn is_instruction(&self) -> bool {
        !self.code.is_empty() && !self.code.starts_with('.')
    }
}

/// The statements of a block; `None` if there is anything but labels and instructions.
fn statements(lines: &[&str]) -> Option<Vec<Statement>> {
    const PREFIXES: [&str; 4] = ["lock", "rep", "repz", "repe"];
    let mut statements: Vec<Statement> = Vec::new();
    let mut prefix = String::new();
    for line in lines {
        let line = without_comment(line);
        if line.contains("/*") {
            return None;
        }
        for part in line.split(';') {
            let mut rest = part.trim();
            let mut labels = Vec::new();
            while let Some((name, after)) = rest.split_once(':')
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || "._$@".contains(c))
            {
                labels.push(name.to_owned());
                rest = after.trim();
            }
            let directive = rest.starts_with('.') && !rest.starts_with(".loc");
            if directive || rest.contains('=') {
                return None;
            }
            if !prefix.is_empty() && !labels.is_empty() {
                return None;
            }
            if PREFIXES.contains(&rest) {
                prefix = format!("{rest} ");
                rest = "";
            }
            if rest.is_empty() && labels.is_empty() {
                continue;
            }
            let code = match rest.is_empty() {
                true => String::new(),
                false => std::mem::take(&mut prefix) + rest,
            };
            statements.push(Statement { labels, code });
        }
    }
    prefix.is_empty().then_some(statements)
}

/// What an instruction means; `None` if that is not known.
fn meaning(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> Option<Meaning> {
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
    let bit = || {
        let bit = instruction.try_immediate(1).ok()?;
        Some(1_u64 << (bit % u64::from(8 * operand.bytes)))
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
        Mnemonic::Bts => ("fetch_or", Given::Number(bit()? as i64)),
        Mnemonic::Btr => ("fetch_and", Given::Number(!bit()? as i64)),
        Mnemonic::Btc => ("fetch_xor", Given::Number(bit()? as i64)),
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

struct Writer {
    text: String,
    count: usize,
    fresh: Option<Fresh>,
    vectors: Vec<u32>,
}

impl Writer {
    fn statement(&mut self, meaning: &Meaning, code: &str) -> Option<()> {
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
                let from = |register: Register| format!("{register:?}").to_lowercase();
                let mut arguments = match given {
                    Given::Register(register) => {
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
                arguments += &match given {
                    Given::Exchanged(_) => {
                        format!("\tmovl ${SEQ_CST}, %ecx\n\tmovl ${SEQ_CST}, %r8d\n")
                    }
                    _ => format!("\tmovl ${SEQ_CST}, %edx\n"),
                };
                let result = format!("\tmovq %rax, {SCRATCH:#x}\n");
                self.call(&name, 0, &arguments, &result);
                self.on_scratch(code)?;
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

    /// The operand's address, while a callback is prepared and so many bytes more are on the stack.
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
            // What a callback left there is nobody's.
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
