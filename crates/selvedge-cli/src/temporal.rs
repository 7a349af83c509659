//! Properties of executions that never end: `--ltl`, `--property` and `--fair`.

use std::fs;

use object::{File, Object as _, ObjectSymbol as _};
use selvedge_core::ltl::{self, Atom, Formula, Property};
use serde::{Deserialize, Serialize};

use crate::args::{self, ReadyMade};
use crate::compile::Build;
use crate::problem::Problem;

/// The questions to the program besides its behaviour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Propositions: named ones and expressions.
    pub(crate) propositions: Vec<Atom>,
    /// Whether progress marks are steps.
    pub(crate) progress: bool,
}

impl Asked {
    /// The subjects of a property.
    pub(crate) fn by(property: &Property) -> Asked {
        let Property::Formula(formula) = property else {
            return Asked {
                propositions: Vec::new(),
                progress: true,
            };
        };
        let (mut propositions, mut progress) = (Vec::new(), false);
        for atom in formula.atoms() {
            match atom {
                Atom::Named(_) | Atom::Expression(_) => propositions.push(atom),
                Atom::Progress(_) => progress = true,
                _ => {}
            }
        }
        Asked {
            propositions,
            progress,
        }
    }

    /// The expressions among the propositions.
    pub(crate) fn expressions(&self) -> Vec<String> {
        let expression = |atom: &Atom| match atom {
            Atom::Expression(text) => Some(text.clone()),
            _ => None,
        };
        self.propositions.iter().filter_map(expression).collect()
    }
}

/// The question about executions that never end, as JSON tells it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Question {
    /// The formula, or what a ready-made property is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    formula: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    property: Option<&'static str>,
    /// Whether only weakly fair executions count.
    fair: bool,
}

impl Question {
    /// The kind of execution that a search looks for.
    pub(crate) fn of(settings: &ltl::Settings) -> Question {
        let (formula, property) = match &settings.property {
            Property::Formula(formula) => (Some(formula.to_string()), None),
            Property::Progress => (None, Some("non-progress")),
            Property::NoStarvation { .. } => (None, Some("starvation")),
        };
        Question {
            formula,
            property,
            fair: settings.fair,
        }
    }
}

/// The property that a request asks for, if it asks for one.
pub(crate) fn asked_for(search: &args::SearchOptions) -> Result<Option<Property>, Problem> {
    match (&search.ltl, search.property) {
        (Some(text), _) => parse(text).map(|formula| Some(Property::Formula(formula))),
        (None, Some(ReadyMade::NonProgress)) => Ok(Some(Property::Progress)),
        (None, Some(ReadyMade::Starvation)) => Ok(Some(Property::NoStarvation { marks: false })),
        (None, None) => Ok(None),
    }
}

fn parse(text: &str) -> Result<Formula, Problem> {
    ltl::parse(text).map_err(|error| {
        let column = text[..error.at].chars().count();
        Problem::request(format!("--ltl: {}", error.message))
            .note(format!("{text}\n{:column$}^", ""))
            .help("for example: --ltl 'G (request -> F granted)', or with expressions: --ltl 'G F {x == 1}'")
    })
}

/// Sees whether the program has what the property speaks of.
pub(crate) fn settle(property: &mut Property, build: &Build) -> Result<(), Problem> {
    match property {
        Property::Progress if !has_marks(build) => Err(Problem::request(
            "--property non-progress: the program has no progress marks",
        )
        .help("call selvedge_progress() where the program makes progress")),
        Property::Progress => Ok(()),
        Property::NoStarvation { marks } => {
            *marks = has_marks(build);
            Ok(())
        }
        Property::Formula(formula) => {
            let library = fs::read(&build.library).unwrap_or_default();
            for atom in formula.atoms() {
                if let Atom::Named(name) = &atom
                    && !is_written(&library, name)
                {
                    return Err(Problem::request(format!(
                        "--ltl: nothing in the program is named \"{name}\""
                    ))
                    .help(format!(
                        "tell it in the program, selvedge_prop(\"{name}\", …), or write an expression: {{{name}}}"
                    )));
                }
                if matches!(atom, Atom::Progress(_)) && !has_marks(build) {
                    return Err(Problem::request(format!(
                        "--ltl: {atom}: the program has no progress marks"
                    ))
                    .help("call selvedge_progress() where the program makes progress"));
                }
            }
            Ok(())
        }
    }
}

/// Whether a string constant of the program may be `name`.
fn is_written(library: &[u8], name: &str) -> bool {
    let mut wanted = name.as_bytes().to_vec();
    wanted.push(0);
    library.windows(wanted.len()).any(|bytes| bytes == wanted)
}

/// Whether some file of the program calls `selvedge_progress`.
fn has_marks(build: &Build) -> bool {
    build.objects().iter().any(|object| {
        let bytes = fs::read(&object.path).unwrap_or_default();
        File::parse(&*bytes).is_ok_and(|file| {
            let mut symbols = file.symbols();
            symbols.any(|symbol| symbol.is_undefined() && symbol.name() == Ok("selvedge_progress"))
        })
    })
}

/// The message of a check that finds nothing wrong.
pub(crate) fn verified(settings: &ltl::Settings) -> String {
    let fair = if settings.fair { "weakly fair " } else { "" };
    match &settings.property {
        Property::Formula(formula) => format!("{formula} holds in every {fair}execution"),
        Property::Progress => {
            format!("the program makes progress again and again in every {fair}execution")
        }
        Property::NoStarvation { .. } => format!("no thread starves in any {fair}execution"),
    }
}
