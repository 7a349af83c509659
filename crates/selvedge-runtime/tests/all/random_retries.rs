//! Random programs with attempts that are made again when they fail. What Selvedge skips is compared
//! with plain enumeration (the same final states) and with programs in which a failed attempt is a false
//! assumption (the same number of executions).

use std::fmt::Write as _;

use selvedge_core::model::{Model, Rc11, SequentialConsistency, TotalStoreOrder};
use selvedge_core::random::Random;
use selvedge_runtime::Settings;

use crate::common::many::{self, ByProgram, ManyPrograms};
use crate::common::{Build, CLANG, CLANG_O2, GCC, GCC_O2, Program, isolated};

/// How many programs there are in a file.
const PROGRAMS: u32 = 50;

const HEAD: &str = "#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include \"selvedge.h\"
#ifdef ASSUME
#define FAILED selvedge_assume(0)
#else
#define FAILED (void)0
#endif
enum { relaxed = memory_order_relaxed, acquire = memory_order_acquire, release = memory_order_release,
       acq_rel = memory_order_acq_rel, seq_cst = memory_order_seq_cst };
struct node { long value; long before; };
static atomic_long x[2], out[3];
static struct node own[3];
";

fn pick<'a>(random: &mut Random, among: &[&'a str]) -> &'a str {
    among[random.below(among.len() as u64) as usize]
}

/// A random attempt of thread `me` that is made until it succeeds, and whether none that fails leaves
/// anything behind.
fn attempt(random: &mut Random, me: usize) -> (String, bool) {
    let at = random.below(2);
    let (load, success, failure, fits) = match random.below(8) {
        0..3 => ("seq_cst", "seq_cst", "seq_cst", true),
        3 => ("relaxed", "release", "relaxed", true),
        4 => ("acquire", "acq_rel", "acquire", true),
        5 => ("relaxed", "acq_rel", "acquire", true),
        6 => ("acquire", "acq_rel", "relaxed", false),
        _ => ("seq_cst", "seq_cst", "acquire", false),
    };
    let (private, keeps) = match random.below(9) {
        0 | 1 => ("", false),
        2 | 3 => ("n->before = h;", false),
        4 => ("n->before = h; n->value = n->before + 1;", false),
        5 => (OWN[me], false),
        // Not recognised: with an array that is indexed, all of a frame counts as used.
        6 => ("v[h & 1] = 0; v[0] = v[1] = h;", true),
        7 => ("last += h;", true),
        _ => ("if (h) n->before = h;", true),
    };
    let (look, new) = match random.below(5) {
        0 | 1 => (String::new(), "h + 1"),
        2 => (String::new(), "h * 2 + 3 & 7"),
        3 => (String::new(), "n->before + 1"),
        _ => (
            format!("g = atomic_load_explicit(&x[{}], {load});", 1 - at),
            "h + 1 + (g & 1)",
        ),
    };
    let give_up = match random.below(4) {
        0 => format!("if (h == {}) {{ last = 7; break; }}", random.below(4)),
        _ => String::new(),
    };
    let count = match random.below(8) {
        0 => "if (++tries == 2) break;",
        _ => "",
    };
    let first = format!("h = atomic_load_explicit(&x[{at}], {load});");
    let change = format!(
        "atomic_compare_exchange_strong_explicit(&x[{at}], &h, {new}, {success}, {failure})"
    );
    let (before, every) = match random.below(2) {
        0 => (&*first, ""),
        _ => ("", &*first),
    };
    let text = format!(
        "{before} for (;;) {{ {every} {give_up} {private} {look} if ({change}) break; FAILED; {count} }}
         last += h;"
    );
    // A thread that gives up keeps what it wrote for an attempt that failed.
    let keeps = keeps || !(give_up.is_empty() || private.is_empty());
    (text, fits && !keeps && count.is_empty())
}

const OWN: [&str; 3] = [
    "own[0].before = h;",
    "own[1].before = h;",
    "own[2].before = h;",
];

/// The functions of a program's threads, and whether skipping and assuming come to the same.
fn functions(random: &mut Random) -> (Vec<String>, bool) {
    let threads = 2 + random.below(2) as usize;
    let mut same = true;
    let bodies = (0..threads).map(|me| {
        let mut text = "struct node *n = calloc(1, sizeof *n);
             long h = 0, g = 0, last = 0, tries = 0, v[2] = { 0, 0 };\n"
            .to_owned();
        // Three threads that do more have too many executions to enumerate them all.
        for _ in 0..1 + random.below(4 - threads as u64) {
            match random.below(6) {
                0 => {
                    let order = pick(random, &["relaxed", "release", "seq_cst"]);
                    let (at, value) = (random.below(2), random.below(4));
                    let _ = writeln!(text, "atomic_store_explicit(&x[{at}], {value}, {order});");
                }
                1 => {
                    let order = pick(random, &["relaxed", "acquire", "seq_cst"]);
                    let at = random.below(2);
                    let _ = writeln!(
                        text,
                        "last = last * 8 + atomic_load_explicit(&x[{at}], {order});"
                    );
                }
                _ => {
                    let (attempt, fits) = attempt(random, me);
                    same &= fits;
                    let _ = writeln!(text, "{attempt}");
                }
            }
        }
        let _ = writeln!(
            text,
            "atomic_store_explicit(&out[{me}], last + 100 * (n->before + 10 * n->value) + 10000 * (v[0] + tries + g), relaxed);"
        );
        text
    });
    (bodies.collect(), same)
}

fn program(seed: u64) -> (String, Vec<bool>) {
    let mut random = Random::new(seed);
    let (mut programs, mut same) = (ManyPrograms::new(HEAD), Vec::new());
    for _ in 0..PROGRAMS {
        let (threads, fits) = functions(&mut random);
        programs.add(&threads);
        same.push(fits);
    }
    let text = programs.finish(
        "long sum = 0;
         for (int i = 0; i < 2; i++) sum += atomic_load(&x[i]);
         for (int i = 0; i < 3; i++) sum += atomic_load(&out[i]) + own[i].before;
         atomic_store(&x[0], sum);",
    );
    (text, same)
}

fn explore<C: Model>(program: &Program, skip_retries: bool) -> ByProgram {
    let settings = Settings {
        skip_retries,
        ..Settings::default()
    };
    let (all, bugs) = many::explore::<C>(program, settings);
    assert_eq!(bugs.len(), 0, "{bugs:?}");
    all
}

fn compare<C: Model>(
    seed: u64,
    build: Build,
    (program, assumed): (&Program, &Program),
    same: &[bool],
) -> u64 {
    let skipped = explore::<C>(program, true);
    let plain = explore::<C>(program, false);
    let assumed = explore::<C>(assumed, false);
    let mut fewer = 0;
    for (number, same) in (0..).zip(same) {
        let place = format!("program {number} of seed {seed}, {build:?}");
        assert_eq!(
            skipped.finals.get(&number),
            plain.finals.get(&number),
            "{place}"
        );
        let executions = |all: &ByProgram| all.executions.get(&number).copied().unwrap_or(0);
        assert!(executions(&skipped) <= executions(&plain), "{place}");
        // Optimised code keeps variables of the first attempt that nothing reads any more.
        if *same && build.level == "-O0" {
            assert_eq!(executions(&skipped), executions(&assumed), "{place}");
        }
        fewer += u64::from(executions(&skipped) < executions(&plain));
    }
    fewer
}

fn check(build: Build, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let (source, same) = program(seed);
        let assumed = Program::build(build, &format!("#define ASSUME\n{source}"));
        let program = Program::build(build, &source);
        let both = (&program, &assumed);
        let fewer = compare::<SequentialConsistency>(seed, build, both, &same);
        assert!(fewer > 5, "{fewer} programs with attempts that are skipped");
        compare::<TotalStoreOrder>(seed, build, both, &same);
        compare::<Rc11>(seed, build, both, &same);
    }
}

#[test]
fn skipping_attempts_that_fail_loses_nothing() {
    isolated("skipping_attempts_that_fail_loses_nothing", || {
        check(GCC, 0..28);
    });
}

#[test]
fn skipping_attempts_loses_nothing_with_any_compiler() {
    isolated("skipping_attempts_loses_nothing_with_any_compiler", || {
        for (number, build) in (0..).zip(Build::installed(&[CLANG, GCC_O2, CLANG_O2])) {
            check(build, 100 * number..100 * number + 4);
        }
    });
}
