//! Finds accesses of a function that are not announced.
//!
//! Compilers put a callback with the address in front of each access that other threads may see,
//! and forget some: a structure that is passed by value is copied only when the call is expanded,
//! long after the callbacks were put in. So the machine code is held against its callbacks. An
//! access is announced if a callback with its address comes before it, with no other call and no
//! atomic operation in between, and each callback is good for one access to each byte.
//!
//! Addresses are compared as sums of unknowns, see [`super::values`], which are followed through
//! registers and the frame. A single pass in the order of the code suffices: where control comes
//! from further down, nothing is known. A doubt is resolved against the access, which is cheap: it
//! is announced once more.
//!
//! A function's own frame is its own business, except for the variables whose address was handed
//! out. Compilers announce those too, but forget some as well.

use std::collections::{BTreeSet, HashSet};

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, Register,
    UsedMemory,
};
use object::{SectionIndex, SymbolIndex};

use super::callbacks::{Callee, Extent};
use super::flow;
use super::frame::InFrame;
use super::instructions::is_on_scratch;
use super::state::State;
use super::stores::{Store, flags_matter};
use super::values::{Atom, Region, Value, Values};
use super::variables::Variable;

/// The relocation of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// There is none.
    None,
    /// The operand is in a section of the file, at this offset.
    Section(SectionIndex, i64),
    /// The operand is a symbol that is defined elsewhere, and so much more.
    Symbol(SymbolIndex, i64),
    /// The operand is an entry of a table that holds this address.
    Entry(Box<Reference>),
    /// The operand names a thread-local variable.
    ThreadLocal(SymbolIndex, i64),
    /// The instruction goes to a function of this name.
    Function(String),
}

/// The questions of the analysis to the file.
pub(super) trait Surroundings {
    /// The relocation of an instruction.
    fn reference(&self, instruction: &Instruction) -> Reference;
    /// Whether nothing in a section changes while the program runs.
    fn is_constant(&self, section: SectionIndex) -> bool;
    /// Whether the compiler leaves the load in that a callback for atomics has done already, and
    /// ignores what it reads.
    fn leaves_loads(&self) -> bool;
    /// The function's local variables.
    fn variables(&self) -> &[Variable];
}

/// An access that is not announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unannounced {
    /// The address of its instruction.
    pub(crate) ip: u64,
    /// The number of that instruction in the function.
    pub(crate) nth: usize,
    /// Where and how much, as the instruction says it.
    pub(crate) operand: Operand,
    /// Whether it is a write.
    pub(crate) write: bool,
}

/// A memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// `None` for one that only the assembler can write down.
    pub(crate) base: Register,
    /// `None` if there is none.
    pub(crate) index: Register,
    /// The factor of the index.
    pub(crate) scale: u32,
    /// The constant that is added.
    pub(crate) displacement: i64,
    /// Whether the linker adds something too.
    pub(crate) relocated: bool,
    /// How many bytes.
    pub(crate) bytes: u32,
    /// Whether that is repeated as often as `rcx` says.
    pub(crate) repeated: bool,
}

/// The result for a function.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// The accesses that are not announced.
    pub(super) unannounced: Vec<Unannounced>,
    /// The stores that are announced.
    pub(super) stores: Vec<Store>,
    /// Whether the compiler put any callback in, and be it for entering the function.
    pub(super) instrumented: bool,
    /// Whether all unannounced accesses go where the first argument points, and every return hands that
    /// back: so a returned structure is filled in.
    pub(super) fills_result: bool,
    /// Whether registers are in use that callbacks do not preserve.
    pub(super) wide: bool,
    /// Whether numbers are kept in the floating-point stack, which callbacks want empty.
    pub(super) float: bool,
}

/// The analysis of one function.
pub(super) struct Analysis<'a, S> {
    pub(super) surroundings: &'a S,
    pub(super) factory: InstructionInfoFactory,
    pub(super) values: Values,
    pub(super) state: State,
    verdict: Verdict,
    /// The frame pointer, once it is set up.
    pub(super) frame_pointer: Option<Value>,
    /// Addresses in the frame that were handed out.
    pub(super) escaped: HashSet<Value>,
    /// Addresses in the frame that were put into the frame: where, and which. They are handed out
    /// once the analysis loses sight of them.
    pub(super) held: Vec<(Value, Value)>,
    pub(super) lost: HashSet<Value>,
    /// Addresses in the frame that were in a register which calls preserve.
    pub(super) kept: HashSet<Value>,
    /// Whether those are handed out.
    pub(super) all_kept_escape: bool,
    pub(super) in_frame: Vec<InFrame>,
    /// It is a part of a function that lies elsewhere.
    pub(super) continued: bool,
    first_block: bool,
    nth: usize,
    beyond_first: bool,
    returns_first: bool,
}

pub(super) const FRAME_POINTER: usize = 5;
pub(super) const STACK_POINTER: usize = 4;

/// The registers of the first arguments, and those that a call leaves changed.
pub(super) const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];
pub(super) const CHANGED: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// The registers that a call leaves as they are.
pub(super) const PRESERVED: [usize; 5] = [3, 12, 13, 14, 15];

pub(super) fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number())
}

/// Analyses a function.
pub(super) fn analyse(
    code: &[Instruction],
    entries: &BTreeSet<u64>,
    continued: bool,
    surroundings: &impl Surroundings,
) -> Verdict {
    if code.is_empty() {
        return Verdict::default();
    }
    let mut values = Values::new();
    let mut state = State::empty();
    state.registers[7] = Some(values.atom(Atom::First));
    state.registers[STACK_POINTER] = Some(values.atom(Atom::Frame));
    let mut frame_pointer = None;
    if continued {
        // A part of a function that lies elsewhere, with a frame that is set up already.
        frame_pointer = Some(values.shifted_frame());
        state = State::empty();
        state.registers[STACK_POINTER] = Some(values.shifted_frame());
        state.registers[FRAME_POINTER] = frame_pointer;
    }
    let analysis = Analysis {
        surroundings,
        factory: InstructionInfoFactory::new(),
        values,
        state,
        verdict: Verdict::default(),
        frame_pointer,
        escaped: HashSet::new(),
        held: Vec::new(),
        lost: HashSet::new(),
        kept: HashSet::new(),
        all_kept_escape: false,
        in_frame: Vec::new(),
        continued,
        first_block: !continued,
        nth: 0,
        beyond_first: false,
        returns_first: true,
    };
    analysis.run(code, &flow::blocks(code, entries))
}

impl<S: Surroundings> Analysis<'_, S> {
    fn run(mut self, code: &[Instruction], blocks: &[flow::Block]) -> Verdict {
        let mut after: Vec<State> = Vec::with_capacity(blocks.len());
        for (n, block) in blocks.iter().enumerate() {
            if n > 0 {
                self.first_block = false;
                let instructions = &code[block.start..block.end];
                let known = block.before.iter().flatten().filter(|&&b| b < n);
                let states: Vec<&State> = known.map(|&b| &after[b]).collect();
                self.state = match &block.before {
                    Some(before) if before.len() == states.len() => {
                        self.join(&states, instructions)
                    }
                    Some(_) if !states.is_empty() => {
                        let mut state = self.join(&states, instructions);
                        let cycle = flow::cycle(blocks, n);
                        let cycle = cycle.iter().map(|&b| &blocks[b]);
                        self.forget(&mut state, cycle, code, instructions);
                        state
                    }
                    _ => self.unknown(instructions),
                };
            }
            for (offset, instruction) in code[block.start..block.end].iter().enumerate() {
                self.nth = block.start + offset;
                let unannounced = self.verdict.unannounced.len();
                self.step(instruction);
                // Optimisation may move the load that a callback has done away from it.
                if self.verdict.unannounced.len() > unannounced
                    && self.surroundings.leaves_loads()
                    && self.is_dead_load(self.nth, n, blocks, code)
                {
                    self.verdict.unannounced.truncate(unannounced);
                }
            }
            self.escape_backwards(n, blocks, code);
            after.push(self.state.clone());
        }
        for store in &mut self.verdict.stores {
            store.flags = flags_matter(code, store.access.nth);
        }
        self.finish()
    }

    fn step(&mut self, instruction: &Instruction) {
        let reference = self.surroundings.reference(instruction);
        let table = self.accesses(instruction, &reference);
        match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => self.call(&reference),
            FlowControl::Return => {
                let first = self.values.atom(Atom::First);
                self.returns_first &= self.state.registers[0] == Some(first);
            }
            FlowControl::UnconditionalBranch if matches!(reference, Reference::Function(_)) => {
                self.call(&reference);
            }
            _ => self.compute(instruction, &reference, table),
        }
    }

    fn call(&mut self, reference: &Reference) {
        let callee = match reference {
            Reference::Function(name) => Callee::named(name),
            _ => Callee::Other,
        };
        let mut result = None;
        match callee {
            Callee::Entry => self.verdict.instrumented = true,
            Callee::Mark => {}
            Callee::Announces {
                write,
                extent,
                table,
            } => {
                self.verdict.instrumented = true;
                let extent = match extent {
                    Extent::Bytes(bytes) => Extent::Bytes(bytes),
                    Extent::Range(_) => {
                        let size = self.register(6).as_number();
                        Extent::Range(size.map_or(u64::MAX, |size| size as u64))
                    }
                };
                self.announce(write, extent, table);
            }
            Callee::ThreadLocal => {
                let operand = self.register(7);
                result = Some(self.values.make(u32::MAX, vec![operand], 0));
            }
            Callee::Loads { bytes } => {
                self.verdict.instrumented = true;
                self.state.forget_announced();
                if self.surroundings.leaves_loads() {
                    self.announce(false, Extent::Bytes(bytes), false);
                }
            }
            Callee::Copies => {
                self.verdict.instrumented = true;
                self.state.forget_announced();
                // There may be addresses in what is copied.
                self.lost.extend(self.held.iter().map(|&(slot, _)| slot));
            }
            Callee::Operates { value } => {
                self.verdict.instrumented = true;
                self.state.forget_announced();
                // The stored value may be an address.
                self.escape(self.state.registers[ARGUMENTS[value]]);
            }
            Callee::Other => {
                self.state.forget_announced();
                for register in ARGUMENTS {
                    self.escape(self.state.registers[register]);
                }
                self.escape_arguments();
            }
        }
        for register in CHANGED {
            self.state.registers[register] = None;
        }
        self.state.registers[0] = result;
    }

    /// Looks at every access of an instruction. Tells whether a class's table is read.
    fn accesses(&mut self, instruction: &Instruction, reference: &Reference) -> bool {
        if is_on_scratch(instruction) {
            // A callback has performed an atomic operation.
            self.state.forget_announced();
        }
        if touches_nothing(instruction) || matches!(reference, Reference::Entry(_)) {
            return false;
        }
        let through_table = matches!(reference, Reference::Function(_));
        let uses: Vec<UsedMemory> = self.factory.info(instruction).used_memory().to_vec();
        self.verdict.float |= instruction.fpu_stack_increment_info().increment() != 0
            || (0..instruction.op_count()).any(|n| instruction.op_register(n).is_st());
        self.verdict.wide |= (0..instruction.op_count()).any(|n| {
            let register = instruction.op_register(n);
            register.is_ymm() || register.is_zmm() || register.is_k()
        });
        let mut table = false;
        for memory in uses {
            if is_implicit(instruction, &memory) {
                continue;
            }
            let elsewhere = matches!(memory.segment(), Register::FS | Register::GS);
            if elsewhere || through_table && memory.base() == Register::None {
                continue;
            }
            let address = self.address(&memory, reference);
            let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
            let bytes = match memory.memory_size() {
                // The last bytes are padding, which belongs to the variable all the same.
                MemorySize::Float80 => 16,
                _ if repeated => instruction.memory_size().size() as u32,
                size => size.size() as u32,
            };
            let operand = Operand {
                base: memory.base(),
                index: memory.index(),
                scale: memory.scale(),
                displacement: memory.displacement() as i64,
                relocated: *reference != Reference::None,
                bytes,
                repeated,
            };
            let ways: &[bool] = match memory.access() {
                OpAccess::Read | OpAccess::CondRead => &[false],
                OpAccess::Write | OpAccess::CondWrite => &[true],
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => &[false, true],
                _ => &[],
            };
            for &write in ways {
                let unannounced = Unannounced {
                    ip: instruction.ip(),
                    nth: self.nth,
                    operand,
                    write,
                };
                table |= self.access(unannounced, address);
            }
        }
        table
    }

    fn access(&mut self, unannounced: Unannounced, address: Value) -> bool {
        let region = self.values.region(address);
        let (write, bytes) = (unannounced.write, i64::from(unannounced.operand.bytes));
        if region == Region::Frame && !write && bytes > 8 {
            self.lost.extend((0..bytes).map(|n| address.plus(n)));
        }
        if unannounced.operand.repeated && !write {
            self.lost.extend(self.held.iter().map(|&(slot, _)| slot));
        }
        let constant = match region {
            Region::Constant => true,
            Region::Section(section) => self.surroundings.is_constant(section),
            _ => false,
        };
        if constant && !write {
            return false;
        }
        if let Some(table) = self.is_announced(address, &unannounced) {
            if write {
                self.verdict.stores.push(Store {
                    access: unannounced,
                    flags: true,
                });
            }
            return table;
        }
        // No other thread knows the frame before an address was handed out.
        let early = self.first_block && self.escaped.is_empty();
        match region {
            Region::Frame | Region::SomewhereInFrame if !early => self.in_frame.push(InFrame {
                unannounced,
                address,
            }),
            Region::Frame | Region::SomewhereInFrame => {}
            _ => {
                self.beyond_first |= region != Region::First;
                self.verdict.unannounced.push(unannounced);
            }
        }
        false
    }

    fn finish(mut self) -> Verdict {
        let in_frame = self.shared_frame();
        self.verdict.fills_result = !self.beyond_first && self.returns_first && in_frame.is_empty();
        self.verdict.unannounced.extend(in_frame);
        self.verdict
            .unannounced
            .sort_by_key(|unannounced| unannounced.ip);
        self.verdict
    }
}

/// Instructions with a memory operand that access nothing.
pub(super) fn touches_nothing(instruction: &Instruction) -> bool {
    is_on_scratch(instruction)
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Lea
                | Mnemonic::Nop
                | Mnemonic::Prefetcht0
                | Mnemonic::Prefetcht1
                | Mnemonic::Prefetcht2
                | Mnemonic::Prefetchnta
                | Mnemonic::Prefetchw
        )
}

/// Whether an instruction for the stack accesses its top there, which no operand says.
fn is_implicit(instruction: &Instruction, memory: &UsedMemory) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Push | Mnemonic::Call | Mnemonic::Pushfq => memory.access() == OpAccess::Write,
        Mnemonic::Pop | Mnemonic::Popfq => {
            memory.base() == Register::RSP && memory.access() == OpAccess::Read
        }
        Mnemonic::Ret | Mnemonic::Leave => true,
        _ => false,
    }
}
