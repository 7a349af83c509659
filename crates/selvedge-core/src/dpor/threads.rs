//! Sets of threads.

use crate::ids::ThreadId;

/// A set of threads. The first 64 take no memory of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadSet {
    low: u64,
    high: Vec<u64>,
}

impl ThreadSet {
    pub(super) fn clear(&mut self) {
        self.low = 0;
        self.high.clear();
    }

    pub(super) fn insert(&mut self, thread: ThreadId) {
        let (word, bit) = place(thread);
        if word == 0 {
            self.low |= bit;
            return;
        }
        if self.high.len() < word {
            self.high.resize(word, 0);
        }
        self.high[word - 1] |= bit;
    }

    pub(super) fn remove(&mut self, thread: ThreadId) {
        let (word, bit) = place(thread);
        match word {
            0 => self.low &= !bit,
            word => {
                if let Some(bits) = self.high.get_mut(word - 1) {
                    *bits &= !bit;
                }
            }
        }
    }

    pub(super) fn contains(&self, thread: ThreadId) -> bool {
        let (word, bit) = place(thread);
        self.word(word) & bit != 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.low == 0 && self.high.iter().all(|&word| word == 0)
    }

    /// The members, smallest number first.
    pub(super) fn iter(&self) -> impl Iterator<Item = ThreadId> + '_ {
        let words = 0..=self.high.len();
        words.flat_map(|word| {
            let mut bits = self.word(word);
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(ThreadId(word as u32 * 64 + bit))
            })
        })
    }

    fn word(&self, word: usize) -> u64 {
        match word {
            0 => self.low,
            word => self.high.get(word - 1).copied().unwrap_or(0),
        }
    }
}

fn place(thread: ThreadId) -> (usize, u64) {
    (thread.index() / 64, 1 << (thread.index() % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_in_order_beyond_64_too() {
        let mut set = ThreadSet::default();
        assert!(set.is_empty());
        let members = [3, 63, 64, 130, 0].map(ThreadId);
        for member in members {
            set.insert(member);
        }
        let mut sorted = members;
        sorted.sort();
        assert_eq!(set.iter().collect::<Vec<_>>(), sorted);
        assert!(set.contains(ThreadId(130)) && !set.contains(ThreadId(131)));
        set.remove(ThreadId(130));
        set.remove(ThreadId(3));
        set.remove(ThreadId(500));
        assert!(!set.contains(ThreadId(130)) && !set.contains(ThreadId(3)));
        set.clear();
        assert!(set.is_empty() && set.iter().next().is_none());
    }
}
