//! The macros of the interface.

/// Declares thread-local values, as [`std::thread_local!`], for the threads of a model.
///
/// ```
/// use std::cell::Cell;
///
/// selvedge::thread_local! {
///     static COUNT: Cell<u32> = Cell::new(0);
/// }
///
/// selvedge::model(|| {
///     COUNT.with(|count| count.set(1));
///     let other = selvedge::thread::spawn(|| COUNT.with(Cell::get));
///     assert_eq!(other.join().unwrap(), 0);
/// });
/// ```
#[macro_export]
macro_rules! thread_local {
    () => {};
    ($(#[$attr:meta])* $vis:vis static $name:ident : $t:ty = const $init:block $(; $($rest:tt)*)?) => {
        $crate::thread_local!($(#[$attr])* $vis static $name: $t = $init $(; $($rest)*)?);
    };
    ($(#[$attr:meta])* $vis:vis static $name:ident : $t:ty = $init:expr $(; $($rest:tt)*)?) => {
        $(#[$attr])*
        $vis static $name: $crate::thread::LocalKey<$t> = $crate::thread::LocalKey {
            init: { fn init() -> $t { $init } init },
            _p: ::std::marker::PhantomData,
        };
        $crate::thread_local!($($($rest)*)?);
    };
}

/// Declares statics that are made when they are first used, as the crate of this name does, and
/// anew in each execution.
///
/// ```
/// use selvedge::sync::atomic::{AtomicUsize, Ordering};
///
/// selvedge::lazy_static! {
///     static ref COUNT: AtomicUsize = AtomicUsize::new(0);
/// }
///
/// selvedge::model(|| {
///     let other = selvedge::thread::spawn(|| COUNT.fetch_add(1, Ordering::Relaxed));
///     COUNT.fetch_add(1, Ordering::Relaxed);
///     other.join().unwrap();
///     assert_eq!(COUNT.load(Ordering::Relaxed), 2);
/// });
/// ```
#[macro_export]
macro_rules! lazy_static {
    () => {};
    ($(#[$attr:meta])* $vis:vis static ref $name:ident : $t:ty = $init:expr; $($rest:tt)*) => {
        #[allow(missing_docs, missing_debug_implementations, missing_copy_implementations)]
        #[allow(non_camel_case_types, dead_code)]
        $(#[$attr])*
        $vis struct $name {
            __private: (),
        }
        #[doc(hidden)]
        $vis static $name: $name = $name { __private: () };
        impl ::std::ops::Deref for $name {
            type Target = $t;

            fn deref(&self) -> &$t {
                static LAZY: $crate::lazy_static::Lazy<$t> = $crate::lazy_static::Lazy {
                    init: { fn init() -> $t { $init } init },
                    _p: ::std::marker::PhantomData,
                };
                LAZY.get()
            }
        }
        $crate::lazy_static!($($rest)*);
    };
}
