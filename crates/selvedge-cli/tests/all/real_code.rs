//! Libraries from Debian's packages, checked as they are installed, and once more with something
//! taken out of them. `.ci/run` installs the packages; the table is in `docs/real-code.md`.

use std::path::Path;

use crate::common::Sandbox;

const DPDK: [&str; 3] = [
    "-I/usr/include/dpdk",
    "-I/usr/include/x86_64-linux-gnu/dpdk",
    "-mssse3",
];

/// Checks `file` and expects this many executions and no bug, or the bug that begins with these words.
#[track_caller]
fn check(file: &str, model: &str, flags: &[&str], expected: Result<u32, &str>) {
    check_with(file, &[], model, flags, expected);
}

/// The same for a program with more files.
#[track_caller]
fn check_with(file: &str, more: &[&str], model: &str, flags: &[&str], expected: Result<u32, &str>) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real");
    let path = directory.join(file).display().to_string();
    let options = ["--model", model, "--timeout", "120", "--"];
    let arguments = [&["verify", &path], more, &options[..], flags].concat();
    let outcome = Sandbox::new().run(&arguments);
    match expected {
        Ok(executions) => outcome
            .ends_with(0)
            .prints(&format!("({executions} execution")),
        Err(bug) => outcome.ends_with(1).prints(&format!("bug: {bug}")),
    };
}

#[test]
#[ignore = "needs libboost-dev"]
fn boost_lockfree() {
    check("boost_spsc.cc", "rc11", &[], Ok(9));
    check("boost_spsc.cc", "rc11", &["-DWEAK"], Err("data race"));
    check("boost_queue.cc", "rc11", &[], Ok(4));
    check("boost_queue.cc", "rc11", &["-DWEAK"], Err("data race"));
    check("boost_stack.cc", "rc11", &[], Ok(2));
    // The pool of a stack with a fixed capacity reads the link of a node that another thread may
    // have taken and be writing to: a race by the standard, of which the exchange that follows
    // discards the result.
    check("boost_stack.cc", "rc11", &["-DPOOL"], Err("data race"));
}

#[test]
#[ignore = "needs libboost-dev and libck-dev"]
fn advice_names_the_lines_of_libraries() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real");
    let run = |arguments: &[&str]| {
        let sandbox = Sandbox::new();
        let mut command = sandbox.command(arguments);
        let output = command.current_dir(&directory).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let boost = run(&["verify", "boost_queue.cc", "--", "-DWEAK"]);
    let expected = "advice: boost_queue.cc:16: in boost::lockfree::queue<int, …>::pop<int> \
                    (/usr/include/boost/lockfree/queue.hpp:418)\n          make the load of ";
    assert!(boost.contains(expected), "{boost}");
    // The accesses are inline assembly in functions that compilers do not instrument.
    let ring = run(&["verify", "ck_ring.c"]);
    let expected = "advice: ck_ring.c:11: in _ck_ring_enqueue_sp (/usr/include/ck_ring.h:200)\n          \
                    make the store to ring.p_tail memory_order_release (it is relaxed)\n        \
                    ck_ring.c:23: in _ck_ring_dequeue_sc (/usr/include/ck_ring.h:229)\n          \
                    make the load of ring.p_tail memory_order_acquire (it is relaxed)\n";
    assert!(ring.contains(expected), "{ring}");
}

#[test]
#[ignore = "needs libconcurrentqueue-dev"]
fn moodycamel() {
    check("moodycamel.cc", "rc11", &[], Ok(3));
    check("moodycamel.cc", "rc11", &["-DWEAK"], Err("data race"));
    check("moodycamel_blocking.cc", "rc11", &[], Ok(4));
    check(
        "moodycamel_blocking.cc",
        "rc11",
        &["-DWEAK"],
        Err("data race"),
    );
}

#[test]
#[ignore = "needs libck-dev"]
fn concurrency_kit() {
    check("ck_ring.c", "tso", &[], Ok(9));
    // Without the order that x86 gives to every access.
    check("ck_ring.c", "rc11", &[], Err("data race"));
    check("ck_spinlock.c", "tso", &["-DLOCK=fas"], Ok(4));
    check("ck_spinlock.c", "tso", &["-DLOCK=fas", "-DWEAK"], Err(""));
    check("ck_spinlock.c", "tso", &["-DLOCK=cas"], Ok(4));
    check(
        "ck_spinlock.c",
        "tso",
        &["-DLOCK=cas", "-DWEAK"],
        Err("data race"),
    );
    check("ck_spinlock.c", "sc", &["-DLOCK=ticket"], Ok(4));
    let weak = ["-DLOCK=ticket", "-DWEAK"];
    check("ck_spinlock.c", "sc", &weak, Err("endless spinning"));
    check("ck_stack.c", "tso", &[], Ok(4));
    check("ck_stack.c", "tso", &["-DWEAK"], Err("assertion failed"));
    check("ck_fifo.c", "tso", &[], Ok(2));
    check("ck_fifo.c", "tso", &["-DWEAK"], Err("assertion failed"));
}

#[test]
#[ignore = "needs libdpdk-dev"]
fn dpdk() {
    let with = |more: &'static [&'static str]| [&DPDK[..], more].concat();
    check("dpdk_ring.c", "tso", &with(&[]), Ok(2));
    // The variant for x86, without the order that x86 gives to every access.
    check("dpdk_ring.c", "rc11", &with(&[]), Err("data race"));
    check(
        "dpdk_ring.c",
        "rc11",
        &with(&["-DRTE_USE_C11_MEM_MODEL"]),
        Ok(2),
    );
    check("dpdk_locks.c", "rc11", &with(&["-DLOCK=spinlock"]), Ok(4));
    // That one is inline assembly, which has no orders to weaken.
    let in_c = with(&["-DLOCK=spinlock", "-DRTE_FORCE_INTRINSICS"]);
    check("dpdk_locks.c", "rc11", &in_c, Ok(2));
    let weak = [&in_c[..], &["-DWEAK"]].concat();
    check("dpdk_locks.c", "rc11", &weak, Err("data race"));
    check("dpdk_locks.c", "sc", &with(&["-DLOCK=ticketlock"]), Ok(8));
}

#[test]
#[ignore = "needs liburcu-dev"]
fn userspace_rcu() {
    check("urcu_mb.c", "tso", &[], Ok(14));
    check("urcu_mb.c", "tso", &["-DWEAK"], Err("data race"));
}

#[test]
#[ignore = "needs libtbb-dev"]
fn one_tbb() {
    check("tbb_mutex.cc", "rc11", &["-DLOCK=spin_mutex"], Ok(12));
    check(
        "tbb_mutex.cc",
        "rc11",
        &["-DLOCK=spin_mutex", "-DWEAK"],
        Err("data race"),
    );
    check("tbb_mutex.cc", "rc11", &["-DLOCK=spin_rw_mutex"], Ok(28));
    check("tbb_mutex.cc", "rc11", &["-DLOCK=queuing_mutex"], Ok(86));
    check(
        "tbb_mutex.cc",
        "rc11",
        &["-DLOCK=queuing_mutex", "-DWEAK"],
        Err("access to memory"),
    );
}

#[test]
#[ignore = "needs libgtest-dev"]
fn google_test() {
    let library = ["/usr/src/googletest/googletest/src/gtest-all.cc"];
    let include = "-I/usr/src/googletest/googletest";
    check_with("gtest.cc", &library, "rc11", &[include], Ok(2));
    let weak = [include, "-DWEAK"];
    check_with("gtest.cc", &library, "rc11", &weak, Err("assertion failed"));
}
