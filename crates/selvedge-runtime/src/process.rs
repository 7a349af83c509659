//! A page of counters that the process running the program shares with the one that watches it.
//!
//! It costs the running process one store per count, and what was counted survives its death.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// How many counters a page holds.
pub const COUNTERS: usize = 16;

/// Counters shared between processes. Their meaning is up to the processes that share them.
pub struct SharedCounters {
    page: NonNull<[AtomicU64; COUNTERS]>,
}

impl SharedCounters {
    /// Creates the file at `path`, which must not exist, with all counters zero.
    pub fn create(path: &Path) -> io::Result<SharedCounters> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        file.set_len(SIZE as u64)?;
        SharedCounters::map(&file)
    }

    /// Opens counters that another process created.
    pub fn open(path: &Path) -> io::Result<SharedCounters> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() < SIZE as u64 {
            let message = "the file is too short for counters";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        SharedCounters::map(&file)
    }

    fn map(file: &File) -> io::Result<SharedCounters> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice; the file is `SIZE` long.
        let page = unsafe {
            let fd = file.as_raw_fd();
            libc::mmap(ptr::null_mut(), SIZE, protection, libc::MAP_SHARED, fd, 0)
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = NonNull::new(page.cast()).expect("no mapping is at address zero");
        Ok(SharedCounters { page })
    }

    /// The counters.
    pub fn counters(&self) -> &[AtomicU64; COUNTERS] {
        // SAFETY: the mapping is large enough and page-aligned, lives as long as `self`, any bits
        // are a valid `AtomicU64`, and both processes access it through atomics only.
        unsafe { self.page.as_ref() }
    }
}

impl Drop for SharedCounters {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.page.as_ptr().cast(), SIZE) };
    }
}

const SIZE: usize = size_of::<[AtomicU64; COUNTERS]>();

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_one_counts_the_other_sees() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        let one = SharedCounters::create(&path).unwrap();
        let other = SharedCounters::open(&path).unwrap();
        one.counters()[3].store(42, Ordering::Relaxed);
        assert_eq!(other.counters()[3].load(Ordering::Relaxed), 42);
        assert_eq!(other.counters()[4].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_short_file_is_no_page_of_counters() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        std::fs::write(&path, b"short").unwrap();
        assert!(SharedCounters::open(&path).is_err());
        assert!(SharedCounters::create(&path).is_err());
    }
}
