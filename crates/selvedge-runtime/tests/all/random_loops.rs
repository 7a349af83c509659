//! Random loops: where a thread is parked, it would have gone round for ever.

use selvedge_core::random::Random;
use selvedge_core::{Effect, Machine, Op, Outcome, Pending, Site, SpinLoops, Stop, ThreadId};
use selvedge_runtime::{NativeMachine, Settings};

use crate::common::{Build, CLANG, CLANG_O2, GCC, GCC_O2, Program, isolated};

const LOOPS: u64 = 120;
/// How long a loop is watched.
const STEPS: usize = 80;
/// The value that parked threads see instead when they are taken back.
const OTHER: u128 = 5;

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len() as u64) as usize]
}

fn expression(random: &mut Random, depth: u32) -> String {
    if depth == 0 || random.below(3) == 0 {
        let leaves = [
            "a", "b", "c", "r", "s.m", "s.n", "v[1]", "v[a & 3]", "*p", "q->n", "g", "0",
        ];
        return match random.below(4) {
            0 => random.below(4).to_string(),
            _ => pick(random, &leaves).to_owned(),
        };
    }
    let left = expression(random, depth - 1);
    let right = expression(random, depth - 1);
    match random.below(5) {
        0 => format!("helper({left}, {right})"),
        1 => format!(
            "change({}, {left})",
            pick(random, &["&a", "&b", "p", "&s.m", "v", "v + 2"])
        ),
        _ => format!(
            "({left} {} {right})",
            pick(random, &["+", "-", "^", "&", "|", "==", "<"])
        ),
    }
}

fn statement(random: &mut Random, depth: u32) -> String {
    let value = expression(random, 2);
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0..3 => {
            let targets = [
                "a", "b", "c", "s.m", "s.n", "v[2]", "v[b & 3]", "*p", "q->m",
            ];
            format!("{} = {value} & 3;", pick(random, &targets))
        }
        3 => format!("{value};"),
        4 => format!(
            "p = {};",
            pick(random, &["&a", "&b", "&c", "v + 1", "&s.n"])
        ),
        5 => format!("r += atomic_load(&{});", pick(random, &["x", "y"])),
        6 => format!("if ({value}) {{ {} }}", statement(random, depth - 1)),
        7 => format!(
            "for (int i = 0; i < 3; i++) {{ {} }}",
            statement(random, depth - 1)
        ),
        _ => format!(
            "{{ int d = {value}; {} a = d & 7; }}",
            statement(random, depth - 1)
        ),
    }
}

/// A function with a loop around visible reads.
fn function(random: &mut Random, number: u64) -> String {
    let body: String = (0..1 + random.below(4))
        .map(|_| statement(random, 2))
        .collect();
    let first = pick(random, &["", "int first = 1;", "int first = 1, n = 0;"]);
    let last = match first {
        "" => String::new(),
        "int first = 1;" => format!("if (!first) {{ {} }} first = 0;", statement(random, 1)),
        _ => format!("if (++n == {}) break;", random.below(30)),
    };
    let condition = pick(
        random,
        &[
            "r == 9",
            "a == 7",
            "b > c + 3",
            "s.m == 5",
            "atomic_load(&y) == 3",
        ],
    );
    let read = pick(
        random,
        &[
            "r = atomic_load(&x);",
            "while (atomic_load(&x) == 9);",
            "e = 5; atomic_compare_exchange_strong(&x, &e, 6); r = e;",
            "atomic_compare_exchange_strong(&x, &e, 6); if (e == 2) e = 4; else e = 5;",
            "r = look(&x);",
        ],
    );
    format!(
        "static int loop{number}(int b) {{
             int a = 0, c = 1, r = 0, e = 5, v[4] = {{ 0, 1, 2, 3 }}, *p = &a, g = 3;
             struct {{ int m, n; }} s = {{ 0, 2 }}, *q = &s;
             {first}
             for (;;) {{
                 {read}
                 {body}
                 {last}
                 if ({condition}) break;
             }}
             return a + 2 * b + 4 * c + 8 * r + s.m + s.n + v[0] + v[1] + v[2] + v[3] + *p;
         }}\n"
    )
}

fn program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut source = String::from(
        "#include <stdatomic.h>
         #include \"selvedge.h\"
         atomic_int x, y, result;
         static int helper(int a, int b) { return (a + 3 * b) & 3; }
         static int change(int *p, int a) { *p = (*p + a) & 3; return *p; }
         static int look(atomic_int *p) { int seen = atomic_load(p); return seen & 7; }\n",
    );
    for number in 0..LOOPS {
        source += &function(&mut random, number);
    }
    source += "int main(int argc, char **argv) {\nint r = 0;\nswitch (selvedge_choose(";
    source += &format!("{LOOPS})) {{\n");
    for number in 0..LOOPS {
        source += &format!("case {number}: r = loop{number}(argc); break;\n");
    }
    source + "}\natomic_store(&result, r);\nreturn 0;\n}\n"
}

/// The operations of a loop, and their sites.
#[derive(Default)]
struct Walk {
    trace: Vec<(Op, Site)>,
    events: u32,
    /// The address of `x`, which is read first.
    x: Option<u64>,
}

impl Walk {
    /// Goes on with loop `number`, for which `x` holds `value(step)` and `y` is 1. Returns how main
    /// stands in the end.
    fn go(
        &mut self,
        machine: &mut NativeMachine,
        number: u64,
        value: impl Fn(usize) -> u128,
    ) -> Pending {
        let main = ThreadId::MAIN;
        while let Pending::Op(op) = machine.pending(main) {
            if self.trace.len() == STEPS {
                break;
            }
            let mut outcome = Outcome::default();
            match op {
                Op::Choose { .. } => outcome.read = u128::from(number),
                Op::Load { at, .. } | Op::Update { at, .. } => {
                    let (address, _) = machine.range_of(at);
                    let is_x = *self.x.get_or_insert(address) == address;
                    outcome.read = if is_x { value(self.trace.len()) } else { 1 };
                    if let Op::Update { function, .. } = op
                        && let Effect::Write(wrote) = function.apply(outcome.read)
                    {
                        outcome.wrote = Some(wrote);
                    }
                }
                _ => {}
            }
            self.events += 1 + u32::from(outcome.wrote.is_some());
            self.trace.push((op, machine.site(main)));
            machine.resume(main, outcome, &[self.events]);
        }
        machine.pending(main)
    }
}

/// Runs loop `number` from the beginning.
fn run(machine: &mut NativeMachine, number: u64, value: impl Fn(usize) -> u128) -> (Walk, Pending) {
    machine.reset();
    let mut walk = Walk::default();
    let stop = walk.go(machine, number, value);
    (walk, stop)
}

/// A loop that spins after its last step can be given another value there, as if it had not made
/// that step.
fn check_retry(
    machine: &mut NativeMachine,
    number: u64,
    mut walk: Walk,
    x: u128,
) -> Result<(), String> {
    let last = walk.trace.len() - 1;
    let Some((op, _)) = walk.trace.pop() else {
        return Ok(());
    };
    walk.events -= 1;
    let at = op.location().expect("it spins on a location");
    assert!(machine.can_retry(at));
    machine.retry(ThreadId::MAIN);
    let retried = walk.go(machine, number, |_| OTHER);
    let (fresh, stop) = run(machine, number, |step| if step < last { x } else { OTHER });
    match (&walk.trace, retried) == (&fresh.trace, stop) {
        true => Ok(()),
        false => Err(format!("{retried:?}, but {stop:?}")),
    }
}

fn check(build: Build, seed: u64) {
    let program = Program::build(build, &program(seed));
    let mut machine = program.load(Settings {
        skip_retries: false,
        ..Settings::default()
    });
    let (mut parked, mut free, mut retried) = (0, 0, 0);
    for number in 0..LOOPS {
        for x in [0, 2] {
            let (walk, stop) = run(&mut machine, number, |_| x);
            let Pending::Stopped(Stop::Spinning { since }) = stop else {
                free += 1;
                continue;
            };
            parked += 1;
            let since = since as usize;
            let trace = walk.trace.clone();
            let period = trace.len() - since;
            if period == 1 {
                retried += 1;
                if let Err(difference) = check_retry(&mut machine, number, walk, x) {
                    panic!("loop {number} of seed {seed}, {build:?}: {difference}");
                }
            }
            machine.set_parking(false);
            let (Walk { trace: longer, .. }, _) = run(&mut machine, number, |_| x);
            machine.set_parking(true);
            assert_eq!(
                longer.len(),
                STEPS,
                "loop {number} of seed {seed} ends: {build:?}"
            );
            for (index, step) in longer.iter().enumerate().skip(trace.len()) {
                let same = &trace[since + (index - since) % period];
                assert_eq!(
                    step, same,
                    "step {index} of loop {number}, seed {seed}, {build:?}"
                );
            }
        }
    }
    assert!(
        parked > LOOPS / 4 && free > LOOPS / 8 && retried > LOOPS / 12,
        "{parked} parked, {free} not, {retried} retried"
    );
}

#[test]
fn parked_loops_would_never_end() {
    isolated("parked_loops_would_never_end", || {
        let seeds = std::env::var("SEEDS").ok();
        let seeds = seeds.map_or(2, |seeds| seeds.parse().expect("a number of seeds"));
        for (index, build) in Build::installed(&[GCC, CLANG, GCC_O2, CLANG_O2]).enumerate() {
            for seed in 0..seeds {
                check(build, 10 * seed + index as u64);
            }
        }
    });
}
