//! Memory that is no part of a model, but that its threads can change: statics, thread-locals of the OS thread, the stacks of other
//! threads of the model, what the closure captured, and whatever of the heap can be reached from there.
//!
//! Nothing tells of such changes, so what is there is copied and compared. Other OS threads may change some of it at the
//! same time: that nothing changed is certain, who changed something is not.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

use rustc_hash::FxHashSet;

use super::blocks;

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// What is close: so many bytes, in the order in which pointers lead there.
    Close = 128 << 10,
    /// All. The caches of a library that prints backtraces alone take tens of megabytes.
    All = 256 << 20,
}

/// What there is outside of the models of an OS thread, and a copy of it.
#[derive(Default)]
pub(super) struct Outside {
    /// Statics and thread-locals, once they are known.
    fixed: Vec<Range<usize>>,
    /// What was copied.
    ranges: Vec<Range<usize>>,
    copy: Vec<u64>,
    reached: FxHashSet<usize>,
}

impl Outside {
    /// Copies what can be reached from `roots`, thread-locals and statics. False if all is wanted, and that is too much.
    pub(super) fn copy(
        &mut self,
        extent: Extent,
        roots: impl Iterator<Item = Range<usize>>,
    ) -> bool {
        if self.fixed.is_empty() {
            find_fixed(&mut self.fixed);
        }
        self.copy.clear();
        self.reached.clear();
        self.ranges.clear();
        self.ranges.extend(roots);
        self.ranges.extend(self.fixed.iter().cloned());
        let certain = self.ranges.len();
        let mut next = 0;
        while let Some(range) = self.ranges.get(next).cloned() {
            next += 1;
            if next > certain && self.copy.len() * 8 + range.len() > extent as usize {
                if extent == Extent::All {
                    return false;
                }
                self.ranges[next - 1] = 0..0;
                continue;
            }
            for word in words(range) {
                self.copy.push(word);
                if let Some(block) = blocks::find(word as usize)
                    && self.reached.insert(block.start)
                {
                    self.ranges.push(block);
                }
            }
        }
        true
    }

    /// Whether all of it is as it was copied.
    pub(super) fn is_unchanged(&self) -> bool {
        let now = self.ranges.iter().cloned().flat_map(words);
        now.eq(self.copy.iter().copied())
    }
}

/// The words that a range consists of; it is widened to whole words.
fn words(range: Range<usize>) -> impl Iterator<Item = u64> {
    let begin = range.start & !7;
    (begin..range.end).step_by(8).map(|word| {
        // SAFETY: an aligned word of memory that is mapped: a segment, a stack, or a block in use. Other OS threads may be writing it,
        // which is why it is read as volatile, and why nothing is made of it but a comparison.
        unsafe { std::ptr::with_exposed_provenance::<u64>(word).read_volatile() }
    })
}

/// The statics of the program and its libraries, and the thread-locals of this OS thread.
fn find_fixed(found: &mut Vec<Range<usize>>) {
    let found: *mut Vec<Range<usize>> = found;
    // SAFETY: the callback is given the vector it expects, and calls nothing that loads libraries.
    unsafe { libc::dl_iterate_phdr(Some(add_object), found.cast()) };
}

/// Adds what is writable of one object. The C library's own is left out: every allocation of every OS thread changes it.
unsafe extern "C" fn add_object(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: what `dl_iterate_phdr` promises, and what `find_fixed` passes.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Vec<Range<usize>>>()) };
    // SAFETY: a string of the dynamic linker; empty for the program itself.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy();
    let file = name.rsplit('/').next().unwrap_or_default();
    if file.starts_with("libc.") || file.starts_with("ld-") || file.starts_with("libgcc_s") {
        return 0;
    }
    // SAFETY: the table of program headers of a loaded object.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr as usize;
    let span = |header: &libc::Elf64_Phdr| {
        let begin = base + header.p_vaddr as usize;
        begin..begin + header.p_memsz as usize
    };
    let constant = headers
        .iter()
        .find(|header| header.p_type == libc::PT_GNU_RELRO)
        .map(span);
    for header in headers {
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0 {
            let all = span(header);
            match &constant {
                // What is constant after loading comes first.
                Some(constant) if all.contains(&constant.start) => {
                    found.push(all.start..constant.start);
                    found.push(constant.end.min(all.end)..all.end);
                }
                _ => found.push(all),
            }
        } else if header.p_type == libc::PT_TLS && !info.dlpi_tls_data.is_null() {
            let begin = info.dlpi_tls_data.addr();
            found.push(begin..begin + header.p_memsz as usize);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// Whether a change that `change` makes is noticed.
    fn notices(change: impl FnOnce()) -> bool {
        let mut outside = Outside::default();
        find_fixed(&mut outside.fixed);
        for _ in 0..100 {
            assert!(outside.copy(Extent::All, std::iter::empty()));
            if outside.is_unchanged() {
                change();
                return !outside.is_unchanged();
            }
        }
        panic!("other threads change something all the time");
    }

    #[test]
    fn changes_of_statics_thread_locals_and_what_they_lead_to_are_noticed() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        static BEHIND: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());
        std::thread_local! {
            static LOCAL: Cell<usize> = const { Cell::new(0) };
        }
        BEHIND.lock().unwrap().push(1);
        assert!(notices(|| COUNT.store(1, Relaxed)));
        assert!(notices(|| LOCAL.set(1)));
        assert!(notices(|| BEHIND.lock().unwrap()[0] = 2));
    }
}
