//! The accesses that calls inserted by compilers announce or make.

/// How much a callback announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// A number of bytes, sixteen at most.
    Bytes(u32),
    /// A range of this many bytes.
    Range(u64),
}

/// A function that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Callee {
    /// Tells that a function is entered or left.
    Entry,
    /// Tells that a basic block begins.
    Mark,
    /// Announces the access at the first argument; the second is a range's size.
    Announces {
        /// Whether it is a write.
        write: bool,
        /// How much.
        extent: Extent,
        /// Whether the address of a class's table of virtual functions is accessed.
        table: bool,
    },
    /// Loads an atomic object of this size.
    Loads {
        /// How many bytes it has.
        bytes: u32,
    },
    /// Copies memory.
    Copies,
    /// Does other work itself.
    Operates {
        /// The number of the argument that is stored, from zero.
        value: usize,
    },
    /// Finds a thread-local variable.
    ThreadLocal,
    /// Any other function.
    Other,
}

impl Callee {
    /// The function of this name.
    pub(super) fn named(name: &str) -> Callee {
        match name {
            "__tls_get_addr" => return Callee::ThreadLocal,
            "__sanitizer_cov_trace_pc" => return Callee::Mark,
            _ => {}
        }
        let Some(callback) = name.strip_prefix("__tsan_") else {
            return Callee::Other;
        };
        let announces = |write, extent, table| Callee::Announces {
            write,
            extent,
            table,
        };
        match callback {
            "func_entry" | "func_exit" | "init" => return Callee::Entry,
            "read_range" => return announces(false, Extent::Range(0), false),
            "write_range" => return announces(true, Extent::Range(0), false),
            "vptr_read" => return announces(false, Extent::Bytes(8), true),
            "vptr_update" => return announces(true, Extent::Bytes(8), false),
            _ => {}
        }
        let plain = callback.strip_prefix("unaligned_").unwrap_or(callback);
        let plain = plain.strip_prefix("volatile_").unwrap_or(plain);
        let (write, bytes) = match (plain.strip_prefix("read"), plain.strip_prefix("write")) {
            (Some(bytes), _) => (false, bytes),
            (_, Some(bytes)) => (true, bytes),
            _ => return Callee::operation(callback),
        };
        match bytes.parse() {
            Ok(bytes @ 1..=16) => announces(write, Extent::Bytes(bytes), false),
            _ => Callee::operation(callback),
        }
    }

    /// A callback that does what it is called for.
    fn operation(callback: &str) -> Callee {
        if matches!(callback, "memcpy" | "memmove") {
            return Callee::Copies;
        }
        let load = callback
            .strip_prefix("atomic")
            .and_then(|rest| rest.strip_suffix("_load"));
        match load.and_then(|bits| bits.parse::<u32>().ok()) {
            Some(bits) => Callee::Loads { bytes: bits / 8 },
            None if callback.contains("compare_exchange") => Callee::Operates { value: 2 },
            None => Callee::Operates { value: 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_are_told_by_their_names() {
        let write8 = Callee::Announces {
            write: true,
            extent: Extent::Bytes(8),
            table: false,
        };
        assert_eq!(Callee::named("__tsan_unaligned_volatile_write8"), write8);
        assert_eq!(Callee::named("__tsan_write8"), write8);
        assert_eq!(
            Callee::named("__tsan_atomic32_load"),
            Callee::Loads { bytes: 4 }
        );
        assert_eq!(Callee::named("__tsan_func_entry"), Callee::Entry);
        assert_eq!(Callee::named("memcpy"), Callee::Other);
    }
}
