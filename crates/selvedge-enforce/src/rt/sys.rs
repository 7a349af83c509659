//! The functions of libc and the kernel that the library uses.

use core::ffi::{c_char, c_int, c_long, c_void};

/// There is no such file.
pub(crate) const ENOENT: c_int = 2;

/// A function that a thread begins with.
pub(crate) type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// Declares functions of libc that calls of the program are redirected from: inside of the program,
/// the linker calls the original `__real_…`.
macro_rules! redirected {
    ($($link:literal fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        unsafe extern "C" {
            $(
                #[cfg_attr(not(test), link_name = $link)]
                pub(crate) fn $name($($argument: $type),*) -> $result;
            )*
        }
    };
}

redirected! {
    "__real_pthread_create" fn pthread_create(handle: *mut usize, attributes: usize, start: Start, argument: *mut c_void) -> c_int;
    "__real_pthread_join" fn pthread_join(handle: usize, result: usize) -> c_int;
    "__real_pthread_mutex_init" fn pthread_mutex_init(mutex: usize, attributes: usize) -> c_int;
    "__real_pthread_mutex_destroy" fn pthread_mutex_destroy(mutex: usize) -> c_int;
    "__real_pthread_mutex_lock" fn pthread_mutex_lock(mutex: usize) -> c_int;
    "__real_pthread_mutex_trylock" fn pthread_mutex_trylock(mutex: usize) -> c_int;
    "__real_pthread_mutex_timedlock" fn pthread_mutex_timedlock(mutex: usize, deadline: usize) -> c_int;
    "__real_pthread_mutex_clocklock" fn pthread_mutex_clocklock(mutex: usize, clock: c_int, deadline: usize) -> c_int;
    "__real_pthread_mutex_unlock" fn pthread_mutex_unlock(mutex: usize) -> c_int;
    "__real_pthread_rwlock_init" fn pthread_rwlock_init(lock: usize, attributes: usize) -> c_int;
    "__real_pthread_rwlock_destroy" fn pthread_rwlock_destroy(lock: usize) -> c_int;
    "__real_pthread_rwlock_rdlock" fn pthread_rwlock_rdlock(lock: usize) -> c_int;
    "__real_pthread_rwlock_tryrdlock" fn pthread_rwlock_tryrdlock(lock: usize) -> c_int;
    "__real_pthread_rwlock_timedrdlock" fn pthread_rwlock_timedrdlock(lock: usize, deadline: usize) -> c_int;
    "__real_pthread_rwlock_clockrdlock" fn pthread_rwlock_clockrdlock(lock: usize, clock: c_int, deadline: usize) -> c_int;
    "__real_pthread_rwlock_wrlock" fn pthread_rwlock_wrlock(lock: usize) -> c_int;
    "__real_pthread_rwlock_trywrlock" fn pthread_rwlock_trywrlock(lock: usize) -> c_int;
    "__real_pthread_rwlock_timedwrlock" fn pthread_rwlock_timedwrlock(lock: usize, deadline: usize) -> c_int;
    "__real_pthread_rwlock_clockwrlock" fn pthread_rwlock_clockwrlock(lock: usize, clock: c_int, deadline: usize) -> c_int;
    "__real_pthread_rwlock_unlock" fn pthread_rwlock_unlock(lock: usize) -> c_int;
    "__real_pthread_spin_init" fn pthread_spin_init(lock: usize, shared: c_int) -> c_int;
    "__real_pthread_spin_destroy" fn pthread_spin_destroy(lock: usize) -> c_int;
    "__real_pthread_spin_lock" fn pthread_spin_lock(lock: usize) -> c_int;
    "__real_pthread_spin_trylock" fn pthread_spin_trylock(lock: usize) -> c_int;
    "__real_pthread_spin_unlock" fn pthread_spin_unlock(lock: usize) -> c_int;
    "__real_sem_init" fn sem_init(semaphore: usize, shared: c_int, value: u32) -> c_int;
    "__real_sem_destroy" fn sem_destroy(semaphore: usize) -> c_int;
    "__real_sem_wait" fn sem_wait(semaphore: usize) -> c_int;
    "__real_sem_trywait" fn sem_trywait(semaphore: usize) -> c_int;
    "__real_sem_timedwait" fn sem_timedwait(semaphore: usize, deadline: usize) -> c_int;
    "__real_sem_clockwait" fn sem_clockwait(semaphore: usize, clock: c_int, deadline: usize) -> c_int;
    "__real_sem_post" fn sem_post(semaphore: usize) -> c_int;
    "__real_sem_getvalue" fn sem_getvalue(semaphore: usize, value: *mut c_int) -> c_int;
    "__real_getenv" fn getenv(name: *const c_char) -> *const c_char;
    "__real_secure_getenv" fn secure_getenv(name: *const c_char) -> *const c_char;
    "__real_setlocale" fn setlocale(category: c_int, name: *const c_char) -> *const c_char;
    "__real_newlocale" fn newlocale(categories: c_int, name: *const c_char, base: usize) -> usize;
    "__real_sched_yield" fn sched_yield() -> c_int;
    "__real_nanosleep" fn nanosleep(duration: usize, remaining: usize) -> c_int;
    "__real_clock_nanosleep" fn clock_nanosleep(clock: c_int, flags: c_int, duration: usize, remaining: usize) -> c_int;
    "__real_usleep" fn usleep(microseconds: u32) -> c_int;
    "__real_sleep" fn sleep(seconds: u32) -> u32;
    "__real_thrd_sleep" fn thrd_sleep(duration: usize, remaining: usize) -> c_int;
}

unsafe extern "C" {
    pub(crate) fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub(crate) fn close(file: c_int) -> c_int;
    pub(crate) fn write(file: c_int, from: *const c_void, size: usize) -> isize;
    pub(crate) fn read(file: c_int, to: *mut c_void, size: usize) -> isize;
    pub(crate) fn getauxval(kind: usize) -> usize;
    pub(crate) fn fstat(file: c_int, status: *mut Status) -> c_int;
    pub(crate) fn stat(path: *const c_char, status: *mut Status) -> c_int;
    pub(crate) fn mmap(
        address: *mut c_void,
        size: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub(crate) fn munmap(address: *mut c_void, size: usize) -> c_int;
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
    pub(crate) fn memmove(to: *mut c_void, from: *const c_void, size: usize) -> *mut c_void;
    pub(crate) fn memset(to: *mut c_void, byte: c_int, size: usize) -> *mut c_void;
    pub(crate) fn abort() -> !;
    pub(crate) fn _exit(status: c_int) -> !;
    pub(crate) fn readlink(path: *const c_char, to: *mut c_char, size: usize) -> isize;
    pub(crate) fn sched_getaffinity(process: c_int, size: usize, set: *mut u64) -> c_int;
    #[link_name = "__errno_location"]
    pub(crate) fn errno() -> *mut c_int;
    pub(crate) fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    pub(crate) fn dl_iterate_phdr(
        visit: unsafe extern "C" fn(*mut Module, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// `struct timespec`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Timespec {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
}

/// `struct stat`, as far as it matters.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Status {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    links: u64,
    mode: u32,
    owners: [u32; 2],
    padding: u32,
    special: u64,
    pub(crate) size: i64,
    blocks: [i64; 2],
    accessed: Timespec,
    pub(crate) modified: Timespec,
    changed: Timespec,
    reserved: [i64; 3],
}

impl Status {
    pub(crate) const EMPTY: Status = {
        let never = Timespec {
            seconds: 0,
            nanoseconds: 0,
        };
        Status {
            device: 0,
            inode: 0,
            links: 0,
            mode: 0,
            owners: [0; 2],
            padding: 0,
            special: 0,
            size: 0,
            blocks: [0; 2],
            accessed: never,
            modified: never,
            changed: never,
            reserved: [0; 3],
        }
    };
}

/// `struct dl_phdr_info`, as far as it matters.
#[repr(C)]
pub(crate) struct Module {
    pub(crate) base: usize,
    name: *const c_char,
    pub(crate) headers: *const Header,
    pub(crate) count: u16,
}

/// `Elf64_Phdr`.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) address: usize,
    physical: usize,
    file_size: usize,
    pub(crate) size: usize,
    alignment: usize,
}

const SYS_FUTEX: c_long = 202;
const FUTEX_WAIT_PRIVATE: c_int = 128;
const FUTEX_WAKE_PRIVATE: c_int = 129;

/// Sleeps while `word` holds `value`, at most for the given time.
pub(crate) fn futex_wait(word: *const u32, value: u32, nanoseconds: i64) {
    let limit = Timespec {
        seconds: nanoseconds / 1_000_000_000,
        nanoseconds: nanoseconds % 1_000_000_000,
    };
    // SAFETY: the kernel only reads the word and the time; both outlive the call.
    unsafe { syscall(SYS_FUTEX, word, FUTEX_WAIT_PRIVATE, value, &raw const limit) };
}

/// Wakes all threads that sleep on `word`.
pub(crate) fn futex_wake_all(word: *const u32) {
    // SAFETY: the word is only a name here.
    unsafe { syscall(SYS_FUTEX, word, FUTEX_WAKE_PRIVATE, c_int::MAX) };
}

/// Memory that reads as zero and is never given back; null if there is none.
pub(crate) fn memory(size: usize) -> *mut u8 {
    const READ_WRITE: c_int = 3;
    const PRIVATE_ANONYMOUS: c_int = 0x22;
    // SAFETY: a new mapping at a place of the kernel's choice.
    let start = unsafe {
        mmap(
            core::ptr::null_mut(),
            size.max(1),
            READ_WRITE,
            PRIVATE_ANONYMOUS,
            -1,
            0,
        )
    };
    if start.addr() == usize::MAX {
        return core::ptr::null_mut();
    }
    start.cast()
}

/// Writes to standard error.
pub(crate) fn complain(text: &[u8]) {
    // SAFETY: the bytes are there; it does not matter whether they are all written.
    unsafe { write(2, text.as_ptr().cast(), text.len()) };
}

/// How many processors the process may run on.
pub(crate) fn processors() -> u32 {
    let mut set = [0_u64; 16];
    // SAFETY: the set is as large as it says.
    let result = unsafe { sched_getaffinity(0, size_of_val(&set), set.as_mut_ptr()) };
    match result {
        0 => set.iter().map(|word| word.count_ones()).sum(),
        _ => 1,
    }
}
