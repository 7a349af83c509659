//! The parts of a program that the command line adds, to build what the runtime can load.

use std::fmt::Write as _;
use std::mem::offset_of;

use crate::abi::{self, Entry};
use crate::gate::{self, CALLEE_SAVED, Gate};
use crate::symbols;

/// C source that must be linked into every program; compile it with [`SHIM_FLAGS`] and without
/// instrumentation.
pub const SHIM: &str = include_str!("../shim/shim.c");
/// C++ source that must be linked into every C++ program, in the same way.
pub const SHIM_CXX: &str = include_str!("../shim/shim.cc");
/// Rust source that must be linked into every Rust program, instrumented; its first lines tell more.
pub const SHIM_RUST: &str = include_str!("../shim/std.rs");
/// The same for the test harness, for programs that have one.
pub const SHIM_TEST: &str = include_str!("../shim/test.rs");
/// How to compile the shims.
pub const SHIM_FLAGS: &[&str] = &[
    "-O1",
    "-fPIC",
    "-fexceptions",
    "-fno-builtin",
    "-fvisibility=hidden",
    "-w",
];
/// How to link a program, besides `-shared`.
pub const LINK_FLAGS: &[&str] = &[
    "-static-libstdc++",
    // The C++ library is part of the program.
    "-Wl,--exclude-libs,ALL",
    // The program's own definitions win over those of the process it is loaded into.
    "-Wl,-Bsymbolic",
    "-Wl,--wrap=__cxa_end_catch",
    "-Wl,--wrap=_ZSt17current_exceptionv",
    "-Wl,--wrap=_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv",
    "-lm",
];
/// The functions that the shim defines for programs.
pub(crate) const SHIM_SYMBOLS: &str = "\
    __asprintf_chk __atomic_feraiseexcept __dprintf_chk __fprintf_chk __isoc23_sscanf \
    __isoc99_sscanf __libc_single_threaded __longjmp_chk __printf_chk __pthread_register_cancel \
    __pthread_unregister_cancel __pthread_unwind_next __sigsetjmp __snprintf_chk __sprintf_chk \
    _longjmp _setjmp asctime asprintf bsearch call_once ctime dprintf err errx fprintf getopt \
    getopt_long getopt_long_only gmtime in6addr_any in6addr_loopback localtime longjmp optarg \
    opterr optind optopt printf pthread_exit pthread_once qsort qsort_r setjmp siglongjmp snprintf \
    sprintf sscanf strtok syscall thrd_exit warn warnx";
/// The prefix of functions that tell the value of an expression; a number follows.
pub const EXPRESSION: &str = "selvedge_expression_";
/// Where it is noted that the running thread has announced stores that it has not made yet.
pub const STORES_ADDRESS: usize = gate::ADDRESS + offset_of!(Gate, stores);
/// Sixteen bytes for the checks behind stores.
pub const STORES_SCRATCH: usize = gate::ADDRESS + offset_of!(Gate, scratch);
/// The routine that a check behind a store calls when the thread has announced some: with the address
/// and the number of bytes. It keeps all registers and flags except those two and what is wider
/// than sixteen bytes.
pub const STORED: &str = "selvedge_stored";
/// The same, which keeps only the first two vector registers.
pub const STORED_SHORT: &str = "selvedge_stored_short";
/// The same, which keeps all registers of every kind.
pub const STORED_EXTENDED: &str = "selvedge_stored_extended";
/// The routine that a trap calls, with the address of what to say. It does not return, so it may be
/// called anywhere, with any stack pointer.
pub const UNSUPPORTED: &str = "selvedge_unsupported";
/// The routine that clears a frame which was just allocated: called with the number of bytes, a
/// multiple of eight, on the stack, which it takes off. It keeps all registers, but not the flags.
pub const CLEAR_FRAME: &str = "selvedge_clear_frame";
/// C source of the modelled environment, in the order in which it is one file. It is compiled with
/// [`ENVIRONMENT_FLAGS`] and with instrumentation, and linked into programs that use it.
pub const ENVIRONMENT: [(&str, &str); 9] = [
    ("kernel.c", include_str!("../environment/kernel.c")),
    ("channels.c", include_str!("../environment/channels.c")),
    ("files.c", include_str!("../environment/files.c")),
    ("waiting.c", include_str!("../environment/waiting.c")),
    ("streams.c", include_str!("../environment/streams.c")),
    ("memory.c", include_str!("../environment/memory.c")),
    ("signals.c", include_str!("../environment/signals.c")),
    ("variables.c", include_str!("../environment/variables.c")),
    ("system.c", include_str!("../environment/system.c")),
];
/// C source of cancellation, which is compiled like that and linked into programs that cancel threads.
pub const CANCELLATION: (&str, &str) = (
    "cancellation.c",
    include_str!("../environment/cancellation.c"),
);
/// The function that makes a program one that cancels threads.
pub const CANCEL: &str = "pthread_cancel";
/// The functions that [`CANCELLATION`] replaces in such a program.
const CANCELLABLE: &str = "\
    clock_nanosleep nanosleep pthread_cond_clockwait pthread_cond_timedwait pthread_cond_wait \
    pthread_join pthread_setcancelstate pthread_setcanceltype pthread_testcancel sem_clockwait \
    sem_timedwait sem_wait sleep usleep";
/// The other functions that POSIX or the C library make cancellation points. A thread that may be
/// cancelled may not call them.
const OTHER_CANCELLATION_POINTS: &str = "\
    accept accept4 aio_suspend close cnd_timedwait cnd_wait connect creat creat64 epoll_pwait \
    epoll_pwait2 epoll_wait fcntl fcntl64 fdatasync fsync lockf lockf64 mq_receive mq_send \
    mq_timedreceive mq_timedsend msgrcv msgsnd msync open open64 openat openat64 pause poll ppoll \
    pread pread64 preadv preadv64 pselect pthread_clockjoin_np pthread_timedjoin_np pwrite pwrite64 \
    pwritev pwritev64 read readv recv recvfrom recvmmsg recvmsg select send sendmmsg sendmsg sendto \
    sigpause sigsuspend sigtimedwait sigwait sigwaitinfo system tcdrain thrd_join thrd_sleep wait \
    wait3 wait4 waitid waitpid write writev";
/// How to compile it, whatever the program's language is.
pub const ENVIRONMENT_FLAGS: [&str; 4] = ["-x", "c", "-w", "-U_FORTIFY_SOURCE"];
/// The header `selvedge.h`, for programs that talk to the checker.
pub const HEADER: &str = include_str!("../include/selvedge.h");
/// Headers that come before the compiler's own in C++: their names and texts.
pub const CXX_HEADERS: [(&str, &str); 2] = [
    (
        "bits/atomic_wait.h",
        include_str!("../include/cxx/bits/atomic_wait.h"),
    ),
    (
        "bits/atomic_timed_wait.h",
        include_str!("../include/cxx/bits/atomic_timed_wait.h"),
    ),
];

/// The functions and variables that the modelled environment defines.
pub fn environment_functions() -> impl Iterator<Item = &'static str> {
    let rows = symbols::environment().iter();
    rows.map(|function| &*function.name)
}

/// The functions that the linker has to wrap in a program that cancels threads, and assembly that stands in
/// for some of them. `used` tells of a function whether the program may call it and does not define it.
pub fn cancellation_points(used: impl Fn(&str) -> bool) -> (Vec<&'static str>, String) {
    let others = OTHER_CANCELLATION_POINTS.split_whitespace();
    let others: Vec<&str> = others.filter(|name| used(name)).collect();
    let mut text = String::new();
    for name in &others {
        // All registers that may hold arguments are kept, and the number of vector registers that do.
        let saved = ["rdi", "rsi", "rdx", "rcx", "r8", "r9", "rax"];
        let _ = writeln!(
            text,
            "\t.section .rodata\n1:\t.asciz \"{name}, a cancellation point in a thread that may be \
             cancelled, which is not modelled; disable cancellation around it \
             (pthread_setcancelstate)\"\n\t.text\n\t.globl __wrap_{name}\n\t.hidden __wrap_{name}\n\
             \t.type __wrap_{name}, @function\n__wrap_{name}:"
        );
        for register in saved {
            let _ = writeln!(text, "\tpushq %{register}");
        }
        let _ = writeln!(
            text,
            "\tleaq 1b(%rip), %rdi\n\tmovq 56(%rsp), %rsi\n\tcall __wrap_cancellation_point"
        );
        for register in saved.iter().rev() {
            let _ = writeln!(text, "\tpopq %{register}");
        }
        let _ = writeln!(text, "\tjmp __real_{name}@PLT");
    }
    text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    let replaced = CANCELLABLE.split_whitespace().filter(|name| used(name));
    (replaced.chain(others.iter().copied()).collect(), text)
}

/// Whether a program that leaves `name` undefined needs the modelled environment: the name is one of
/// its functions that is not modelled otherwise, or a part of the C++ library that calls some.
pub fn needs_environment(name: &str) -> bool {
    let cxx = [
        "_ZSt3cin",
        "basic_ifstream",
        "basic_ofstream",
        "basic_fstream",
        "basic_filebuf",
    ];
    let refused = || matches!(symbols::classify(name), symbols::Symbol::Refused(_));
    cxx.iter().any(|part| name.contains(part))
        || (refused() && environment_functions().any(|function| function == name))
}

/// Assembly (AT&T syntax, for the C compiler's driver) that must be linked into every program: one
/// hidden function per entry point of the runtime.
pub fn stub_assembly() -> String {
    let at = |offset: usize| gate::ADDRESS + offset;
    let registers = at(offset_of!(Gate, registers));
    let mut text = String::from("\t.text\n");
    settle_routine(&mut text, at(offset_of!(Gate, targets.settle)));
    stored_routines(&mut text, at(offset_of!(Gate, targets.stored)));
    clear_routine(&mut text, at(offset_of!(Gate, scratch)));
    for (slot, export) in abi::exports().iter().enumerate() {
        let name = &export.name;
        let _ = write!(
            text,
            "\t.weak {name}\n\t.hidden {name}\n\t.type {name}, @function\n\t.p2align 4\n{name}:\n\
             \tcmpl $0, {attention:#x}\n\tjne 2f\n\
             1:\tmovq (%rsp), %r11\n\tmovq %r11, {site:#x}\n\tmovq %rsp, {sp:#x}\n",
            attention = at(offset_of!(Gate, attention)),
            site = at(offset_of!(Gate, site)),
            sp = at(offset_of!(Gate, stack_pointer)),
        );
        if export.entry != Entry::Light {
            for (register, offset) in CALLEE_SAVED {
                let _ = writeln!(text, "\tmovq %{register}, {:#x}", registers + offset);
            }
        }
        let arguments = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];
        for (i, register) in arguments[..export.entry.arguments()].iter().enumerate() {
            let to = at(offset_of!(Gate, arguments)) + 8 * i;
            let _ = writeln!(text, "\tmovq %{register}, {to:#x}");
        }
        let entering = at(offset_of!(Gate, entering));
        if export.entry != Entry::Light {
            let _ = writeln!(text, "\tmovl ${slot}, {entering:#x}");
        }
        if !export.is_undoable() {
            let barrier = at(offset_of!(Gate, barrier));
            let _ = writeln!(text, "\tmovl $1, {barrier:#x}");
        }
        let _ = write!(
            text,
            "\tjmp *{target:#x}\n2:\tmovl ${slot}, {entering:#x}\n\tcall selvedge_settle\n\
             \tjmp 1b\n\t.size {name}, . - {name}\n",
            target = at(offset_of!(Gate, targets.table)) + 8 * slot,
        );
    }
    let _ = write!(
        text,
        "\t.type {STUBS_END}, @function\n{STUBS_END}:\n\tud2\n\t.size {STUBS_END}, 2\n"
    );
    let _ = write!(
        text,
        "\t.globl {UNSUPPORTED}\n\t.hidden {UNSUPPORTED}\n\t.type {UNSUPPORTED}, @function\n\
         {UNSUPPORTED}:\n\tmovq (%rsp), %rsi\n\tandq $-16, %rsp\n\tcall selvedge_give_up\n\
         \tud2\n\t.size {UNSUPPORTED}, . - {UNSUPPORTED}\n"
    );
    text.push_str(&symbols::refusing_stubs(symbols::refused_names()));
    text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    text
}

/// The first function of the stubs, and what comes after the last one.
pub(crate) const STUBS: &str = "selvedge_settle";
pub(crate) const STUBS_END: &str = "selvedge_stubs_end";

/// The routine that stubs call while something is left over from the thread's last entry. It keeps
/// every register that can carry an argument.
fn settle_routine(text: &mut String, settle: usize) {
    let registers = ["rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10"];
    let _ = write!(text, "\t.type {STUBS}, @function\n{STUBS}:\n");
    for register in registers {
        let _ = writeln!(text, "\tpushq %{register}");
    }
    text.push_str("\tleaq -128(%rsp), %rsp\n");
    for i in 0..8 {
        let _ = writeln!(text, "\tmovups %xmm{i}, {}(%rsp)", 16 * i);
    }
    let _ = writeln!(text, "\tcall *{settle:#x}");
    for i in 0..8 {
        let _ = writeln!(text, "\tmovups {}(%rsp), %xmm{i}", 16 * i);
    }
    text.push_str("\tleaq 128(%rsp), %rsp\n");
    for register in registers.iter().rev() {
        let _ = writeln!(text, "\tpopq %{register}");
    }
    text.push_str("\tret\n\t.size selvedge_settle, . - selvedge_settle\n");
}

/// The routine [`CLEAR_FRAME`]. Registers are saved in the gate, because the stack would remember
/// them.
fn clear_routine(text: &mut String, scratch: usize) {
    let (rcx, rdi, rax) = (scratch, scratch + 8, scratch + 16);
    let _ = write!(
        text,
        "\t.globl {CLEAR_FRAME}\n\t.hidden {CLEAR_FRAME}\n\t.type {CLEAR_FRAME}, @function\n\
         {CLEAR_FRAME}:\n\tmovq %rcx, {rcx:#x}\n\tmovq 8(%rsp), %rcx\n\
         \tcmpq $512, %rcx\n\tja 2f\n\
         1:\tsubq $8, %rcx\n\tjl 3f\n\tmovq $0, 16(%rsp,%rcx)\n\tjmp 1b\n\
         2:\tmovq %rdi, {rdi:#x}\n\tmovq %rax, {rax:#x}\n\
         \tleaq 16(%rsp), %rdi\n\tshrq $3, %rcx\n\txorl %eax, %eax\n\trep stosq\n\
         \tmovq {rdi:#x}, %rdi\n\tmovq {rax:#x}, %rax\n\
         3:\tmovq {rcx:#x}, %rcx\n\tret $8\n\
         \t.size {CLEAR_FRAME}, . - {CLEAR_FRAME}\n"
    );
}

/// The routines [`STORED`], [`STORED_SHORT`] and [`STORED_EXTENDED`].
fn stored_routines(text: &mut String, stored: usize) {
    let registers = ["rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "rbx"];
    for (name, vectors) in [(STORED_SHORT, 2), (STORED, 16), (STORED_EXTENDED, 0)] {
        let extended = name == STORED_EXTENDED;
        let _ = write!(
            text,
            "\t.globl {name}\n\t.hidden {name}\n\t.type {name}, @function\n{name}:\n\tpushfq\n"
        );
        for register in registers {
            let _ = writeln!(text, "\tpushq %{register}");
        }
        text.push_str("\tmovq %rsp, %rbx\n");
        if extended {
            // The floating-point stack and vectors of every width (`XCR0` bits 0-2 and 5-7). The 64
            // bytes of the area's header must be zero at first.
            text.push_str("\tsubq $4096, %rsp\n\tandq $-64, %rsp\n\txorl %eax, %eax\n");
            for i in 0..8 {
                let _ = writeln!(text, "\tmovq %rax, {}(%rsp)", 512 + 8 * i);
            }
            text.push_str("\tmovl $0xe7, %eax\n\txorl %edx, %edx\n\txsave64 (%rsp)\n\tfninit\n");
        } else {
            let _ = write!(text, "\tsubq ${}, %rsp\n\tandq $-16, %rsp\n", 16 * vectors);
            for i in 0..vectors {
                let _ = writeln!(text, "\tmovaps %xmm{i}, {}(%rsp)", 16 * i);
            }
        }
        let _ = writeln!(text, "\tcall *{stored:#x}");
        if extended {
            text.push_str("\tmovl $0xe7, %eax\n\txorl %edx, %edx\n\txrstor64 (%rsp)\n");
        } else {
            for i in 0..vectors {
                let _ = writeln!(text, "\tmovaps {}(%rsp), %xmm{i}", 16 * i);
            }
        }
        text.push_str("\tmovq %rbx, %rsp\n");
        for register in registers.iter().rev() {
            let _ = writeln!(text, "\tpopq %{register}");
        }
        let _ = write!(text, "\tpopfq\n\tret\n\t.size {name}, . - {name}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cancellation_point_that_is_replaced_has_a_replacement() {
        let text = CANCELLATION.1;
        let defined = text.lines().filter_map(|line| {
            let declared = line.strip_prefix("WRAP ")?.split_once('(')?.0;
            declared.split_once("__wrap_").map(|(_, name)| name)
        });
        let mut defined: Vec<&str> = defined.collect();
        defined.retain(|&name| name != "cancellation_point");
        defined.sort_unstable();
        let named: Vec<&str> = CANCELLABLE.split_whitespace().collect();
        assert_eq!(defined, named);
    }

    /// The table has every function that `environment/*.c` defines.
    #[test]
    fn the_table_has_all_of_the_environment() {
        let lines = ENVIRONMENT.iter().flat_map(|(_, text)| text.lines());
        let defined = lines.filter_map(|line| {
            let declared = line.strip_prefix("API ")?;
            let name = declared
                .split(['(', ';'])
                .find(|part| !part.ends_with(' '))?;
            Some(name.rsplit([' ', '*']).next().unwrap_or(name))
        });
        let mut defined: Vec<&str> = defined.collect();
        let mut listed: Vec<&str> = environment_functions().collect();
        defined.sort_unstable();
        listed.sort_unstable();
        assert_eq!(defined, listed);
    }

    #[test]
    fn other_cancellation_points_keep_their_arguments() {
        let (wrapped, text) = cancellation_points(|name| name == "write" || name == "sleep");
        assert_eq!(wrapped, ["sleep", "write"]);
        assert_eq!(text.matches("pushq").count(), text.matches("popq").count());
        assert!(text.contains("jmp __real_write@PLT"), "{text}");
        assert!(!text.contains("__wrap_sleep"), "{text}");
    }
}
