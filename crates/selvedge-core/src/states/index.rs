//! A hash table of numbers; the entries that they stand for lie elsewhere.

/// Finds numbers by the hash of what they stand for: one flat array, half of the hash beside each
/// number, so that hardly ever anything else is looked at in vain and growing needs nothing else.
#[derive(Default)]
pub(super) struct Index {
    /// The hash in the upper half, one more than the number in the lower; zero if free. Sorted by
    /// the upper bits of the hash as far as collisions allow.
    slots: Vec<u64>,
    used: usize,
}

const SMALLEST: usize = 16;

impl Index {
    /// The number under `hash` that `is_it` recognises, or `None` after entering `new` there.
    pub(super) fn find_or_insert(
        &mut self,
        hash: u32,
        new: u32,
        mut is_it: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if self.used >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        let mut place = self.home(hash);
        loop {
            let slot = self.slots[place];
            if slot == 0 {
                self.slots[place] = u64::from(hash) << 32 | (u64::from(new) + 1);
                self.used += 1;
                return None;
            }
            if (slot >> 32) as u32 == hash && is_it(slot as u32 - 1) {
                return Some(slot as u32 - 1);
            }
            place = self.after(place);
        }
    }

    /// The number under `hash` that `is_it` recognises.
    pub(super) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut place = self.home(hash);
        loop {
            let slot = self.slots[place];
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == hash && is_it(slot as u32 - 1) {
                return Some(slot as u32 - 1);
            }
            place = self.after(place);
        }
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize
    }

    fn after(&self, place: usize) -> usize {
        match place + 1 {
            end if end == self.slots.len() => 0,
            next => next,
        }
    }

    fn grow(&mut self) {
        // By half: a table that has just doubled would be mostly empty.
        let size = (self.slots.len() / 2 * 3).max(SMALLEST);
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        for slot in old.into_iter().filter(|&slot| slot != 0) {
            let mut place = self.home((slot >> 32) as u32);
            while self.slots[place] != 0 {
                place = self.after(place);
            }
            self.slots[place] = slot;
        }
    }
}
