//! `selvedge resume`: continues a search that was stopped.

use crate::args::{self, Verify};
use crate::consent::Untrusted;
use crate::pool::checkpoint::Saved;
use crate::problem::{Problem, Status};
use crate::verify;

/// Continues the search that a file holds.
pub(crate) fn run(resume: &args::Resume) -> Result<Status, Problem> {
    let mut saved = Saved::read(&resume.checkpoint)?;
    let mut program = saved.subject.program.clone();
    let file = Untrusted {
        what: "checkpoint",
        command: "resume",
        path: &resume.checkpoint,
    };
    file.consent(&resume.compiler, &mut program)?;
    saved.subject.program = program.clone();
    let before = saved.state.work.counts().all();
    let verify = Verify {
        search: args::SearchOptions {
            jobs: resume.jobs,
            timeout: resume.timeout,
            max_executions: resume
                .max_executions
                .map(|more| before.saturating_add(more)),
            ..saved.subject.search.clone()
        },
        format: resume.format,
        trace_out: resume.trace_out.clone(),
        checkpoint: Some(resume.checkpoint.clone()),
        ..saved.subject.verify(&program)
    };
    verify::check(&verify, program, Some(saved))
}
