//! Backward liveness over the machine code of one function.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::addresses::Held;
use super::checks::without_checks;
use super::effects::{Effects, Tracker};
use super::flow::{Flow, is_call};
use super::{Callees, LiveFrame, LiveWord};

/// Frames larger than this are not analysed.
pub(super) const FRAME_LIMIT: i64 = 1024;
/// The callee-saved registers apart from the frame pointer.
pub(super) const REGISTERS: [Register; 5] = [
    Register::RBX,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// A range of bits: one for each byte of the frame, lowest address first, then one for each register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

const BITS: usize = FRAME_LIMIT as usize + 64;

/// A set of bits.
#[derive(Clone, PartialEq, Eq)]
struct Bits([u64; BITS / 64]);

impl Bits {
    const NONE: Bits = Bits([0; BITS / 64]);

    fn set(&mut self, span: Span, value: bool) {
        for bit in span.start..span.end {
            let mask = 1 << (bit % 64);
            if value {
                self.0[bit / 64] |= mask;
            } else {
                self.0[bit / 64] &= !mask;
            }
        }
    }

    fn add(&mut self, other: &Bits) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
    }

    /// Whether a register is among them; those that are not followed always are.
    fn has(&self, register: Register) -> bool {
        let place = REGISTERS.iter().position(|known| *known == register);
        place.is_none_or(|place| self.0[FRAME_LIMIT as usize / 64] >> place & 1 != 0)
    }

    fn byte_mask(&self, word: usize) -> u64 {
        let bits = self.0[word / 8] >> (word % 8 * 8) & 0xff;
        (0..8)
            .filter(|byte| bits & (1 << byte) != 0)
            .fold(0, |mask, byte| mask | 0xff << (8 * byte))
    }
}

/// For each call in the function whose machine code is `code`, loaded at `address`: where it
/// returns to, and what is live in the function's frame meanwhile. Empty if the function is not
/// understood.
pub(super) fn live_at_calls(
    code: &[u8],
    address: u64,
    callees: &Callees,
) -> Vec<(usize, LiveFrame)> {
    analyse(code, address, callees).unwrap_or_default()
}

fn analyse(code: &[u8], address: u64, callees: &Callees) -> Option<Vec<(usize, LiveFrame)>> {
    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instructions = without_checks(decoder.into_iter().collect(), callees);
    if instructions.iter().any(Instruction::is_invalid) {
        return None;
    }
    let saved = prologue(&instructions)?;
    let graph = Flow::of(&instructions, callees);
    if !graph.exact {
        return None;
    }
    let callbacks = &callees.callbacks;
    let held = Held::of(&instructions, &graph, &mut Tracker::new(callbacks)).ok()?;
    let mut tracker = Tracker::new(callbacks);
    let mut effects = Vec::with_capacity(instructions.len());
    for (index, instruction) in instructions.iter().enumerate() {
        if graph.leaders.contains(&index) {
            tracker.addresses = held.at(index).to_vec();
        }
        effects.push(tracker.effects(instruction).ok()?);
    }
    let live = solve(&graph, &instructions, &effects);
    let entry = entry(&instructions, &graph, callees);
    let mut tracker = Tracker::new(callbacks);
    let mut escaped_at_entry = 0;
    for (index, instruction) in instructions.iter().enumerate() {
        if Some(index) == entry {
            escaped_at_entry = tracker.escaped;
        }
        if graph.leaders.contains(&index) {
            tracker.addresses = held.at(index).to_vec();
        }
        tracker.effects(instruction).ok()?;
        for &next in &graph.successors[index] {
            if graph.leaders.contains(&next) {
                held.escape(&mut tracker, next, |held| live[next].has(held));
            }
        }
    }
    if tracker.escaped < -FRAME_LIMIT {
        return None;
    }
    // Memory above an address that was taken, and registers that the prologue saved, always count.
    let mut always = Bits::NONE;
    always.set(
        Span {
            start: (tracker.escaped + FRAME_LIMIT) as usize,
            end: FRAME_LIMIT as usize,
        },
        tracker.escaped < 0,
    );
    always.set(
        Span {
            start: (FRAME_LIMIT - 8 * saved.len() as i64) as usize,
            end: FRAME_LIMIT as usize,
        },
        true,
    );
    // A register that the function leaves alone is its caller's, also if an exception takes the
    // thread there.
    for (place, register) in REGISTERS.iter().enumerate() {
        let start = FRAME_LIMIT as usize + place;
        let end = start + 1;
        if !saved.contains(register) {
            always.set(Span { start, end }, true);
        }
    }
    let mut calls = Vec::new();
    for (index, instruction) in instructions.iter().enumerate() {
        if is_call(instruction) {
            let mut bits = live[index].clone();
            bits.add(&always);
            let mut frame = frame(&bits, &saved);
            if Some(index) == entry && escaped_at_entry == 0 {
                frame.written = Some(written(&effects[..index], &saved));
            }
            calls.push((instruction.next_ip() as usize, frame));
        }
    }
    Some(calls)
}

fn frame(bits: &Bits, saved: &[Register]) -> LiveFrame {
    let words = (0..FRAME_LIMIT as usize / 8).map(|word| {
        let offset = (word * 8) as i32 - FRAME_LIMIT as i32;
        let pushed = saved.get((-offset / 8 - 1) as usize);
        LiveWord {
            offset,
            mask: bits.byte_mask(word),
            // Other registers are pushed to make room for a variable.
            saves: pushed.and_then(|push| REGISTERS.iter().position(|register| register == push)),
        }
    });
    LiveFrame {
        words: words.filter(|word| word.mask != 0).collect(),
        registers: bits.0[FRAME_LIMIT as usize / 64] as u8,
        written: None,
    }
}

/// The call that tells that the function was entered, if nothing but straight code comes before.
fn entry(instructions: &[Instruction], flow: &Flow, callees: &Callees) -> Option<usize> {
    let first = instructions.iter().position(is_call)?;
    let straight = |instruction: &Instruction| instruction.flow_control() == FlowControl::Next;
    let call = &instructions[first];
    let name = match call.flow_control() {
        FlowControl::Call => callees.callbacks.get(&(call.near_branch_target() as usize)),
        _ => None,
    };
    let tells = name.is_some_and(|name| name == "__tsan_func_entry");
    let only = flow.leaders.range(1..=first).next().is_none();
    (tells && only && instructions[..first].iter().all(straight)).then_some(first)
}

/// The words that instructions may have written, and what the prologue saved.
fn written(effects: &[Effects], saved: &[Register]) -> Box<[LiveWord]> {
    let mut bits = Bits::NONE;
    for effects in effects {
        let spans = effects.overwrites.iter().chain(&effects.reads);
        spans.for_each(|&span| bits.set(span, true));
    }
    let saved = Span {
        start: (FRAME_LIMIT - 8 * saved.len() as i64) as usize,
        end: FRAME_LIMIT as usize,
    };
    bits.set(saved, true);
    frame(&bits, &[]).words
}

/// Checks for an ordinary frame (`push rbp; mov rbp, rsp`, registers saved by pushes, nothing else
/// pushed, `rbp` left alone) and tells the saved registers, in the order of their pushes.
fn prologue(instructions: &[Instruction]) -> Option<Vec<Register>> {
    let mut code = instructions.iter().peekable();
    code.next_if(|instruction| instruction.mnemonic() == Mnemonic::Endbr64);
    let push = code.next()?;
    let copy = code.next()?;
    let ordinary = push.mnemonic() == Mnemonic::Push
        && push.op0_register() == Register::RBP
        && copy.mnemonic() == Mnemonic::Mov
        && copy.op0_kind() == OpKind::Register
        && copy.op0_register() == Register::RBP
        && copy.op1_register() == Register::RSP;
    if !ordinary {
        return None;
    }
    // Optimisers put other instructions between the pushes.
    let rest: Vec<&Instruction> = code.collect();
    let straight = rest.iter().take_while(|instruction| {
        instruction.flow_control() == FlowControl::Next && !makes_room(instruction)
    });
    let is_push = |instruction: &Instruction| instruction.mnemonic() == Mnemonic::Push;
    let beginning = straight.count();
    let pushes = rest[..beginning].iter().filter(|i| is_push(i));
    let saved = pushes.map(|push| push.op0_register()).collect();
    let disturbed = rest.iter().enumerate().any(|(place, instruction)| {
        let restores = matches!(instruction.mnemonic(), Mnemonic::Leave | Mnemonic::Pop);
        let pushes = is_push(instruction) && place >= beginning;
        let writes = instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().full_register() == Register::RBP
            && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
        pushes || (writes && !restores) || moves_stack_pointer(instruction)
    });
    (!disturbed).then_some(saved)
}

/// Whether room is made on the stack for variables.
fn makes_room(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Sub | Mnemonic::Add | Mnemonic::And
    ) && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register() == Register::RSP
}

/// Whether the stack pointer is used for more than making and leaving room: what lies below the
/// frame, such as an array of variable length, would be overlooked.
fn moves_stack_pointer(instruction: &Instruction) -> bool {
    let mut operands = (0..instruction.op_count())
        .filter(|&operand| instruction.op_kind(operand) == OpKind::Register)
        .map(|operand| instruction.op_register(operand).full_register());
    if !operands.any(|register| register == Register::RSP) {
        return false;
    }
    match instruction.mnemonic() {
        Mnemonic::Add | Mnemonic::Sub => instruction.op1_kind() == OpKind::Register,
        Mnemonic::Lea => instruction.memory_base() != Register::RBP,
        _ => true,
    }
}

/// The live registers and bytes before each instruction.
fn solve(flow: &Flow, instructions: &[Instruction], effects: &[Effects]) -> Vec<Bits> {
    // The caller's registers are its own again when the function returns.
    let mut at_return = Bits::NONE;
    let registers = FRAME_LIMIT as usize;
    at_return.set(
        Span {
            start: registers,
            end: registers + REGISTERS.len(),
        },
        true,
    );
    let mut live = vec![Bits::NONE; instructions.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for index in (0..instructions.len()).rev() {
            let mut now = match instructions[index].flow_control() {
                FlowControl::Return => at_return.clone(),
                _ => Bits::NONE,
            };
            for &successor in &flow.successors[index] {
                now.add(&live[successor]);
            }
            for &span in &effects[index].overwrites {
                now.set(span, false);
            }
            for &span in &effects[index].reads {
                now.set(span, true);
            }
            if now != live[index] {
                live[index] = now;
                changed = true;
            }
        }
    }
    live
}
