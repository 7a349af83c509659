//! The work of a worker, wherever it runs.

use std::ffi::CString;

use selvedge_runtime::{LoadError, NativeMachine, Plain, Settings, Unroll};

use super::advise::Advisor;
use super::counters::Counters;
use super::estimate;
use super::explore::Exploration;
use super::follow;
use super::journal::Watched;
use super::libraries;
use super::measure;
use super::orders::Order;
use super::protocol::{Reply, Request, Task, Unloadable};
use super::prove::Prover;
use crate::args;
use crate::describe::Binary;
use crate::explorer::Explorer;

/// Does what `request` asks for and tells `reply` about it. Further orders come from `orders`.
pub(crate) fn perform(
    request: &Request,
    counters: &Counters,
    reply: &dyn Fn(Reply),
    orders: &mut dyn FnMut() -> Option<Order>,
) {
    let settings = Settings {
        stateful: request.stateful,
        propositions: request.asked.propositions.clone(),
        progress: request.asked.progress,
        unroll: unroll(request),
        ..for_task(
            &request.task,
            settings(&request.machine, request.show_output),
        )
    };
    let process = std::process::id();
    let loaded = NativeMachine::load(&request.library, settings);
    if std::process::id() != process {
        // A copy that the program has made. It speaks for nobody.
        std::process::exit(0);
    }
    let machine = match loaded {
        Ok(machine) => machine,
        Err(error) => return reply(Reply::Unloadable(unloadable(error))),
    };
    reply(Reply::Loaded);
    let binary = Binary::read(&request.library, request.machine.shown);
    let mut machine = Watched::new(machine, counters);
    match &request.task {
        Task::Search(search) => {
            let exploration = Exploration {
                search,
                binary: &binary,
                counters,
                reply,
            };
            reply(Reply::Searched(exploration.run(&mut machine)));
        }
        Task::Slices(search, only) => {
            let exploration = Exploration {
                search,
                binary: &binary,
                counters,
                reply,
            };
            let mut only = only.as_deref().cloned();
            match only.is_some() {
                true => exploration.serve(&mut machine, &mut || only.take()),
                false => exploration.serve(&mut machine, orders),
            }
        }
        Task::Advise(model, bug) => {
            let advisor = Advisor {
                binary: &binary,
                counters,
            };
            if let Some(advice) = advisor.advise(&mut machine, *model, bug) {
                reply(Reply::Advised(advice));
            }
        }
        Task::Measure(explorer) => {
            reply(Reply::Measured(measure::measure(&mut machine, explorer)));
        }
        Task::Estimate(sampling) => {
            let sampled = estimate::sample(&mut machine, &binary, counters, sampling);
            reply(Reply::Sampled(Box::new(sampled)));
        }
        Task::Relax(relax) => {
            let prover = Prover {
                request: relax,
                binary: &binary,
                counters,
                reply,
            };
            let relaxed = prover.run(&mut machine, request.machine.plain);
            reply(Reply::Relaxed(Box::new(relaxed)));
        }
        Task::Libraries => {
            reply(Reply::Libraries(libraries::loaded(&request.library)));
        }
        Task::Replay(bugs) => {
            for bug in bugs {
                reply(Reply::Replayed(follow::schedule(
                    &mut machine,
                    bug,
                    &binary,
                    request.stateful,
                )));
            }
        }
    }
    reply(Reply::Done);
}

/// `settings` with what depends on the task.
fn for_task(task: &Task, settings: Settings) -> Settings {
    match task {
        Task::Search(search) | Task::Slices(search, _) => for_search(&search.explorer, settings),
        Task::Estimate(sampling) => for_search(&Explorer::Trust(sampling.model), settings),
        Task::Measure(explorer) => for_explorer(explorer, settings),
        Task::Advise(..) | Task::Libraries => settings,
        // The schedule may come from an explorer that skips nothing.
        Task::Replay(_) => Settings {
            skip_retries: false,
            ..settings
        },
        // The executable has to keep to whatever it does.
        Task::Relax(_) => Settings {
            skip_retries: false,
            enforced: true,
            ..settings
        },
    }
}

fn for_search(explorer: &Explorer, settings: Settings) -> Settings {
    Settings {
        fences: explorer.model() != args::Model::Ra,
        watch_locks: explorer.descriptor().watches_locks,
        ..for_explorer(explorer, settings)
    }
}

fn for_explorer(explorer: &Explorer, settings: Settings) -> Settings {
    Settings {
        skip_retries: explorer.descriptor().skips_retries,
        ..settings
    }
}

fn settings(machine: &args::ProgramOptions, show_output: bool) -> Settings {
    Settings {
        plain: match machine.plain {
            args::Plain::Race => Plain::Race,
            args::Plain::Sc => Plain::Sc,
        },
        unroll: Unroll::default(),
        stack_size: machine.stack_size,
        heap_limit: machine.heap_limit,
        max_threads: machine.max_threads,
        watchdog: machine.watchdog,
        spurious_wakeups: machine.spurious_wakeups,
        spurious_failures: machine.spurious_failures,
        reuse_memory: machine.reuse_memory,
        fences: true,
        skip_retries: true,
        watch_locks: false,
        enforced: false,
        merged: machine.merged.clone(),
        show_output,
        check_leaks: machine.leaks,
        stateful: false,
        propositions: Vec::new(),
        progress: false,
        arguments: strings(machine.args.iter().flat_map(|words| &words.0)),
        environment: strings(&machine.env),
        stdin: machine.stdin.clone(),
        check_status: machine.check_status,
        filled: selvedge_confine::keep,
    }
}

/// The strings that the program is given. No string from a command line contains a zero byte.
fn strings<'a>(given: impl IntoIterator<Item = &'a String>) -> Vec<CString> {
    let given = given.into_iter();
    given
        .filter_map(|string| CString::new(string.as_str()).ok())
        .collect()
}

/// The bounds of loops, with the symbols of the functions that the user names.
fn unroll(request: &Request) -> Unroll {
    let named = request.machine.rounds_of_functions();
    let binary = (!named.is_empty()).then(|| Binary::read(&request.library, request.machine.shown));
    let symbols = |(name, rounds): (String, u32)| {
        let symbols = binary
            .iter()
            .flat_map(|binary| binary.functions_named(&name));
        let symbols: Vec<_> = symbols.map(|symbol| (symbol, rounds)).collect();
        symbols
    };
    Unroll {
        rounds: request.machine.rounds(),
        functions: named.into_iter().flat_map(symbols).collect(),
    }
}

fn unloadable(error: LoadError) -> Unloadable {
    match error {
        LoadError::Constructor(failure) => Unloadable::Fails(failure),
        LoadError::Io(_) | LoadError::Busy => Unloadable::System(error.to_string()),
        LoadError::Format(_)
        | LoadError::NoMain
        | LoadError::Unsupported(_)
        | LoadError::Link(_)
        | LoadError::Refused(_) => Unloadable::Refused(error.to_string()),
    }
}
