//! The `malloc` family.

use std::ffi::c_int;
use std::ptr::with_exposed_provenance_mut;

use libc::{EINVAL, ENOMEM};
use selvedge_core::{FailureKind, Site};

use super::program;
use super::{bytes, strings};
use crate::current;

entry_points![
    malloc(1),
    calloc(2),
    realloc(2),
    reallocarray(3),
    free(1),
    cfree(1),
    aligned_alloc(2),
    posix_memalign(3),
    memalign(2),
    valloc(1),
    pvalloc(1),
    malloc_usable_size(1),
    malloc_trim(1),
    __sched_cpualloc(1),
    __sched_cpufree(1),
    strdup(1),
    strndup(2),
];

const ALIGNMENT: usize = 16;
const PAGE: usize = 4096;
/// No machine has this much: such a request fails as it would anywhere.
const ABSURD: usize = 1 << 46;

/// A new block, or null with `errno` set.
pub(crate) fn allocate(size: usize, alignment: usize, site: Site) -> usize {
    if size >= ABSURD {
        program::set_errno(ENOMEM);
        return 0;
    }
    if current::reuses_memory()
        && let Some(block) = current::reusable(size, alignment)
        && current::choose(2, site) == 1
    {
        current::reuse(block, site);
        return block;
    }
    match current::allocate(size, alignment, site) {
        Some(block) => block.expose_provenance(),
        None => {
            let what = format!(
                "an allocation of {size} bytes does not fit into the memory that an execution may \
                 use (--heap-limit)"
            );
            current::refuse(what, site)
        }
    }
}

fn release(block: usize, site: Site) {
    if block != 0 {
        current::release(with_exposed_provenance_mut(block), site);
    }
}

fn resize(block: usize, size: usize, site: Site) -> usize {
    if block == 0 {
        return allocate(size, ALIGNMENT, site);
    }
    if size == 0 {
        release(block, site);
        return 0;
    }
    let Some(old) = current::block_size(with_exposed_provenance_mut(block)) else {
        // No live block: releasing it reports what is wrong.
        release(block, site);
        return 0;
    };
    let new = allocate(size, ALIGNMENT, site);
    if new != 0 {
        bytes::copy(new, block, old.min(size), site);
        release(block, site);
    }
    new
}

extern "C" fn malloc(size: usize) -> usize {
    allocate(size, ALIGNMENT, current::site())
}

extern "C" fn calloc(count: usize, size: usize) -> usize {
    let site = current::site();
    let size = count.saturating_mul(size);
    let block = allocate(size, ALIGNMENT, site);
    if block != 0 {
        bytes::set(block, 0, size, site);
    }
    block
}

extern "C" fn realloc(block: usize, size: usize) -> usize {
    resize(block, size, current::site())
}

extern "C" fn reallocarray(block: usize, count: usize, size: usize) -> usize {
    resize(block, count.saturating_mul(size), current::site())
}

extern "C" fn free(block: usize) {
    release(block, current::site());
}

extern "C" fn cfree(block: usize) {
    release(block, current::site());
}

extern "C" fn aligned_alloc(alignment: usize, size: usize) -> usize {
    aligned("aligned_alloc", alignment, size)
}

extern "C" fn memalign(alignment: usize, size: usize) -> usize {
    aligned("memalign", alignment, size)
}

fn aligned(name: &str, alignment: usize, size: usize) -> usize {
    let site = current::site();
    if !alignment.is_power_of_two() {
        let what = format!("{name} with the alignment {alignment}, which is no power of two");
        current::fail(FailureKind::ObjectMisuse, what, site);
    }
    allocate(size, alignment.max(ALIGNMENT), site)
}

extern "C" fn posix_memalign(result: usize, alignment: usize, size: usize) -> c_int {
    let site = current::site();
    if !alignment.is_power_of_two() || alignment < size_of::<usize>() {
        return EINVAL;
    }
    let block = allocate(size, alignment.max(ALIGNMENT), site);
    if block == 0 {
        return ENOMEM;
    }
    program::store_word(result, block, site);
    0
}

extern "C" fn valloc(size: usize) -> usize {
    allocate(size, PAGE, current::site())
}

extern "C" fn pvalloc(size: usize) -> usize {
    allocate(size.next_multiple_of(PAGE), PAGE, current::site())
}

extern "C" fn malloc_usable_size(block: usize) -> usize {
    if block == 0 {
        return 0;
    }
    current::block_size(with_exposed_provenance_mut(block)).unwrap_or(0)
}

extern "C" fn malloc_trim(_pad: usize) -> c_int {
    0
}

/// A set of this many processors.
extern "C" fn __sched_cpualloc(processors: usize) -> usize {
    allocate(processors.div_ceil(64) * 8, ALIGNMENT, current::site())
}

extern "C" fn __sched_cpufree(set: usize) {
    release(set, current::site());
}

extern "C" fn strdup(string: usize) -> usize {
    let site = current::site();
    duplicate(string, strings::read_length(string, site), site)
}

extern "C" fn strndup(string: usize, limit: usize) -> usize {
    let site = current::site();
    let length = strings::bounded_length(string, limit);
    current::touch(string, limit.min(length + 1), false, site);
    duplicate(string, length, site)
}

fn duplicate(string: usize, length: usize, site: Site) -> usize {
    let copy = allocate(length + 1, ALIGNMENT, site);
    if copy != 0 {
        bytes::copy(copy, string, length, site);
        program::write::<u8>(copy + length, 0, site);
    }
    copy
}
