//! Files that say how to build a program, and may come from someone else.

use std::path::Path;

use crate::args::FileCompiler;
use crate::compile::{self, Program};
use crate::problem::Problem;
use crate::report::human;

/// A file that names a program.
pub(crate) struct Untrusted<'a> {
    /// Its name.
    pub(crate) what: &'static str,
    /// The command that reads it.
    pub(crate) command: &'static str,
    /// Where it is.
    pub(crate) path: &'a Path,
}

impl Untrusted<'_> {
    /// Such a file chooses no program to run, unless the user trusts it: the compiler is the one that
    /// `verify` would take, or the one that the user names now.
    pub(crate) fn consent(
        &self,
        compiler: &FileCompiler,
        program: &mut Program,
    ) -> Result<(), Problem> {
        if compiler.trust {
            return Ok(());
        }
        let Untrusted { what, command, .. } = self;
        let path = human::quoted(self.path);
        let named = compiler.cc.is_some();
        let theirs = std::mem::replace(&mut program.compiler, compiler.cc.clone());
        if let Some(theirs) = theirs.filter(|_| !named) {
            let theirs = human::quoted(theirs);
            return Err(
                Problem::request(format!("the {what} was written with --cc {theirs}"))
                    .note(format!(
                        "a {what} does not choose the program that compiles it"
                    ))
                    .help(format!("selvedge {command} {path} --cc {theirs}")),
            );
        }
        let recorded = program.recorded.iter().map(|recorded| &recorded.flags);
        let mut flags = recorded.chain([&program.flags]);
        match flags.find_map(|flags| compile::flags::untrusted(flags)) {
            None => Ok(()),
            Some(flag) => Err(
                Problem::request(format!("the {what} has the compiler flag {flag}"))
                    .note("the compiler could run another program or write a file because of it")
                    .help(format!(
                        "if the {what} is your own: selvedge {command} {path} --trust"
                    )),
            ),
        }
    }
}
