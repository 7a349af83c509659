//! A program runs at all: threads, atomics, every schedule, again and again.

use selvedge_core::{Machine, Pending, Stop, ThreadId};
use selvedge_runtime::Settings;

use crate::common::driver::{Driver, every_interleaving};
use crate::common::{Build, CLANG, GCC, Program, isolated};

const TWO_INCREMENTS: &str = r#"
    #include <pthread.h>
    #include <stdatomic.h>
    atomic_int x;
    int plain;
    static void *worker(void *argument) {
        atomic_fetch_add(&x, (int)(long)argument);
        return (void *)(long)atomic_load(&x);
    }
    int main(void) {
        pthread_t a, b;
        plain++;
        pthread_create(&a, 0, worker, (void *)1);
        pthread_create(&b, 0, worker, (void *)2);
        void *result;
        pthread_join(a, &result);
        pthread_join(b, &result);
        return plain != 1;
    }
"#;

#[test]
fn a_program_runs_to_its_end_and_again() {
    isolated("a_program_runs_to_its_end_and_again", || {
        let build = Build::installed(&[GCC]).next().expect("gcc");
        let program = Program::build(build, TWO_INCREMENTS);
        let mut machine = program.load(Settings::default());
        for _ in 0..3 {
            let driver = Driver::first(&mut machine);
            assert_eq!(driver.steps.len(), 8);
            let ends = [Stop::Returned, Stop::Finished, Stop::Finished];
            for (thread, end) in ends.into_iter().enumerate() {
                let pending = machine.pending(ThreadId(thread as u32));
                assert_eq!(pending, Pending::Stopped(end), "thread {thread}");
            }
        }
        assert_eq!(machine.pending(ThreadId(3)), Pending::Absent);
    });
}

#[test]
fn every_interleaving_can_be_replayed() {
    isolated("every_interleaving_can_be_replayed", || {
        for build in Build::installed(&[GCC, CLANG]) {
            let program = Program::build(build, TWO_INCREMENTS);
            let mut machine = program.load(Settings::default());
            let mut last_reads = std::collections::BTreeSet::new();
            let count = every_interleaving(&mut machine, |_, driver| {
                let reads = |t| driver.steps.iter().rfind(|s| s.0 == ThreadId(t));
                last_reads.insert((reads(1).map(|s| s.2.read), reads(2).map(|s| s.2.read)));
            });
            assert!(count > 6, "{count}");
            assert_eq!(
                last_reads.into_iter().collect::<Vec<_>>(),
                [(Some(1), Some(3)), (Some(3), Some(2)), (Some(3), Some(3))]
            );
        }
    });
}
