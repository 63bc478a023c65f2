//! The tree of calls: own functions, outermost first, with what each allocated.

use hashbrown::HashMap;
use hatf_lab::moments::Timeline;
use hatf_lab::sites::{Counts, Measure};

use super::Side;
use super::functions::Functions;

/// The root, which calls what no one calls.
pub(super) const ROOT: u32 = 0;

/// Moments at which it is looked what part of all live bytes a node has.
const LOOKS: usize = 128;

/// A function, called by another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Who calls it; the root's is itself. A caller stands before those that it calls.
    pub(super) parent: u32,
    /// Its number among [`Functions`]; `None` is the root, and what is of no known stack.
    pub(super) function: Option<u32>,
}

/// What a trace has of the nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// What each node allocated itself.
    pub(super) own: Vec<Counts>,
    /// The node of each site.
    pub(super) of_site: Vec<u32>,
}

impl Part {
    /// Returns the node of a site.
    pub(super) fn node(&self, site: u32) -> u32 {
        self.of_site.get(site as usize).copied().unwrap_or(ROOT)
    }
}

/// The calls of all traces of a page.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// By trace.
    pub(super) parts: Vec<Part>,
}

impl Tree {
    /// Makes the tree of what stacks allocated. Calls of a function by itself are one node.
    pub(super) fn new(sides: &[Side<'_>], functions: &Functions) -> Self {
        let (mut nodes, mut known) = (vec![Node { parent: ROOT, function: None }], HashMap::new());
        let (mut parts, mut path) = (Vec::new(), Vec::new());
        for (trace, side) in sides.iter().enumerate() {
            let sites = &side.recorded.counts;
            let mut part = Part { own: vec![Counts::default(); nodes.len()], of_site: vec![ROOT; sites.len()] };
            for (site, counts) in sites.iter().enumerate().filter(|(_, counts)| counts.allocated.blocks > 0) {
                path.clear();
                let groups = side.places.own(site as u64).map(|place| side.places.group(place));
                path.extend(groups.filter_map(|group| functions.of(trace, group)));
                path.reverse();
                path.dedup();
                let mut node = ROOT;
                for function in &path {
                    node = *known.entry((node, *function)).or_insert_with(|| {
                        nodes.push(Node { parent: node, function: Some(*function) });
                        u32::try_from(nodes.len() - 1).unwrap_or(ROOT)
                    });
                }
                part.own.resize(nodes.len(), Counts::default());
                if let (Some(own), Some(place)) = (part.own.get_mut(node as usize), part.of_site.get_mut(site)) {
                    own.add(counts);
                    *place = node;
                }
            }
            parts.push(part);
        }
        parts.iter_mut().for_each(|part| part.own.resize(nodes.len(), Counts::default()));
        Self { nodes, parts }
    }

    /// Returns the functions that have nodes, in order.
    pub(super) fn functions(&self) -> Vec<u32> {
        let mut functions: Vec<u32> = self.nodes.iter().filter_map(|node| node.function).collect();
        functions.sort_unstable();
        functions.dedup();
        functions
    }

    /// Gives what nodes with too little have to those that call them. A node is left if it has one in `shares` of all that a trace
    /// has, with what it calls: by a measure, or of the bytes live at some moment.
    pub(super) fn prune(&self, timelines: &[Timeline], measures: &[Measure], shares: u64) -> Self {
        let mut stays = vec![false; self.nodes.len()];
        for (part, timeline) in self.parts.iter().zip(timelines) {
            let (sums, large) = (self.inclusive(part), self.large_at_a_moment(part, timeline, shares));
            let total = sums.first().copied().unwrap_or_default();
            let is_large = |counts: &Counts| {
                measures.iter().any(|measure| {
                    let (amount, all) = (counts.get(*measure), total.get(*measure));
                    let is_share = |share: u64, all: u64| share > 0 && share.saturating_mul(shares) >= all;
                    is_share(amount.bytes, all.bytes) || is_share(amount.blocks, all.blocks)
                })
            };
            for (stays, (counts, large)) in stays.iter_mut().zip(sums.iter().zip(large)) {
                *stays |= large || is_large(counts);
            }
        }
        if let Some(root) = stays.first_mut() {
            *root = true;
        }
        // What a node has is at most what its caller has, so a node that is left is called by one that is left.
        let mut now = vec![ROOT; self.nodes.len()];
        let mut nodes: Vec<Node> = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let parent = now.get(node.parent as usize).copied().unwrap_or(ROOT);
            let place = if stays.get(number) == Some(&true) {
                nodes.push(Node { parent, ..*node });
                u32::try_from(nodes.len() - 1).unwrap_or(ROOT)
            } else {
                parent
            };
            now.get_mut(number).into_iter().for_each(|now| *now = place);
        }
        let now = |node: usize| now.get(node).copied().unwrap_or(ROOT);
        let parts = self.parts.iter().map(|part| {
            let mut own = vec![Counts::default(); nodes.len()];
            for (number, counts) in part.own.iter().enumerate() {
                own.get_mut(now(number) as usize).into_iter().for_each(|own| own.add(counts));
            }
            Part { own, of_site: part.of_site.iter().map(|node| now(*node as usize)).collect() }
        });
        let parts = parts.collect();
        Self { nodes, parts }
    }

    /// Returns what each node allocated with those that it calls.
    fn inclusive(&self, part: &Part) -> Vec<Counts> {
        let mut sums = part.own.clone();
        for (number, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let own = sums.get(number).copied().unwrap_or_default();
            sums.get_mut(node.parent as usize).into_iter().for_each(|parent| parent.add(&own));
        }
        sums
    }

    /// Returns which nodes have one share of the bytes that are live at some moment.
    fn large_at_a_moment(&self, part: &Part, timeline: &Timeline, shares: u64) -> Vec<bool> {
        let count = timeline.moments.len();
        let looks = count.min(LOOKS);
        // The first look at or behind a moment.
        let look = |moment: u16| (usize::from(moment) * looks).div_ceil(count.max(1)).min(looks);
        let mut changes: Vec<Vec<(usize, i64)>> = vec![Vec::new(); self.nodes.len()];
        for lived in &timeline.lived {
            let Some(changes) = changes.get_mut(part.node(lived.site) as usize) else { continue };
            let (from, to) = (look(lived.from), lived.to.map_or(looks, look));
            if from < to {
                let bytes = i64::try_from(lived.amount.bytes).unwrap_or(i64::MAX);
                changes.extend([(from, bytes), (to, -bytes)]);
            }
        }
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (number, node) in (0..).zip(&self.nodes).skip(1) {
            children.get_mut(node.parent as usize).into_iter().for_each(|children| children.push(number));
        }
        let mut total = vec![0_i64; looks + 1];
        changes
            .iter()
            .flatten()
            .for_each(|(at, bytes)| total.get_mut(*at).into_iter().for_each(|sum| *sum = sum.saturating_add(*bytes)));
        let total = running(&total);

        // Each level of the tree has a row of sums, so memory is bounded by its depth. Most nodes have nothing at any look: an empty row.
        let mut large = vec![false; self.nodes.len()];
        let mut open: Vec<(u32, usize)> = vec![(ROOT, 0)];
        let mut rows: Vec<Vec<i64>> = vec![Vec::new()];
        while let Some((node, next)) = open.last_mut() {
            if let Some(child) = children.get(*node as usize).and_then(|children| children.get(*next)) {
                *next += 1;
                open.push((*child, 0));
                rows.push(Vec::new());
                continue;
            }
            let (number, mut row) = (*node as usize, rows.pop().unwrap_or_default());
            open.pop();
            for (at, bytes) in changes.get(number).into_iter().flatten() {
                row.resize(looks + 1, 0);
                row.get_mut(*at).into_iter().for_each(|sum| *sum = sum.saturating_add(*bytes));
            }
            let is_large = |(part, all): (&i64, &i64)| *part > 0 && part.saturating_mul(shares.cast_signed()) >= *all;
            large.get_mut(number).into_iter().for_each(|large| *large = running(&row).iter().zip(&total).any(is_large));
            if let Some(above) = rows.last_mut().filter(|_| !row.is_empty()) {
                above.resize(looks + 1, 0);
                above.iter_mut().zip(&row).for_each(|(above, own)| *above = above.saturating_add(*own));
            }
        }
        large
    }
}

/// Returns sums from the start.
fn running(changes: &[i64]) -> Vec<i64> {
    changes
        .iter()
        .scan(0_i64, |sum, change| {
            Some({
                *sum = sum.saturating_add(*change);
                *sum
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use hatf_lab::moments::{Lived, Moment};
    use hatf_lab::sites::Amount;

    use super::*;

    fn tree(own: &[u64]) -> Tree {
        let amount = |bytes| Amount { blocks: bytes, bytes };
        let counts = |bytes: &u64| Counts { allocated: amount(*bytes), ..Counts::default() };
        let node = |number| Node { parent: ROOT, function: (number > 0).then_some(7) };
        let part = Part { own: own.iter().map(counts).collect(), of_site: (0..).take(own.len()).collect() };
        Tree { nodes: (0..own.len()).map(node).collect(), parts: vec![part] }
    }

    fn live(site: u32, bytes: u64) -> Lived {
        Lived { site, from: 0, to: Some(1), amount: Amount { blocks: 1, bytes } }
    }

    /// What is small by all measures stays if it was a part at some moment; its caller has the rest.
    #[test]
    fn parts_of_a_moment_stay() {
        let tree = tree(&[0, 1_000_000, 10, 10]);
        let timeline =
            Timeline { moments: vec![Moment::default(); 2], lived: vec![live(2, 10)], allocated: Vec::new() };
        let cut = tree.prune(&[timeline], &Measure::ALL, 100);
        let part = cut.parts.first().unwrap();
        assert_eq!(part.of_site, [ROOT, 1, 2, ROOT]);
        assert_eq!(part.own.iter().map(|own| own.allocated.bytes).collect::<Vec<_>>(), [10, 1_000_000, 10]);
    }

    /// What one of two traces has much of is left in both.
    #[test]
    fn parts_of_one_trace_stay() {
        let (mut both, other) = (tree(&[0, 1_000_000, 10]), tree(&[0, 10, 1_000_000]));
        both.parts.extend(other.parts);
        let none = Timeline::default();
        assert_eq!(both.prune(&[none.clone(), none], &Measure::ALL, 100).nodes.len(), 3);
    }

    /// Sizes come from the trace, and may be any.
    #[test]
    fn sums_do_not_overflow() {
        let tree = tree(&[0, u64::MAX, u64::MAX]);
        let lived = vec![live(1, u64::MAX), live(2, u64::MAX)];
        let timeline = Timeline { moments: vec![Moment::default(); 2], lived, allocated: Vec::new() };
        assert_eq!(tree.prune(&[timeline], &Measure::ALL, 5_000).nodes.len(), 3);
    }
}
