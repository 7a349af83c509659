//! Atomic operations: the callback performs them, and all of them sequentially consistent, because
//! that is what was verified.

use core::arch::asm;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::event::{event, hidden};
use super::plan;
use super::stub::stubs;
use super::thread;

/// Earlier stores must reach memory before a load.
#[inline(always)]
fn before_load() {
    let me = thread::current();
    if core::mem::take(&mut me.dirty) != 0 {
        core::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// An access to the value that a compare-exchange expects; gcc passes its address. It is an event
/// of its own where others can reach it.
pub(super) fn at_plain<R>(address: usize, access: impl FnOnce() -> R) -> R {
    let private = !plan::present().plain_events || thread::current().owns(address);
    if private { access() } else { hidden(access) }
}

/// The callbacks for one width, in terms of an atomic type.
macro_rules! width {
    ($module:ident, $type:ty, $atomic:ty, $prefix:literal) => {
        mod $module {
            use super::*;

            fn at(address: *mut $type) -> &'static $atomic {
                // SAFETY: the program accesses what lies there atomically; a bad address faults.
                unsafe { <$atomic>::from_ptr(address) }
            }

            extern "C" fn load(address: *mut $type, _: c_int) -> $type {
                before_load();
                event(|| at(address).load(Ordering::SeqCst))
            }

            extern "C" fn store(address: *mut $type, value: $type, _: c_int) {
                event(|| at(address).swap(value, Ordering::SeqCst));
            }

            extern "C" fn exchange(address: *mut $type, value: $type, _: c_int) -> $type {
                event(|| at(address).swap(value, Ordering::SeqCst))
            }

            extern "C" fn fetch_add(address: *mut $type, value: $type, _: c_int) -> $type {
                event(|| at(address).fetch_add(value, Ordering::SeqCst))
            }

            extern "C" fn fetch_sub(address: *mut $type, value: $type, _: c_int) -> $type {
                event(|| at(address).fetch_sub(value, Ordering::SeqCst))
            }

            extern "C" fn fetch_and(address: *mut $type, value: $type, _: c_int) -> $type {
                event(|| at(address).fetch_and(value, Ordering::SeqCst))
            }

            extern "C" fn fetch_or(address: *mut $type, value: $type, _: c_int) -> $type {
                event(|| at(address).fetch_or(value, Ordering::SeqCst))
            }

            extern "C" fn fetch_xor(address: *mut $type, value: $type, _: c_int) -> $type {
                event(|| at(address).fetch_xor(value, Ordering::SeqCst))
            }

            extern "C" fn fetch_nand(address: *mut $type, value: $type, _: c_int) -> $type {
                event(|| at(address).fetch_nand(value, Ordering::SeqCst))
            }

            extern "C" fn compare_exchange(
                address: *mut $type,
                expected: *mut $type,
                desired: $type,
                success: c_int,
                failure: c_int,
            ) -> c_int {
                let where_to = expected.expose_provenance();
                // SAFETY: the program passes the address of a variable; a bad one faults.
                let wanted = at_plain(where_to, || unsafe { expected.read_unaligned() });
                let found = compare_exchange_value(address, wanted, desired, success, failure);
                if found == wanted {
                    return 1;
                }
                // SAFETY: as above.
                at_plain(where_to, || unsafe { expected.write_unaligned(found) });
                0
            }

            extern "C" fn compare_exchange_value(
                address: *mut $type,
                expected: $type,
                desired: $type,
                _: c_int,
                _: c_int,
            ) -> $type {
                event(|| {
                    let order = Ordering::SeqCst;
                    match at(address).compare_exchange(expected, desired, order, order) {
                        Ok(found) | Err(found) => found,
                    }
                })
            }

            width!(@stubs $prefix);
        }
    };
    (@stubs $prefix:literal) => {
        stubs![
            $prefix "load" => load,
            $prefix "store" => store,
            $prefix "exchange" => exchange,
            $prefix "fetch_add" => fetch_add,
            $prefix "fetch_sub" => fetch_sub,
            $prefix "fetch_and" => fetch_and,
            $prefix "fetch_or" => fetch_or,
            $prefix "fetch_xor" => fetch_xor,
            $prefix "fetch_nand" => fetch_nand,
            $prefix "compare_exchange_strong" => compare_exchange,
            $prefix "compare_exchange_weak" => compare_exchange,
            $prefix "compare_exchange_val" => compare_exchange_value,
        ];
    };
}

width!(atomic8, u8, AtomicU8, "__tsan_atomic8_");
width!(atomic16, u16, AtomicU16, "__tsan_atomic16_");
width!(atomic32, u32, AtomicU32, "__tsan_atomic32_");
width!(atomic64, u64, AtomicU64, "__tsan_atomic64_");
width!(atomic128, u128, Atomic128, "__tsan_atomic128_");

stubs![
    "__tsan_atomic_thread_fence" => fence,
    "__tsan_atomic_signal_fence" => signal_fence,
];

/// Nothing to do: everything is in order already.
extern "C" fn fence(_: c_int) {
    thread::current().dirty = 0;
    core::sync::atomic::fence(Ordering::SeqCst);
}

/// Orders a thread with its own signal handlers only.
extern "C" fn signal_fence(_: c_int) {}

/// Sixteen bytes that are accessed as a whole.
struct Atomic128(core::cell::UnsafeCell<u128>);

impl Atomic128 {
    /// # Safety
    ///
    /// As for the smaller ones.
    unsafe fn from_ptr<'a>(address: *mut u128) -> &'a Atomic128 {
        // SAFETY: the cell is transparent as far as its address is concerned.
        unsafe { &*address.cast() }
    }

    fn compare_exchange(
        &self,
        expected: u128,
        desired: u128,
        _: Ordering,
        _: Ordering,
    ) -> Result<u128, u128> {
        let (low, high): (u64, u64);
        // SAFETY: every processor that has atomic operations of this width has the instruction; the
        // address is the program's claim. `rbx` cannot be named as an operand, and is none: the address
        // would be lost if the compiler could choose `rbx` for it.
        unsafe {
            asm!(
                "xchg {desired_low}, rbx",
                "lock cmpxchg16b xmmword ptr [rdi]",
                "mov rbx, {desired_low}",
                in("rdi") self.0.get(),
                desired_low = inout(reg) desired as u64 => _,
                in("rcx") (desired >> 64) as u64,
                inout("rax") expected as u64 => low,
                inout("rdx") (expected >> 64) as u64 => high,
            );
        }
        let found = u128::from(high) << 64 | u128::from(low);
        if found == expected {
            Ok(found)
        } else {
            Err(found)
        }
    }

    fn update(&self, new: impl Fn(u128) -> u128) -> u128 {
        let order = Ordering::SeqCst;
        let mut seen = 0;
        loop {
            match self.compare_exchange(seen, new(seen), order, order) {
                Ok(found) => return found,
                Err(found) => seen = found,
            }
        }
    }

    fn load(&self, _: Ordering) -> u128 {
        self.update(|value| value)
    }

    fn swap(&self, new: u128, _: Ordering) -> u128 {
        self.update(|_| new)
    }

    fn fetch_add(&self, operand: u128, _: Ordering) -> u128 {
        self.update(|value| value.wrapping_add(operand))
    }

    fn fetch_sub(&self, operand: u128, _: Ordering) -> u128 {
        self.update(|value| value.wrapping_sub(operand))
    }

    fn fetch_and(&self, operand: u128, _: Ordering) -> u128 {
        self.update(|value| value & operand)
    }

    fn fetch_or(&self, operand: u128, _: Ordering) -> u128 {
        self.update(|value| value | operand)
    }

    fn fetch_xor(&self, operand: u128, _: Ordering) -> u128 {
        self.update(|value| value ^ operand)
    }

    fn fetch_nand(&self, operand: u128, _: Ordering) -> u128 {
        self.update(|value| !(value & operand))
    }
}

/// gcc calls it for `x += y` of atomic floating-point numbers; elsewhere libatomic has it.
extern "C" fn raise_exceptions(exceptions: u32) {
    let mut control = 0_u32;
    let at = &raw mut control;
    // SAFETY: it is stored where there is room for it.
    unsafe { asm!("stmxcsr [{}]", in(reg) at, options(nostack, preserves_flags)) };
    control |= exceptions & 0x3f;
    // SAFETY: exceptions that the thread may have seen are all that was added.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, preserves_flags)) };
}

stubs!["__atomic_feraiseexcept" => raise_exceptions];
