//! Linear temporal logic by its definition, and random formulas.

use selvedge_core::ltl::{Atom, Binary, Formula, Unary};
use selvedge_core::random::Random;

/// A random formula over `atoms` with at most so many operators on each way from the root.
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

/// Whether `formula` holds at the start of the word whose letters are `0, 1, …, length - 1` and then again and again
/// those from `back` on. `holds` tells which atoms hold at a letter.
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
