//! loom's interface, item by item, with its signatures: what compiles for loom compiles for Selvedge.

macro_rules! parity {
    ($library:ident) => {
        #[allow(dead_code, reason = "it is to be compiled only")]
        #[allow(
            clippy::extra_unused_lifetimes,
            reason = "signatures need a name for theirs"
        )]
        mod $library {
            use std::alloc::Layout;
            use std::pin::Pin;
            use std::sync::atomic::Ordering;
            use std::sync::{LockResult, TryLockResult};
            use std::task::Waker;
            use std::time::Duration;

            use ::$library::alloc::Track;
            use ::$library::cell::{Cell, ConstPtr, MutPtr, UnsafeCell};
            use ::$library::future::AtomicWaker;
            use ::$library::sync::{Arc, Condvar, Mutex, MutexGuard, Notify, RwLock};
            use ::$library::sync::{
                RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult, atomic, mpsc,
            };
            use ::$library::thread::{self, JoinHandle, Thread, ThreadId};

            macro_rules! atomic {
                ($name:ident, $value:ty) => {{
                    type A = atomic::$name;
                    type V = $value;
                    let _: fn(V) -> A = A::new;
                    let _: fn(&A, Ordering) -> V = A::load;
                    let _: fn(&A, V, Ordering) = A::store;
                    let _: fn(&A, V, Ordering) -> V = A::swap;
                    let _: fn(&A, V, V, Ordering) -> V = A::compare_and_swap;
                    let _: fn(&A, V, V, Ordering, Ordering) -> Result<V, V> = A::compare_exchange;
                    let _: fn(&A, V, V, Ordering, Ordering) -> Result<V, V> =
                        A::compare_exchange_weak;
                    let _: fn(&A, Ordering, Ordering, fn(V) -> Option<V>) -> Result<V, V> =
                        A::fetch_update;
                    let _: unsafe fn(&A) -> V = A::unsync_load;
                    let _: fn(A) -> V = A::into_inner;
                }};
            }

            macro_rules! integer {
                ($name:ident, $value:ty) => {{
                    atomic!($name, $value);
                    type A = atomic::$name;
                    type V = $value;
                    let _: [fn(&A, V, Ordering) -> V; 8] = [
                        A::fetch_add,
                        A::fetch_sub,
                        A::fetch_and,
                        A::fetch_nand,
                        A::fetch_or,
                        A::fetch_xor,
                        A::fetch_max,
                        A::fetch_min,
                    ];
                    let _: fn(&mut A, fn(&mut V) -> u8) -> u8 = A::with_mut;
                    let _: fn() -> A = Default::default;
                    let _: fn(V) -> A = From::from;
                }};
            }

            fn atomics() {
                integer!(AtomicU8, u8);
                integer!(AtomicU16, u16);
                integer!(AtomicU32, u32);
                integer!(AtomicU64, u64);
                integer!(AtomicUsize, usize);
                integer!(AtomicI8, i8);
                integer!(AtomicI16, i16);
                integer!(AtomicI32, i32);
                integer!(AtomicI64, i64);
                integer!(AtomicIsize, isize);
                atomic!(AtomicBool, bool);
                type B = atomic::AtomicBool;
                let _: [fn(&B, bool, Ordering) -> bool; 4] =
                    [B::fetch_and, B::fetch_nand, B::fetch_or, B::fetch_xor];
                type P = atomic::AtomicPtr<u8>;
                let _: fn(*mut u8) -> P = P::new;
                let _: fn(&P, Ordering) -> *mut u8 = P::load;
                let _: fn(&P, *mut u8, Ordering) = P::store;
                let _: fn(&P, *mut u8, Ordering) -> *mut u8 = P::swap;
                type Exchanged = Result<*mut u8, *mut u8>;
                let _: fn(&P, *mut u8, *mut u8, Ordering, Ordering) -> Exchanged =
                    P::compare_exchange;
                let _: fn(&P, *mut u8, *mut u8, Ordering, Ordering) -> Exchanged =
                    P::compare_exchange_weak;
                let _: fn(&mut P, fn(&mut *mut u8) -> u8) -> u8 = P::with_mut;
                let _: unsafe fn(&P) -> *mut u8 = P::unsync_load;
                let _: fn(P) -> *mut u8 = P::into_inner;
                let _: fn(Ordering) = atomic::fence;
                let _: fn() = atomic::spin_loop_hint;
                let _: fn() = ::$library::hint::spin_loop;
                let _: unsafe fn() -> ! = ::$library::hint::unreachable_unchecked;
            }

            fn cells() {
                type U = UnsafeCell<u8>;
                let _: fn(u8) -> U = U::new;
                let _: fn(U) -> u8 = U::into_inner;
                let _: fn(&U, fn(*const u8) -> i8) -> i8 = U::with;
                let _: fn(&U, fn(*mut u8) -> i8) -> i8 = U::with_mut;
                let _: fn(&U) -> ConstPtr<u8> = U::get;
                let _: fn(&U) -> MutPtr<u8> = U::get_mut;
                let _: unsafe fn(&ConstPtr<u8>) -> &u8 = ConstPtr::deref;
                let _: unsafe fn(&MutPtr<u8>) -> &mut u8 = MutPtr::deref;
                let _: fn(&ConstPtr<u8>, fn(*const u8) -> i8) -> i8 = ConstPtr::with;
                let _: fn(&MutPtr<u8>, fn(*mut u8) -> i8) -> i8 = MutPtr::with;
                type C = Cell<u8>;
                let _: fn(u8) -> C = C::new;
                let _: fn(&C, u8) = C::set;
                let _: fn(&C, &C) = C::swap;
                let _: fn(&C, u8) -> u8 = C::replace;
                let _: fn(&C) -> u8 = C::get;
                let _: fn(&C) -> u8 = C::take;
                let _: fn(C) -> u8 = C::into_inner;
            }

            fn locks<'a>() {
                type M = Mutex<u8>;
                let _: fn(u8) -> M = M::new;
                let _: fn(&'a M) -> LockResult<MutexGuard<'a, u8>> = M::lock;
                let _: fn(&'a M) -> TryLockResult<MutexGuard<'a, u8>> = M::try_lock;
                let _: fn(&'a mut M) -> LockResult<&'a mut u8> = M::get_mut;
                let _: fn(M) -> LockResult<u8> = M::into_inner;
                type R = RwLock<u8>;
                let _: fn(u8) -> R = R::new;
                let _: fn(&'a R) -> LockResult<RwLockReadGuard<'a, u8>> = R::read;
                let _: fn(&'a R) -> TryLockResult<RwLockReadGuard<'a, u8>> = R::try_read;
                let _: fn(&'a R) -> LockResult<RwLockWriteGuard<'a, u8>> = R::write;
                let _: fn(&'a R) -> TryLockResult<RwLockWriteGuard<'a, u8>> = R::try_write;
                let _: fn(&'a mut R) -> LockResult<&'a mut u8> = R::get_mut;
                let _: fn(R) -> LockResult<u8> = R::into_inner;
                let _: fn() -> Condvar = Condvar::new;
                type G<'a> = MutexGuard<'a, u8>;
                let _: fn(&Condvar, G<'a>) -> LockResult<G<'a>> = Condvar::wait;
                type Timed<'a> = LockResult<(G<'a>, WaitTimeoutResult)>;
                let _: fn(&Condvar, G<'a>, Duration) -> Timed<'a> = Condvar::wait_timeout;
                let _: [fn(&Condvar); 2] = [Condvar::notify_one, Condvar::notify_all];
                let _: fn(&WaitTimeoutResult) -> bool = WaitTimeoutResult::timed_out;
                let _: fn() -> Notify = Notify::new;
                let _: [fn(&Notify); 2] = [Notify::notify, Notify::wait];
            }

            fn shared<'a>() {
                type A = Arc<u8>;
                let _: fn(u8) -> A = A::new;
                let _: fn(u8) -> Pin<A> = A::pin;
                let _: fn(A) -> Result<u8, A> = A::try_unwrap;
                let _: fn(std::sync::Arc<[u8]>) -> Arc<[u8]> = Arc::from_std;
                let _: fn(&A) -> usize = A::strong_count;
                let _: [unsafe fn(*const u8); 2] =
                    [A::increment_strong_count, A::decrement_strong_count];
                let _: fn(&'a mut A) -> Option<&'a mut u8> = A::get_mut;
                let _: fn(&A, &A) -> bool = A::ptr_eq;
                let _: fn(A) -> *const u8 = A::into_raw;
                let _: fn(&A) -> *const u8 = A::as_ptr;
                let _: unsafe fn(*const u8) -> A = A::from_raw;
                let _: fn() -> (mpsc::Sender<u8>, mpsc::Receiver<u8>) = mpsc::channel;
                type Sent = Result<(), std::sync::mpsc::SendError<u8>>;
                let _: fn(&mpsc::Sender<u8>, u8) -> Sent = mpsc::Sender::send;
                type Received = Result<u8, std::sync::mpsc::RecvError>;
                let _: fn(&mpsc::Receiver<u8>) -> Received = mpsc::Receiver::recv;
                type Tried = Result<u8, std::sync::mpsc::TryRecvError>;
                let _: fn(&mpsc::Receiver<u8>) -> Tried = mpsc::Receiver::try_recv;
                type Timed = Result<u8, std::sync::mpsc::RecvTimeoutError>;
                let _: fn(&mpsc::Receiver<u8>, Duration) -> Timed = mpsc::Receiver::recv_timeout;
            }

            fn threads<'a>() {
                let _: fn(fn() -> u8) -> JoinHandle<u8> = thread::spawn;
                let _: fn(JoinHandle<u8>) -> std::thread::Result<u8> = JoinHandle::join;
                let _: fn(&'a JoinHandle<u8>) -> &'a Thread = JoinHandle::thread;
                let _: fn() -> Thread = thread::current;
                let _: [fn(); 2] = [thread::park, thread::yield_now];
                let _: fn(&Thread) -> ThreadId = Thread::id;
                let _: fn(&'a Thread) -> Option<&'a str> = Thread::name;
                let _: fn(&Thread) = Thread::unpark;
                let _: fn() -> thread::Builder = thread::Builder::new;
                let _: fn(thread::Builder, String) -> thread::Builder = thread::Builder::name;
                let _: fn(thread::Builder, usize) -> thread::Builder = thread::Builder::stack_size;
                type Spawned = std::io::Result<JoinHandle<u8>>;
                let _: fn(thread::Builder, fn() -> u8) -> Spawned = thread::Builder::spawn;
                let _: fn() -> bool = thread::panicking;
            }

            fn others<'a>() {
                let _: unsafe fn(Layout) -> *mut u8 = ::$library::alloc::alloc;
                let _: unsafe fn(Layout) -> *mut u8 = ::$library::alloc::alloc_zeroed;
                let _: unsafe fn(*mut u8, Layout) = ::$library::alloc::dealloc;
                let _: fn(u8) -> Track<u8> = Track::new;
                let _: fn(&'a Track<u8>) -> &'a u8 = Track::get_ref;
                let _: fn(&'a mut Track<u8>) -> &'a mut u8 = Track::get_mut;
                let _: fn(Track<u8>) -> u8 = Track::into_inner;
                let _: fn(std::future::Ready<u8>) -> u8 = ::$library::future::block_on;
                let _: fn() -> AtomicWaker = AtomicWaker::new;
                let _: fn(&AtomicWaker, Waker) = AtomicWaker::register;
                let _: fn(&AtomicWaker, &Waker) = AtomicWaker::register_by_ref;
                let _: fn(&AtomicWaker) = AtomicWaker::wake;
                let _: fn(&AtomicWaker) -> Option<Waker> = AtomicWaker::take_waker;
                let _: [fn(fn()); 2] = [::$library::model, ::$library::model::model];
                let mut builder = ::$library::model::Builder::new();
                builder.max_threads = 3;
                builder.max_branches = 1_000;
                builder.max_permutations = Some(1);
                builder.max_duration = Some(Duration::ZERO);
                builder.preemption_bound = Some(2);
                builder.checkpoint_file = None;
                builder.checkpoint_interval = 1;
                builder.expect_explicit_explore = false;
                builder.location = false;
                builder.log = false;
                builder.checkpoint_file("file").check(|| ());
                let _: [fn(); 3] = [
                    ::$library::explore,
                    ::$library::stop_exploring,
                    ::$library::skip_branch,
                ];
                let _: usize = ::$library::MAX_THREADS;
            }

            ::$library::thread_local! {
                static ONE: u8 = 1;
                /// With a comment.
                pub(crate) static TWO: Cell<u8> = Cell::new(2);
            }

            ::$library::lazy_static! {
                static ref THREE: u8 = 3;
                pub(crate) static ref FOUR: Mutex<u8> = Mutex::new(4);
            }

            fn statics() -> u8 {
                let four = *FOUR.lock().unwrap();
                ONE.with(|one| *one) + TWO.try_with(Cell::get).unwrap() + *THREE + four
            }
        }
    };
}

parity!(loom);
parity!(selvedge);
