//! Scripted programs as C, so that the native machine can be held against brute force too.

use std::fmt::Write;

use selvedge_core::objects::{FREE, ObjectFunction};
use selvedge_core::op::Rmw;
use selvedge_core::{Function, MemoryOrder};

use crate::brute::brute_force;
use crate::program::{Instruction, Program};
use crate::random::{Flavour, random_program};
use crate::script::ScriptMachine;

/// Programs that C has a counterpart for and that some schedule brings to a good end, whatever
/// others do; none fails in another way than by getting stuck.
pub fn enforceable_programs(seed: u64, count: usize) -> Vec<Program> {
    let flavours = [Flavour::Memory, Flavour::Mutexes, Flavour::Deadlocks];
    let all = (seed..).flat_map(|seed| flavours.map(|flavour| random_program(seed, flavour)));
    // The ones that fail do so under every schedule, now and then.
    let ends_well = |program: &Program| {
        let outcomes = brute_force(&mut ScriptMachine::new(program.clone()), 2_000)?;
        let written = c_source(std::slice::from_ref(program))?;
        let well = !outcomes.complete.is_empty() && !outcomes.fails;
        (well && !written.is_empty()).then_some(())
    };
    let all = all.map(|mut program| {
        program.initial.clear();
        program
    });
    all.filter(|program| ends_well(program).is_some())
        .take(count)
        .collect()
}

/// One C program that picks one of `programs` with `selvedge_choose` and runs it, so that a single
/// search covers them all. `None` if one of them uses what C has no counterpart for here.
pub fn c_source(programs: &[Program]) -> Option<String> {
    let mut c = String::from(
        "#include <assert.h>\n#include <pthread.h>\n\
         unsigned selvedge_choose(unsigned);\nvoid __VERIFIER_assume(int);\n",
    );
    for (number, program) in programs.iter().enumerate() {
        declare(&mut c, number, program);
        for (thread, code) in program.threads.iter().enumerate() {
            function(&mut c, number, thread, code)?;
        }
    }
    let _ = writeln!(
        c,
        "int main(void) {{\n  switch (selvedge_choose({})) {{",
        programs.len()
    );
    for number in 0..programs.len() {
        let _ = writeln!(c, "  case {number}: p{number}t0(0); break;");
    }
    // A script goes on until its last thread ends.
    c.push_str("  }\n  pthread_exit(0);\n}\n");
    Some(c)
}

/// A location that is locked or unlocked is a mutex, the others are atomic integers.
fn is_mutex(program: &Program, location: u32) -> bool {
    program.threads.iter().flatten().any(|instruction| {
        let lock = matches!(
            instruction,
            Instruction::Update(_, _, Function::Object(ObjectFunction::MutexLock { .. }))
        );
        lock && location_of(instruction) == Some(location)
    })
}

fn location_of(instruction: &Instruction) -> Option<u32> {
    match *instruction {
        Instruction::Load(_, location)
        | Instruction::Store(location, _)
        | Instruction::StoreRegister(location, _)
        | Instruction::Update(_, location, _) => Some(location),
        _ => None,
    }
}

fn declare(c: &mut String, number: usize, program: &Program) {
    let instructions = program.threads.iter().flatten();
    let mut locations: Vec<u32> = instructions.filter_map(location_of).collect();
    locations.sort_unstable();
    locations.dedup();
    for location in locations {
        let kind = if is_mutex(program, location) {
            "pthread_mutex_t"
        } else {
            "unsigned"
        };
        let _ = writeln!(c, "static {kind} p{number}x{location};");
    }
    let threads = program.threads.len();
    let _ = writeln!(c, "static pthread_t p{number}id[{threads}];");
    for thread in 0..threads {
        let _ = writeln!(c, "static void *p{number}t{thread}(void *);");
    }
}

fn function(c: &mut String, p: usize, thread: usize, code: &[Instruction]) -> Option<()> {
    let _ = writeln!(c, "static void *p{p}t{thread}(void *argument) {{");
    c.push_str("  unsigned r0 = 0, r1 = 0, r2 = 0, r3 = 0;\n");
    for (line, instruction) in code.iter().enumerate() {
        let _ = write!(c, "  l{line}: __attribute__((unused));\n  ");
        let before = line.checked_sub(1).map(|before| code[before]);
        let orders = match before {
            Some(Instruction::With(order, failure)) => (name(order), name(failure)),
            _ => ("__ATOMIC_SEQ_CST", "__ATOMIC_SEQ_CST"),
        };
        statement(c, p, instruction, orders)?;
    }
    let _ = writeln!(c, "  l{}: __attribute__((unused));", code.len());
    c.push_str("  (void)r0; (void)r1; (void)r2; (void)r3;\n  return argument;\n}\n");
    Some(())
}

/// The name of an order in C. Plain accesses to atomics do not exist there.
fn name(order: MemoryOrder) -> &'static str {
    match order {
        MemoryOrder::Plain | MemoryOrder::Relaxed => "__ATOMIC_RELAXED",
        MemoryOrder::Acquire => "__ATOMIC_ACQUIRE",
        MemoryOrder::Release => "__ATOMIC_RELEASE",
        MemoryOrder::AcqRel => "__ATOMIC_ACQ_REL",
        MemoryOrder::SeqCst => "__ATOMIC_SEQ_CST",
    }
}

/// The orders of an access, and of an update that fails.
type Orders = (&'static str, &'static str);

fn statement(c: &mut String, p: usize, instruction: &Instruction, orders: Orders) -> Option<()> {
    let order = orders.0;
    let _ = match *instruction {
        Instruction::Load(r, x) => {
            writeln!(c, "r{r} = __atomic_load_n(&p{p}x{x}, {order});")
        }
        Instruction::Store(x, FREE) if x >= 10 => {
            writeln!(c, "pthread_mutex_unlock(&p{p}x{x});")
        }
        Instruction::Store(x, v) => {
            writeln!(c, "__atomic_store_n(&p{p}x{x}, {v}u, {order});")
        }
        Instruction::StoreRegister(x, r) => {
            writeln!(c, "__atomic_store_n(&p{p}x{x}, r{r}, {order});")
        }
        Instruction::Update(r, x, function) => return update(c, p, (r, x), function, orders),
        Instruction::With(..) => writeln!(c, ";"),
        Instruction::Fence(order) => writeln!(c, "__atomic_thread_fence({});", name(order)),
        Instruction::Create(t) => writeln!(c, "pthread_create(&p{p}id[{t}], 0, p{p}t{t}, 0);"),
        Instruction::Join(t) => writeln!(c, "pthread_join(p{p}id[{t}], 0);"),
        Instruction::Choose(r, n) => writeln!(c, "r{r} = selvedge_choose({n});"),
        Instruction::JumpIf(r, v, target) => writeln!(c, "if (r{r} == {v}u) goto l{target};"),
        Instruction::AssertNot(r, v) => writeln!(c, "assert(r{r} != {v}u);"),
        Instruction::Assume(r, v) => writeln!(c, "__VERIFIER_assume(r{r} == {v}u);"),
    };
    Some(())
}

fn update(
    c: &mut String,
    p: usize,
    (r, x): (usize, u32),
    function: Function,
    (order, failure): Orders,
) -> Option<()> {
    let _ = match function {
        Function::Object(ObjectFunction::MutexLock { .. }) => {
            writeln!(c, "pthread_mutex_lock(&p{p}x{x});")
        }
        Function::Memory { rmw, .. } => match rmw {
            Rmw::Add(v) => {
                writeln!(c, "r{r} = __atomic_fetch_add(&p{p}x{x}, {v}u, {order});")
            }
            Rmw::Xor(v) => {
                writeln!(c, "r{r} = __atomic_fetch_xor(&p{p}x{x}, {v}u, {order});")
            }
            Rmw::Exchange(v) => {
                writeln!(c, "r{r} = __atomic_exchange_n(&p{p}x{x}, {v}u, {order});")
            }
            Rmw::CompareExchange { expected, desired } => writeln!(
                c,
                "r{r} = {expected}u; __atomic_compare_exchange_n(&p{p}x{x}, &r{r}, {desired}u, 0, \
                 {order}, {failure});"
            ),
            _ => return None,
        },
        Function::Object(_) => return None,
    };
    Some(())
}
