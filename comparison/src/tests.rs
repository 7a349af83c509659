//! Twelve tests, written once and built for each of the three libraries.

/// Defines the tests in a module named after the library.
macro_rules! tests {
    ($library:ident) => {
        pub(crate) mod $library {
            use ::$library::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
            use ::$library::sync::atomic::{AtomicBool, AtomicUsize, fence};
            use ::$library::sync::{Arc, Condvar, Mutex};
            use ::$library::thread;

            /// Name and code of each test.
            pub(crate) const ALL: [(&str, fn()); 12] = [
                ("counters", counters),
                ("treiber-stack", treiber_stack),
                ("mpsc-queue", mpsc_queue),
                ("seqlock", seqlock),
                ("reference-count", reference_count),
                ("one-shot-channel", one_shot_channel),
                ("spin-lock", spin_lock),
                ("rwlock", rwlock),
                ("event-counter", event_counter),
                ("bounded-channel", bounded_channel),
                ("double-checked-init", double_checked_init),
                ("work-stealing-deque", work_stealing_deque),
            ];

            /// Runs these threads on the same thing and returns it when they have ended.
            fn run<T: Send + Sync + 'static>(shared: T, threads: &[fn(&T)]) -> Arc<T> {
                let shared = Arc::new(shared);
                let handles: Vec<_> = threads
                    .iter()
                    .map(|&thread| {
                        let shared = Arc::clone(&shared);
                        thread::spawn(move || thread(&shared))
                    })
                    .collect();
                for handle in handles {
                    handle.join().unwrap();
                }
                shared
            }

            /// Three threads, of which one is the first of all, add one, three times each.
            fn counters() {
                fn add(count: &AtomicUsize) {
                    for _ in 0..3 {
                        count.fetch_add(1, Relaxed);
                    }
                }
                let count = Arc::new(AtomicUsize::new(0));
                let others = [(); 2].map(|()| {
                    let count = Arc::clone(&count);
                    thread::spawn(move || add(&count))
                });
                add(&count);
                for other in others {
                    other.join().unwrap();
                }
                assert_eq!(count.load(Relaxed), 9);
            }

            const NONE: usize = usize::MAX;

            /// Nodes by number; each is pushed once.
            struct Stack {
                head: AtomicUsize,
                next: [AtomicUsize; 3],
                popped: [AtomicUsize; 3],
            }

            impl Stack {
                fn push(&self, node: usize) {
                    loop {
                        let head = self.head.load(Relaxed);
                        self.next[node].store(head, Relaxed);
                        if self
                            .head
                            .compare_exchange(head, node, Release, Relaxed)
                            .is_ok()
                        {
                            return;
                        }
                    }
                }

                fn pop(&self) {
                    loop {
                        let head = self.head.load(Acquire);
                        if head == NONE {
                            return;
                        }
                        let next = self.next[head].load(Relaxed);
                        if self
                            .head
                            .compare_exchange(head, next, AcqRel, Relaxed)
                            .is_ok()
                        {
                            self.popped[head].fetch_add(1, Relaxed);
                            return;
                        }
                    }
                }
            }

            fn treiber_stack() {
                let none = || std::array::from_fn(|_| AtomicUsize::new(NONE));
                let stack = Stack {
                    head: AtomicUsize::new(NONE),
                    next: none(),
                    popped: std::array::from_fn(|_| AtomicUsize::new(0)),
                };
                let stack = run(
                    stack,
                    &[
                        |stack| {
                            stack.push(0);
                            stack.push(1);
                        },
                        |stack| stack.push(2),
                        |stack| {
                            stack.pop();
                            stack.pop();
                        },
                    ],
                );
                assert!(stack.popped.iter().all(|popped| popped.load(Relaxed) <= 1));
            }

            /// Two producers link nodes behind the tail, a consumer follows the links.
            fn mpsc_queue() {
                struct Queue {
                    tail: AtomicUsize,
                    next: [AtomicUsize; 3],
                }
                fn push(queue: &Queue, node: usize) {
                    let before = queue.tail.swap(node, AcqRel);
                    queue.next[before].store(node, Release);
                }
                let queue = Queue {
                    tail: AtomicUsize::new(0),
                    next: std::array::from_fn(|_| AtomicUsize::new(NONE)),
                };
                run(
                    queue,
                    &[
                        |queue| push(queue, 1),
                        |queue| push(queue, 2),
                        |queue| {
                            let mut node = 0;
                            for _ in 0..3 {
                                let next = queue.next[node].load(Acquire);
                                if next != NONE {
                                    assert_ne!(next, node);
                                    node = next;
                                }
                            }
                        },
                    ],
                );
            }

            /// A writer makes the version odd while it writes; readers check it before and after.
            fn seqlock() {
                #[derive(Default)]
                struct Data {
                    version: AtomicUsize,
                    values: [AtomicUsize; 2],
                }
                fn read(data: &Data) {
                    let before = data.version.load(Acquire);
                    let values = [data.values[0].load(Relaxed), data.values[1].load(Relaxed)];
                    fence(Acquire);
                    if before % 2 == 0 && before == data.version.load(Relaxed) {
                        assert_eq!(values[0], values[1]);
                    }
                }
                let data = Data {
                    version: AtomicUsize::new(0),
                    values: std::array::from_fn(|_| AtomicUsize::new(0)),
                };
                run(
                    data,
                    &[
                        |data| {
                            data.version.store(1, Relaxed);
                            fence(Release);
                            data.values[0].store(1, Relaxed);
                            data.values[1].store(1, Relaxed);
                            data.version.store(2, Release);
                        },
                        read,
                        read,
                    ],
                );
            }

            /// Three owners let go; the last one frees.
            fn reference_count() {
                struct Counted {
                    count: AtomicUsize,
                    written: [AtomicUsize; 3],
                    freed: AtomicUsize,
                }
                fn own(counted: &Counted, owner: usize) {
                    counted.count.fetch_add(1, Relaxed);
                    counted.written[owner].store(1, Relaxed);
                    for _ in 0..2 {
                        if counted.count.fetch_sub(1, Release) == 1 {
                            fence(Acquire);
                            for written in &counted.written {
                                assert_eq!(written.load(Relaxed), 1);
                            }
                            counted.freed.fetch_add(1, Relaxed);
                        }
                    }
                }
                let counted = Counted {
                    count: AtomicUsize::new(3),
                    written: std::array::from_fn(|_| AtomicUsize::new(0)),
                    freed: AtomicUsize::new(0),
                };
                let counted = run(counted, &[|c| own(c, 0), |c| own(c, 1), |c| own(c, 2)]);
                assert_eq!(counted.freed.load(Relaxed), 1);
            }

            /// A value and a flag; the receiver waits for the flag.
            fn one_shot_channel() {
                struct OneShot {
                    value: AtomicUsize,
                    ready: AtomicBool,
                    acknowledged: AtomicBool,
                }
                let channel = OneShot {
                    value: AtomicUsize::new(0),
                    ready: AtomicBool::new(false),
                    acknowledged: AtomicBool::new(false),
                };
                run(
                    channel,
                    &[
                        |channel| {
                            channel.value.store(7, Relaxed);
                            channel.ready.store(true, Release);
                            while !channel.acknowledged.load(Acquire) {
                                thread::yield_now();
                            }
                        },
                        |channel| {
                            while !channel.ready.load(Acquire) {
                                thread::yield_now();
                            }
                            assert_eq!(channel.value.load(Relaxed), 7);
                            channel.acknowledged.store(true, Release);
                        },
                    ],
                );
            }

            /// Three threads increment under a spin lock.
            fn spin_lock() {
                struct Locked {
                    held: AtomicBool,
                    count: AtomicUsize,
                }
                fn add(locked: &Locked) {
                    while locked
                        .held
                        .compare_exchange(false, true, Acquire, Relaxed)
                        .is_err()
                    {
                        thread::yield_now();
                    }
                    let count = locked.count.load(Relaxed);
                    locked.count.store(count + 1, Relaxed);
                    locked.held.store(false, Release);
                }
                let locked = Locked {
                    held: AtomicBool::new(false),
                    count: AtomicUsize::new(0),
                };
                let locked = run(locked, &[add, add, add]);
                assert_eq!(locked.count.load(Relaxed), 3);
            }

            /// Readers count up, a writer sets the top bit; each tries once.
            fn rwlock() {
                const WRITER: usize = 1 << 16;
                struct Lock {
                    state: AtomicUsize,
                    values: [AtomicUsize; 2],
                }
                fn read(lock: &Lock) {
                    let state = lock.state.load(Relaxed);
                    let free = state & WRITER == 0;
                    if free
                        && lock
                            .state
                            .compare_exchange(state, state + 1, Acquire, Relaxed)
                            .is_ok()
                    {
                        let first = lock.values[0].load(Relaxed);
                        assert_eq!(first, lock.values[1].load(Relaxed));
                        lock.state.fetch_sub(1, Release);
                    }
                }
                fn write(lock: &Lock) {
                    if lock
                        .state
                        .compare_exchange(0, WRITER, Acquire, Relaxed)
                        .is_ok()
                    {
                        lock.values[0].store(1, Relaxed);
                        lock.values[1].store(1, Relaxed);
                        lock.state.store(0, Release);
                    }
                }
                let lock = Lock {
                    state: AtomicUsize::new(0),
                    values: std::array::from_fn(|_| AtomicUsize::new(0)),
                };
                run(lock, &[read, read, write]);
            }

            /// A waiter announces itself and looks again; a notifier changes and looks for waiters.
            fn event_counter() {
                struct Event {
                    state: AtomicUsize,
                    waiting: AtomicUsize,
                    woken: AtomicUsize,
                }
                fn notify(event: &Event) {
                    event.state.fetch_add(1, Release);
                    fence(SeqCst);
                    if event.waiting.load(Relaxed) == 1 {
                        event.woken.store(1, Release);
                    }
                }
                let event = Event {
                    state: AtomicUsize::new(0),
                    waiting: AtomicUsize::new(0),
                    woken: AtomicUsize::new(0),
                };
                run(
                    event,
                    &[notify, notify, |event| {
                        event.waiting.store(1, Relaxed);
                        fence(SeqCst);
                        if event.state.load(Acquire) == 0 {
                            while event.woken.load(Acquire) == 0 {
                                thread::yield_now();
                            }
                        }
                    }],
                );
            }

            /// Two messages through a buffer for one.
            fn bounded_channel() {
                struct Channel {
                    slot: Mutex<Option<usize>>,
                    changed: Condvar,
                }
                let channel = Channel {
                    slot: Mutex::new(None),
                    changed: Condvar::new(),
                };
                run(
                    channel,
                    &[
                        |channel| {
                            for message in 0..2 {
                                let mut slot = channel.slot.lock().unwrap();
                                while slot.is_some() {
                                    slot = channel.changed.wait(slot).unwrap();
                                }
                                *slot = Some(message);
                                channel.changed.notify_one();
                            }
                        },
                        |channel| {
                            for message in 0..2 {
                                let mut slot = channel.slot.lock().unwrap();
                                while slot.is_none() {
                                    slot = channel.changed.wait(slot).unwrap();
                                }
                                assert_eq!(slot.take(), Some(message));
                                channel.changed.notify_one();
                            }
                        },
                    ],
                );
            }

            /// Three threads look, lock, look again, and initialise.
            fn double_checked_init() {
                struct Lazy {
                    ready: AtomicBool,
                    value: AtomicUsize,
                    lock: Mutex<usize>,
                }
                fn get(lazy: &Lazy) {
                    if !lazy.ready.load(Acquire) {
                        let mut made = lazy.lock.lock().unwrap();
                        if !lazy.ready.load(Relaxed) {
                            *made += 1;
                            lazy.value.store(7, Relaxed);
                            lazy.ready.store(true, Release);
                        }
                    }
                    assert_eq!(lazy.value.load(Relaxed), 7);
                }
                let lazy = Lazy {
                    ready: AtomicBool::new(false),
                    value: AtomicUsize::new(0),
                    lock: Mutex::new(0),
                };
                let lazy = run(lazy, &[get, get, get]);
                assert_eq!(*lazy.lock.lock().unwrap(), 1);
            }

            /// An owner pushes and pops at the bottom, a thief takes from the top (Chase and Lev).
            fn work_stealing_deque() {
                struct Deque {
                    top: AtomicUsize,
                    bottom: AtomicUsize,
                    items: [AtomicUsize; 4],
                    taken: [AtomicUsize; 3],
                }
                impl Deque {
                    fn push(&self, item: usize) {
                        let bottom = self.bottom.load(Relaxed);
                        self.items[bottom].store(item, Relaxed);
                        // A release store would not do: thieves may read what `pop` writes to `bottom`.
                        fence(Release);
                        self.bottom.store(bottom + 1, Relaxed);
                    }

                    fn pop(&self) {
                        let bottom = self.bottom.load(Relaxed) - 1;
                        self.bottom.store(bottom, Relaxed);
                        fence(SeqCst);
                        let top = self.top.load(Relaxed);
                        if top > bottom {
                            self.bottom.store(bottom + 1, Relaxed);
                            return;
                        }
                        let item = self.items[bottom].load(Relaxed);
                        if top == bottom {
                            let won = self.top.compare_exchange(top, top + 1, SeqCst, Relaxed);
                            self.bottom.store(bottom + 1, Relaxed);
                            if won.is_err() {
                                return;
                            }
                        }
                        self.taken[item].fetch_add(1, Relaxed);
                    }

                    fn steal(&self) {
                        let top = self.top.load(Acquire);
                        fence(SeqCst);
                        let bottom = self.bottom.load(Acquire);
                        if top < bottom {
                            let item = self.items[top].load(Relaxed);
                            let won = self.top.compare_exchange(top, top + 1, SeqCst, Relaxed);
                            if won.is_ok() {
                                self.taken[item].fetch_add(1, Relaxed);
                            }
                        }
                    }
                }
                let deque = Deque {
                    top: AtomicUsize::new(1),
                    bottom: AtomicUsize::new(1),
                    items: std::array::from_fn(|_| AtomicUsize::new(0)),
                    taken: std::array::from_fn(|_| AtomicUsize::new(0)),
                };
                let deque = run(
                    deque,
                    &[
                        |deque| {
                            deque.push(1);
                            deque.push(2);
                            deque.pop();
                            deque.pop();
                        },
                        |deque| deque.steal(),
                    ],
                );
                for taken in &deque.taken[1..] {
                    assert_eq!(taken.load(Relaxed), 1);
                }
            }
        }
    };
}

tests!(selvedge);
tests!(loom);
tests!(shuttle);
