//! The present process: starting its program again, and its memory.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// The program that runs, also if its file was replaced.
const OURSELVES: &str = "/proc/self/exe";

/// Starts this program again with these arguments. Its standard input is the other end of the socket.
///
/// It ends when the calling OS thread does, and is loaded at addresses that are the same each time, where the
/// system allows that.
pub(crate) fn start_again(
    arguments: &[&str],
    prepare: impl FnOnce(&mut Command),
) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(OURSELVES);
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command.args(arguments);
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(Stdio::null());
    prepare(&mut command);
    // SAFETY: between `fork` and `exec`, system calls without memory of their own are all that happens.
    unsafe {
        command.pre_exec(|| {
            let persona = libc::personality(0xffff_ffff);
            if persona >= 0 {
                libc::personality((persona | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
            }
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            Ok(())
        });
    }
    let child = command.spawn()?;
    // Its end of the socket belongs to it alone now, so that its death closes it.
    drop(command);
    Ok((child, ours))
}

/// The most memory that this process has had, or one that it started and that has ended, in bytes.
pub(crate) fn peak_memory() -> u64 {
    let most = |who| {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel writes to `usage` only, for which every pattern of bytes is a value.
        let kibibytes = unsafe {
            libc::getrusage(who, usage.as_mut_ptr());
            usage.assume_init().ru_maxrss
        };
        u64::try_from(kibibytes).unwrap_or(0) * 1024
    };
    most(libc::RUSAGE_SELF).max(most(libc::RUSAGE_CHILDREN))
}
