//! Functions that are not modelled.

/// A group of functions that are refused for one reason.
struct Group {
    reason: &'static str,
    /// Separated by spaces.
    names: &'static str,
}

const PROCESSES: &str = "starts another process, which is not modelled; make it a thread instead";
const INPUT: &str =
    "reads input, which a check cannot repeat; use a constant, or selvedge_choose for every case";
const FILES: &str = "uses files, which are not modelled; keep the data in memory";
const SOCKETS: &str = "uses the network or devices, which are not modelled; replace that part";
const SIGNALS: &str = "handles signals, which are not modelled; make the handler a thread";
const MEMORY: &str = "maps memory, which is not modelled; use malloc";
const LOADING: &str = "loads code, which cannot be instrumented; link it in as source";
const CONTEXTS: &str = "switches stacks, which is not modelled; use threads";
const CANCELLATION: &str =
    "cancels threads, which is modelled only for a search on one machine; use a flag";
const CANCELLATION_TYPE: &str =
    "changes the type of cancellation, which is not modelled; use pthread_cleanup_push";
const ATOMIC_SECTIONS: &str = "atomic sections are not modelled; use a mutex or an atomic";
const NONDETERMINISM: &str =
    "any value of a wide type is too many; use selvedge_range(low, high) or selvedge_choose(n)";
const OBJECTS: &str = "named objects are not modelled; use an unnamed one";
const ENVIRONMENT: &str =
    "variables of the environment are modelled only for a search on one machine; use getenv";
const SYSTEM: &str = "depends on the machine, which is not modelled; use a constant";
const WIDE_OUTPUT: &str = "wide output is not modelled; use printf";
const JOINS: &str = "a join that does not wait is not modelled; use pthread_join, or a flag";
const STACKS: &str = "stacks belong to the runtime; use pthread_attr_setstacksize or nothing";
const BUFFERS: &str =
    "formats numbers or paths in a way that is not modelled; use snprintf or strtol";
const FLOAT: &str = "copies the floating-point environment, which is not modelled; use fesetround, \
    feclearexcept and fetestexcept";
const SIGN: &str = "is not kept; use lgamma_r";
const TIME_ZONES: &str = "is not kept; use localtime_r and its tm_gmtoff";
const CHARACTERS: &str = "converts or compares wide characters in a way that is not modelled; use \
    mbstowcs, wcstombs or wcscmp";
const MESSAGES: &str = "translates messages, which is not modelled; use the message itself";
const TIMERS: &str = "timers are not modelled; use a thread that sleeps";

const GROUPS: &[Group] = &[
    Group {
        reason: PROCESSES,
        names: "\
            fork vfork _Fork execl execle execlp execv execve execvp execvpe fexecve system popen pclose \
            posix_spawn posix_spawnp clone wait waitpid waitid wait3 wait4 daemon pthread_atfork \
            __register_atfork ptrace unshare setsid forkpty",
    },
    Group {
        reason: BUFFERS,
        names: "a64l l64a dirname __xpg_basename ecvt fcvt gcvt qecvt qfcvt qgcvt ecvt_r fcvt_r",
    },
    Group {
        reason: FLOAT,
        names: "fegetenv feholdexcept fesetenv feupdateenv fegetexceptflag fesetexceptflag",
    },
    Group {
        reason: SIGN,
        names: "signgam __signgam",
    },
    Group {
        reason: TIME_ZONES,
        names: "timezone daylight tzname __timezone __daylight __tzname",
    },
    Group {
        reason: CHARACTERS,
        names: "\
            iconv iconv_open iconv_close mbsrtowcs mbsnrtowcs wcsrtombs wcsnrtombs wcscoll wcsxfrm \
            wcsftime __wcscoll_l __wcsxfrm_l __wcsftime_l",
    },
    Group {
        reason: MESSAGES,
        names: "\
            gettext dgettext dcgettext ngettext dngettext dcngettext textdomain bindtextdomain \
            bind_textdomain_codeset",
    },
    Group {
        reason: INPUT,
        names: "\
            read pread pread64 readv scanf fscanf vscanf vfscanf __isoc99_scanf __isoc99_fscanf \
            __isoc99_vscanf __isoc99_vfscanf __isoc23_scanf __isoc23_fscanf __isoc23_vscanf \
            __isoc23_vfscanf getchar getchar_unlocked getc getc_unlocked _IO_getc fgetc fgetc_unlocked \
            gets fgets fgets_unlocked __fgets_chk __read_chk getline getdelim __getdelim fread \
            fread_unlocked __fread_chk ungetc getw getwc fgetwc getwchar fgetws ungetwc wscanf fwscanf \
            readline getpass",
    },
    Group {
        reason: FILES,
        names: "\
            open open64 openat openat64 creat creat64 close lseek lseek64 fopen fopen64 freopen \
            freopen64 fdopen fclose fmemopen open_memstream tmpfile tmpfile64 mkstemp mkstemp64 mkdtemp \
            tmpnam fseek fseeko fseeko64 ftell ftello ftello64 rewind fgetpos fsetpos pwrite pwrite64 \
            pwritev stat stat64 lstat lstat64 fstat fstat64 fstatat fstatat64 __xstat __fxstat __lxstat \
            access faccessat unlink unlinkat remove rename renameat link symlink readlink realpath mkdir \
            rmdir chdir fchdir getcwd chmod fchmod fchmodat chown truncate truncate64 ftruncate \
            ftruncate64 opendir fdopendir readdir readdir64 closedir rewinddir dirfd scandir dup dup2 \
            dup3 pipe pipe2 fcntl fcntl64 flock lockf sendfile sendfile64 statvfs statvfs64 utimensat \
            fsync fdatasync sync __open_2 __open64_2 copy_file_range mkfifo umask",
    },
    Group {
        reason: SOCKETS,
        names: "\
            socket socketpair bind listen accept accept4 connect shutdown send sendto sendmsg recv \
            recvfrom recvmsg select pselect poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait \
            eventfd eventfd_read eventfd_write epoll_pwait inotify_init getaddrinfo freeaddrinfo gethostbyname \
            setsockopt getsockopt ioctl io_setup aio_read aio_write syslog openlog tcgetattr tcsetattr \
            getifaddrs getsockname getpeername",
    },
    Group {
        reason: SIGNALS,
        names: "\
            signal bsd_signal sigaction sigprocmask pthread_sigmask sigsuspend sigwait sigwaitinfo \
            sigtimedwait sigqueue pthread_sigqueue sigaltstack signalfd pause alarm ualarm killpg tgkill \
            siginterrupt sigpending __sysv_signal sigemptyset sigfillset sigaddset sigdelset sigismember",
    },
    Group {
        reason: JOINS,
        names: "pthread_tryjoin_np pthread_timedjoin_np pthread_clockjoin_np",
    },
    Group {
        reason: STACKS,
        names: "pthread_getattr_np pthread_attr_setstack pthread_attr_getstack \
            pthread_attr_setstackaddr pthread_attr_getstackaddr sigstack",
    },
    Group {
        reason: TIMERS,
        names: "\
            setitimer getitimer timer_create timer_settime timer_gettime timer_delete timerfd_create \
            timerfd_settime timerfd_gettime clock_settime settimeofday",
    },
    Group {
        reason: MEMORY,
        names: "\
            mmap mmap64 munmap mremap mprotect msync madvise mlock mlockall munlock munlockall brk sbrk \
            shm_open shm_unlink shmget shmat shmdt shmctl memfd_create mincore mallopt posix_madvise",
    },
    Group {
        reason: LOADING,
        names: "\
            dlopen dlmopen dlvsym dlclose dlerror dladdr",
    },
    Group {
        reason: CONTEXTS,
        names: "\
            getcontext setcontext makecontext swapcontext",
    },
    Group {
        reason: CANCELLATION,
        names: "pthread_cancel",
    },
    Group {
        reason: CANCELLATION_TYPE,
        names: "\
            __pthread_register_cancel_defer __pthread_unregister_cancel_restore \
            _pthread_cleanup_push_defer _pthread_cleanup_pop_restore",
    },
    Group {
        reason: ATOMIC_SECTIONS,
        names: "\
            __VERIFIER_atomic_begin __VERIFIER_atomic_end",
    },
    Group {
        reason: NONDETERMINISM,
        names: "\
            __VERIFIER_nondet_char __VERIFIER_nondet_uchar __VERIFIER_nondet_short \
            __VERIFIER_nondet_ushort __VERIFIER_nondet_int __VERIFIER_nondet_uint \
            __VERIFIER_nondet_unsigned __VERIFIER_nondet_long __VERIFIER_nondet_ulong \
            __VERIFIER_nondet_longlong __VERIFIER_nondet_ulonglong __VERIFIER_nondet_float \
            __VERIFIER_nondet_double __VERIFIER_nondet_pointer __VERIFIER_nondet_size_t \
            __VERIFIER_nondet_loff_t __VERIFIER_nondet_pchar __VERIFIER_nondet_int128 \
            __VERIFIER_nondet_uint128 __VERIFIER_nondet_u8 __VERIFIER_nondet_u16 __VERIFIER_nondet_u32 \
            __VERIFIER_nondet_u128",
    },
    Group {
        reason: OBJECTS,
        names: "\
            sem_open sem_close sem_unlink mq_open mq_send mq_receive mq_close mq_unlink semget semop \
            semctl msgget msgsnd msgrcv pthread_mutex_consistent pthread_mutex_setprioceiling \
            pthread_mutex_getprioceiling",
    },
    Group {
        reason: ENVIRONMENT,
        names: "\
            setenv putenv unsetenv clearenv environ __environ _environ",
    },
    Group {
        reason: SYSTEM,
        names: "\
            getrlimit getrlimit64 setrlimit setrlimit64 prlimit prlimit64 getpriority setpriority \
            gnu_get_libc_version sysinfo uname gethostname",
    },
    Group {
        reason: WIDE_OUTPUT,
        names: "\
            wprintf fwprintf swprintf vwprintf vfwprintf vswprintf putwc putwchar fputwc fputws",
    },
];

/// The names of variables: no stub can take their place.
pub(super) const VARIABLES: [&str; 11] = [
    "signgam",
    "__signgam",
    "timezone",
    "daylight",
    "tzname",
    "__timezone",
    "__daylight",
    "__tzname",
    "environ",
    "__environ",
    "_environ",
];

/// Why `name` is refused, if it is.
pub(super) fn reason(name: &str) -> Option<String> {
    let group = GROUPS
        .iter()
        .find(|group| group.names.split(' ').any(|other| other == name))?;
    Some(group.reason.to_owned())
}

/// All refused names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|group| group.names.split(' '))
}
