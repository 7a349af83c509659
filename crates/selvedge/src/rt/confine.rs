//! Confinement of the tests that `cargo selvedge` runs.
//!
//! The thread that explores a model runs the program under test. It gives up what the program has no
//! use for before its first model, and keeps to that until it ends. `cargo selvedge` hands the list of
//! system calls over as a filter of the kernel, so that this library needs no further crates. Landlock, where the
//! kernel has it, forbids changes of the file system once more.

use std::cell::Cell;
use std::io;

/// Stands for the number of this process in the filter.
const PROCESS: u32 = 0x5e1f_0001;

thread_local! {
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

/// Confines this OS thread, if `cargo selvedge` asked for that.
pub(super) fn enter() {
    let Ok(filter) = std::env::var("SELVEDGE_CONFINE") else {
        return;
    };
    if ENTERED.replace(true) {
        return;
    }
    forbid_changes();
    let entered = match parse(&filter) {
        Some(filter) => apply(&filter),
        None => Err(io::Error::other("SELVEDGE_CONFINE is not a filter")),
    };
    if let Err(why) = entered {
        eprintln!("selvedge unconfined: {why}");
    }
}

/// The instructions of a filter, each of them sixteen digits.
fn parse(text: &str) -> Option<Vec<libc::sock_filter>> {
    let instruction = |at: usize| {
        let digits = text.get(at..at + 16)?;
        let part = |from: usize, to: usize| u32::from_str_radix(digits.get(from..to)?, 16).ok();
        let k = part(8, 16)?;
        Some(libc::sock_filter {
            code: part(0, 4)? as u16,
            jt: part(4, 6)? as u8,
            jf: part(6, 8)? as u8,
            k: if k == PROCESS { std::process::id() } else { k },
        })
    };
    (0..text.len()).step_by(16).map(instruction).collect()
}

fn apply(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    let (mode, set) = (libc::SECCOMP_MODE_FILTER, libc::PR_SET_NO_NEW_PRIVS);
    // SAFETY: only the kernel reads the filter, which lives until the call returns, and checks it.
    let failed = unsafe {
        libc::prctl(set, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program, 0, 0) != 0
    };
    match failed {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}

/// Forbids this OS thread to create, write, rename or remove files, where the kernel can do that by itself. It goes before
/// the list of system calls, which has no room for this.
fn forbid_changes() {
    /// The rights that the first version can forbid: writing to files, removing and making files and directories of any kind.
    const CHANGES: u64 = 1 << 1 | 0x1ff << 4;
    /// The rights that a version added: linking into other directories, truncating.
    const ADDED: [(i64, u64); 2] = [(2, 1 << 13), (3, 1 << 14)];
    const VERSION: usize = 1;
    let create = libc::SYS_landlock_create_ruleset;
    // SAFETY: asks for a number.
    let version = unsafe { libc::syscall(create, 0_usize, 0_usize, VERSION) };
    if version < 1 {
        return;
    }
    let added = ADDED.iter().filter(|&&(since, _)| version >= since);
    let changes = added.fold(CHANGES, |all, &(_, more)| all | more);
    // SAFETY: the kernel reads these eight bytes, of a structure that is longer in later versions. The restriction is
    // that of this thread, and the descriptor nobody else's.
    unsafe {
        let rules = libc::syscall(create, &raw const changes, size_of_val(&changes), 0_usize);
        let allowed = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
        if let Ok(rules) = libc::c_int::try_from(rules)
            && rules >= 0
        {
            if allowed {
                libc::syscall(libc::SYS_landlock_restrict_self, rules, 0_usize);
            }
            libc::close(rules);
        }
    }
}

/// The name of the system call with this number, for those that change something outside.
pub(super) fn call_name(number: i64) -> String {
    const NAMES: [(libc::c_long, &str); 23] = [
        (libc::SYS_bind, "bind"),
        (libc::SYS_chmod, "chmod"),
        (libc::SYS_clone, "clone"),
        (libc::SYS_connect, "connect"),
        (libc::SYS_creat, "creat"),
        (libc::SYS_execve, "execve"),
        (libc::SYS_fork, "fork"),
        (libc::SYS_ftruncate, "ftruncate"),
        (libc::SYS_kill, "kill"),
        (libc::SYS_link, "link"),
        (libc::SYS_mkdir, "mkdir"),
        (libc::SYS_open, "open"),
        (libc::SYS_openat, "openat"),
        (libc::SYS_pipe2, "pipe2"),
        (libc::SYS_ptrace, "ptrace"),
        (libc::SYS_rename, "rename"),
        (libc::SYS_rmdir, "rmdir"),
        (libc::SYS_socket, "socket"),
        (libc::SYS_symlink, "symlink"),
        (libc::SYS_truncate, "truncate"),
        (libc::SYS_unlink, "unlink"),
        (libc::SYS_unlinkat, "unlinkat"),
        (libc::SYS_vfork, "vfork"),
    ];
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}
