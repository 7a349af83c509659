//! Atomic operations: the callback performs them.

use std::ffi::c_int;

use selvedge_core::op::Rmw;
use selvedge_core::{Function, MemoryOrder, Op, Site, Value, Width};

use crate::abi::{Entry, Export};
use crate::current;
use crate::memory;
use crate::runtime::with;
use crate::tsan::plain;
use crate::weak::fails_spuriously;

/// The order behind the ABI's number.
pub(crate) fn order(number: c_int) -> MemoryOrder {
    match number & 0x7fff {
        0 => MemoryOrder::Relaxed,
        1 | 2 => MemoryOrder::Acquire,
        3 => MemoryOrder::Release,
        4 => MemoryOrder::AcqRel,
        _ => MemoryOrder::SeqCst,
    }
}

fn load(address: usize, width: u8, order: MemoryOrder) -> Value {
    let site = current::site();
    let at = current::location(address, Width(width));
    current::perform(Op::Load { at, order }, site).read
}

fn store(address: usize, width: u8, value: Value, order: MemoryOrder) {
    let site = current::site();
    let at = current::location(address, Width(width));
    current::perform(Op::Store { at, value, order }, site);
}

fn update(address: usize, width: u8, rmw: Rmw, orders: (MemoryOrder, MemoryOrder)) -> Value {
    let site = current::site();
    let at = current::location(address, Width(width));
    let function = Function::memory(Width(width), rmw);
    let (order, failure) = orders;
    current::perform(
        Op::Update {
            at,
            function,
            order,
            failure,
        },
        site,
    )
    .read
}

/// The value that a compare-exchange wants to see. gcc passes its address and announces nothing:
/// where others can reach it, it is a plain read.
pub(crate) fn expected_value(address: usize, width: u8, site: Site) -> Value {
    if with(|runtime| runtime.on_own_stack(address)) {
        memory::read(address, width)
    } else {
        plain::load(address, width, site)
    }
}

/// Puts the value that a failed compare-exchange found where it was told what to expect.
fn set_expected_value(address: usize, width: u8, value: Value, site: Site) {
    if with(|runtime| runtime.on_own_stack(address)) {
        memory::write(address, width, value);
    } else {
        plain::store(address, width, value, site);
    }
}

extern "C" fn thread_fence(number: c_int) {
    let site = current::site();
    current::perform(
        Op::Fence {
            order: order(number),
        },
        site,
    );
}

/// Orders a thread with its own signal handlers only.
extern "C" fn signal_fence(_: c_int) {}

/// The callbacks for one width.
macro_rules! width {
    ($module:ident, $type:ty, $bytes:literal) => {
        mod $module {
            use super::*;

            extern "C" fn load(address: *const $type, number: c_int) -> $type {
                super::load(address.addr(), $bytes, order(number)) as $type
            }

            extern "C" fn store(address: *mut $type, value: $type, number: c_int) {
                super::store(address.addr(), $bytes, Value::from(value), order(number));
            }

            width!(@rmw exchange Exchange $type, $bytes);
            width!(@rmw fetch_add Add $type, $bytes);
            width!(@rmw fetch_sub Sub $type, $bytes);
            width!(@rmw fetch_and And $type, $bytes);
            width!(@rmw fetch_or Or $type, $bytes);
            width!(@rmw fetch_xor Xor $type, $bytes);
            width!(@rmw fetch_nand Nand $type, $bytes);

            extern "C" fn compare_exchange_strong(
                address: *mut $type,
                expected: *mut $type,
                desired: $type,
                success: c_int,
                failure: c_int,
            ) -> c_int {
                let site = current::site();
                let wanted = expected_value(expected.addr(), $bytes, site) as $type;
                let found = compare_exchange_value(address, wanted, desired, success, failure);
                if found == wanted {
                    return 1;
                }
                set_expected_value(expected.addr(), $bytes, Value::from(found), site);
                0
            }

            extern "C" fn compare_exchange_weak(
                address: *mut $type,
                expected: *mut $type,
                desired: $type,
                success: c_int,
                failure: c_int,
            ) -> c_int {
                let asked = (expected.addr(), Value::from(desired), order(failure));
                if fails_spuriously(address.addr(), Width($bytes), asked) {
                    return 0;
                }
                compare_exchange_strong(address, expected, desired, success, failure)
            }

            extern "C" fn compare_exchange_value(
                address: *mut $type,
                expected: $type,
                desired: $type,
                success: c_int,
                failure: c_int,
            ) -> $type {
                let expected = Value::from(expected);
                let desired = Value::from(desired);
                if $bytes == 8 {
                    with(|runtime| {
                        runtime.compares(expected as usize);
                        runtime.compares(desired as usize);
                    });
                }
                let rmw = Rmw::CompareExchange { expected, desired };
                let orders = (order(success), order(failure));
                super::update(address.addr(), $bytes, rmw, orders) as $type
            }

            pub(super) fn exports() -> impl Iterator<Item = Export> {
                let functions: [(&str, *const ()); 12] = [
                    ("load", load as _),
                    ("store", store as _),
                    ("exchange", exchange as _),
                    ("fetch_add", fetch_add as _),
                    ("fetch_sub", fetch_sub as _),
                    ("fetch_and", fetch_and as _),
                    ("fetch_or", fetch_or as _),
                    ("fetch_xor", fetch_xor as _),
                    ("fetch_nand", fetch_nand as _),
                    ("compare_exchange_strong", compare_exchange_strong as _),
                    ("compare_exchange_weak", compare_exchange_weak as _),
                    ("compare_exchange_val", compare_exchange_value as _),
                ];
                functions.into_iter().map(|(name, function)| Export {
                    name: format!("__tsan_atomic{}_{name}", 8 * $bytes).into(),
                    function: function.addr(),
                    // Where a compare-exchange puts what it found is no part of the operation.
                    entry: if name.starts_with("compare") { Entry::Arguments(2) } else { Entry::Full },
                })
            }
        }
    };
    (@rmw $name:ident $rmw:ident $type:ty, $bytes:literal) => {
        extern "C" fn $name(address: *mut $type, operand: $type, number: c_int) -> $type {
            let order = order(number);
            let rmw = Rmw::$rmw(Value::from(operand));
            super::update(address.addr(), $bytes, rmw, (order, order)) as $type
        }
    };
}

width!(atomic8, u8, 1);
width!(atomic16, u16, 2);
width!(atomic32, u32, 4);
width!(atomic64, u64, 8);
width!(atomic128, u128, 16);

/// The callbacks.
pub(crate) fn exports() -> Vec<Export> {
    let fences: [(&'static str, *const ()); 2] = [
        ("__tsan_atomic_thread_fence", thread_fence as _),
        ("__tsan_atomic_signal_fence", signal_fence as _),
    ];
    let fences = fences.into_iter().map(|(name, function)| Export {
        name: name.into(),
        function: function.addr(),
        entry: Entry::Full,
    });
    atomic8::exports()
        .chain(atomic16::exports())
        .chain(atomic32::exports())
        .chain(atomic64::exports())
        .chain(atomic128::exports())
        .chain(fences)
        .collect()
}
