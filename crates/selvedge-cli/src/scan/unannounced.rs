//! Functions that touch shared memory and never say so.
//!
//! A function under `__attribute__((no_sanitize("thread")))`, or one written in assembly, has no
//! callback for its accesses, so races and values in it would go unseen. Such a function is told by
//! what is missing: not one callback, and yet an access to something other than its own frame.
//!
//! What a register points to is followed in a single pass over the code in the order it is
//! written, which is enough for functions this simple. A doubt is resolved against the function,
//! except for one thing that compilers do themselves: they fill in a returned structure, which is
//! nearly always the caller's local variable, without a callback.

use std::collections::HashMap;

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// Code that a compiler made on its own account, which touches nothing that the program shares.
const GENERATED: [&str; 11] = [
    "_GLOBAL__",
    "_sub_I_",
    "_sub_D_",
    "tsan.",
    "__cxx_global",
    "__clang_call_terminate",
    "__tls_init",
    "_ZTW",
    "_ZTH",
    "_ZTh",
    "_ZTv",
];

/// What a register or a slot of the frame holds, as far as accesses through it matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Points {
    /// Into the function's own frame, or to constants.
    Harmless,
    /// Where the caller wants a returned structure, or wherever the first argument points.
    First,
    /// Anywhere.
    Somewhere,
}

/// What the instruction's relocation tells of its memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// There is none.
    None,
    /// A constant, or an entry of the global offset table.
    Constant,
    /// A variable.
    Variable,
}

/// The walk over one function.
pub(super) struct Walk {
    factory: InstructionInfoFactory,
    registers: HashMap<Register, Points>,
    slots: HashMap<i64, Points>,
    framed: bool,
    calls_back: bool,
    /// The first suspicious access.
    suspect: Option<u64>,
    /// The first store through the first argument, and whether every return hands that back.
    first: Option<u64>,
    returns_first: bool,
}

impl Walk {
    /// Begins a function called `name`, unless it is one that compilers add.
    pub(super) fn begin(name: &str) -> Option<Walk> {
        if GENERATED.iter().any(|prefix| name.starts_with(prefix)) {
            return None;
        }
        Some(Walk {
            factory: InstructionInfoFactory::new(),
            registers: HashMap::from([(Register::RDI, Points::First)]),
            slots: HashMap::new(),
            framed: false,
            calls_back: false,
            suspect: None,
            first: None,
            returns_first: true,
        })
    }

    /// Notes a call of `callee`.
    pub(super) fn call(&mut self, callee: &str) {
        let frame_only = ["__tsan_func_entry", "__tsan_func_exit", "__tsan_init"];
        self.calls_back |= callee.starts_with("__tsan_") && !frame_only.contains(&callee);
    }

    /// Follows one instruction.
    pub(super) fn step(&mut self, instruction: &Instruction, target: Target) {
        self.look_for_access(instruction, target);
        let destination = written_register(instruction);
        let value = self.value(instruction, target);
        match instruction.flow_control() {
            FlowControl::Return => {
                self.returns_first &= self.register(Register::RAX) == Points::First;
            }
            FlowControl::Call | FlowControl::IndirectCall => self.registers.clear(),
            _ => {}
        }
        if let Some(slot) = self.frame_slot(instruction)
            && instruction.op0_kind() == OpKind::Memory
        {
            let stored = match instruction.mnemonic() {
                Mnemonic::Mov if instruction.op1_kind() == OpKind::Register => {
                    self.register(instruction.op1_register())
                }
                _ => Points::Somewhere,
            };
            self.slots.insert(slot, stored);
        }
        if instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_register() == Register::RBP
            && instruction.op1_register() == Register::RSP
        {
            self.framed = true;
        } else if let Some(destination) = destination {
            self.registers.insert(destination, value);
        }
    }

    /// Where in the function an access goes unannounced, if one does.
    pub(super) fn finish(self) -> Option<u64> {
        if self.calls_back {
            return None;
        }
        self.suspect
            .or(if self.returns_first { None } else { self.first })
    }

    fn look_for_access(&mut self, instruction: &Instruction, target: Target) {
        let silent = matches!(
            instruction.mnemonic(),
            Mnemonic::Lea
                | Mnemonic::Nop
                | Mnemonic::Prefetcht0
                | Mnemonic::Prefetcht1
                | Mnemonic::Prefetcht2
                | Mnemonic::Prefetchnta
                | Mnemonic::Prefetchw
        );
        if silent || instruction.segment_prefix() == Register::FS {
            return;
        }
        let flow = instruction.flow_control();
        let accesses: Vec<_> = self.factory.info(instruction).used_memory().to_vec();
        for access in accesses {
            let points = match (access.base(), access.index()) {
                (Register::None, Register::None) => match target {
                    Target::Constant => Points::Harmless,
                    Target::None | Target::Variable => Points::Somewhere,
                },
                (base, index) => self.sum(self.register(base), self.register(index)),
            };
            let place = instruction.ip();
            // Calls and jumps through memory read a table or a pointer, not data.
            match points {
                Points::Somewhere if flow == FlowControl::Next => {
                    self.suspect.get_or_insert(place);
                }
                Points::First if access.access() == OpAccess::Write => {
                    self.first.get_or_insert(place);
                }
                Points::First => {
                    self.suspect.get_or_insert(place);
                }
                _ => {}
            }
        }
    }

    /// What the instruction leaves in the register it writes.
    fn value(&self, instruction: &Instruction, target: Target) -> Points {
        match (instruction.mnemonic(), instruction.op1_kind()) {
            (Mnemonic::Mov, OpKind::Register) => self.register(instruction.op1_register()),
            (Mnemonic::Mov, OpKind::Memory) => match self.frame_slot(instruction) {
                Some(slot) => self.slots.get(&slot).copied().unwrap_or(Points::Somewhere),
                None => Points::Somewhere,
            },
            (Mnemonic::Lea, _) => match instruction.memory_base() {
                Register::RIP if target == Target::Constant => Points::Harmless,
                Register::RIP => Points::Somewhere,
                base => self.sum(
                    self.register(base),
                    self.register(instruction.memory_index()),
                ),
            },
            (Mnemonic::Add | Mnemonic::Sub | Mnemonic::And, kind) => {
                let own = self.register(instruction.op0_register());
                match kind {
                    OpKind::Register => self.sum(own, self.register(instruction.op1_register())),
                    _ => own,
                }
            }
            _ => Points::Somewhere,
        }
    }

    fn register(&self, register: Register) -> Points {
        match register.full_register() {
            Register::RSP => Points::Harmless,
            Register::RBP if self.framed => Points::Harmless,
            full => self
                .registers
                .get(&full)
                .copied()
                .unwrap_or(Points::Somewhere),
        }
    }

    /// A pointer and an offset, in either order.
    fn sum(&self, a: Points, b: Points) -> Points {
        match (a, b) {
            (Points::Harmless, _) | (_, Points::Harmless) => Points::Harmless,
            (Points::First, _) | (_, Points::First) => Points::First,
            _ => Points::Somewhere,
        }
    }

    fn frame_slot(&self, instruction: &Instruction) -> Option<i64> {
        let plain = self.framed
            && instruction.memory_base() == Register::RBP
            && instruction.memory_index() == Register::None;
        plain.then(|| instruction.memory_displacement64() as i64)
    }
}

fn written_register(instruction: &Instruction) -> Option<Register> {
    let reads_only = matches!(
        instruction.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push
    );
    (instruction.op0_kind() == OpKind::Register && !reads_only)
        .then(|| instruction.op0_register().full_register())
}
