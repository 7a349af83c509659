//! Functions whose results come from outside of the program, so that another run may get others.
//!
//! Checks give them fixed results or refuse them. Executables that keep to proven schedules must not call them:
//! the proof holds for the results that the check saw.

/// Inputs, and the functions that bring them in.
const INPUTS: [(&str, &str); 8] = [
    (
        "the time",
        "time clock clock_gettime clock_getres gettimeofday timespec_get ftime times getrusage \
         _ZNSt6chrono3_V212system_clock3nowEv _ZNSt6chrono3_V212steady_clock3nowEv",
    ),
    (
        "random numbers",
        "rand srand rand_r random srandom random_r srandom_r drand48 erand48 lrand48 nrand48 mrand48 \
         jrand48 srand48 seed48 arc4random arc4random_uniform arc4random_buf getrandom getentropy \
         _ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    ),
    (
        "the number of processors",
        "sysconf get_nprocs get_nprocs_conf sched_getaffinity sched_getcpu pthread_getaffinity_np \
         _ZNSt6thread20hardware_concurrencyEv",
    ),
    (
        "its process and user",
        "getpid getppid gettid getuid geteuid getgid getegid gethostname uname getcwd getlogin \
         getauxval",
    ),
    (
        "the size that the allocator made of a block",
        "malloc_usable_size",
    ),
    (
        "whether a descriptor is a terminal",
        "isatty ttyname ttyname_r ctermid",
    ),
    ("its environment as a whole", "environ __environ _environ"),
    (
        "files and its standard input",
        "open open64 openat openat64 fopen fopen64 freopen fdopen opendir read pread pread64 readv \
         fread fgets fgetc getc getchar gets getline getdelim scanf fscanf vscanf vfscanf \
         __isoc99_scanf __isoc99_fscanf __isoc99_vscanf __isoc99_vfscanf __isoc23_scanf \
         __isoc23_fscanf stdin mmap mmap64 stat fstat lstat access recv recvfrom recvmsg poll select \
         _ZSt3cin _ZSt4wcin",
    ),
];

/// The input that the function or variable `name` brings into a program, if it does.
pub fn input(name: &str) -> Option<&'static str> {
    let mut inputs = INPUTS.iter();
    let names = |names: &str| names.split_whitespace().any(|one| one == name);
    inputs.find_map(|&(what, all)| names(all).then_some(what))
}
