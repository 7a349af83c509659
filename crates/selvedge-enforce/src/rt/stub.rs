//! How the program enters the library.

/// Defines functions for the program to call. Each notes the place it was called from and goes on
/// in a Rust function of the same signature.
macro_rules! stubs {
    ($($($name:literal)+ => $function:path),* $(,)?) => {
        $(
            core::arch::global_asm!(
                // Weak, because a program may define a function of this name itself.
                concat!(".weak ", $($name),+),
                concat!(".hidden ", $($name),+),
                concat!(".type ", $($name,)+ ", @function"),
                ".p2align 4",
                concat!($($name,)+ ":"),
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[selvedge_thread@tpoff + {site}], r11",
                "jmp {function}",
                concat!(".size ", $($name,)+ ", . - ", $($name),+),
                site = const $crate::rt::thread::SITE,
                function = sym $function,
            );
        )*
    };
}
pub(crate) use stubs;
