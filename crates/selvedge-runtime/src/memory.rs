//! Scalars in the program's memory.

use selvedge_core::Value;

use crate::arena::pointer;

/// Reads `width` bytes at `address`. A bad address faults, like the access of the program that it
/// stands for; the signal handler makes a failure of it.
#[inline(always)]
pub(crate) fn read(address: usize, width: u8) -> Value {
    // SAFETY: the program asked for this access; whether it is valid is the program's concern.
    unsafe {
        match width {
            1 => Value::from(pointer::<u8>(address).read_volatile()),
            2 => Value::from(pointer::<u16>(address).read_unaligned()),
            4 => Value::from(pointer::<u32>(address).read_unaligned()),
            8 => Value::from(pointer::<u64>(address).read_unaligned()),
            16 => pointer::<u128>(address).read_unaligned(),
            // Part of a location that is accessed with several widths.
            _ => {
                let mut value = 0_u128;
                let into = (&raw mut value).cast::<u8>();
                into.copy_from_nonoverlapping(pointer(address), width.min(16).into());
                value
            }
        }
    }
}

/// Reads the aligned word at `address`, which is mapped.
#[inline(always)]
pub(crate) fn word(address: usize) -> u64 {
    // SAFETY: callers pass words of the program's memory.
    unsafe { pointer::<u64>(address).read_volatile() }
}

/// Writes `width` bytes at `address`; as [`read`].
#[inline(always)]
pub(crate) fn write(address: usize, width: u8, value: Value) {
    // SAFETY: as for `read`.
    unsafe {
        match width {
            1 => pointer::<u8>(address).write_volatile(value as u8),
            2 => pointer::<u16>(address).write_unaligned(value as u16),
            4 => pointer::<u32>(address).write_unaligned(value as u32),
            8 => pointer::<u64>(address).write_unaligned(value as u64),
            16 => pointer::<u128>(address).write_unaligned(value),
            _ => {
                let from = (&raw const value).cast::<u8>();
                pointer::<u8>(address).copy_from_nonoverlapping(from, width.min(16).into());
            }
        }
    }
}
