//! Functions that a program may not call if its schedules are to be enforced.
//!
//! A proof is for a program with its inputs. What a function brings in from outside is an input like a
//! choice, but nobody declares its alternatives: the verifier sees one answer, the executable gets
//! another, and then it runs executions that were never proven. Such functions are refused by name.
//! Arguments and the environment are checked when the executable runs.

use crate::problem::Problem;

/// Functions that the verifier knows and the enforcement library does not, and what programs know them
/// by.
const MISSING: [(&str, &str); 3] = [
    ("syscall", "syscall"),
    ("selvedge_wait_join", "waiting for an atomic"),
    ("selvedge_wait_while", "std::counting_semaphore"),
];

/// What brings in something from outside, and the functions that do it.
const INPUTS: [(&str, &str); 6] = [
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
        "sysconf get_nprocs get_nprocs_conf sched_getaffinity pthread_getaffinity_np \
         _ZNSt6thread20hardware_concurrencyEv",
    ),
    (
        "its process and user",
        "getpid getppid gettid getuid geteuid getgid getegid gethostname uname getcwd getlogin \
         getauxval",
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

/// Refuses a program that calls one of these functions. `needed` is what its objects do not define.
pub(super) fn check(needed: &[String]) -> Result<(), Problem> {
    let needs = |name: &str| needed.iter().any(|needed| needed == name);
    if let Some((_, what)) = MISSING.iter().find(|(name, _)| needs(name)) {
        return Err(
            Problem::request(format!("cannot enforce an order on {what}"))
                .note("the enforcement library has no such function"),
        );
    }
    for (what, names) in INPUTS {
        if let Some(name) = names.split_whitespace().find(|name| needs(name)) {
            return Err(Problem::request(format!(
                "cannot enforce proven schedules: the program asks for {what} ({name})"
            ))
            .note(
                "the executable would get other answers than the proof, and leave what was proven",
            )
            .help("make it an input: int n = selvedge_range(LOW, HIGH) in main; see docs/irs.md"));
        }
    }
    Ok(())
}
