//! Strongly connected components, found while the graph is being discovered.

/// From one node to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    /// Where it leads.
    pub(super) to: u32,
    /// The acceptance sets that it does not belong to.
    pub(super) missing: u128,
}

/// A graph that tells its arcs when asked. Its nodes are numbered from zero as they are met.
pub(super) trait Digraph {
    /// Why a search ends before its time.
    type Stop;

    /// Appends the arcs that leave `node`.
    fn arcs(&mut self, node: u32, into: &mut Vec<Arc>) -> Result<(), Self::Stop>;
}

/// The components that can be reached.
pub(super) struct Components {
    /// The component of each node. A component has a larger number than those it leads to.
    pub(super) component: Vec<u32>,
    /// Whether a component has a cycle that passes through every acceptance set.
    pub(super) accepting: Vec<bool>,
}

/// No number yet.
const NONE: u32 = u32::MAX;

/// A node on the way from the first one.
struct Visit {
    node: u32,
    /// Its arcs that have not been looked at lie at the end of the list of arcs, from here on.
    arcs: usize,
}

/// A part of the present way that is known to be strongly connected.
struct Root {
    index: u32,
    /// The acceptance sets that none of its arcs belongs to.
    missing: u128,
    /// The same for the arc that leads into it.
    entry: u128,
    cyclic: bool,
}

/// Tarjan's depth-first search, with the components on the way kept as a stack of roots (Couvreur).
/// Every component is found, not just the first accepting one, so that the best counterexample can
/// be picked.
pub(super) fn components<G: Digraph>(graph: &mut G, first: u32) -> Result<Components, G::Stop> {
    let mut found = Components {
        component: Vec::new(),
        accepting: Vec::new(),
    };
    let mut index: Vec<u32> = Vec::new();
    let mut clock = 0;
    let mut arcs: Vec<Arc> = Vec::new();
    let (mut path, mut roots, mut open) = (Vec::new(), Vec::<Root>::new(), Vec::new());
    let mut enter = Some((first, u128::MAX));
    loop {
        if let Some((node, entry)) = enter.take() {
            let seen = index.len().max(node as usize + 1);
            index.resize(seen, NONE);
            found.component.resize(seen, NONE);
            index[node as usize] = clock;
            roots.push(Root {
                index: clock,
                missing: u128::MAX,
                entry,
                cyclic: false,
            });
            clock += 1;
            open.push(node);
            path.push(Visit {
                node,
                arcs: arcs.len(),
            });
            graph.arcs(node, &mut arcs)?;
        }
        let Some(visit) = path.last() else {
            return Ok(found);
        };
        if arcs.len() > visit.arcs {
            let arc = arcs.pop().expect("just counted");
            let to = arc.to as usize;
            let known = index.get(to).copied().unwrap_or(NONE);
            if known == NONE {
                enter = Some((arc.to, arc.missing));
            } else if found.component[to] == NONE {
                let mut missing = arc.missing;
                while roots.last().is_some_and(|root| root.index > known) {
                    let merged = roots.pop().expect("just seen");
                    missing &= merged.missing & merged.entry;
                }
                let root = roots.last_mut().expect("the target is on the way");
                root.missing &= missing;
                root.cyclic = true;
            }
            continue;
        }
        let node = visit.node;
        path.pop();
        if roots
            .last()
            .is_some_and(|root| root.index == index[node as usize])
        {
            let root = roots.pop().expect("just seen");
            let number = found.accepting.len() as u32;
            found.accepting.push(root.cyclic && root.missing == 0);
            while let Some(member) = open.pop() {
                found.component[member as usize] = number;
                if member == node {
                    break;
                }
            }
        }
    }
}
