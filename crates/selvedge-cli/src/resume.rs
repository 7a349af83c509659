//! `selvedge resume`: a search that was stopped, from where it was.

use crate::args::{self, Sources, Verify};
use crate::consent::Untrusted;
use crate::pool::checkpoint::Saved;
use crate::problem::{Problem, Status};
use crate::verify;

/// Continues the search that a file holds.
pub(crate) fn run(resume: &args::Resume) -> Result<Status, Problem> {
    let mut saved = Saved::read(&resume.checkpoint)?;
    let mut program = saved.subject.program.clone();
    if !resume.trust {
        let file = Untrusted {
            what: "checkpoint",
            command: "resume",
            path: &resume.checkpoint,
        };
        file.consent(resume.cc.clone(), &mut program)?;
    }
    saved.subject.program = program.clone();
    let before = saved.state.work.counts().all();
    let verify = Verify {
        sources: Sources {
            stub: Vec::new(),
            files: program.files.clone(),
            flags: program.flags.clone(),
            cc: program.compiler.clone(),
        },
        search: args::Search {
            jobs: resume.jobs,
            timeout: resume.timeout,
            max_executions: resume.max_executions.map(|more| before + more),
            ..saved.subject.search.clone()
        },
        machine: saved.subject.machine.clone(),
        format: resume.format,
        trace_out: resume.trace_out.clone(),
        checkpoint: Some(resume.checkpoint.clone()),
        report: None,
        witness: None,
        explain: false,
        strict: program.strict,
        list_unsupported: false,
    };
    verify::check(&verify, program, Some(saved))
}
