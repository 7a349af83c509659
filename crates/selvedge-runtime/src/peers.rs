//! Several processes that run the same loaded program, one per core.
//!
//! A program exists once per process, so more cores means more processes: copies of one that has loaded the
//! program. They share nothing but connections on which all of them exchange messages at the same time.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

use selvedge_core::states::Peers;

use crate::machine::NativeMachine;

/// One of several processes with the same program.
pub struct Team {
    rank: usize,
    /// The connection to each member; none to itself.
    connections: Vec<Option<UnixStream>>,
}

/// A message on its way: how many bytes of it are done, its length first.
#[derive(Default)]
struct Progress {
    done: usize,
}

/// The length of a message comes before it.
const PREFIX: usize = 8;

impl Team {
    /// Makes `count` processes of this one, which has loaded the program of `machine`. Returns in each of them; the
    /// calling one has rank 0, and the others die with it. Other threads of the process exist in rank 0 only.
    pub fn fork(machine: &mut NativeMachine, count: usize) -> io::Result<Team> {
        let mut pairs: Vec<Vec<Option<UnixStream>>> = Vec::new();
        pairs.resize_with(count, || (0..count).map(|_| None).collect());
        let couples = (0..count).flat_map(|one| (0..one).map(move |other| (one, other)));
        for (one, other) in couples {
            let (here, there) = UnixStream::pair()?;
            here.set_nonblocking(true)?;
            there.set_nonblocking(true)?;
            pairs[one][other] = Some(here);
            pairs[other][one] = Some(there);
        }
        let mut rank = 0;
        for child in 1..count {
            // SAFETY: the child goes on where the parent is, and needs none of its other threads.
            match unsafe { libc::fork() } {
                -1 => return Err(io::Error::last_os_error()),
                0 => {
                    rank = child;
                    // SAFETY: asks for a signal, nothing else.
                    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                    machine.restart_watchdog()?;
                    break;
                }
                _ => {}
            }
        }
        let connections = pairs.swap_remove(rank);
        Ok(Team { rank, connections })
    }

    /// Which of them this process is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.connections.len()
    }

    /// Sends `outgoing[r]` to rank r and returns what each of them sent to this one. All members must call this
    /// equally often; it returns when everybody's message has arrived.
    pub fn exchange(&mut self, outgoing: &[Vec<u8>]) -> io::Result<Vec<Vec<u8>>> {
        assert_eq!(outgoing.len(), self.count(), "a message for everybody");
        let mut incoming: Vec<Vec<u8>> = vec![Vec::new(); self.count()];
        incoming[self.rank].clone_from(&outgoing[self.rank]);
        let mut sent: Vec<Progress> = Vec::new();
        sent.resize_with(self.count(), Progress::default);
        let mut open = Vec::new();
        loop {
            open.clear();
            for peer in 0..self.count() {
                let Some(connection) = &mut self.connections[peer] else {
                    continue;
                };
                let unsent = sent[peer].send(connection, &outgoing[peer])?;
                let missing = receive(connection, &mut incoming[peer])?;
                if unsent || missing {
                    open.push(libc::pollfd {
                        fd: connection.as_raw_fd(),
                        events: if missing { libc::POLLIN } else { 0 }
                            | if unsent { libc::POLLOUT } else { 0 },
                        revents: 0,
                    });
                }
            }
            if open.is_empty() {
                break;
            }
            // SAFETY: an array of initialised structures of this length.
            unsafe { libc::poll(open.as_mut_ptr(), open.len() as libc::nfds_t, -1) };
        }
        for (peer, message) in incoming.iter_mut().enumerate() {
            if peer != self.rank {
                message.drain(..PREFIX);
            }
        }
        Ok(incoming)
    }
}

impl Peers for Team {
    fn rank(&self) -> usize {
        self.rank()
    }

    fn count(&self) -> usize {
        self.count()
    }

    fn exchange(&mut self, outgoing: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
        self.exchange(outgoing).map_err(|error| error.to_string())
    }
}

impl Progress {
    /// Sends as much as goes; says whether something is left.
    fn send(&mut self, connection: &mut UnixStream, message: &[u8]) -> io::Result<bool> {
        let prefix = (message.len() as u64).to_le_bytes();
        while self.done < PREFIX + message.len() {
            let rest = match self.done {
                done if done < PREFIX => &prefix[done..],
                done => &message[done - PREFIX..],
            };
            match connection.write(rest) {
                Ok(count) => self.done += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// Receives as much as there is of one message, whose length comes first; says whether something is missing.
fn receive(connection: &mut UnixStream, message: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        let wanted = match message.first_chunk() {
            Some(&prefix) => PREFIX + u64::from_le_bytes(prefix) as usize,
            None => PREFIX,
        };
        let have = message.len();
        if have == wanted {
            return Ok(false);
        }
        message.resize(wanted, 0);
        match connection.read(&mut message[have..]) {
            Ok(0) => {
                let what = "a process that takes part in the search is gone";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, what));
            }
            Ok(count) => message.truncate(have + count),
            Err(error) => {
                message.truncate(have);
                match error.kind() {
                    ErrorKind::WouldBlock => return Ok(true),
                    ErrorKind::Interrupted => {}
                    _ => return Err(error),
                }
            }
        }
    }
}
