//! The worker process: the command runs itself again, prepared, with a socket for standard input.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, dup2_stdin, getppid};
use selvedge_runtime::process::SharedCounters;

use super::counters::Counters;
use super::protocol::{Reply, Request};
use super::wire;
use crate::args;
use crate::problem::Status;

/// The file of the running program, also if it has been replaced since.
pub(super) const OURSELVES: &str = "/proc/self/exe";

/// How many files a worker may have open, which opens one at a time.
const FILES: u64 = 256;

/// Runs as a worker.
pub(crate) fn run(worker: &args::Worker) -> ExitCode {
    // Dying with the command must be arranged before anything else, and again now in case it died
    // in between.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    if getppid() != Pid::from_raw(worker.parent) {
        return Status::Internal.into();
    }
    if !worker.prepared {
        return prepare(worker);
    }
    match work() {
        Ok(()) => Status::Verified.into(),
        Err(error) => {
            eprintln!("error: the worker lost its connection: {error}");
            Status::Internal.into()
        }
    }
}

/// Sets what only takes effect in a new program, and starts it.
fn prepare(worker: &args::Worker) -> ExitCode {
    // The same addresses in every run. Where that is not allowed (some containers), results are
    // the same anyway unless the program looks at the addresses of its globals.
    if let Ok(persona) = personality::get() {
        let _ = personality::set(persona | Persona::ADDR_NO_RANDOMIZE);
    }
    selvedge_confine::give_up(FILES);
    let error = Command::new(OURSELVES)
        .arg0("selvedge")
        .args(["worker", "--prepared", "--parent"])
        .arg(worker.parent.to_string())
        .exec();
    eprintln!("error: cannot start the worker: {error}");
    Status::Internal.into()
}

fn work() -> io::Result<()> {
    // Interruptions are the command's business; it tells the worker to stop.
    let mut interruptions = SigSet::empty();
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        interruptions.add(signal);
    }
    let _ = interruptions.thread_block();
    let stdin = io::stdin();
    let mut socket = UnixStream::from(stdin.as_fd().try_clone_to_owned()?);
    dup2_stdin(File::open("/dev/null")?)?;
    let Some(request) = wire::receive::<Request>(&mut socket)? else {
        return Ok(());
    };
    let counters = Counters(SharedCounters::open(&request.counters)?);
    let mut orders = socket.try_clone()?;
    let state = RefCell::new((socket, Ok(())));
    let reply = |reply: Reply| {
        let (socket, failed) = &mut *state.borrow_mut();
        if failed.is_ok() {
            *failed = wire::send(socket, &reply);
        }
    };
    if !request.machine.no_confinement
        && let Err(why) = selvedge_confine::enter(request.processes() > 1)
    {
        reply(Reply::Unconfined(why));
    }
    super::perform(&request, &counters, &reply, &mut || {
        wire::receive(&mut orders).ok().flatten()
    });
    state.into_inner().1
}
