//! Steps on synchronisation objects, common to all kinds of them.

use selvedge_core::objects::{DESTROYED, ObjectFunction};
use selvedge_core::op::Value;
use selvedge_core::{FailureKind, Function, MemoryOrder, Op, Outcome, Site, Width};

use super::program;
use crate::current;
use crate::problem::PLACE;

/// A synchronisation object of the program, during one call on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    /// Where it is.
    pub(crate) address: usize,
    /// How many bytes its initial state takes.
    width: Width,
    /// Its kind, for messages.
    noun: &'static str,
    /// The calling thread.
    pub(crate) site: Site,
}

impl Object {
    /// The `noun` of `size` bytes at `address`, which the program has just called a function on.
    pub(crate) fn new(address: usize, size: usize, noun: &'static str) -> Object {
        Object::used_at(address, size, noun, current::site())
    }

    /// The same, called at `site`.
    pub(crate) fn used_at(address: usize, size: usize, noun: &'static str, site: Site) -> Object {
        if address == 0 {
            let message = format!("a null pointer was used as a {noun}");
            current::fail(FailureKind::NullDereference, message, site);
        }
        // All of it: what lies behind the state is looked at as well, without further notice.
        current::check_range(address, size, site);
        Object {
            address,
            width: Width(size.min(8) as u8),
            noun,
            site,
        }
    }

    /// The same object, as the call site `site` sees it.
    pub(crate) fn seen_from(self, site: Site) -> Object {
        Object { site, ..self }
    }

    /// Performs `function`; meeting a destroyed object is a bug.
    pub(crate) fn step(self, function: ObjectFunction, order: MemoryOrder) -> Outcome {
        loop {
            let outcome = self.step_unchecked(function, order);
            if outcome.read != DESTROYED {
                return outcome;
            }
            self.revive();
        }
    }

    /// Performs `function`, whatever state the object is in.
    pub(crate) fn step_unchecked(self, function: ObjectFunction, order: MemoryOrder) -> Outcome {
        let at = current::object(self.address, self.width);
        current::perform(
            Op::Update {
                at,
                function: Function::Object(function),
                order,
                failure: function.unchanged_order(),
            },
            self.site,
        )
    }

    /// Reads the state.
    pub(crate) fn load(self) -> Value {
        let at = current::object(self.address, self.width);
        loop {
            let order = MemoryOrder::Acquire;
            let outcome = current::perform(Op::Load { at, order }, self.site);
            if outcome.read != DESTROYED {
                return outcome.read;
            }
            self.revive();
        }
    }

    /// Code that announces nothing, such as a constructor in C++'s library, may have begun a new
    /// life of a destroyed object. Otherwise its use is a bug.
    fn revive(self) {
        let word = self.word();
        if word == self.grave() {
            self.misuse(format_args!("use of {PLACE}, a destroyed {}", self.noun));
        }
        self.initialise(word);
    }

    /// The bytes that a destroyed object leaves in its memory.
    fn grave(self) -> u64 {
        const GRAVE: u64 = 0x5e1f_dead_5e1f_dead;
        self.width.truncate(GRAVE.into()) as u64
    }

    fn word(self) -> u64 {
        match self.width.0 {
            4 => program::peek::<u32>(self.address).into(),
            _ => program::peek(self.address),
        }
    }

    /// Writes the state, releasing what the thread did before.
    pub(crate) fn store(self, value: Value) {
        let at = current::object(self.address, self.width);
        current::perform(
            Op::Store {
                at,
                value,
                order: MemoryOrder::Release,
            },
            self.site,
        );
    }

    /// Begins the object's life in state `value`.
    pub(crate) fn initialise(self, value: u64) {
        current::initialise_object(self.address, self.width, value, self.site);
    }

    /// The same with an object that must not be in use as `in_use` sees it.
    pub(crate) fn renew(self, value: u64, in_use: impl Fn(Value) -> bool, how: &str) {
        if current::is_used_object(self.address, self.width) {
            let outcome = self.step_unchecked(ObjectFunction::Destroy, MemoryOrder::Relaxed);
            if outcome.read != DESTROYED && in_use(outcome.read) {
                self.misuse(format_args!(
                    "initialisation of {PLACE}, a {} {how}",
                    self.noun
                ));
            }
        }
        self.initialise(value);
    }

    /// Ends the object's life, which must not be in use as `in_use` sees it.
    pub(crate) fn destroy(self, in_use: impl Fn(Value) -> bool, how: &str) {
        let outcome = self.step(ObjectFunction::Destroy, MemoryOrder::AcqRel);
        if in_use(outcome.read) {
            self.misuse(format_args!(
                "destruction of {PLACE}, a {} {how}",
                self.noun
            ));
        }
        match self.width.0 {
            4 => program::poke(self.address, self.grave() as u32),
            _ => program::poke(self.address, self.grave()),
        }
    }

    /// Reports a use against the rules; the message may call the object [`PLACE`].
    pub(crate) fn misuse(self, what: std::fmt::Arguments<'_>) -> ! {
        let what = what.to_string();
        current::fail_at(FailureKind::ObjectMisuse, what, self.address, self.site)
    }
}
