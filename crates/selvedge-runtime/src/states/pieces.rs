//! Bytes that were saved, in pieces of which each is kept once: what is saved differs little from
//! one time to the next.

use std::collections::HashMap;

use super::put;

/// The size of a piece. The first one of what is saved may be smaller: stacks have most in common
/// at their upper ends.
const SIZE: usize = 64;

/// All pieces, with zeros behind those that are smaller.
#[derive(Default)]
pub(super) struct Pieces {
    pieces: Vec<[u8; SIZE]>,
    numbers: HashMap<[u8; SIZE], u32>,
}

/// Bytes by their pieces.
pub(super) struct Saved {
    length: u32,
    /// From the last one to the first.
    pieces: Box<[u32]>,
}

impl Pieces {
    /// Saves bytes.
    pub(super) fn save(&mut self, bytes: &[u8]) -> Saved {
        let pieces = bytes.rchunks(SIZE).map(|chunk| {
            let mut piece = [0; SIZE];
            piece[..chunk.len()].copy_from_slice(chunk);
            let next = self.pieces.len() as u32;
            *self.numbers.entry(piece).or_insert_with(|| {
                self.pieces.push(piece);
                next
            })
        });
        Saved {
            length: bytes.len() as u32,
            pieces: pieces.collect(),
        }
    }

    /// Writes what was saved to memory, from `start` on.
    pub(super) fn restore(&self, saved: &Saved, start: usize) {
        let mut end = saved.length as usize;
        for &piece in &saved.pieces {
            let size = end.min(SIZE);
            end -= size;
            put(start + end, &self.pieces[piece as usize][..size]);
        }
    }

    /// The saved bytes.
    pub(super) fn bytes_of(&self, saved: &Saved, into: &mut Vec<u8>) {
        into.clear();
        into.resize(saved.length as usize, 0);
        let places = into.rchunks_mut(SIZE);
        for (place, &piece) in places.zip(&saved.pieces) {
            place.copy_from_slice(&self.pieces[piece as usize][..place.len()]);
        }
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.pieces.len() * (2 * SIZE + 8)
    }
}

impl Saved {
    /// How many bytes were saved.
    pub(super) fn len(&self) -> usize {
        self.length as usize
    }

    /// How much memory it takes besides the pieces.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_comes_back_and_pieces_are_kept_once() {
        let mut pieces = Pieces::default();
        let bytes: Vec<u8> = (0..=255).chain(0..77).collect();
        for length in [0, 1, 63, 64, 65, 200, bytes.len()] {
            let saved = pieces.save(&bytes[..length]);
            let mut back = vec![7];
            pieces.bytes_of(&saved, &mut back);
            assert_eq!(back, bytes[..length]);
            let mut memory = vec![0; length];
            pieces.restore(&saved, memory.as_mut_ptr().expose_provenance());
            assert_eq!(memory, bytes[..length]);
        }
        let before = pieces.bytes();
        pieces.save(&bytes);
        pieces.save(&bytes[bytes.len() - 128..]);
        assert_eq!(pieces.bytes(), before);
    }
}
