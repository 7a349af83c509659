//! The final states of a test under a model, told as herd does.

use std::collections::BTreeMap;
use std::fmt;

use selvedge_core::Outcome as Performed;
use selvedge_core::graph::{Graph, Kind};
use selvedge_core::ids::{Location, ThreadId};
use selvedge_core::model::Model;
use selvedge_core::trust::{self, Ending, Observer, Settings};

use crate::code::from_memory;
use crate::condition::{Place, Quantifier};
use crate::machine::{LitmusMachine, Progress};
use crate::parse::Test;

/// The values that a test looks at, in the order in which they are shown.
pub type State = Vec<i64>;

/// The outcome of a test under a model.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The name of the test.
    pub name: String,
    /// The names of the values that each state has.
    pub names: Vec<String>,
    /// The final states, with whether the condition holds there.
    pub states: BTreeMap<State, bool>,
    /// How many executions there are, consistent ones, each once.
    pub executions: u64,
    quantifier: Quantifier,
    condition: String,
}

impl Outcome {
    /// How many states satisfy the condition, and how many do not.
    pub fn witnesses(&self) -> (usize, usize) {
        let positive = self.states.values().filter(|&&holds| holds).count();
        (positive, self.states.len() - positive)
    }

    /// Whether what the test says is so.
    pub fn is_validated(&self) -> bool {
        let (positive, negative) = self.witnesses();
        match self.quantifier {
            Quantifier::Exists => positive > 0,
            Quantifier::NotExists => positive == 0,
            Quantifier::Forall => negative == 0,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        let kind = match self.quantifier {
            Quantifier::Exists => "Allowed",
            Quantifier::NotExists => "Forbidden",
            Quantifier::Forall => "Required",
        };
        writeln!(f, "Test {name} {kind}")?;
        writeln!(f, "States {}", self.states.len())?;
        for state in self.states.keys() {
            let values = self.names.iter().zip(state);
            let values: Vec<_> = values.map(|(name, v)| format!("{name}={v};")).collect();
            writeln!(f, "{}", values.join(" "))?;
        }
        let validated = if self.is_validated() { "Ok" } else { "No" };
        let (positive, negative) = self.witnesses();
        writeln!(f, "{validated}\nWitnesses")?;
        writeln!(f, "Positive: {positive} Negative: {negative}")?;
        writeln!(f, "Condition {} {}", self.quantifier, self.condition)?;
        let often = match (positive, negative) {
            (0, _) => "Never",
            (_, 0) => "Always",
            _ => "Sometimes",
        };
        writeln!(f, "Observation {name} {often} {positive} {negative}")
    }
}

/// Runs `test` under the model `C`.
pub fn run<C: Model>(test: &Test) -> Outcome {
    let mut places = test.shown.clone();
    test.condition.formula.places(&mut places);
    places.sort_unstable();
    places.dedup();
    let mut collect = Collect {
        test,
        places: &places,
        states: BTreeMap::new(),
    };
    let mut machine = LitmusMachine::new(test);
    let report = trust::search::<C, _>(&mut machine, Settings::default(), &mut collect);
    debug_assert_eq!(report.ending, Ending::Complete);
    Outcome {
        name: test.name.clone(),
        names: places.iter().map(|&place| test.place_name(place)).collect(),
        states: collect.states,
        executions: report.counts.executions,
        quantifier: test.condition.quantifier,
        condition: test.condition.text.clone(),
    }
}

struct Collect<'a> {
    test: &'a Test,
    places: &'a [Place],
    states: BTreeMap<State, bool>,
}

impl<M> Observer<M> for Collect<'_> {
    fn complete(&mut self, graph: &Graph) {
        let threads = self.test.threads.iter().enumerate();
        let ends: Vec<Progress> = threads
            .map(|(index, thread)| {
                let mut progress = Progress::new(thread);
                for &slot in graph.thread(ThreadId(index as u32 + 1)) {
                    let event = graph.event(slot);
                    if event.kind == Kind::ReadHalf {
                        continue;
                    }
                    let wrote = (event.kind == Kind::WriteHalf).then_some(event.wrote);
                    let read = event.read;
                    progress.perform(thread, Performed { read, wrote });
                }
                progress
            })
            .collect();
        let value = |place: Place| match place {
            Place::Register(thread, register) => ends[thread].registers[register],
            Place::Variable(variable) => match graph.coherence(Location(variable)).last() {
                Some(&write) => from_memory(graph.event(write).wrote),
                None => self.test.variables[variable as usize].1,
            },
        };
        let holds = self.test.condition.formula.holds(&value);
        let state = self.places.iter().map(|&place| value(place)).collect();
        self.states.insert(state, holds);
    }
}
