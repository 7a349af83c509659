//! A list that grows without being copied and without room to spare.

use std::ops::{Index, IndexMut};

const SHIFT: u32 = 14;
const SIZE: usize = 1 << SHIFT;

/// A list in pieces of equal size.
pub(super) struct Chunks<T>(Vec<Vec<T>>);

impl<T> Default for Chunks<T> {
    fn default() -> Chunks<T> {
        Chunks(Vec::new())
    }
}

impl<T> Chunks<T> {
    pub(super) fn len(&self) -> usize {
        match &self.0[..] {
            [] => 0,
            [full @ .., last] => full.len() * SIZE + last.len(),
        }
    }

    pub(super) fn push(&mut self, item: T) {
        match self.0.last_mut() {
            Some(last) if last.len() < SIZE => last.push(item),
            // The first one grows as it must, so that small searches stay small.
            None => self.0.push(vec![item]),
            Some(_) => {
                let mut chunk = Vec::with_capacity(SIZE);
                chunk.push(item);
                self.0.push(chunk);
            }
        }
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let first = self.0.first().map_or(0, Vec::capacity);
        (first + self.0.len().saturating_sub(1) * SIZE) * size_of::<T>()
    }
}

impl<T> Index<u32> for Chunks<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        &self.0[(place >> SHIFT) as usize][place as usize & (SIZE - 1)]
    }
}

impl<T> IndexMut<u32> for Chunks<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.0[(place >> SHIFT) as usize][place as usize & (SIZE - 1)]
    }
}
