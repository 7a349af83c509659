//! Random memory orders and fences for programs that have none.

use selvedge_core::MemoryOrder as M;
use selvedge_core::op::Rmw;

use crate::program::{Instruction, Program};
use crate::random::Random;

/// A small program in the shape of a litmus test: two to four threads that are created at once, with
/// a few loads, stores and updates of two or three variables.
pub fn random_litmus(seed: u64) -> Program {
    let mut random = Random::new(seed ^ 0x0117_0000);
    let threads = 2 + random.below(3);
    let variables = 2 + u64::from(random.once_in(3));
    let updates = [3, 8, 100][random.below(3) as usize];
    let mut value = 0;
    let workers = (0..threads).map(|_| {
        let length = match threads {
            2 => 2 + random.below(3),
            3 => 1 + random.below(3),
            _ => 1 + random.below(2),
        };
        let step = |index| {
            let variable = random.below(variables) as u32;
            let register = index as usize % 2;
            value += 1;
            match random.below(8) {
                _ if random.once_in(updates) => match random.below(3) {
                    0 => Instruction::fetch_add(register, variable, 1),
                    1 => Instruction::memory(register, variable, Rmw::Exchange(value)),
                    _ => Instruction::compare_exchange(register, variable, 0, value),
                },
                0..4 => Instruction::Load(register, variable),
                4 => Instruction::StoreRegister(variable, 1 - register),
                _ => Instruction::Store(variable, value),
            }
        };
        (0..length).map(step).collect()
    });
    let mut program = Program::of_workers(workers.collect());
    if random.once_in(2) {
        program.threads[0].truncate(threads as usize);
    }
    program
}

/// A program made of a critical cycle, as diy makes them: neighbouring threads meet at one
/// variable, where at least one of them writes. Each thread has one or two accesses, and sometimes
/// another one that gets in the way. Nearly every one of these has outcomes that only weak memory
/// has.
pub fn random_cycle(seed: u64) -> Program {
    let mut random = Random::new(seed ^ 0x00c7_c1e0);
    let threads = 2 + random.below(3) as usize;
    // Of the meeting with the next thread: whether this one and whether the next one writes.
    let meetings: Vec<(bool, bool)> = (0..threads)
        .map(|_| [(true, false), (false, true), (true, true)][random.below(3) as usize])
        .collect();
    let mut value = 0;
    let mut variable = 0;
    let mut workers = Vec::new();
    for thread in 0..threads {
        let (_, first) = meetings[(thread + threads - 1) % threads];
        let (second, _) = meetings[thread];
        let mut access = |variable: u32, writes: bool, random: &mut Random| {
            value += 1;
            let register = value as usize % 2;
            match random.below(6) {
                0 => Instruction::fetch_add(register, variable, 1),
                _ if writes => Instruction::Store(variable, value),
                _ => Instruction::Load(register, variable),
            }
        };
        let mut code = vec![access(variable, first, &mut random)];
        if random.once_in(4) {
            let extra = random.below(3) as u32;
            let writes = random.once_in(2);
            code.push(access(extra, writes, &mut random));
        }
        // A thread that only writes may be one step of the cycle on its own.
        let alone = first && second && threads > 2 && random.once_in(2);
        let last = thread + 1 == threads;
        if !alone || last {
            variable = if last { 0 } else { variable + 1 };
            code.push(access(variable, second, &mut random));
        }
        workers.push(code);
    }
    let mut program = Program::of_workers(workers);
    program.threads[0].truncate(threads);
    program
}

/// The same program with a random order at each access to a variable and fences here and there.
/// Some programs are all of one kind, so that the strong parts of a model come together often
/// enough.
pub fn with_random_orders(program: &Program, seed: u64) -> Program {
    let mut random = Random::new(seed ^ 0x06de_5000);
    let palette: &[M] = match random.below(6) {
        0 => &[M::SeqCst, M::SeqCst, M::SeqCst, M::Relaxed],
        1 => &[M::Relaxed],
        2 => &[M::AcqRel, M::AcqRel, M::Relaxed],
        3 => &[M::SeqCst, M::AcqRel],
        4 => &[M::Plain, M::Relaxed, M::SeqCst],
        _ => &[M::Relaxed, M::Acquire, M::Release, M::AcqRel, M::SeqCst],
    };
    let fences = [2, 4, 4, 100][random.below(4) as usize];
    let strong_fences = random.once_in(2);
    let mut ordered = program.clone();
    for code in &mut ordered.threads {
        let mut moved = Vec::with_capacity(code.len() + 1);
        let mut new = Vec::new();
        for &instruction in code.iter() {
            moved.push(new.len());
            let local = matches!(
                instruction,
                Instruction::JumpIf(..) | Instruction::AssertNot(..) | Instruction::Assume(..)
            );
            if !local && random.once_in(fences) {
                let fence = match random.below(4) {
                    _ if strong_fences => M::SeqCst,
                    0 => M::Acquire,
                    1 => M::Release,
                    2 => M::AcqRel,
                    _ => M::SeqCst,
                };
                new.push(Instruction::Fence(fence));
            }
            let mut pick = || palette[random.below(palette.len() as u64) as usize];
            match instruction {
                Instruction::Load(..) => new.push(Instruction::with(reading(pick()))),
                Instruction::Store(..) | Instruction::StoreRegister(..) => {
                    new.push(Instruction::with(writing(pick())));
                }
                Instruction::Update(..) => {
                    let (order, failure) = (updating(pick()), reading(updating(pick())));
                    new.push(Instruction::With(order, failure));
                }
                _ => {}
            }
            new.push(instruction);
        }
        moved.push(new.len());
        for instruction in &mut new {
            if let Instruction::JumpIf(_, _, target) = instruction {
                *target = moved[(*target).min(code.len())];
            }
        }
        *code = new;
    }
    ordered
}

fn reading(order: M) -> M {
    match order {
        M::Release => M::Relaxed,
        M::AcqRel => M::Acquire,
        order => order,
    }
}

fn writing(order: M) -> M {
    match order {
        M::Acquire => M::Relaxed,
        M::AcqRel => M::Release,
        order => order,
    }
}

fn updating(order: M) -> M {
    match order {
        M::Plain => M::Relaxed,
        order => order,
    }
}
