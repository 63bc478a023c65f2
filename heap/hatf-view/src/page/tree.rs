//! The call tree of application functions, outermost first, with their allocations.

use std::io;

use hashbrown::HashMap;
use hatf_lab::history::SiteTimeline;
use hatf_lab::sites::{Amount, Counts, Measure};

use super::Side;
use super::functions::Functions;
use crate::threads::both;

/// The root, which is the caller of functions without a caller.
pub(super) const ROOT: u32 = 0;

/// Number of points in time at which a node's share of all live bytes is checked.
const LOOKS: usize = 128;

/// A node of the call tree: a function and its caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// The calling node; the root calls itself. Callers precede their callees.
    pub(super) parent: u32,
    /// Function number in [`Functions`], or `None` for the root and for unknown stacks.
    pub(super) function: Option<u32>,
}

/// The call tree of all traces in a report.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// Node of each site, by trace.
    of_site: Vec<Vec<u32>>,
    /// Whether blocks were allocated by unknown stacks.
    pub(super) has_unknown_stacks: bool,
}

impl Tree {
    /// Builds the tree from the allocations of stacks. Direct recursion is merged into one node.
    pub(super) fn new(sides: &[Side<'_>], functions: &Functions) -> Self {
        let (mut nodes, mut known) = (vec![Node { parent: ROOT, function: None }], HashMap::new());
        let (mut of_site, mut has_unknown_stacks) = (Vec::new(), false);
        // Stacks with adjacent numbers have common callers, so most of the previous path can be reused.
        let (mut path, mut last): (Vec<u32>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
        for (trace, side) in sides.iter().enumerate() {
            let sites = &side.recorded.counts;
            let mut places = vec![ROOT; sites.len()];
            for (site, _) in sites.iter().enumerate().filter(|(_, counts)| counts.allocated.blocks > 0) {
                path.clear();
                let groups = side.places.own(site as u64).map(|place| side.places.group(place));
                path.extend(groups.filter_map(|group| functions.of(trace, group)));
                path.reverse();
                path.dedup();
                has_unknown_stacks |= path.is_empty();
                let same = path.iter().zip(&last).take_while(|(function, (same, _))| *function == same).count();
                last.truncate(same);
                let mut node = last.last().map_or(ROOT, |(_, node)| *node);
                for function in path.iter().skip(same) {
                    node = *known.entry((node, *function)).or_insert_with(|| {
                        nodes.push(Node { parent: node, function: Some(*function) });
                        u32::try_from(nodes.len() - 1).unwrap_or(ROOT)
                    });
                    last.push((*function, node));
                }
                places.get_mut(site).into_iter().for_each(|place| *place = node);
            }
            of_site.push(places);
        }
        Self { nodes, of_site, has_unknown_stacks }
    }

    /// Returns whether this tree has more functions without a caller than the tree that remains after
    /// [pruning](Self::cut).
    pub(super) fn has_more_roots(&self, cut: &Cut) -> bool {
        let roots = |nodes: &[Node]| nodes.iter().skip(1).filter(|node| node.parent == ROOT).count();
        roots(&self.nodes) > roots(&cut.nodes)
    }

    /// Merges small nodes into their callers. A node is kept if it accounts (including its callees) for at least one
    /// part in `parts` of a total of a trace. The totals are the total of each measure, and the live bytes at each
    /// point in time.
    ///
    /// # Errors
    /// Returns an error if no thread can be created.
    pub(super) fn cut(&self, sides: &[Side<'_>], measures: &[Measure], parts: u64, threads: usize) -> io::Result<Cut> {
        let of_sides = || sides.iter().zip(&self.of_site);
        let by_measure = || {
            let mut shares = vec![0.0; self.nodes.len()];
            for (side, of_site) in of_sides() {
                measures
                    .iter()
                    .for_each(|measure| self.shares_of(&side.recorded.counts, of_site, *measure, &mut shares));
            }
            shares
        };
        let by_moment = || {
            let mut shares = vec![0.0; self.nodes.len()];
            of_sides().for_each(|(side, of)| self.shares_of_moments(&side.recorded.timeline, of, parts, &mut shares));
            shares
        };
        let (mut shares, others) = both(threads, by_measure, by_moment)?;
        shares.iter_mut().zip(others).for_each(|(share, other)| *share = share.max(other));
        let (nodes, now) = left(&self.nodes, &shares, parts);
        let sites = self.of_site.iter().map(|of_site| of_site.iter().map(|node| new_number(&now, *node)).collect());
        let sites: Vec<Vec<u32>> = sites.collect();
        let own = sides.iter().zip(&sites).map(|(side, of_site)| {
            let mut own = vec![Counts::default(); nodes.len()];
            for (counts, node) in side.recorded.counts.iter().zip(of_site) {
                own.get_mut(*node as usize).into_iter().for_each(|own| own.add(counts));
            }
            own
        });
        Ok(Cut { own: own.collect(), shares: kept(&shares, &now, nodes.len()), nodes, of_site: sites })
    }

    /// Raises the share of each node to at least its share of a measure, in bytes or blocks.
    #[expect(clippy::cast_precision_loss, reason = "shares need not be exact")]
    fn shares_of(&self, counts: &[Counts], of_site: &[u32], measure: Measure, shares: &mut [f64]) {
        let mut sums = vec![Amount::default(); self.nodes.len()];
        for (counts, node) in counts.iter().zip(of_site) {
            sums.get_mut(*node as usize).into_iter().for_each(|sum| sum.sum(counts.get(measure)));
        }
        for (number, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let own = sums.get(number).copied().unwrap_or_default();
            sums.get_mut(node.parent as usize).into_iter().for_each(|parent| parent.sum(own));
        }
        let all = sums.first().copied().unwrap_or_default();
        let share = |part: u64, all: u64| if part == 0 { 0.0 } else { part as f64 / all as f64 };
        for (most, sum) in shares.iter_mut().zip(&sums) {
            *most = most.max(share(sum.bytes, all.bytes)).max(share(sum.blocks, all.blocks));
        }
    }

    /// Raises the share of each node to at least its maximum share of live bytes over time, if this maximum is at least
    /// one part in `parts`.
    #[expect(clippy::cast_precision_loss, reason = "shares need not be exact")]
    fn shares_of_moments(&self, timeline: &SiteTimeline, of_site: &[u32], parts: u64, shares: &mut [f64]) {
        let count = timeline.moments.len();
        let looks = count.min(LOOKS);
        // Returns the first check at or after a point in time.
        let look = |moment: u16| (usize::from(moment) * looks).div_ceil(count.max(1)).min(looks);
        let mut total = vec![0.0; looks + 1];
        let lived = timeline.lived.iter().filter_map(|lived| {
            let (from, to) = (look(lived.from), lived.to.map_or(looks, look));
            let node = of_site.get(lived.site as usize).copied().unwrap_or(ROOT);
            (from < to).then_some((node, (from, to, lived.amount.bytes as f64)))
        });
        let lived: Vec<_> = lived.collect();
        lived.iter().for_each(|(_, span)| add(&mut total, *span));
        running(&mut total);
        let inverse: Vec<f64> = total.iter().map(|all| if *all > 0.0 { 1.0 / all } else { 0.0 }).collect();
        // Most nodes are too small at every check. To detect these nodes, compute an upper bound of the share of each
        // node, which is the sum of the largest shares of its spans. If the bound is too small, merge the node into its
        // caller here.
        let mut bounds = vec![0.0; self.nodes.len()];
        for (node, (from, to, bytes)) in &lived {
            let most = inverse.iter().take(*to).skip(*from).copied().fold(0.0, f64::max);
            bounds.get_mut(*node as usize).into_iter().for_each(|bound| *bound += bytes * most);
        }
        for (number, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let own = bounds.get(number).copied().unwrap_or_default();
            bounds.get_mut(node.parent as usize).into_iter().for_each(|parent| *parent += own);
        }
        let (nodes, now) = left(&self.nodes, &bounds, parts);
        let changes = Lists::new(nodes.len(), lived.iter().map(|(node, span)| (new_number(&now, *node), *span)));
        let children = (0..).zip(&nodes).skip(1).map(|(number, node)| (node.parent, number));
        let children = Lists::<u32>::new(nodes.len(), children);

        // Only one row of sums per tree level is kept, so memory is bounded by the depth of the tree.
        let mut open: Vec<(u32, usize)> = vec![(ROOT, 0)];
        let mut rows: Vec<Vec<f64>> = vec![Vec::new()];
        let mut spare: Vec<Vec<f64>> = Vec::new();
        let (mut sums, mut most_of) = (Vec::new(), vec![0.0; nodes.len()]);
        while let Some((node, next)) = open.last_mut() {
            if let Some(child) = children.get(*node).get(*next) {
                *next += 1;
                open.push((*child, 0));
                rows.push(spare.pop().unwrap_or_default());
                continue;
            }
            let (number, mut row) = (*node, rows.pop().unwrap_or_default());
            open.pop();
            for span in changes.get(number) {
                row.resize(looks + 1, 0.0);
                add(&mut row, *span);
            }
            if row.is_empty() {
                spare.push(row);
                continue;
            }
            sums.clone_from(&row);
            running(&mut sums);
            let most = sums.iter().zip(&inverse).map(|(part, all)| part * all).fold(0.0, f64::max);
            most_of.get_mut(number as usize).into_iter().for_each(|share| *share = most);
            if let Some(above) = rows.last_mut() {
                above.resize(looks + 1, 0.0);
                above.iter_mut().zip(&row).for_each(|(above, own)| *above += own);
            }
            row.clear();
            spare.push(row);
        }
        // Remaining nodes have consecutive numbers from 0. A merged node has its caller's number, which occurred
        // before.
        let mut most_of = (0..).zip(most_of).peekable();
        for (share, now) in shares.iter_mut().zip(&now) {
            most_of.next_if(|(number, _)| number == now).into_iter().for_each(|(_, most)| *share = share.max(most));
        }
    }
}

/// A pruned tree.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) nodes: Vec<Node>,
    /// Allocations of each node without its callees, by trace.
    pub(super) own: Vec<Vec<Counts>>,
    /// Node of each site, by trace.
    pub(super) of_site: Vec<Vec<u32>>,
    /// The largest share of each node in any total.
    shares: Vec<f64>,
}

impl Cut {
    /// Prunes the tree further, and also returns the new number of each node.
    pub(super) fn again(&self, parts: u64) -> (Self, Vec<u32>) {
        let (nodes, now) = left(&self.nodes, &self.shares, parts);
        let own = self.own.iter().map(|before| {
            let mut own = vec![Counts::default(); nodes.len()];
            for (counts, node) in before.iter().zip(&now) {
                own.get_mut(*node as usize).into_iter().for_each(|own| own.add(counts));
            }
            own
        });
        let own = own.collect();
        let sites = self.of_site.iter().map(|of_site| of_site.iter().map(|node| new_number(&now, *node)).collect());
        let of_site = sites.collect();
        (Self { own, of_site, shares: kept(&self.shares, &now, nodes.len()), nodes }, now)
    }

    /// Returns the functions of all nodes, in order.
    pub(super) fn functions(&self) -> Vec<u32> {
        let mut functions: Vec<u32> = self.nodes.iter().filter_map(|node| node.function).collect();
        functions.sort_unstable();
        functions.dedup();
        functions
    }
}

/// Returns the nodes that account for at least one part in `parts` of some total, and the new number of each old node.
/// Pruned nodes get the number of their caller. The share of a node never exceeds that of its caller, so the caller of
/// a kept node is also kept.
#[expect(clippy::cast_precision_loss, reason = "parts are few")]
fn left(nodes: &[Node], shares: &[f64], parts: u64) -> (Vec<Node>, Vec<u32>) {
    let least = (1.0 - 1e-9) / parts as f64;
    let (mut now, mut stay) = (vec![ROOT; nodes.len()], Vec::new());
    for (number, (node, share)) in nodes.iter().zip(shares).enumerate() {
        let parent = new_number(&now, node.parent);
        let place = if number == 0 || *share >= least {
            stay.push(Node { parent, ..*node });
            u32::try_from(stay.len() - 1).unwrap_or(ROOT)
        } else {
            parent
        };
        now.get_mut(number).into_iter().for_each(|now| *now = place);
    }
    (stay, now)
}

/// Returns the new number of a node.
pub(super) fn new_number(now: &[u32], node: u32) -> u32 {
    now.get(node as usize).copied().unwrap_or(ROOT)
}

/// Returns the shares of the remaining nodes. A caller's share becomes the largest share of itself and the nodes merged
/// into it.
fn kept(shares: &[f64], now: &[u32], count: usize) -> Vec<f64> {
    let mut kept = vec![0.0_f64; count];
    for (share, node) in shares.iter().zip(now) {
        kept.get_mut(*node as usize).into_iter().for_each(|kept| *kept = kept.max(*share));
    }
    kept
}

/// Adds bytes that are live from one check to another.
fn add(row: &mut [f64], (from, to, bytes): (usize, usize, f64)) {
    row.get_mut(from).into_iter().for_each(|sum| *sum += bytes);
    row.get_mut(to).into_iter().for_each(|sum| *sum -= bytes);
}

/// Turns changes into running sums.
fn running(changes: &mut [f64]) {
    let mut sum = 0.0;
    for change in changes {
        sum += *change;
        *change = sum;
    }
}

/// One list per number, all stored in a single allocation.
pub(super) struct Lists<T> {
    starts: Vec<usize>,
    items: Vec<T>,
}

impl<T: Copy + Default> Lists<T> {
    /// Builds lists for `count` numbers, in the order of the items.
    pub(super) fn new(count: usize, items: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut starts = vec![0; count + 1];
        items.clone().for_each(|(of, _)| starts.get_mut(of as usize + 1).into_iter().for_each(|start| *start += 1));
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let (mut next, mut all) = (starts.clone(), vec![T::default(); sum]);
        for (of, item) in items {
            let Some(place) = next.get_mut(of as usize) else { continue };
            all.get_mut(*place).into_iter().for_each(|to| *to = item);
            *place += 1;
        }
        Self { starts, items: all }
    }

    /// Returns the items of all lists concatenated, each list sorted.
    pub(super) fn sorted_by_key(mut self, key: impl Fn(&T) -> u64) -> Vec<T> {
        for (start, end) in self.starts.iter().zip(self.starts.iter().skip(1)) {
            self.items.get_mut(*start..*end).into_iter().for_each(|list| list.sort_unstable_by_key(&key));
        }
        self.items
    }

    pub(super) fn get(&self, of: u32) -> &[T] {
        let (start, end) = (self.starts.get(of as usize), self.starts.get(of as usize + 1));
        start.zip(end).and_then(|(start, end)| self.items.get(*start..*end)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use hatf_lab::history::{Lived, Moment};

    use super::*;

    /// Returns the shares in a tree whose root calls one function per site.
    fn shares(tree: &Tree, own: &[u64], timeline: &SiteTimeline) -> Vec<f64> {
        let amount = |bytes: &u64| Amount { blocks: *bytes, bytes: *bytes };
        let counts: Vec<_> = own.iter().map(|own| Counts { allocated: amount(own), ..Counts::default() }).collect();
        let mut shares = vec![0.0; tree.nodes.len()];
        tree.shares_of(&counts, &tree.of_site[0], Measure::Allocated, &mut shares);
        tree.shares_of_moments(timeline, &tree.of_site[0], 100, &mut shares);
        shares
    }

    fn tree(functions: u32) -> Tree {
        let nodes = (0..=functions).map(|number| Node { parent: ROOT, function: (number > 0).then_some(7) });
        Tree { nodes: nodes.collect(), of_site: vec![(0..=functions).collect()], has_unknown_stacks: false }
    }

    fn timeline(lived: &[(u32, u64)]) -> SiteTimeline {
        let lived = lived.iter().map(|(site, bytes)| Lived {
            site: *site,
            from: 0,
            to: Some(1),
            amount: Amount { blocks: 1, bytes: *bytes },
        });
        SiteTimeline { moments: vec![Moment::default(); 2], lived: lived.collect(), allocated: Vec::new() }
    }

    /// A node that is small by every measure is kept if it was large at some point in time. Other nodes are merged into
    /// their caller.
    #[test]
    fn parts_of_a_moment_stay() {
        let tree = tree(3);
        let shares = shares(&tree, &[0, 1_000_000, 10, 10], &timeline(&[(2, 10)]));
        let (nodes, now) = left(&tree.nodes, &shares, 100);
        assert_eq!((nodes.len(), now), (3, vec![ROOT, 1, 2, ROOT]));
    }

    /// Only nodes that are too small at every point in time are merged early, so the largest shares of the remaining
    /// nodes are exact.
    #[test]
    fn shares_of_those_that_stay_are_exact() {
        let mut random = 9_u64;
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % bound
        };
        let nodes: Vec<Node> = (0..500_u32)
            .map(|number| Node {
                parent: u32::try_from(below(u64::from(number.max(1)))).unwrap(),
                function: Some(number),
            })
            .collect();
        let tree = Tree { of_site: vec![(0..500).collect()], nodes, has_unknown_stacks: false };
        let lived: Vec<Lived> = (0..2_000)
            .map(|_| {
                let from = u16::try_from(below(90)).unwrap();
                let to = Some(from + 1 + u16::try_from(below(10)).unwrap()).filter(|_| below(20) > 0);
                let amount = Amount { blocks: 1, bytes: 1 + below(1_000) };
                Lived { site: u32::try_from(below(500)).unwrap(), from, to, amount }
            })
            .collect();
        let at = |node: Option<u32>, moment: u16| -> u64 {
            let is_below = |mut site: u32| loop {
                if node.is_none_or(|node| node == site) {
                    return true;
                }
                if site == ROOT {
                    return false;
                }
                site = tree.nodes[site as usize].parent;
            };
            let is_live =
                |one: &&Lived| one.from <= moment && one.to.is_none_or(|to| to > moment) && is_below(one.site);
            lived.iter().filter(is_live).map(|one| one.amount.bytes).sum()
        };
        let moments = vec![Moment::default(); 100];
        let timeline = SiteTimeline { moments, lived: lived.clone(), allocated: Vec::new() };
        let (parts, mut shares) = (40, vec![0.0; 500]);
        tree.shares_of_moments(&timeline, &tree.of_site[0], parts, &mut shares);
        let mut stay = 0;
        for (node, share) in (0..500).zip(&shares) {
            let most = (0..100).map(|moment| at(Some(node), moment) as f64 / at(None, moment).max(1) as f64);
            let most = most.fold(0.0, f64::max);
            let is_left = most >= 1.0 / 40.0;
            stay += u32::from(is_left);
            assert!((share - most).abs() < 1e-9 || (!is_left && *share < most), "{node}: {share} for {most}");
        }
        assert!((20..250).contains(&stay), "{stay}");
    }

    /// A share of 1/100 is kept for `parts` = 100, but not for 99.
    #[test]
    fn parts_are_exact() {
        let tree = tree(2);
        let shares = shares(&tree, &[980, 10, 10], &timeline(&[]));
        assert_eq!(left(&tree.nodes, &shares, 100).0.len(), 3);
        assert_eq!(left(&tree.nodes, &shares, 99).0.len(), 1);
    }

    /// Sizes come from the trace and can have any value.
    #[test]
    fn sums_do_not_overflow() {
        let tree = tree(2);
        let most = u64::MAX;
        let shares = shares(&tree, &[0, most, most], &timeline(&[(1, most), (2, most)]));
        assert_eq!(left(&tree.nodes, &shares, 5_000).0.len(), 3);
    }
}
