//! Where control goes in the machine code of one function.

use std::collections::{BTreeSet, HashMap};

use iced_x86::{FlowControl, Instruction};

use super::Callees;

/// The flow graph of a function, over the indices of its instructions.
pub(super) struct Flow {
    pub(super) successors: Vec<Vec<usize>>,
    pub(super) leaders: BTreeSet<usize>,
    /// Whether every edge is known. Otherwise there are more edges than control can take.
    pub(super) exact: bool,
}

impl Flow {
    pub(super) fn of(instructions: &[Instruction], callees: &Callees) -> Flow {
        let index_of: HashMap<u64, usize> = instructions
            .iter()
            .enumerate()
            .map(|(index, instruction)| (instruction.ip(), index))
            .collect();
        let count = instructions.len();
        let mut leaders = BTreeSet::from([0]);
        let mut successors = Vec::with_capacity(count);
        let mut exact = true;
        let mut indirect = Vec::new();
        let mut landings = Vec::new();
        for (index, instruction) in instructions.iter().enumerate() {
            let next = (index + 1 < count).then_some(index + 1);
            let target = index_of.get(&instruction.near_branch_target()).copied();
            let (falls_through, jumps) = match instruction.flow_control() {
                FlowControl::Call => {
                    let callee = instruction.near_branch_target() as usize;
                    if callees.twice.contains(&callee) {
                        exact = false;
                        landings.extend(next);
                    }
                    (!callees.endings.contains(&callee), false)
                }
                FlowControl::Next | FlowControl::IndirectCall => (true, false),
                FlowControl::ConditionalBranch => (true, true),
                FlowControl::UnconditionalBranch => (false, true),
                FlowControl::Return | FlowControl::Exception => (false, false),
                _ => {
                    indirect.push(index);
                    (false, false)
                }
            };
            if jumps {
                // A jump into another function is a call that does not come back.
                exact &= target.is_some();
                leaders.extend(target);
            }
            if jumps || !falls_through {
                leaders.extend(next);
            }
            let next = next.filter(|_| falls_through);
            successors.push(next.into_iter().chain(target.filter(|_| jumps)).collect());
        }
        leaders.extend(&landings);
        for &index in &indirect {
            exact = false;
            successors[index] = leaders.iter().copied().collect();
        }
        let mut flow = Flow {
            successors,
            leaders,
            exact,
        };
        flow.connect_landings(instructions, landings);
        flow
    }

    /// Any call may lead to where exceptions land, which is code that nothing jumps to, and to where
    /// a function that returns twice may return again.
    fn connect_landings(&mut self, instructions: &[Instruction], mut landings: Vec<usize>) {
        let mut reached = vec![false; instructions.len()];
        let mut open = vec![0];
        loop {
            while let Some(index) = open.pop() {
                if !std::mem::replace(&mut reached[index], true) {
                    open.extend(&self.successors[index]);
                }
            }
            let Some(orphan) = reached.iter().position(|&reached| !reached) else {
                break;
            };
            landings.push(orphan);
            open.push(orphan);
        }
        for (index, instruction) in instructions.iter().enumerate() {
            if is_call(instruction) {
                self.successors[index].extend(&landings);
            }
        }
        self.leaders.extend(landings);
    }
}

pub(super) fn is_call(instruction: &Instruction) -> bool {
    let flow = instruction.flow_control();
    matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
}
