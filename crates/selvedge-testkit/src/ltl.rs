//! Linear temporal logic by its definition, and random formulas.

use selvedge_core::ltl::{Atom, Binary, Formula, Unary};
use selvedge_core::random::Random;

use crate::program::{Instruction, Program};

/// A random formula over `atoms` with at most this many operators on each way from the root.
pub fn random_formula(random: &mut Random, atoms: &[Atom], depth: u32) -> Formula {
    const UNARY: [Unary; 4] = [Unary::Not, Unary::Next, Unary::Finally, Unary::Globally];
    const BINARY: [Binary; 8] = [
        Binary::And,
        Binary::Or,
        Binary::Implies,
        Binary::Equals,
        Binary::Until,
        Binary::WeakUntil,
        Binary::Release,
        Binary::StrongRelease,
    ];
    if depth == 0 || random.once_in(6) {
        if random.once_in(12) {
            return Formula::Constant(random.once_in(2));
        }
        let atom = random.below(atoms.len() as u64) as usize;
        return Formula::Atom(atoms[atom].clone());
    }
    let mut part = || random_formula(random, atoms, depth - 1);
    let (left, right) = (part(), part());
    match random.below(9) {
        0..4 => Formula::unary(UNARY[random.below(4) as usize], left),
        _ => Formula::binary(BINARY[random.below(8) as usize], left, right),
    }
}

/// Whether `formula` holds at the start of the word whose letters are `0, 1, …, length - 1` and
/// then again and again those from `back` on. `holds` tells which atoms hold at a letter.
pub fn holds_on_word(
    formula: &Formula,
    length: usize,
    back: usize,
    holds: &dyn Fn(&Atom, usize) -> bool,
) -> bool {
    Word {
        length,
        back,
        holds,
    }
    .values(formula)[0]
}

struct Word<'h> {
    length: usize,
    back: usize,
    holds: &'h dyn Fn(&Atom, usize) -> bool,
}

impl Word<'_> {
    /// Whether the formula holds at each of the letters.
    fn values(&self, formula: &Formula) -> Vec<bool> {
        let all = 0..self.length;
        match formula {
            Formula::Constant(value) => vec![*value; self.length],
            Formula::Atom(atom) => all.map(|at| (self.holds)(atom, at)).collect(),
            Formula::Unary(operator, operand) => {
                let operand = self.values(operand);
                all.map(|at| self.unary(*operator, &operand, at)).collect()
            }
            Formula::Binary(operator, left, right) => {
                let (left, right) = (self.values(left), self.values(right));
                all.map(|at| self.binary(*operator, &left, &right, at))
                    .collect()
            }
        }
    }

    /// The letters from `at` on; twice the length shows all there is to see.
    fn from(&self, at: usize) -> impl Iterator<Item = usize> + use<> {
        let (length, back) = (self.length, self.back);
        let next = move |&at: &usize| Some(if at + 1 < length { at + 1 } else { back });
        std::iter::successors(Some(at), next).take(2 * length)
    }

    fn unary(&self, operator: Unary, operand: &[bool], at: usize) -> bool {
        match operator {
            Unary::Not => !operand[at],
            Unary::Next => self.from(at).nth(1).is_some_and(|next| operand[next]),
            Unary::Finally => self.from(at).any(|later| operand[later]),
            Unary::Globally => self.from(at).all(|later| operand[later]),
        }
    }

    fn binary(&self, operator: Binary, left: &[bool], right: &[bool], at: usize) -> bool {
        let until = |left: &dyn Fn(usize) -> bool, right: &dyn Fn(usize) -> bool| {
            let end = self.from(at).position(right);
            end.is_some_and(|end| self.from(at).take(end).all(left))
        };
        match operator {
            Binary::And => left[at] && right[at],
            Binary::Or => left[at] || right[at],
            Binary::Implies => !left[at] || right[at],
            Binary::Equals => left[at] == right[at],
            Binary::Until => until(&|at| left[at], &|at| right[at]),
            Binary::WeakUntil => {
                self.from(at).all(|at| left[at]) || until(&|at| left[at], &|at| right[at])
            }
            Binary::Release => !until(&|at| !left[at], &|at| !right[at]),
            Binary::StrongRelease => until(&|at| right[at], &|at| left[at] && right[at]),
        }
    }
}

/// The variable that the programs of [`random_server`] store to where they mark progress.
pub const MARK: u32 = 5;
const MUTEX: u32 = 10;

/// A random program of one to three threads, most of which never end. Variables 0 and 1 hold small
/// numbers, variable 10 is a mutex.
pub fn random_server(random: &mut Random) -> Program {
    let workers = 1 + random.below(2) as u32;
    let codes = (1..=workers).map(|worker| random_loop(random, worker));
    let codes: Vec<Vec<Instruction>> = codes.collect();
    let mut program = Program::of_workers(codes);
    if random.once_in(3) {
        let joins = workers as usize;
        program.threads[0].truncate(joins);
        let own = random_loop(random, 0);
        // Jumps are to places in the code.
        program.threads[0].extend(own.into_iter().map(|line| match line {
            Instruction::JumpIf(register, value, target) => {
                Instruction::JumpIf(register, value, target + joins)
            }
            line => line,
        }));
    }
    program
}

/// A few steps, then usually back to the first of them.
fn random_loop(random: &mut Random, thread: u32) -> Vec<Instruction> {
    let mut code = Vec::new();
    let mut locked = false;
    // The first line is one that everybody can see, so that no thread goes round unseen.
    for _ in 0..1 + random.below(3) {
        let variable = random.below(2) as u32;
        match random.below(8) {
            0 | 1 => code.push(Instruction::Store(variable, u128::from(random.below(2)))),
            2 => code.push(Instruction::memory(
                1,
                variable,
                selvedge_core::op::Rmw::Xor(1),
            )),
            3 => code.push(Instruction::compare_exchange(1, variable, 0, 1)),
            4 if !locked => {
                code.push(Instruction::lock(MUTEX, thread));
                locked = true;
            }
            5 => code.push(Instruction::Choose(0, 2)),
            6 => code.push(Instruction::Store(MARK, 0)),
            _ => {
                let (value, back) = (u128::from(random.below(2)), code.len());
                code.push(Instruction::Load(0, variable));
                code.push(match random.below(2) {
                    0 => Instruction::JumpIf(0, value, back),
                    _ => Instruction::JumpIf(0, value, code.len() + 2),
                });
                code.push(Instruction::Store(1 - variable, value));
            }
        }
    }
    if locked && !random.once_in(8) {
        code.push(Instruction::unlock(MUTEX));
    }
    if !random.once_in(5) {
        // Nothing writes register 2, so that this always jumps.
        code.push(Instruction::JumpIf(2, 0, 0));
    }
    code
}
