//! Several processes that run the same loaded program, one per core.
//!
//! A program exists once per process, so more cores means more processes: copies of one that has
//! loaded the program. They share nothing but memory through which all of them exchange messages at
//! the same time.

use std::cell::Cell;
use std::hint;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use selvedge_core::states::Peers;

use crate::arena::PAGE;
use crate::machine::NativeMachine;

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

/// Where a member puts its messages, in memory that all share. Messages of two exchanges have room:
/// no process begins with the second next one before all have read this one.
struct Outbox {
    /// How many exchanges its owner has put its messages in for.
    filled: &'static AtomicU32,
    /// For even and odd exchanges, by receiver, where a message begins and ends.
    places: [&'static [AtomicU64]; 2],
    /// Their bytes, for even and odd exchanges.
    halves: [*mut u8; 2],
}

/// Address space for the messages of one exchange of one member; memory is taken as it is used.
const HALF: usize = 1 << 36;
/// How often a member looks whether a message has arrived before it goes to sleep. Being woken
/// takes longer than most of them take to come, if the sender runs at the same time.
const PATIENCE: u32 = 20_000;
/// The same where there are more members than processors, and the sender may be waiting for this one's.
const LITTLE_PATIENCE: u32 = 100;
/// After so many exchanges all patience is tried again.
const TRY_AGAIN: u32 = 16;
/// How long the others may take to end when the search is over.
const PARTING: Duration = Duration::from_secs(2);
/// How long it sleeps before it looks whether the others are still there.
const NAP: Duration = Duration::from_millis(100);

impl Outbox {
    fn new(members: usize) -> io::Result<Outbox> {
        let words = PAGE / 8 + 4 * members;
        let start = (words * 8).next_multiple_of(PAGE);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let size = start + 2 * HALF;
        // SAFETY: asks for new memory wherever there is room.
        let memory = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let bytes = memory.cast::<u8>();
        // SAFETY: mapped above for good and zero; these parts of it are used as atomic words only.
        let (filled, places) = unsafe {
            let words = bytes.add(PAGE).cast::<AtomicU64>();
            let places = [0, 1]
                .map(|half| std::slice::from_raw_parts(words.add(half * 2 * members), 2 * members));
            (&*memory.cast::<AtomicU32>(), places)
        };
        // SAFETY: inside of the mapping.
        let halves = [0, 1].map(|half| unsafe { bytes.add(start + half * HALF) });
        Ok(Outbox {
            filled,
            places,
            halves,
        })
    }

    /// Puts the messages of an exchange in.
    fn fill(&self, exchange: u32, outgoing: &[Vec<u8>]) -> io::Result<()> {
        let half = exchange as usize % 2;
        let mut begin = 0;
        for (receiver, message) in outgoing.iter().enumerate() {
            let end = begin + message.len();
            if end > HALF {
                return Err(io::Error::other("messages of a round are too large"));
            }
            // SAFETY: inside of the half, which is this process's to write to until it says that it
            // is filled.
            unsafe {
                let into = self.halves[half].add(begin);
                into.copy_from_nonoverlapping(message.as_ptr(), message.len());
            }
            let place = &self.places[half][2 * receiver..2 * receiver + 2];
            place[0].store(begin as u64, Ordering::Relaxed);
            place[1].store(end as u64, Ordering::Relaxed);
            begin = end;
        }
        self.filled.store(exchange + 1, Ordering::Release);
        // SAFETY: wakes the processes that wait for this word; needs nothing of it but its address.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.filled.as_ptr(),
                libc::FUTEX_WAKE,
                i32::MAX,
            )
        };
        Ok(())
    }

    /// Waits until the messages of an exchange are there; tells whether it went to sleep. Asks from
    /// time to time whether it makes sense.
    fn wait(&self, exchange: u32, patience: u32, alive: impl Fn() -> bool) -> io::Result<bool> {
        let (mut patience, mut slept) = (patience, false);
        loop {
            let filled = self.filled.load(Ordering::Acquire);
            if filled > exchange {
                return Ok(slept);
            }
            if patience > 0 {
                patience -= 1;
                hint::spin_loop();
                continue;
            }
            let nap = libc::timespec {
                tv_sec: 0,
                tv_nsec: NAP.as_nanos() as libc::c_long,
            };
            slept = true;
            // SAFETY: sleeps while the word is as it was, or for that long.
            let woken = unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.filled.as_ptr(),
                    libc::FUTEX_WAIT,
                    filled,
                    &raw const nap,
                )
            };
            if woken != 0 && !alive() && self.filled.load(Ordering::Acquire) <= exchange {
                let what = "a process that takes part in the search is gone";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
        }
    }

    /// The message of an exchange for a receiver.
    fn read(&self, exchange: u32, receiver: usize) -> Vec<u8> {
        let half = exchange as usize % 2;
        let place = &self.places[half][2 * receiver..2 * receiver + 2];
        let [begin, end] = [0, 1].map(|end: usize| place[end].load(Ordering::Relaxed) as usize);
        // SAFETY: the owner has filled this part, and does not write to it until everybody has read it.
        unsafe { std::slice::from_raw_parts(self.halves[half].add(begin), end - begin) }.to_vec()
    }
}

impl Team {
    /// Makes `count` processes of this one, which has loaded the program of `machine`. Returns in
    /// each of them; the calling one has rank 0, and the others die with it. Other threads of the
    /// process exist in rank 0 only.
    pub fn fork(machine: &mut NativeMachine, count: usize) -> io::Result<Team> {
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

    /// Waits, as rank 0, for the others to end; tells the processor time that each of them took.
    pub fn wait(mut self) -> Vec<Duration> {
        let deadline = Instant::now() + PARTING;
        while !self.broken && !self.others.iter().all(|&other| has_ended(other)) {
            // They end at the same time, unless they wait for a message that nobody sends any more.
            self.broken = Instant::now() > deadline;
            thread::sleep(Duration::from_micros(200));
        }
        if self.broken {
            self.end_others();
        }
        let others = std::mem::take(&mut self.others);
        others.into_iter().map(reap).collect()
    }

    /// Ends the others, which may wait for a process that does not come.
    fn end_others(&self) {
        for &other in &self.others {
            // SAFETY: sends a signal to a child that nobody has waited for yet.
            unsafe { libc::kill(other, libc::SIGKILL) };
        }
    }

    /// Which of them this process is.
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
    /// the same way: the search is one, in however many processes. The others need not ask, since
    /// they die with rank 0.
    fn is_complete(&self) -> bool {
        self.others.iter().all(|&other| match how_ended(other) {
            None => true,
            Some(Ended::Exited(0)) => false,
            Some(how) => {
                self.end_others();
                how.follow()
            }
        })
    }
}

impl Drop for Team {
    /// Ends all of them.
    fn drop(&mut self) {
        self.end_others();
        for other in std::mem::take(&mut self.others) {
            reap(other);
        }
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
