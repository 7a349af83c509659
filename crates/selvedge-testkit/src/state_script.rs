//! A scripted machine whose states can be kept.

use selvedge_core::{
    Function, Location, Machine, Op, Outcome, Pending, PendingAccess, StateMachine, ThreadId, Value,
};

use crate::program::{Instruction, Program};
use crate::script::ScriptMachine;

/// Runs a [`Program`] that has its variables in itself: part 0 is the memory, the others are threads.
#[derive(Clone, Debug)]
pub struct StateScript {
    machine: ScriptMachine,
    memory: Vec<Value>,
    /// The variables whose loads and stores are not atomic.
    plain: Vec<u32>,
    /// Name, variable, and the value with which the proposition holds.
    propositions: Vec<(String, u32, Value)>,
    /// The variable whose stores are progress marks.
    progress: Option<u32>,
    /// The parts that may have changed.
    changed: Vec<bool>,
}

impl StateScript {
    /// A machine at the start of `program`.
    pub fn new(program: Program) -> StateScript {
        let variables = program.threads.iter().flatten().map(|line| match *line {
            Instruction::Load(_, at) | Instruction::Update(_, at, _) => at as usize + 1,
            Instruction::Store(at, _) | Instruction::StoreRegister(at, _) => at as usize + 1,
            _ => 0,
        });
        let initial = program.initial.iter().map(|&(at, _)| at as usize + 1);
        let variables = variables.chain(initial).max().unwrap_or(0);
        let changed = vec![false; program.threads.len() + 1];
        let mut machine = ScriptMachine::new(program);
        machine.parks = false;
        let mut machine = StateScript {
            machine,
            memory: vec![0; variables],
            plain: Vec::new(),
            propositions: Vec::new(),
            progress: None,
            changed,
        };
        machine.reset();
        machine
    }

    /// The same with loads and stores of `variable` not atomic.
    pub fn with_plain(mut self, variable: u32) -> StateScript {
        self.plain.push(variable);
        self
    }

    /// The same with a proposition that holds while `variable` has `value`.
    pub fn with_proposition(mut self, name: &str, variable: u32, value: Value) -> StateScript {
        let needed = self.memory.len().max(variable as usize + 1);
        self.memory.resize(needed, 0);
        self.propositions.push((name.to_owned(), variable, value));
        self.reset();
        self
    }

    /// The same with stores to `variable` as progress marks.
    pub fn with_progress(mut self, variable: u32) -> StateScript {
        self.progress = Some(variable);
        self
    }

    /// The whole state, for comparison.
    pub fn state(&self) -> Vec<Vec<u8>> {
        let part = |part| {
            let mut bytes = Vec::new();
            self.write(part, &mut bytes);
            bytes
        };
        (0..self.changed.len()).map(part).collect()
    }

    fn write(&self, part: usize, into: &mut Vec<u8>) {
        match part.checked_sub(1) {
            None => {
                let bytes = self.memory.iter().flat_map(|value| value.to_le_bytes());
                into.extend(bytes);
            }
            Some(thread) => self.machine.save_thread(thread, into),
        }
    }
}

impl Machine for StateScript {
    fn reset(&mut self) {
        self.machine.reset();
        for at in 0..self.memory.len() {
            self.memory[at] = self.machine.initial(Location(at as u32));
        }
        self.changed.fill(true);
    }

    fn resume(&mut self, thread: ThreadId, outcome: Outcome, clock: &[u32]) {
        let Pending::Op(op) = self.pending(thread) else {
            panic!("{thread} has no step to take");
        };
        let written = match op {
            Op::Store { at, value, .. } => Some((at, value)),
            Op::Update { at, .. } => outcome.wrote.map(|value| (at, value)),
            Op::Create { child } => {
                self.changed[child.index() + 1] = true;
                None
            }
            _ => None,
        };
        if let Some((at, value)) = written {
            self.memory[at.index()] = value;
            self.changed[0] = true;
        }
        self.changed[thread.index() + 1] = true;
        self.machine.resume(thread, outcome, clock);
    }

    selvedge_core::forward_machine!(machine: around, pending, initial);
}

impl StateMachine for StateScript {
    fn parts(&self) -> usize {
        self.changed.len()
    }

    fn identify(&mut self, part: usize, into: &mut Vec<u8>) {
        self.write(part, into);
    }

    fn save(&mut self, part: usize, into: &mut Vec<u8>) {
        self.write(part, into);
    }

    fn restore(&mut self, part: usize, from: &[u8]) {
        match part.checked_sub(1) {
            None => {
                let (values, _) = from.as_chunks();
                for (place, &value) in self.memory.iter_mut().zip(values) {
                    *place = Value::from_le_bytes(value);
                }
            }
            Some(thread) => self.machine.restore_thread(thread, from),
        }
    }

    fn changed(&mut self, into: &mut Vec<u32>) {
        for (part, changed) in self.changed.iter_mut().enumerate() {
            if std::mem::take(changed) {
                into.push(part as u32);
            }
        }
    }

    fn value(&self, location: Location) -> Value {
        self.memory[location.index()]
    }

    fn access(&self, thread: ThreadId) -> Option<PendingAccess> {
        let Pending::Op(op) = self.pending(thread) else {
            return None;
        };
        let (at, writes, update) = match op {
            Op::Load { at, .. } => (at, false, false),
            Op::Store { at, .. } => (at, true, false),
            Op::Update {
                at,
                function: Function::Memory { .. },
                ..
            } => (at, true, true),
            _ => return None,
        };
        Some(PendingAccess {
            address: 4 * u64::from(at.0),
            size: 4,
            writes,
            atomic: update || !self.plain.contains(&at.0),
            frees: false,
        })
    }

    fn marks_progress(&self, thread: ThreadId) -> bool {
        match self.pending(thread) {
            Pending::Op(Op::Store { at, .. }) => self.progress == Some(at.0),
            _ => false,
        }
    }

    fn propositions(&self) -> Vec<String> {
        let names = self.propositions.iter();
        names.map(|(name, ..)| name.clone()).collect()
    }

    fn holds(&mut self, proposition: usize) -> bool {
        let (_, variable, value) = self.propositions[proposition];
        self.memory[variable as usize] == value
    }
}
