//! Spawn paths: names of threads that mean the same in every process of a search.
//!
//! A machine numbers threads in the order in which it meets them, which differs from process to process.
//! A process that takes up the work of another one first gives its threads the numbers that they have
//! there.

use crate::ids::ThreadId;

/// The creations that lead from main to a thread: the place of each among those of its creator.
pub type SpawnPath = Vec<u32>;

/// The creator of each thread but main, and how many threads that creates before, in the order of the
/// threads' numbers. `children` has the threads that each thread creates.
pub fn spawned<'a>(children: impl ExactSizeIterator<Item = &'a [u32]>) -> Vec<(ThreadId, u32)> {
    let mut spawned = vec![(ThreadId::MAIN, 0); children.len() - 1];
    for (parent, children) in (0..).zip(children) {
        for (place, &child) in (0..).zip(children) {
            spawned[child as usize - 1] = (ThreadId(parent), place);
        }
    }
    spawned
}

/// The paths of threads that were created so, main first. A damaged work unit may leave creators out:
/// their threads then count as main's.
pub fn paths(spawned: &[(ThreadId, u32)]) -> Vec<SpawnPath> {
    let mut paths = vec![SpawnPath::new()];
    for &(parent, place) in spawned {
        let mut path = paths.get(parent.index()).cloned().unwrap_or_default();
        path.push(place);
        paths.push(path);
    }
    paths
}

/// The threads that each thread creates, where those in `wanted` have the numbers they have there and
/// further ones of `own` the next numbers. `None` if `own` has these numbers already.
pub fn renumbered(own: &[(ThreadId, u32)], wanted: &[(ThreadId, u32)]) -> Option<Vec<Vec<u32>>> {
    if own.starts_with(wanted) {
        return None;
    }
    let mut all = paths(wanted);
    for path in paths(own) {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    let mut children = vec![Vec::new(); all.len()];
    for (number, path) in (0..).zip(&all) {
        let Some((&place, parent)) = path.split_last() else {
            continue;
        };
        let parent = all.iter().position(|known| known == parent);
        // A damaged work unit may also leave out earlier children of a creator.
        if let Some(children) = parent.map(|parent: usize| &mut children[parent])
            && children.len() == place as usize
        {
            children.push(number);
        }
    }
    Some(children)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: ThreadId = ThreadId::MAIN;

    /// Thread 1 and 3 are main's, 2 is created by 1.
    const OWN: [(ThreadId, u32); 3] = [(MAIN, 0), (ThreadId(1), 0), (MAIN, 1)];

    #[test]
    fn children_tell_how_threads_were_created() {
        let children: [&[u32]; 4] = [&[1, 3], &[2], &[], &[]];
        assert_eq!(spawned(children.into_iter()), OWN);
        assert_eq!(paths(&OWN), [vec![], vec![0], vec![0, 0], vec![1]]);
    }

    #[test]
    fn known_numbers_stay() {
        assert_eq!(renumbered(&OWN, &OWN), None);
        assert_eq!(renumbered(&OWN, &OWN[..2]), None);
    }

    #[test]
    fn wanted_numbers_come_first() {
        let wanted = [(MAIN, 0), (MAIN, 1), (ThreadId(2), 0)];
        let children = vec![vec![1, 2], vec![4], vec![3], vec![], vec![]];
        assert_eq!(renumbered(&OWN, &wanted), Some(children));
    }

    #[test]
    fn creations_that_do_not_fit_are_left_out() {
        let wanted = [(ThreadId(7), 3), (MAIN, 0)];
        let children = vec![vec![2], vec![], vec![]];
        assert_eq!(renumbered(&[], &wanted), Some(children));
    }
}
