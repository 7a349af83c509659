//! `std::terminate`, called from `shim.cc`.

use selvedge_core::FailureKind;

use crate::current;
use crate::posix::{entry_points, program};

entry_points![
    selvedge_uncaught(2),
    selvedge_terminate(0),
    __cxa_pure_virtual(0),
    __cxa_deleted_virtual(0),
];

extern "C" fn selvedge_uncaught(name: usize, what: usize) -> ! {
    let name = program::text(name);
    let message = match what {
        0 => format!("uncaught exception of type {name}"),
        what => format!("uncaught exception of type {name}: {}", program::text(what)),
    };
    current::fail(FailureKind::UncaughtException, message, current::site())
}

extern "C" fn selvedge_terminate() -> ! {
    let message = String::from(
        "std::terminate() was called without an exception, as when a std::thread is destroyed that \
         was neither joined nor detached",
    );
    current::fail(FailureKind::Abort, message, current::site())
}

extern "C" fn __cxa_pure_virtual() -> ! {
    let message = String::from("a pure virtual function was called");
    current::fail(FailureKind::Abort, message, current::site())
}

extern "C" fn __cxa_deleted_virtual() -> ! {
    let message = String::from("a deleted virtual function was called");
    current::fail(FailureKind::Abort, message, current::site())
}
