//! The loops of one function, and which of them each mark lies in.
//!
//! A mark is the callback that the compiler puts at the beginning of every basic block. Loops are
//! those of the graph over marks: a strongly connected part of it is a loop, whose header is the
//! mark where control enters; without the header, the strongly connected parts of what is left are
//! the loops inside of it. For code without `goto` into loops these are the natural loops. In any
//! case every cycle passes the header of a loop that contains it.

use iced_x86::{Decoder, DecoderOptions};

use super::Callees;
use super::checks::without_checks;
use super::flow::Flow;

/// A mark of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Where the callback returns to.
    pub(crate) site: usize,
    /// The loops around it, outermost first, by their numbers in the function.
    pub(crate) loops: Vec<u32>,
    /// Whether it is the header of the innermost one.
    pub(crate) begins_round: bool,
}

/// The marks of the function whose machine code is `code`, loaded at `address`.
pub(super) fn marks(code: &[u8], address: u64, callees: &Callees) -> Vec<Mark> {
    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instructions = without_checks(decoder.into_iter().collect(), callees);
    let flow = Flow::of(&instructions, callees);
    let calls_mark = |index: &usize| {
        let target = instructions[*index].near_branch_target() as usize;
        Some(target) == callees.mark
    };
    let places: Vec<usize> = (0..instructions.len()).filter(calls_mark).collect();
    let mut number = vec![None; instructions.len()];
    for (mark, &place) in places.iter().enumerate() {
        number[place] = Some(mark);
    }
    let next = |&place: &usize| next_marks(&flow, place, &number);
    let successors: Vec<Vec<usize>> = places.iter().map(next).collect();
    let mut marks = nests(&successors);
    for (mark, &place) in marks.iter_mut().zip(&places) {
        mark.site = instructions[place].next_ip() as usize;
    }
    marks
}

/// The marks that control can come to next from the one at `place`.
fn next_marks(flow: &Flow, place: usize, number: &[Option<usize>]) -> Vec<usize> {
    let mut reached = vec![false; number.len()];
    let mut open = flow.successors[place].clone();
    let mut next = Vec::new();
    while let Some(index) = open.pop() {
        if std::mem::replace(&mut reached[index], true) {
            continue;
        }
        match number[index] {
            Some(mark) => next.push(mark),
            None => open.extend(&flow.successors[index]),
        }
    }
    next
}

/// The loops of a graph, as what they mean for each node. Nodes are numbered by address.
fn nests(successors: &[Vec<usize>]) -> Vec<Mark> {
    let count = successors.len();
    let mut predecessors = vec![Vec::new(); count];
    for (node, next) in successors.iter().enumerate() {
        next.iter().for_each(|&next| predecessors[next].push(node));
    }
    let mut marks = vec![Mark::default(); count];
    // The part of the graph that each node is in; parts are looked at one at a time.
    let mut part = vec![0; count];
    let mut parts = 1;
    let mut open = vec![(0..count).collect::<Vec<_>>()];
    let mut loops = 0;
    while let Some(members) = open.pop() {
        for component in components(&members, successors, &predecessors, &part) {
            for &node in &component {
                part[node] = parts;
            }
            parts += 1;
            if let [node] = component[..]
                && !successors[node].contains(&node)
            {
                continue;
            }
            let is_entry = |node: &&usize| {
                let mut before = predecessors[**node].iter();
                before.any(|&before| part[before] != part[**node])
            };
            let entry = component.iter().filter(is_entry).min();
            let Some(&header) = entry.or(component.iter().min()) else {
                continue;
            };
            for &node in &component {
                marks[node].loops.push(loops);
            }
            loops += 1;
            marks[header].begins_round = true;
            part[header] = parts;
            parts += 1;
            let inner: Vec<usize> = component.into_iter().filter(|&n| n != header).collect();
            if !inner.is_empty() {
                open.push(inner);
            }
        }
    }
    marks
}

/// The strongly connected components of the part of a graph that `members` are (Kosaraju).
fn components(
    members: &[usize],
    successors: &[Vec<usize>],
    predecessors: &[Vec<usize>],
    part: &[usize],
) -> Vec<Vec<usize>> {
    let Some(&first) = members.first() else {
        return Vec::new();
    };
    let inside = |node: usize| part[node] == part[first];
    let mut reached = vec![false; part.len()];
    let mut order = Vec::new();
    for &root in members {
        // Each node with how many of its successors were looked at.
        let mut path = Vec::new();
        if !std::mem::replace(&mut reached[root], true) {
            path.push((root, 0));
        }
        while let Some((node, looked)) = path.last_mut() {
            match successors[*node].get(*looked) {
                Some(&next) => {
                    *looked += 1;
                    if inside(next) && !std::mem::replace(&mut reached[next], true) {
                        path.push((next, 0));
                    }
                }
                None => {
                    order.push(*node);
                    path.pop();
                }
            }
        }
    }
    let mut components = Vec::new();
    for &root in order.iter().rev() {
        let mut component = Vec::new();
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if inside(node) && std::mem::replace(&mut reached[node], false) {
                component.push(node);
                open.extend(&predecessors[node]);
            }
        }
        if !component.is_empty() {
            components.push(component);
        }
    }
    components
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loops around each node, innermost last, and the headers.
    fn nest(successors: &[&[usize]]) -> (Vec<usize>, Vec<usize>) {
        let successors: Vec<Vec<usize>> = successors.iter().map(|next| next.to_vec()).collect();
        let marks = nests(&successors);
        let depths = marks.iter().map(|mark| mark.loops.len()).collect();
        let headers = (0..marks.len()).filter(|&node| marks[node].begins_round);
        (depths, headers.collect())
    }

    #[test]
    fn loops_nest() {
        // 0 → outer header 1 → inner header 2 ⇄ 3, back to 1, out to 4.
        let graph: [&[usize]; 5] = [&[1], &[2, 4], &[3, 1], &[2], &[]];
        assert_eq!(nest(&graph), (vec![0, 1, 2, 2, 0], vec![1, 2]));
    }

    #[test]
    fn loops_one_after_the_other_are_two() {
        let graph: [&[usize]; 4] = [&[1], &[1, 2], &[2, 3], &[]];
        let (depths, headers) = nest(&graph);
        assert_eq!((depths, headers), (vec![0, 1, 1, 0], vec![1, 2]));
    }

    #[test]
    fn a_loop_with_two_entries_is_one_loop() {
        let graph: [&[usize]; 4] = [&[1, 2], &[2], &[1, 3], &[]];
        assert_eq!(nest(&graph), (vec![0, 1, 1, 0], vec![1]));
    }
}
