//! Relations over a few events as boolean matrices, with the operators that axioms are written in.

/// A set of events, one bit each.
pub type Set = u64;

/// A binary relation over at most 64 events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    rows: Vec<Set>,
}

impl Relation {
    /// The largest number of events.
    pub const LARGEST: usize = 64;

    /// The pairs of numbers below `size` that `holds` is true for.
    pub fn new(size: usize, holds: impl Fn(usize, usize) -> bool) -> Relation {
        assert!(size <= Self::LARGEST, "too many events for a brute force");
        let row = |a| (0..size).filter(|&b| holds(a, b)).map(|b| 1 << b).sum();
        Relation {
            rows: (0..size).map(row).collect(),
        }
    }

    /// The given pairs.
    pub fn of_pairs(size: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Relation {
        let mut rows = vec![0; size];
        for (a, b) in pairs {
            rows[a] |= 1 << b;
        }
        Relation { rows }
    }

    /// The identity on `set`.
    pub fn on(size: usize, set: Set) -> Relation {
        Relation {
            rows: (0..size).map(|a| set & 1 << a).collect(),
        }
    }

    fn map2(&self, other: &Relation, f: impl Fn(Set, Set) -> Set) -> Relation {
        let rows = self.rows.iter().zip(&other.rows);
        Relation {
            rows: rows.map(|(&a, &b)| f(a, b)).collect(),
        }
    }

    /// Union.
    pub fn or(&self, other: &Relation) -> Relation {
        self.map2(other, |a, b| a | b)
    }

    /// Intersection.
    pub fn and(&self, other: &Relation) -> Relation {
        self.map2(other, |a, b| a & b)
    }

    /// Difference.
    pub fn minus(&self, other: &Relation) -> Relation {
        self.map2(other, |a, b| a & !b)
    }

    /// Composition: `self ; other`.
    pub fn then(&self, other: &Relation) -> Relation {
        let row = |&row: &Set| {
            let next = members(row).map(|b| other.rows[b]);
            next.fold(0, |union, next| union | next)
        };
        Relation {
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// `self?`: reflexive closure.
    pub fn maybe(&self) -> Relation {
        let rows = self.rows.iter().enumerate();
        Relation {
            rows: rows.map(|(a, &row)| row | 1 << a).collect(),
        }
    }

    /// `self⁺`: transitive closure.
    pub fn plus(&self) -> Relation {
        let mut rows = self.rows.clone();
        for middle in 0..rows.len() {
            let after = rows[middle];
            for row in &mut rows {
                if *row >> middle & 1 == 1 {
                    *row |= after;
                }
            }
        }
        Relation { rows }
    }

    /// `self*`: reflexive transitive closure.
    pub fn star(&self) -> Relation {
        self.plus().maybe()
    }

    /// `self⁻¹`.
    pub fn inverse(&self) -> Relation {
        let rows = self.rows.iter().enumerate();
        let pairs = rows.flat_map(|(a, &row)| members(row).map(move |b| (b, a)));
        Relation::of_pairs(self.rows.len(), pairs)
    }

    /// `[from] ; self ; [to]`.
    pub fn between(&self, from: Set, to: Set) -> Relation {
        let rows = self.rows.iter().enumerate();
        let row = |(a, &row): (usize, &Set)| if from >> a & 1 == 1 { row & to } else { 0 };
        Relation {
            rows: rows.map(row).collect(),
        }
    }

    /// Whether `a` is related to `b`.
    pub fn has(&self, a: usize, b: usize) -> bool {
        self.rows[a] >> b & 1 == 1
    }

    /// Whether no pair is in it.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(|&row| row == 0)
    }

    /// Whether nothing is related to itself.
    pub fn is_irreflexive(&self) -> bool {
        (0..self.rows.len()).all(|a| !self.has(a, a))
    }

    /// Whether it has no cycle.
    pub fn is_acyclic(&self) -> bool {
        self.plus().is_irreflexive()
    }
}

/// The events in `set`.
fn members(mut set: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        first
    })
}
