//! Removes the checks behind stores, which an executable does not need.

use selvedge_runtime::support::{STORES_ADDRESS, STORES_SCRATCH};

/// The longest instruction that does nothing, and one of a byte.
const LONG: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
const SHORT: [u8; 5] = [0x0f, 0x1f, 0x44, 0, 0];
const BYTE: u8 = 0x90;

/// Fills `code` with instructions that do nothing.
fn fill(mut code: &mut [u8]) {
    for nothing in [&LONG[..], &SHORT] {
        while code.len() >= nothing.len() {
            let (first, rest) = code.split_at_mut(nothing.len());
            first.copy_from_slice(nothing);
            code = rest;
        }
    }
    code.fill(BYTE);
}

/// Takes out the checks that were put behind stores (`compile::checks`), all of them: they look at
/// memory that only the verifier has.
pub(super) fn remove(bytes: &mut [u8]) {
    let address = |place: usize| (place as u32).to_le_bytes();
    let (stores, scratch) = (address(STORES_ADDRESS), address(STORES_SCRATCH));
    let saved = address(STORES_SCRATCH + 8);
    let with = |code: &[u8], address: [u8; 4], rest: &[u8]| [code, &address, rest].concat();
    // cmpl $0, STORES; jne, near or far
    let compare = with(&[0x83, 0x3c, 0x25], stores, &[0x00]);
    let (near, far): (&[u8], &[u8]) = (&[0x75], &[0x0f, 0x85]);
    // movq STORES, %rcx; jrcxz over the jump
    let load = with(&[0x48, 0x8b, 0x0c, 0x25], stores, &[0xe3]);
    // movq %rcx, SAVED and back; movq %rdi, SCRATCH
    let moves = [
        with(&[0x48, 0x89, 0x0c, 0x25], saved, &[]),
        with(&[0x48, 0x8b, 0x0c, 0x25], saved, &[]),
        with(&[0x48, 0x89, 0x3c, 0x25], scratch, &[]),
    ];
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..) {
        let length = if let Some(jump) = rest.strip_prefix(&compare[..]) {
            match (jump.starts_with(near), jump.starts_with(far)) {
                (true, _) => compare.len() + 2,
                (_, true) => compare.len() + 6,
                _ => compare.len(),
            }
        } else if rest.starts_with(&load) {
            load.len() + 1 + usize::from(rest.get(load.len()).copied().unwrap_or(0))
        } else if moves.iter().any(|code| rest.starts_with(code)) {
            moves[0].len()
        } else {
            at += 1;
            if rest.is_empty() {
                break;
            }
            continue;
        };
        let length = length.min(rest.len());
        fill(&mut rest[..length]);
        at += length;
    }
}
