//! A program under test cannot reach beyond its process, and cannot turn a bug into a proof.

use std::process::Stdio;

use crate::common::{Outcome, Sandbox};

/// Addresses of the C library that no list of permitted functions knows of: the program finds them by
/// their distance from a function that it may call.
pub(crate) fn attack(call: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n\
         #include <stdlib.h>\n\
         typedef long (*any)();\n\
         static any find(long distance) {{ return (any)((char *)(any)labs + distance); }}\n\
         int main(void) {{ {call} return 0; }}\n"
    )
}

/// How far `name` lies behind `labs` in the C library of this machine.
pub(crate) fn distance(sandbox: &Sandbox, name: &str) -> i64 {
    let text = format!(
        "#define _GNU_SOURCE\n\
         #include <dlfcn.h>\n\
         #include <stdio.h>\n\
         int main(void) {{\n\
           printf(\"%ld\", (long)((char *)dlsym(RTLD_DEFAULT, \"{name}\")\n\
             - (char *)dlsym(RTLD_DEFAULT, \"labs\")));\n\
         }}\n"
    );
    sandbox.write("distance.c", &text);
    let program = sandbox.path("distance");
    let mut compiler = std::process::Command::new("cc");
    compiler
        .arg(sandbox.path("distance.c"))
        .arg("-o")
        .arg(&program);
    assert!(compiler.arg("-ldl").status().unwrap().success());
    let output = std::process::Command::new(program).output().unwrap();
    String::from_utf8(output.stdout).unwrap().parse().unwrap()
}

#[test]
fn system_calls_that_reach_beyond_the_process_are_bugs() {
    let sandbox = Sandbox::new();
    for (function, arguments, calls) in [
        ("unlink", "\"victim\"", &["unlink"][..]),
        ("rename", "\"victim\", \"other\"", &["rename"]),
        ("system", "\"rm victim\"", &["clone3", "clone", "vfork"]),
        ("execl", "\"/bin/rm\", \"rm\", \"victim\", 0", &["execve"]),
        ("fork", "", &["clone"]),
        ("creat", "\"victim\", 0600", &["creat", "openat", "open"]),
        ("truncate", "\"victim\", 0L", &["truncate"]),
        ("socket", "2, 1, 0", &["socket"]),
        ("kill", "1, 0", &["kill"]),
        // Have a process of somebody else sent a signal whenever a descriptor is ready, 8 being F_SETOWN.
        ("fcntl", "1, 8, 1", &["fcntl"]),
        ("prctl", "1, 0", &["prctl"]),
        ("ptrace", "0, 0, 0, 0", &["ptrace"]),
    ] {
        sandbox.write("victim", "precious");
        let distance = distance(&sandbox, function);
        let call = format!("find({distance}L)({arguments});");
        sandbox.write("attack.c", &attack(&call));
        let outcome = sandbox.run(&["verify", "attack.c"]);
        outcome.ends_with(1);
        let named = calls
            .iter()
            .map(|call| format!("the system call {call} is not allowed"));
        let mut named =
            named.chain(["the program made a system call that is not allowed".to_owned()]);
        let bug = |what: String| {
            let text = format!("bug: forbidden system call: {what}");
            outcome.stdout.starts_with(&text)
        };
        assert!(named.any(bug), "{function}: {outcome:?}");
        let left = std::fs::read_to_string(sandbox.path("victim")).unwrap();
        assert_eq!(left, "precious", "{function}");
    }
}

#[test]
fn searches_over_states_are_confined_as_well() {
    let sandbox = Sandbox::new();
    sandbox.write("victim", "precious");
    let distance = distance(&sandbox, "unlink");
    sandbox.write(
        "attack.c",
        &attack(&format!("find({distance}L)(\"victim\");")),
    );
    for jobs in ["1", "2"] {
        let arguments = ["verify", "attack.c", "--algorithm", "csdr", "--jobs", jobs];
        let outcome = sandbox.run(&arguments);
        outcome.ends_with(1).prints("forbidden system call");
        assert!(sandbox.path("victim").exists());
    }
}

/// Several processes that search together have been copied from one. Constructors and the beginning of `main` run before
/// that, while the process may still make copies, but only by `fork`.
#[test]
fn searches_by_several_processes_are_confined_as_well() {
    let sandbox = Sandbox::new();
    let early = "__attribute__((constructor)) static void attack(void)";
    let late = "static void attack(void)";
    for (function, arguments, calls, place) in [
        ("fork", "", &["clone"][..], late),
        ("kill", "1, 0", &["kill"], late),
        ("prctl", "1, 9", &["prctl"], late),
        ("kill", "1, 0", &["kill"], early),
        ("kill", "-1, 0", &["kill"], early),
        ("prctl", "4, 1", &["prctl"], early),
        ("syscall", "56, 0x10000011L, 0L", &["clone"], early),
        ("system", "\"true\"", &["clone3", "clone", "vfork"], early),
    ] {
        let distance = distance(&sandbox, function);
        let text = attack(if place == late {
            "x = 1; attack();"
        } else {
            ""
        })
        .replace(
            "int main",
            &format!(
                "static _Atomic int x; {place} {{ find({distance}L)({arguments}); }}\nint main"
            ),
        );
        sandbox.write("attack.c", &text);
        let outcome = sandbox.run(&["verify", "attack.c", "--algorithm", "csdr", "--jobs", "2"]);
        let said = &outcome.ends_with(1).stdout;
        let named = |call: &&str| said.contains(&format!("the system call {call} is not allowed"));
        // The C library blocks signals while it starts a process, so that the number of the call is lost.
        let unnamed = said.contains("the program made a system call that is not allowed");
        assert!(
            unnamed || calls.iter().any(named),
            "{function}, {place}: {outcome:?}"
        );
    }
}

/// Copying the process is the one possible action there, and it ends the search.
#[test]
fn programs_that_copy_the_process_are_not_verified() {
    let sandbox = Sandbox::new();
    let fork = format!("find({}L)();", distance(&sandbox, "fork"));
    let early =
        format!("__attribute__((constructor)) static void early(void) {{ {fork} }}\nint main");
    for text in [attack(&fork), attack("").replace("int main", &early)] {
        sandbox.write("attack.c", &text);
        let run =
            |jobs| sandbox.run(&["verify", "attack.c", "--algorithm", "csdr", "--jobs", jobs]);
        run("2")
            .ends_with(3)
            .prints("the program has started a process");
        run("1")
            .ends_with(1)
            .prints("the system call clone is not allowed");
    }
}

/// A descriptor that the caller of the command happened to have open is closed.
#[test]
fn inherited_descriptors_are_out_of_reach() {
    let sandbox = Sandbox::new();
    let distance = distance(&sandbox, "write");
    let call = format!("return find({distance}L)(7L, \"broken\", 6L) == 6;");
    sandbox.write("attack.c", &attack(&call));
    sandbox.write("victim", "precious");
    let command = sandbox.command(&["verify", "attack.c", "--check-status"]);
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "exec \"$0\" \"$@\" 7>>victim"])
        .arg(command.get_program());
    shell.args(command.get_args()).current_dir(sandbox.path(""));
    shell.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let outcome = sandbox.finish(shell.spawn().unwrap());
    outcome.ends_with(0);
    let left = std::fs::read_to_string(sandbox.path("victim")).unwrap();
    assert_eq!(left, "precious");
}

#[test]
fn the_table_of_calls_cannot_be_written_to() {
    let text = "\
#include <assert.h>
#include <string.h>
__attribute__((no_sanitize_thread)) static void overwrite(void) {
  long *table = (long *)0x10001000;
  for (int i = 0; i < 4096; i++) table[i] = 0;
}
int main(void) { overwrite(); assert(0); }
";
    // Selvedge refuses such a function; without the attribute its stores are seen.
    let sandbox = Sandbox::with(
        "attack.c",
        &text.replace("__attribute__((no_sanitize_thread)) ", ""),
    );
    let outcome = sandbox.run(&["verify", "attack.c"]);
    outcome.ends_with(1).prints("bug: access to memory");
    // Nor can the C library be made to write there.
    let text = "\
#include <unistd.h>
int main(void) { char zero[64] = {0}; swab(zero, (char *)0x10001000, 64); return 0; }
";
    let sandbox = Sandbox::with("attack.c", text);
    let outcome = sandbox.run(&["verify", "attack.c"]);
    outcome.ends_with(1).prints("bug: access to memory");
}

/// The bug of `main`, or of a constructor if there is one, that does this.
fn reaches(statement: &str, declarations: &str) {
    let text = format!(
        "#include <stdatomic.h>\n#include <stdio.h>\n#include <string.h>\n{declarations}\n\
         DO {{ {statement} }}\n#ifdef EARLY\nint main(void) {{ return 0; }}\n#endif\n"
    );
    let sandbox = Sandbox::with("attack.c", &text);
    let early = "-DDO=__attribute__((constructor)) static void early(void)";
    for flags in [&["-DDO=int main(void)"][..], &[early, "-DEARLY"]] {
        for algorithm in ["trust", "csdr"] {
            let mut arguments = vec!["verify", "attack.c", "--model", "sc"];
            arguments.extend(["--algorithm", algorithm, "--", "-w", "-O0"]);
            arguments.extend(flags);
            let outcome = sandbox.run(&arguments);
            outcome.ends_with(1).prints("bug: access to memory");
        }
    }
}

/// Announced accesses cannot write the data that the worker needs: the page through which the program enters the
/// runtime, the C library's variables (its heap among them), and what lies behind the program's own variables.
#[test]
fn the_workers_memory_cannot_be_written_to() {
    let gate = "long *gate = (long *)0x10000000;";
    for store in [
        "*gate = 1;",
        "*(volatile long *)gate = 1;",
        "atomic_store((_Atomic long *)gate, 1);",
        "atomic_fetch_add((_Atomic long *)gate, 1);",
        "memset(gate, 0, 64);",
        "struct { char c[100]; } zero = {{0}}; *(typeof(zero) *)gate = zero;",
        "sprintf((char *)gate, \"%d\", 17);",
        "char *end = (char *)gate; int n; sscanf(\"17\", \"%d\", (int *)gate);",
    ] {
        reaches(&format!("{gate} {store}"), "");
    }
    reaches("*(long *)((char *)stdout + 64) = 1;", "");
    reaches("memset((char *)stdout - 2000, 0, 900);", "");
    reaches("memset(array, 0, 1 << 16);", "static char array[64];");
    reaches(
        "memcpy(array, (char *)array - 4096, 1 << 16);",
        "static char array[8192];",
    );
}

/// The trace of someone else may well say that its program is not confined.
#[test]
fn replays_are_confined_whatever_the_trace_says() {
    let sandbox = Sandbox::new();
    let distance = distance(&sandbox, "unlink");
    let call = format!("find({distance}L)(\"victim\"); abort();");
    sandbox.write("attack.c", &attack(&call));
    sandbox.write("victim", "precious");
    let free = ["verify", "attack.c", "--no-confinement", "--trace-out"];
    let outcome = sandbox.run(&[&free[..], &["t.json"]].concat());
    outcome.ends_with(1).prints("bug: the program aborts");
    assert!(!sandbox.path("victim").exists());
    sandbox.write("victim", "precious");
    let outcome = sandbox.run(&["replay", "t.json"]);
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(
        said.contains("the system call unlink is not allowed"),
        "{outcome:?}"
    );
    assert!(sandbox.path("victim").exists(), "{outcome:?}");
    sandbox
        .run(&["replay", "t.json", "--no-confinement"])
        .ends_with(1);
    assert!(!sandbox.path("victim").exists());
}

/// Runs the command on a kernel that has neither seccomp nor Landlock: a filter answers in its place, and all that
/// this thread starts inherits that.
pub(crate) fn without_support(sandbox: &Sandbox, arguments: &[&str]) -> Outcome {
    use nix::libc;
    let missing = seccompiler::SeccompAction::Errno(libc::ENOSYS as u32);
    let calls = [
        libc::SYS_seccomp,
        libc::SYS_landlock_create_ruleset,
        libc::SYS_landlock_restrict_self,
    ];
    let filter = seccompiler::SeccompFilter::new(
        calls.map(|call| (call, Vec::new())).into(),
        seccompiler::SeccompAction::Allow,
        missing,
        seccompiler::TargetArch::x86_64,
    );
    let filter: seccompiler::BpfProgram = filter.unwrap().try_into().unwrap();
    let run = || {
        seccompiler::apply_filter(&filter).unwrap();
        sandbox.run(arguments)
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[test]
fn where_the_kernel_cannot_confine_one_line_says_so() {
    let sandbox = Sandbox::with("program.c", crate::scale::COUNTERS);
    for options in [
        &["--jobs", "1"][..],
        &["--jobs", "2"],
        &["--algorithm", "csdr", "--jobs", "2"],
    ] {
        let arguments = [&["verify", "program.c", "--model", "sc"], options].concat();
        let outcome = without_support(&sandbox, &arguments);
        assert_eq!(
            outcome.ends_with(0).stderr.lines().count(),
            1,
            "{outcome:?}"
        );
        outcome.says("warning: this system cannot confine the program under test (");
        outcome.says("): run only programs that you trust\n");
        let confined = sandbox.run(&arguments);
        assert_eq!(confined.ends_with(0).stderr, "");
    }
}

#[test]
fn confinement_can_be_left_out() {
    let sandbox = Sandbox::new();
    sandbox.write("victim", "precious");
    let distance = distance(&sandbox, "unlink");
    sandbox.write(
        "attack.c",
        &attack(&format!("find({distance}L)(\"victim\");")),
    );
    let outcome = sandbox.run(&["verify", "attack.c", "--no-confinement"]);
    outcome.ends_with(0);
    assert!(!sandbox.path("victim").exists());
}

/// Nothing keeps such a program from the worker's memory, but it is not verified for it.
#[test]
fn a_program_that_overwrites_the_workers_memory_is_not_verified() {
    let sandbox = Sandbox::new();
    let (memset, sbrk) = (distance(&sandbox, "memset"), distance(&sandbox, "sbrk"));
    for (byte, size) in [(0xff, 1 << 17), (0, 1 << 18), (1, 1 << 19)] {
        let call = format!(
            "char *end = (char *)find({sbrk})(0L); find({memset})(end - {size}, {byte}, (long){size});"
        );
        sandbox.write("attack.c", &attack(&call));
        let outcome = sandbox.run(&["verify", "attack.c"]);
        outcome
            .ends_with(1)
            .prints("bug: fatal signal: the program destroyed the process that ran it");
    }
}

/// Nor may what is forbidden there be allowed again: the program would have functions of its own in the place of
/// those that report its bugs.
#[test]
fn the_table_of_calls_stays_protected() {
    let sandbox = Sandbox::new();
    let (page, size) = ("0x10001000L", "0x8000L");
    for (function, arguments) in [
        ("mprotect", format!("{page}, {size}, 3L")),
        ("munmap", format!("{page}, {size}")),
        ("munmap", format!("0xffff000L, {size}")),
        ("mmap", format!("{page}, {size}, 3L, 0x32L, -1L, 0L")),
        (
            "mmap",
            "0x1000L, 0x20000000L, 3L, 0x32L, -1L, 0L".to_owned(),
        ),
        (
            "mremap",
            format!("{page}, {size}, {size}, 3L, 0x700000000000L"),
        ),
        ("mremap", format!("page, {size}, {size}, 3L, {page}")),
        ("madvise", format!("{page}, {size}, 4L")),
    ] {
        let (distance, mmap) = (distance(&sandbox, function), distance(&sandbox, "mmap"));
        let call = format!(
            "long page = find({mmap}L)(0L, {size}, 3L, 0x22L, -1L, 0L); (void)page;\n\
             find({distance}L)({arguments}); abort();"
        );
        sandbox.write("attack.c", &attack(&call));
        for options in [
            &["--jobs", "1"][..],
            &["--algorithm", "csdr", "--jobs", "2"],
        ] {
            let outcome = sandbox.run(&[&["verify", "attack.c"], options].concat());
            let bug =
                format!("bug: forbidden system call: the system call {function} is not allowed");
            outcome.ends_with(1).prints(&bug);
        }
        let allowed = sandbox.run(&["verify", "attack.c", "--no-confinement"]);
        assert!(
            !allowed.stdout.contains("forbidden system call"),
            "{allowed:?}"
        );
    }
}

/// Where nothing keeps the table from being changed, one entry of it turns a bug into nothing at all. It is compared
/// with what it was.
#[test]
fn a_worker_whose_table_was_changed_has_no_verdict() {
    let sandbox = Sandbox::new();
    let (memcpy, mprotect) = (distance(&sandbox, "memcpy"), distance(&sandbox, "mprotect"));
    let entries =
        "long entries[4000]; for (int i = 0; i < 4000; i++) entries[i] = (long)(any)labs;";
    let call = format!(
        "{entries} find({mprotect}L)(0x10001000L, 0x8000L, 3L);\n\
         find({memcpy}L)(0x10001010L + 8L * 20, entries, sizeof entries); abort();"
    );
    sandbox.write("attack.c", &attack(&call));
    let outcome = sandbox.run(&["verify", "attack.c", "--no-confinement"]);
    outcome
        .ends_with(4)
        .says("the program has overwritten data of the worker");
    assert_eq!(outcome.stdout, "");
}

/// A program that finds a setting in the worker's memory and changes it, which functions of the C library at computed
/// addresses can do, does not get a verdict: neither `verified` nor a bug.
#[test]
fn a_worker_whose_settings_were_changed_has_no_verdict() {
    let sandbox = Sandbox::new();
    let (memcpy, sbrk) = (distance(&sandbox, "memcpy"), distance(&sandbox, "sbrk"));
    // The worker's variables and its heap lie one behind the other.
    let change = format!(
        "char *at = (char *)find({sbrk}L)(0L); long seen, other = 0;\n\
         while (at > (char *)0x555555554000) {{\n\
           find({memcpy}L)(&seen, at -= 8, 8L);\n\
           if (seen == 123457L << 10) {{ find({memcpy}L)(at, &other, 8L); break; }}\n\
         }}\n"
    );
    for end in ["", "abort();"] {
        sandbox.write("attack.c", &attack(&format!("{change} {end}")));
        for options in [
            &["--jobs", "1"][..],
            &["--jobs", "2"],
            &["--keep-going"],
            &["--model", "sc", "--algorithm", "source-dpor"],
            &["--model", "sc", "--algorithm", "csdr"],
        ] {
            let arguments = ["verify", "attack.c", "--heap-limit", "123457K"];
            let outcome = sandbox.run(&[&arguments, options].concat());
            outcome
                .ends_with(4)
                .says("the program has overwritten data of the worker");
            assert_eq!(outcome.stdout, "", "{options:?}");
        }
    }
}
