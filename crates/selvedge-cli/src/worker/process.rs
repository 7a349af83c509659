//! A worker as the command sees it: a process with a socket.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::child::OURSELVES;
use super::protocol::{Reply, Request};
use super::supervise::Output;
use super::wire;

/// A message of the worker with some number; `None` after its last one.
pub(crate) type Message = (usize, Option<Reply>);

/// A running worker. Dropping it kills it.
pub(crate) struct Worker {
    child: Child,
    socket: UnixStream,
}

impl Worker {
    /// Starts one that does what `request` asks for, and has it heard under this number.
    pub(crate) fn start(
        request: &Request,
        output: Output,
        number: usize,
        hear: Sender<Message>,
    ) -> io::Result<Worker> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut ours = socket.try_clone()?;
        let mut command = Command::new(OURSELVES);
        command
            .arg0("selvedge")
            .args(["worker", "--parent"])
            .arg(process::id().to_string());
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        if output == Output::Diverted {
            command.stdout(Stdio::from(io::stderr()));
        }
        let child = command.spawn()?;
        // Its end of the socket belongs to it alone now, so that its death closes it.
        drop(command);
        let mut worker = Worker { child, socket };
        match worker.tell(request) {
            // It was killed already, which is heard of like any other death.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
        thread::spawn(move || {
            while let Ok(Some(reply)) = wire::receive(&mut ours) {
                if hear.send((number, Some(reply))).is_err() {
                    return;
                }
            }
            let _ = hear.send((number, None));
        });
        Ok(worker)
    }

    /// Tells it something.
    pub(crate) fn tell(&mut self, message: &impl Serialize) -> io::Result<()> {
        wire::send(&mut self.socket, message)
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sees it off, after giving one that is about to end by itself a moment to do so: how it
    /// ended matters if it died.
    pub(crate) fn end(mut self) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + Duration::from_millis(200);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        self.child.wait()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Half of the machine's memory, so that a program that eats it does not take others along.
pub(crate) fn memory_limit() -> u64 {
    let total = || -> Option<u64> {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kibibytes * 1024)
    };
    total().map_or(u64::MAX, |total| (total / 2).max(1 << 30))
}

/// The memory that a process really has.
pub(crate) fn resident(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
