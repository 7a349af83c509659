//! The needs of the linked program besides its own code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use object::{File, Object as _, ObjectSymbol as _};
use selvedge_runtime::symbols::{self, Symbol as External};

use super::findings::{Finding, Findings, Trap};
use super::{Inspection, User, is_ifunc, parse, read, readable};
use crate::compile::Object;
use crate::problem::Problem;

/// Functions that a program calls and that have no definition, and all else about what it needs that cannot
/// be checked.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// Functions for which a stub has to take its place.
    pub(crate) stubs: Vec<String>,
    /// The code that cannot be checked.
    pub(crate) findings: Vec<Finding>,
}

/// Inspects the linked program: what it still needs must be something that the runtime models.
pub(crate) fn library(library: &Path, objects: &[Object]) -> Result<Needed, Problem> {
    let bytes = read(library)?;
    let file = parse(library, &bytes)?;
    let mut findings = Findings::default();
    let mut stubs = Vec::new();
    let missing = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined() && !symbol.is_weak());
    let names: BTreeSet<&str> = missing.filter_map(|symbol| symbol.name().ok()).collect();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        let (what, help) = match symbols::classify(name) {
            External::Known | External::Provided => continue,
            // The functions that use it have a trap.
            External::Refused(_) if symbols::is_variable(name) => continue,
            External::Refused(reason) => (format!("calls {}: {reason}", readable(name)), ""),
            External::Unknown => (
                format!("needs {}, which Selvedge does not model", readable(name)),
                "give its source file to selvedge verify, or a stub with --stub FILE",
            ),
        };
        let users = users_of(name, objects);
        // A name that is called somewhere is a function; one that is never called may be a variable.
        let called = users.iter().any(|user| user.call);
        let trap = if called { Trap::Callee } else { Trap::Nothing };
        if called {
            stubs.push(name.to_owned());
        }
        let places = users.into_iter().map(|user| user.place);
        let nowhere = findings.count();
        for place in places {
            findings.add(Finding {
                place,
                what: what.clone(),
                help: help.to_owned(),
                trap: trap.clone(),
            });
        }
        if findings.count() == nowhere {
            findings.add(Finding {
                place: String::new(),
                what,
                help: help.to_owned(),
                trap,
            });
        }
    }
    if file
        .dynamic_symbols()
        .chain(file.symbols())
        .any(|symbol| is_ifunc(&symbol))
    {
        findings.add(Finding {
            place: String::new(),
            what: "chooses functions while it is loaded (ifunc)".to_owned(),
            help: String::new(),
            trap: Trap::Nothing,
        });
    }
    let findings = findings.into_list();
    Ok(Needed { stubs, findings })
}

/// Where the user's code refers to `name`.
fn users_of(name: &str, objects: &[Object]) -> Vec<User> {
    let users = objects.iter().filter_map(|object| {
        let bytes = fs::read(&object.path).ok()?;
        let file = File::parse(&*bytes).ok()?;
        let mut findings = Findings::default();
        Some(Inspection::new(&file, object, &mut findings).references(name))
    });
    users.flatten().collect()
}
