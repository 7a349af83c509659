//! The worker: this program, started again for one model of one test.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use selvedge_core::Portable as _;
use selvedge_core::report::Counts;

use super::slice::{self, Search};
use super::wire::{self, Hello, Known, Order, Ready, Task};
use crate::model::Report;
use crate::rt::RustMachine;

thread_local! {
    static JOB: OnceCell<Option<Job>> = const { OnceCell::new() };
}

/// The purpose of this process.
struct Job {
    task: Task,
    hello: Hello,
    socket: UnixStream,
}

/// The role of a model of the running test in this process.
pub(super) enum Role {
    /// This process is no worker, or the model is to be explored as usual.
    None,
    /// The model is known to have come to this.
    Before(Report),
    /// The units of this model are to be explored.
    Serve(UnixStream),
}

/// The role of model `number` of the test `name` in this process.
pub(super) fn role(name: Option<&str>, number: usize) -> Role {
    JOB.with(|job| {
        let Some(job) = job.get_or_init(|| job_of(name)) else {
            return Role::None;
        };
        if number == job.task.model {
            let socket = job.socket.try_clone();
            return socket.map_or(Role::None, Role::Serve);
        }
        match job.hello.before.get(number).cloned().flatten() {
            Some(report) => Role::Before(report),
            None => Role::None,
        }
    })
}

/// Whether this process is a worker.
pub(super) fn is_worker() -> bool {
    std::env::var_os(wire::VARIABLE).is_some()
}

fn job_of(name: Option<&str>) -> Option<Job> {
    let task = Task::parse(&std::env::var(wire::VARIABLE).ok()?)?;
    if name != Some(&*task.test) {
        return None;
    }
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    let mut socket = UnixStream::from(stdin);
    let hello = wire::receive(&mut socket).ok()?;
    Some(Job {
        task,
        hello,
        socket,
    })
}

/// Explores units as long as there are orders, and ends the process.
pub(super) fn serve(search: Search, machine: &mut RustMachine, mut socket: UnixStream) -> ! {
    let _ = answer_all(search, machine, &mut socket);
    std::process::exit(0);
}

fn answer_all(
    search: Search,
    machine: &mut RustMachine,
    socket: &mut UnixStream,
) -> std::io::Result<()> {
    let Known { learned, origins } = wire::receive(socket)?;
    if origins {
        machine.note_sites();
    }
    machine.join_search();
    machine.learn(&learned);
    slice::first_execution(search, machine);
    let first = machine.first_execution();
    wire::send(socket, &Ready { first })?;
    let mut go_on = |_: &Counts| ControlFlow::Continue(());
    loop {
        let Order {
            unit,
            budget,
            pieces,
        } = wire::receive(socket)?;
        let sliced = slice::explore(search, machine, unit, (budget, pieces), &mut go_on);
        wire::send(socket, &sliced)?;
    }
}
