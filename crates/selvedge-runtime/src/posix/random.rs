//! Random numbers: the same ones in every execution, per thread.

use serde::{Deserialize, Serialize};
use std::ffi::{c_int, c_long, c_uint};

use super::program;
use super::state::local;
use crate::current;

entry_points![
    rand(0),
    srand(1),
    rand_r(1),
    random(0),
    srandom(1),
    drand48(0),
    lrand48(0),
    mrand48(0),
    srand48(1),
    arc4random(0),
    arc4random_uniform(1),
    arc4random_buf(2),
    getentropy(2),
    getrandom(3),
];

/// A linear congruential generator of 64 bits, of which the upper ones are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Generator(u64);

impl Generator {
    /// As after `srand(1)`.
    pub(crate) const NEW: Generator = Generator::seeded(1);

    const fn seeded(seed: u64) -> Generator {
        Generator(Generator::step(seed ^ 0x5eed_0f5e_1fed_9e00))
    }

    const fn step(state: u64) -> u64 {
        state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407)
    }

    fn next(&mut self) -> u32 {
        self.0 = Generator::step(self.0);
        (self.0 >> 32) as u32
    }
}

fn next() -> u32 {
    current::impure();
    local(|local| local.random.next())
}

fn seed(seed: u64) {
    current::impure();
    local(|local| local.random = Generator::seeded(seed));
}

extern "C" fn rand() -> c_int {
    (next() >> 1) as c_int
}

extern "C" fn srand(number: c_uint) {
    seed(number.into());
}

extern "C" fn rand_r(state: usize) -> c_int {
    let site = current::site();
    let old: c_uint = program::read(state, site);
    let mut generator = Generator::seeded(old.into());
    let number = generator.next();
    program::store_int(state, number.cast_signed(), site);
    (number >> 1) as c_int
}

extern "C" fn random() -> c_long {
    (next() >> 1).into()
}

extern "C" fn srandom(number: c_uint) {
    seed(number.into());
}

extern "C" fn drand48() -> f64 {
    f64::from(next()) / (f64::from(u32::MAX) + 1.0)
}

extern "C" fn lrand48() -> c_long {
    (next() >> 1).into()
}

extern "C" fn mrand48() -> c_long {
    next().cast_signed().into()
}

extern "C" fn srand48(number: c_long) {
    seed(number.cast_unsigned());
}

extern "C" fn arc4random() -> u32 {
    next()
}

extern "C" fn arc4random_uniform(bound: u32) -> u32 {
    if bound == 0 { 0 } else { next() % bound }
}

fn fill(buffer: usize, size: usize) {
    current::touch(buffer, size, true, current::site());
    for offset in 0..size {
        program::poke(buffer + offset, next() as u8);
    }
}

extern "C" fn arc4random_buf(buffer: usize, size: usize) {
    fill(buffer, size);
}

extern "C" fn getentropy(buffer: usize, size: usize) -> c_int {
    fill(buffer, size);
    0
}

extern "C" fn getrandom(buffer: usize, size: usize, _flags: c_uint) -> isize {
    fill(buffer, size);
    size.cast_signed()
}
