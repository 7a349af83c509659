//! Confinement of processes that run a program under test.
//!
//! The program shares its process with the runtime, so a program that computes addresses of the C
//! library could call anything there. A list of system calls bounds what such a call can do: read
//! files and talk to the descriptors that are open, but write, create or remove no file, start no
//! program or process, open no socket and look into no other process. The kernel answers a call
//! that is not listed with `SIGSYS`, which the runtime reports as a bug of the program. Landlock,
//! where the kernel has it, forbids changes of the file system once more.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use landlock::{ABI, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::close;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// The system calls of the explorer, the runtime and the C library: memory, time, signals of their own, and
/// reading.
const ALLOWED: [libc::c_long; 59] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_poll,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_delete,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_times,
    libc::SYS_getrusage,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Calls that change a mapping or its protection, at the address in their first argument.
const REMAPPING: [libc::c_long; 5] = [
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
];

/// Further system calls of a search by several processes, besides those of [`copies`].
const PROCESSES: [libc::c_long; 4] = [
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
];

/// The permitted `fcntl` commands. Naming a process that gets signals of a descriptor is not among
/// them.
const DESCRIPTORS: [libc::c_int; 6] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
];

/// How a file is opened that may change.
const CHANGES: u64 =
    (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND | libc::O_TMPFILE) as u64
        & !(libc::O_DIRECTORY as u64);

/// Whether this process is confined.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Whether it still has to make copies of itself.
static COPIES: AtomicBool = AtomicBool::new(false);

/// Gives up what no process that runs a program has a use for: core dumps, more than so many open `files`, and the
/// files of the caller (a lock, a log, a jobserver), all but the standard ones.
pub fn give_up(files: u64) {
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let _ = setrlimit(Resource::RLIMIT_NOFILE, files, files);
    let Ok(open) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
    // The directory itself is among them.
    for number in numbers.collect::<Vec<_>>() {
        if number > 2 {
            let _ = close(number);
        }
    }
}

/// Confines the calling thread, and all that it starts, for good. `processes` is whether it still has to make copies of itself.
///
/// Tells why it cannot be confined, if it cannot.
pub fn enter(processes: bool) -> Result<(), String> {
    // Before the list of calls, which has no room for this one.
    forbid_changes();
    let further = match processes {
        true => copies(),
        false => filters(),
    };
    let filter = further.and_then(|further| program(further, std::process::id()));
    apply(&filter.map_err(|error| error.to_string())?)?;
    COPIES.store(processes, Ordering::Relaxed);
    ENTERED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Stands for the number of the process in [`exported`]: no process has it.
pub const PROCESS: u32 = 0x5e1f_0001;

/// The list of system calls for a thread that confines itself, in hexadecimal: eight bytes for each
/// instruction of the filter. The thread puts the number of its process in the place of [`PROCESS`].
///
/// So the library for Rust programs needs no crate but `libc`, of whatever version their lock files name.
pub fn exported() -> Result<String, String> {
    let filter = program(Rules::new(), PROCESS).map_err(|error| error.to_string())?;
    let words = filter.iter().map(|instruction| {
        let (code, jt, jf) = (instruction.code, instruction.jt, instruction.jf);
        format!("{code:04x}{jt:02x}{jf:02x}{:08x}", instruction.k)
    });
    Ok(words.collect())
}

/// The list of system calls of a process, with `further` ones.
fn program(further: Rules, process: u32) -> seccompiler::Result<BpfProgram> {
    let mut rules: Rules = ALLOWED.map(|call| (call, Vec::new())).into();
    rules.extend(further);
    let unchanged = |argument| rule(&[masked(argument, CHANGES, 0)?]);
    rules.insert(libc::SYS_open, vec![unchanged(1)?]);
    rules.insert(libc::SYS_openat, vec![unchanged(2)?]);
    // Whether a descriptor is a terminal.
    rules.insert(libc::SYS_ioctl, vec![rule(&[is(1, libc::TCGETS)?])?]);
    // Limits are asked for, not set.
    rules.insert(libc::SYS_prlimit64, vec![rule(&[is(2, 0)?])?]);
    // A process may end itself.
    let own = process.cast_signed();
    rules.insert(libc::SYS_tgkill, vec![rule(&[int(0, own)?])?]);
    // Data may be sent only to the peer of a connected socket, not to an address.
    rules.insert(libc::SYS_sendto, vec![rule(&[is(4, 0)?])?]);
    let uses = DESCRIPTORS.map(|what| rule(&[int(1, what)?]));
    rules.insert(libc::SYS_fcntl, uses.into_iter().collect::<Result<_, _>>()?);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Trap,
        SeccompAction::Allow,
        TargetArch::x86_64,
    )?;
    Ok(filter.try_into()?)
}

/// The calls that a process needs to make copies of itself that end with it and give up making copies, with just these
/// arguments. The processes send no signals: the copies end when they are told, or with the first one.
fn copies() -> seccompiler::Result<Rules> {
    let mut rules: Rules = PROCESSES.map(|call| (call, Vec::new())).into();
    // `fork` creates a process with memory of its own.
    let own = (libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID) as u64;
    let fork = rule(&[masked(0, !own, libc::SIGCHLD as u64)?])?;
    rules.insert(libc::SYS_clone, vec![fork]);
    let ends_with_parent = [int(0, libc::PR_SET_PDEATHSIG)?, int(1, libc::SIGKILL)?];
    rules.extend(filters()?);
    let controls = rules.entry(libc::SYS_prctl).or_default();
    controls.push(rule(&ends_with_parent)?);
    Ok(rules)
}

/// The calls that are needed to forbid more later.
fn filters() -> seccompiler::Result<Rules> {
    let no_new_privs = [int(0, libc::PR_SET_NO_NEW_PRIVS)?];
    let filters = [int(0, libc::SECCOMP_SET_MODE_FILTER as i32)?, int(1, 0)?];
    let rules = [
        (libc::SYS_prctl, vec![rule(&no_new_privs)?]),
        (libc::SYS_seccomp, vec![rule(&filters)?]),
    ];
    Ok(rules.into())
}

/// The arguments with which each system call may be made; any, if there is no rule.
type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

fn rule(conditions: &[SeccompCondition]) -> seccompiler::Result<SeccompRule> {
    Ok(SeccompRule::new(conditions.to_vec())?)
}

/// Whether an argument, a word, has this value.
fn is(argument: u8, value: u64) -> seccompiler::Result<SeccompCondition> {
    masked(argument, u64::MAX, value)
}

/// Whether an argument, an `int`, has this value. The kernel ignores the other half of the register.
fn int(argument: u8, value: libc::c_int) -> seccompiler::Result<SeccompCondition> {
    masked(argument, u32::MAX.into(), value as u64)
}

/// Whether an argument has this value where `mask` has ones.
fn masked(argument: u8, mask: u64, value: u64) -> seccompiler::Result<SeccompCondition> {
    let equals = SeccompCmpOp::MaskedEq(mask);
    let length = match u32::try_from(mask) {
        Ok(_) => SeccompCmpArgLen::Dword,
        Err(_) => SeccompCmpArgLen::Qword,
    };
    Ok(SeccompCondition::new(argument, length, equals, value)?)
}

/// Keeps a confined process from replacing the memory at `table`, and from changing what may be done with it. It
/// has no memory at lower addresses either: a range that begins below and reaches into the table is refused as well.
pub fn keep(table: Range<usize>) {
    if !ENTERED.load(Ordering::Relaxed) {
        return;
    }
    let rules = || {
        let below = |argument| {
            let (some, end) = (SeccompCmpOp::Ne, SeccompCmpOp::Lt);
            rule(&[
                SeccompCondition::new(argument, SeccompCmpArgLen::Qword, some, 0)?,
                SeccompCondition::new(argument, SeccompCmpArgLen::Qword, end, table.end as u64)?,
            ])
        };
        let mut rules = Rules::new();
        for call in REMAPPING {
            rules.insert(call, vec![below(0)?]);
        }
        // Where the memory is moved to.
        rules.insert(libc::SYS_mremap, vec![below(0)?, below(4)?]);
        if !COPIES.load(Ordering::Relaxed) {
            rules.extend([(libc::SYS_prctl, vec![]), (libc::SYS_seccomp, vec![])]);
        }
        Ok(rules)
    };
    forbid(rules());
}

/// Forbids further processes in a confined process, once those that share a search are there.
pub fn alone() {
    let calls = [
        libc::SYS_clone,
        libc::SYS_clone3,
        libc::SYS_fork,
        libc::SYS_vfork,
        libc::SYS_prctl,
        libc::SYS_seccomp,
    ];
    if ENTERED.load(Ordering::Relaxed) {
        forbid(Ok(calls.map(|call| (call, Vec::new())).into()));
    }
}

/// Forbids what `rules` describe, besides what is forbidden already.
fn forbid(rules: seccompiler::Result<Rules>) {
    let filter = |rules| -> seccompiler::Result<BpfProgram> {
        let (others, these) = (SeccompAction::Allow, SeccompAction::Trap);
        Ok(SeccompFilter::new(rules, others, these, TargetArch::x86_64)?.try_into()?)
    };
    if let Ok(filter) = rules.and_then(filter) {
        // The list of calls is in force in any case.
        let _ = apply(&filter);
    }
}

fn apply(filter: &BpfProgram) -> Result<(), String> {
    seccompiler::apply_filter(filter).map_err(|error| match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error.to_string(),
        other => other.to_string(),
    })
}

/// Forbids to create, write, rename or remove files, where the kernel can do that by itself.
fn forbid_changes() {
    let changes = AccessFs::from_write(ABI::V5);
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(changes);
    if let Ok(ruleset) = ruleset.and_then(|ruleset| ruleset.create()) {
        let _ = ruleset.restrict_self();
    }
}
