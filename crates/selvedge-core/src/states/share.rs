//! Load balancing between processes: how many states each gives to each other one.

/// By giver and receiver, how many of the states go from one to the other. Small differences are
/// not balanced.
pub(super) fn transfers(have: &[usize]) -> Vec<Vec<usize>> {
    let count = have.len();
    let all: usize = have.iter().sum();
    let fair = |peer: usize| all / count + usize::from(peer < all % count);
    let mut transfers = vec![vec![0; count]; count];
    let most = (0..count).map(|peer| have[peer].saturating_sub(fair(peer)));
    if most.max().unwrap_or(0) * 32 <= all / count {
        return transfers;
    }
    let mut have = have.to_vec();
    let mut to = 0;
    for from in 0..count {
        while have[from] > fair(from) {
            while have[to] >= fair(to) {
                to += 1;
            }
            let some = (have[from] - fair(from)).min(fair(to) - have[to]);
            transfers[from][to] += some;
            have[from] -= some;
            have[to] += some;
        }
    }
    transfers
}

/// The numbers of the states that are given away if `away` of `have` are, ascending: the last ones.
/// Neighbours have most of their parts in common, so neighbours are kept together.
pub(super) fn given(have: usize, away: usize) -> std::ops::Range<usize> {
    have - away..have
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_as_many_afterwards() {
        for have in [vec![10, 0], vec![0, 0, 7], vec![100, 3, 50, 48], vec![5]] {
            let transfers = transfers(&have);
            let after: Vec<usize> = (0..have.len())
                .map(|peer| {
                    let away: usize = transfers[peer].iter().sum();
                    let more: usize = transfers.iter().map(|row| row[peer]).sum();
                    have[peer] + more - away
                })
                .collect();
            let (least, most) = (after.iter().min(), after.iter().max());
            assert!(most.unwrap() - least.unwrap() <= 1, "{have:?} {after:?}");
            assert_eq!(after.iter().sum::<usize>(), have.iter().sum());
        }
        assert_eq!(transfers(&[1000, 1001]), [[0, 0], [0, 0]]);
    }

    #[test]
    fn what_is_given_lies_together() {
        for (have, away) in [(10, 10), (10, 3), (7, 1), (1, 1), (5, 0)] {
            let given: Vec<usize> = given(have, away).collect();
            assert_eq!(given.len(), away);
            assert!(given.is_sorted_by(|one, other| one < other), "{given:?}");
            assert!(given.iter().all(|&place| place < have));
        }
    }
}
