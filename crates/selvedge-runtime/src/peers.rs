//! Several processes that run the same loaded program, one per core.
//!
//! A program exists once per process, so more cores means more processes: copies of one that has
//! loaded the program. They share nothing but memory through which all of them exchange messages at
//! the same time.

mod outbox;

use std::cell::Cell;
use std::io;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use selvedge_core::states::Peers;

use crate::machine::NativeMachine;
use outbox::Outbox;

/// One of several processes with the same program.
pub struct Team {
    rank: usize,
    /// The outgoing mail of each member.
    boxes: Vec<Outbox>,
    /// How many exchanges there were.
    exchanges: u32,
    /// How often to look for a message before going to sleep, now and at most.
    patience: Cell<u32>,
    most_patience: u32,
    /// Of rank 0, the others by rank.
    others: Vec<libc::pid_t>,
    /// Whether an exchange has failed, so that the others may wait for ever.
    broken: bool,
}

/// How often a member looks whether a message has arrived before it goes to sleep. Being woken
/// takes longer than most of them take to come, if the sender runs at the same time.
const PATIENCE: u32 = 20_000;
/// The same where there are more members than processors, and the sender may be waiting for this one's.
const LITTLE_PATIENCE: u32 = 100;
/// After this many exchanges all patience is tried again.
const TRY_AGAIN: u32 = 16;
/// How long the others may take to end when the search is over.
const PARTING: Duration = Duration::from_secs(2);

impl Team {
    /// Makes `count` processes of this one, which has loaded the program of `machine`. Returns in
    /// each of them; the calling one has rank 0, and the others die with it. Other threads of the
    /// process exist in rank 0 only.
    pub fn fork(machine: &mut NativeMachine, count: usize) -> io::Result<Team> {
        // The beginning of the program could, until now, if the process is confined.
        if has_children() {
            return Err(io::Error::other("the program has started a process"));
        }
        let boxes: io::Result<Vec<Outbox>> = (0..count).map(|_| Outbox::new(count)).collect();
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let most_patience = match count <= processors {
            true => PATIENCE,
            false => LITTLE_PATIENCE,
        };
        let mut team = Team {
            rank: 0,
            boxes: boxes?,
            exchanges: 0,
            patience: Cell::new(most_patience),
            most_patience,
            others: Vec::new(),
            broken: false,
        };
        machine.prepare_copies()?;
        let parent = std::process::id();
        for child in 1..count {
            // SAFETY: the child goes on where the parent is, and needs none of its other threads.
            match unsafe { libc::fork() } {
                -1 => return Err(io::Error::last_os_error()),
                0 => {
                    team.rank = child;
                    team.others.clear();
                    settle_in(machine, parent);
                    break;
                }
                other => team.others.push(other),
            }
        }
        Ok(team)
    }

    /// Waits, as rank 0, for the others to end; tells the processor time that each of them took, zero for
    /// one that does not end before this process does.
    pub fn wait(mut self) -> Vec<Duration> {
        // They end at the same time, unless they wait for a message that nobody sends any more.
        if self.broken || !self.others_end() {
            self.close();
        }
        let others = std::mem::take(&mut self.others).into_iter();
        let time = |other| match has_ended(other) {
            true => reap(other),
            false => Duration::ZERO,
        };
        others.map(time).collect()
    }

    /// Tells the others, which may wait for a message, that there are none any more, and gives them time to
    /// end. One that does not, because it runs the program, dies with this process: what is confined sends
    /// no signals.
    fn close(&self) {
        if !self.others.is_empty() {
            self.boxes[self.rank].close();
            self.others_end();
        }
    }

    /// Whether the others have ended after a while.
    fn others_end(&self) -> bool {
        let deadline = Instant::now() + PARTING;
        while !self.others.iter().all(|&other| has_ended(other)) {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(Duration::from_micros(200));
        }
        true
    }

    /// The number of this process among them.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.boxes.len()
    }

    /// Sends `outgoing[r]` to rank r and returns what each of them sent to this one. All members
    /// must call this equally often; it returns when the messages of all have arrived.
    pub fn exchange(&mut self, outgoing: &[Vec<u8>]) -> io::Result<Vec<Vec<u8>>> {
        assert_eq!(outgoing.len(), self.count(), "a message for everybody");
        let exchange = self.exchanges;
        self.exchanges += 1;
        let incoming = self.exchange_now(exchange, outgoing);
        self.broken |= incoming.is_err();
        incoming
    }

    fn exchange_now(&self, exchange: u32, outgoing: &[Vec<u8>]) -> io::Result<Vec<Vec<u8>>> {
        self.boxes[self.rank].fill(exchange, outgoing)?;
        let incoming = self.boxes.iter().enumerate().map(|(sender, mailbox)| {
            let slept = mailbox.wait(exchange, self.patience.get(), || self.is_complete())?;
            if sender != self.rank {
                self.learn(exchange, slept);
            }
            Ok(mailbox.read(exchange, self.rank))
        });
        incoming.collect()
    }

    /// Looking was in vain, or not. On a busy machine the sender may be waiting for the processor
    /// that this one looks on; whether it still is so is tried from time to time.
    fn learn(&self, exchange: u32, in_vain: bool) {
        let patience = self.patience.get();
        self.patience.set(match in_vain {
            true if exchange.is_multiple_of(TRY_AGAIN) => self.most_patience,
            true => (patience / 2).max(LITTLE_PATIENCE),
            false => (patience * 2).min(self.most_patience),
        });
    }

    /// Whether no process has ended. A process that ended early, for any reason, makes rank 0 end in
    /// the same way: the search is one, in however many processes. The others need not ask: they
    /// die with rank 0, or are told that there are no more messages.
    fn is_complete(&self) -> bool {
        let lasts = |&other: &libc::pid_t| match how_ended(other) {
            None => true,
            Some(Ended::Exited(0)) => false,
            Some(how) => how.follow(),
        };
        self.others.iter().all(lasts) && !self.boxes[0].is_closed()
    }
}

impl Drop for Team {
    /// Ends all of them.
    fn drop(&mut self) {
        self.close();
    }
}

/// Makes a copy of the process `parent` one that dies with it, and is watched.
fn settle_in(machine: &mut NativeMachine, parent: u32) {
    // SAFETY: asks for a signal, nothing else.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let orphan = std::os::unix::process::parent_id() != parent;
    let watched = machine.restart_watchdog();
    if let Err(error) = &watched {
        eprintln!("error: cannot watch over the program: {error}");
    }
    if orphan || watched.is_err() {
        Ended::Exited(libc::EXIT_FAILURE).follow();
    }
}

/// How a process ended.
#[derive(Clone, Copy)]
enum Ended {
    Exited(libc::c_int),
    Signalled(libc::c_int),
}

impl Ended {
    /// Ends this process in the same way.
    fn follow(self) -> ! {
        // SAFETY: ends this process, by a signal that is not handled or, if nobody may send that,
        // at once.
        unsafe {
            match self {
                Ended::Exited(status) => libc::_exit(status),
                Ended::Signalled(signal) => {
                    libc::signal(signal, libc::SIG_DFL);
                    libc::raise(signal);
                    libc::abort()
                }
            }
        }
    }
}

/// How a child has ended, if it has. It can still be waited for.
fn how_ended(child: libc::pid_t) -> Option<Ended> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut state: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: asks about a child, and writes the answer into a local.
    unsafe { libc::waitid(libc::P_PID, child as libc::id_t, &raw mut state, how) };
    // SAFETY: the answer is one about a child, or none.
    let (gone, status) = unsafe { (state.si_pid() != 0, state.si_status()) };
    gone.then_some(match state.si_code {
        libc::CLD_EXITED => Ended::Exited(status),
        _ => Ended::Signalled(status),
    })
}

/// Whether there is any child.
fn has_children() -> bool {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: asks whether there are children, and wants to know nothing of them.
    unsafe { libc::waitid(libc::P_ALL, 0, ptr::null_mut(), flags) == 0 }
}

/// Whether a child has ended; it can still be waited for.
fn has_ended(child: libc::pid_t) -> bool {
    // SAFETY: plain numbers, for which zero is a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: asks about a child, and writes the answer into a local.
    let answer = unsafe { libc::waitid(libc::P_PID, child as libc::id_t, &raw mut info, flags) };
    // SAFETY: of a child that has ended, or all zero.
    answer != 0 || unsafe { info.si_pid() } != 0
}

/// Waits for a child; tells the processor time that it took.
fn reap(child: libc::pid_t) -> Duration {
    // SAFETY: plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: waits for a child, and writes what it used into a local.
    unsafe { libc::wait4(child, ptr::null_mut(), 0, &raw mut usage) };
    used(&usage)
}

/// The processor time that this process has taken.
pub fn processor_time() -> Duration {
    // SAFETY: plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes into a local.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    used(&usage)
}

fn used(usage: &libc::rusage) -> Duration {
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
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
