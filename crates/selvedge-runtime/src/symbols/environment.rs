//! The functions and variables of the modelled environment (`environment/*.c`): rows as in
//! [`super::table`], for a program that is linked with it. Some of the names are in the other table as well, for
//! programs that are not.
//!
//! The values in the rows are those that a test passes; it defines `file()` and its like.

/// Rows, one on each line.
pub(super) const ROWS: &str = "
    # descriptors
    close dup dup2 dup3 fcntl fcntl64 isatty
    ioctl = int(int=file(), int=0x541b, ..., out int)

    # pipes, sockets, counters, timers
    pipe = int(out 8)
    pipe2 = int(out 8, int=0)
    socketpair = int(int=1, int=1, int=0, out 8)
    shutdown eventfd eventfd_write timerfd_create
    eventfd_read = int(int=event(), out long)
    timerfd_gettime = int(int=timer(), out 32)
    timerfd_settime = int(int=timer(), int=0, in 32, out? 32)
    send = int(int=connection(), in bytes(3), int=8, int=0)
    recv = int(int=connection(), out bytes(3), int=8, int=0)

    # files
    open open64 __open_2 __open64_2 creat = int(in string, int=0)
    openat = int(int=-100, in string, int=0)
    lseek lseek64 ftruncate ftruncate64 fsync fdatasync
    unlink remove = int(in string)
    rename = int(in string, in string)
    mkstemp mkstemp64 = int(inout string=\"aXXXXXX\")
    access = int(in string, int=0)
    stat stat64 lstat lstat64 = int(in string=\"/dev/null\", out 144)
    fstat fstat64 = int(int=file(), out 144)
    getcwd = int(out? text(2), int=4096)
    read = int(int=file(), out bytes(3), int=8)
    __read_chk = int(int=file(), out bytes(3), int=8, int=8)
    pread pread64 = int(int=file(), out bytes(3), int=8, int=0)
    write = int(int=file(), in bytes(3), int=8)
    pwrite pwrite64 = int(int=file(), in bytes(3), int=8, int=0)
    readv writev = int(int=file(), in 16, int=1)

    # waiting
    poll = int(inout 8, int=1, int=0)
    ppoll = int(inout 8, int=1, in? 16, int=0)
    select = int(int=1, inout? 128, inout? 128, inout? 128, in? 16)
    epoll_create epoll_create1
    epoll_ctl = int(int=epoll_create(1), int=1, int=event(), in 12)
    epoll_wait = int(int=ready(), out 12, int=1, int=0)
    epoll_pwait = int(int=ready(), out 12, int=1, int=0, int=0)

    # streams
    tmpfile tmpfile64
    fopen fopen64 = int(in string, in string=\"r\")
    fdopen = int(int=file(), in string=\"r\")
    fclose fileno fileno_unlocked fgetc getc getc_unlocked fgetc_unlocked _IO_getc getchar
    getchar_unlocked ungetc feof ferror clearerr fseek fseeko fseeko64 ftell ftello ftello64 rewind
    fputc fputc_unlocked putc putc_unlocked _IO_putc
    fgets = int(out bytes(2), int=8, int=stream())
    fread fread_unlocked = int(out array(2,3), int=4, int=2, int=stream())
    getdelim __getdelim = int(inout 8, inout 8, int=10, int=stream())
    getline = int(inout 8, inout 8, int=stream())
    fwrite fwrite_unlocked = int(in array(2,3), int=4, int=2, int=stdout)
    fputs fputs_unlocked = int(in string, int=stdout)
    fprintf = int(int=stdout, in string, ...)
    __fprintf_chk = int(int=stdout, int=0, in string, ...)
    dprintf = int(int=1, in string, ...)
    __dprintf_chk = int(int=1, int=0, in string, ...)
    vfprintf = int(int=stdout, in string=\"%s\", list, in string)
    __vfprintf_chk = int(int=stdout, int=0, in string=\"%s\", list, in string)
    vdprintf = int(int=1, in string=\"%s\", list, in string)
    __isoc99_scanf __isoc23_scanf = int(in string=\"%d\", ..., out int)
    __isoc99_fscanf __isoc23_fscanf = int(int=stream(), in string=\"%d\", ..., out int)
    __isoc99_vfscanf = int(int=stream(), in string=\"%d\", list, out int)

    # memory: MADV_DONTNEED
    mmap mmap64 munmap mprotect posix_madvise msync mlock munlock
    madvise = int(out bytes(2), int=4096, int=4)

    # signals
    sigaction = int(int=10, in? 152, out? 152)
    sigaltstack = int(in? 24, out? 24)
    sigemptyset sigfillset sigpending = int(out 128)
    sigaddset sigdelset = int(inout long, int=10)
    sigismember = int(in long, int=10)
    pthread_sigmask sigprocmask = int(int=0, in? long, out? 128)
    signal bsd_signal __sysv_signal raise kill pthread_kill

    # variables, limits, system calls: as in the other table
    environ clearenv gnu_get_libc_version pthread_atfork
    getenv secure_getenv unsetenv = int(in string)
    setenv = int(in string, in string, int=1)
    putenv = int(in string=\"a\")
    getrlimit getrlimit64 = int(int=0, out 16)
    syscall = int(int=202, ..., object 4, int=0, int=1, int=0, int=0, int=0)
";
