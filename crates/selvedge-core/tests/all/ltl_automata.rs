//! Automata against the meaning of their formulas, on words that repeat.

use std::convert::Infallible;

use selvedge_core::ltl::{Atom, Automaton, Find, Graph, Lasso, Move, find, parse};
use selvedge_core::random::Random;
use selvedge_testkit::{damaged, damaged_inputs, holds_on_word, random_formula};

/// One word: its letters, and the one that follows the last.
struct Word {
    letters: Vec<u64>,
    back: usize,
}

impl Graph for Word {
    type Stop = Infallible;

    fn moves(&mut self, state: u32, into: &mut Vec<Move>) -> Result<(), Infallible> {
        let next = state as usize + 1;
        let last = next == self.letters.len();
        into.clear();
        into.push(Move {
            to: if last { self.back } else { next } as u32,
            thread: None,
            choice: 0,
            progress: false,
        });
        Ok(())
    }

    fn label(&self, state: u32) -> u64 {
        self.letters[state as usize]
    }
}

impl Word {
    fn random(random: &mut Random, atoms: u64) -> Word {
        let length = 1 + random.below(6) as usize;
        Word {
            letters: (0..length).map(|_| random.below(1 << atoms)).collect(),
            back: random.below(length as u64) as usize,
        }
    }

    fn is_accepted(&mut self, automaton: &Automaton, atoms: &[Atom], complete_only: bool) -> bool {
        let how = Find {
            complete_only,
            ..Find::default()
        };
        let Ok(lasso) = find(self, automaton, atoms, how);
        if let Some(Lasso { prefix, cycle, .. }) = &lasso {
            assert!(prefix.len() + cycle.len() >= self.letters.len());
            assert!(!cycle.is_empty());
        }
        lasso.is_some()
    }
}

fn names(count: usize) -> Vec<Atom> {
    let names = ["p", "q", "r"];
    names[..count]
        .iter()
        .map(|name| Atom::Named((*name).to_owned()))
        .collect()
}

#[test]
fn automata_accept_the_words_in_which_the_formula_holds() {
    let atoms = names(3);
    let mut random = Random::new(7);
    let (mut checks, mut held) = (0, 0);
    for round in 0..3000 {
        let formula = random_formula(&mut random, &atoms, 1 + (round % 4));
        let automaton = Automaton::new(&formula, true).expect("small formulas have automata");
        let negation = Automaton::new(&formula, false).expect("and so have their negations");
        for _ in 0..10 {
            let mut word = Word::random(&mut random, 3);
            let letters = word.letters.clone();
            let value = |atom: &Atom, at: usize| {
                let bit = atoms.iter().position(|known| known == atom).unwrap();
                letters[at] >> bit & 1 == 1
            };
            let holds = holds_on_word(&formula, letters.len(), word.back, &value);
            for complete_only in [false, true] {
                let told = word.is_accepted(&automaton, &atoms, complete_only);
                assert_eq!(told, holds, "{formula} on {letters:?} from {}", word.back);
                let told = word.is_accepted(&negation, &atoms, complete_only);
                assert_eq!(told, !holds, "!{formula} on {letters:?} from {}", word.back);
            }
            checks += 1;
            held += u32::from(holds);
        }
    }
    assert_eq!(checks, 30_000);
    assert!((5_000..25_000).contains(&held), "{held}");
}

#[test]
fn usual_formulas_have_small_automata() {
    for (text, states, sets) in [
        ("G p", 2, 1),
        ("F p", 1, 0),
        ("G F p", 2, 1),
        ("F G p", 1, 1),
        ("G (p -> F q)", 2, 1),
        ("G (p -> X (q U r))", 3, 1),
        ("p U q", 2, 0),
        ("p W q", 2, 1),
        ("G F p -> G F q", 3, 2),
        ("G F p && G F q", 5, 2),
        ("true", 1, 0),
    ] {
        let automaton = Automaton::new(&parse(text).unwrap(), false).unwrap();
        let size = (automaton.size(), automaton.sets());
        assert_eq!(size, (states, sets), "the negation of {text}");
    }
}

#[test]
fn absurd_formulas_are_refused() {
    let part = |n: usize| format!("(G F p{n} -> F (q{n} U r{n}))");
    let text: Vec<String> = (0..20).map(part).collect();
    let formula = parse(&text.join(" && ")).unwrap();
    assert!(Automaton::new(&formula, true).is_err());
    let many: Vec<String> = (0..65).map(|n| format!("F p{n}")).collect();
    let error = Automaton::new(&parse(&many.join(" || ")).unwrap(), false).unwrap_err();
    assert!(error.0.contains("65 propositions"), "{error:?}");
}

#[test]
fn damaged_formulas_are_refused_or_read_but_never_fatal() {
    let samples: [&[u8]; 3] = [
        b"G (request -> F granted) && !(T1.moves U {x == 1})",
        b"always (\"a b\" implies eventually any.progress) or X true",
        b"[] <> {s[0] == '}'} <-> (a W b) R (c M T2.ended)",
    ];
    let words = [
        "(", ")", "!", "X", "G", "F", "U", "->", "<->", "{", "}", "\"", "T1.", "&&",
    ];
    let mut random = Random::new(1);
    for _ in 0..damaged_inputs(20_000) {
        let bytes = damaged(&mut random, &samples, &words);
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let _ = parse(text);
        }
    }
}
