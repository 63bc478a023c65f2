//! The tree of calls: own functions, outermost first, with what each allocated.

use std::io;

use hashbrown::HashMap;
use hatf_lab::moments::Timeline;
use hatf_lab::sites::{Amount, Counts, Measure};

use super::Side;
use super::functions::Functions;
use crate::threads::both;

/// The root, which calls what no one calls.
pub(super) const ROOT: u32 = 0;

/// Moments at which it is looked what share of all live bytes a node has.
const LOOKS: usize = 128;

/// A function, called by another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Who calls it; the root's is itself. A caller stands before those that it calls.
    pub(super) parent: u32,
    /// Its number among [`Functions`]; `None` is the root, and what is of no known stack.
    pub(super) function: Option<u32>,
}

/// The calls of all traces of a page.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// By trace: the node of each site.
    of_site: Vec<Vec<u32>>,
}

impl Tree {
    /// Makes the tree of what stacks allocated. Calls of a function by itself are one node.
    pub(super) fn new(sides: &[Side<'_>], functions: &Functions) -> Self {
        let (mut nodes, mut known) = (vec![Node { parent: ROOT, function: None }], HashMap::new());
        let mut of_site = Vec::new();
        // Stacks with near numbers begin alike, so the last path is mostly that of the next one, too.
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
        Self { nodes, of_site }
    }

    /// Gives what nodes with too little have to those that call them. A node is left if it has one in `parts` of all that a trace has,
    /// with what it calls: by a measure, or of the bytes live at some moment.
    ///
    /// # Errors
    /// The system has no thread.
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

    /// Raises the share of each node to that which it has of a measure, in bytes or blocks.
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

    /// Raises the share of each node to the most that it has of the bytes that are live at some moment, if that is one in `parts`.
    #[expect(clippy::cast_precision_loss, reason = "shares need not be exact")]
    fn shares_of_moments(&self, timeline: &Timeline, of_site: &[u32], parts: u64, shares: &mut [f64]) {
        let count = timeline.moments.len();
        let looks = count.min(LOOKS);
        // The first look at or behind a moment.
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
        // Most nodes are too small at any look, as the sum of the largest shares of their spans is: what they have is their callers' here.
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

        // Each level of the tree has a row of sums, so memory is bounded by its depth.
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
        // Nodes that are left have the numbers from 0 on, in order; others have one that was before.
        let mut most_of = (0..).zip(most_of).peekable();
        for (share, now) in shares.iter_mut().zip(&now) {
            most_of.next_if(|(number, _)| number == now).into_iter().for_each(|(_, most)| *share = share.max(most));
        }
    }
}

/// A tree of which small nodes are cut off.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) nodes: Vec<Node>,
    /// By trace: what each node allocated itself.
    pub(super) own: Vec<Vec<Counts>>,
    /// By trace: the node of each site.
    pub(super) of_site: Vec<Vec<u32>>,
    /// The largest share of all that each node has of something.
    shares: Vec<f64>,
}

impl Cut {
    /// Cuts off more; returns also the new number of each node.
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

    /// Returns the functions that have nodes, in order.
    pub(super) fn functions(&self) -> Vec<u32> {
        let mut functions: Vec<u32> = self.nodes.iter().filter_map(|node| node.function).collect();
        functions.sort_unstable();
        functions.dedup();
        functions
    }
}

/// Returns the nodes that have one in `parts` of something, and the new number of each: those that are cut off are their callers. What a
/// node has is at most what its caller has, so a node that is left is called by one that is left.
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

/// Returns the shares of nodes that are left: a caller's is the largest of those that became it.
fn kept(shares: &[f64], now: &[u32], count: usize) -> Vec<f64> {
    let mut kept = vec![0.0_f64; count];
    for (share, node) in shares.iter().zip(now) {
        kept.get_mut(*node as usize).into_iter().for_each(|kept| *kept = kept.max(*share));
    }
    kept
}

/// Adds bytes that are live from one look until another.
fn add(row: &mut [f64], (from, to, bytes): (usize, usize, f64)) {
    row.get_mut(from).into_iter().for_each(|sum| *sum += bytes);
    row.get_mut(to).into_iter().for_each(|sum| *sum -= bytes);
}

/// Makes sums from the start of changes.
fn running(changes: &mut [f64]) {
    let mut sum = 0.0;
    for change in changes {
        sum += *change;
        *change = sum;
    }
}

/// A list for each number, in one piece of memory.
pub(super) struct Lists<T> {
    starts: Vec<usize>,
    items: Vec<T>,
}

impl<T: Copy + Default> Lists<T> {
    /// Makes the lists of `count` numbers, in the order of the items.
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

    /// Returns the items of all lists, one behind the other, each list sorted.
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
    use hatf_lab::moments::{Lived, Moment};

    use super::*;

    /// A root that calls a function for each other site.
    fn shares(tree: &Tree, own: &[u64], timeline: &Timeline) -> Vec<f64> {
        let amount = |bytes: &u64| Amount { blocks: *bytes, bytes: *bytes };
        let counts: Vec<_> = own.iter().map(|own| Counts { allocated: amount(own), ..Counts::default() }).collect();
        let mut shares = vec![0.0; tree.nodes.len()];
        tree.shares_of(&counts, &tree.of_site[0], Measure::Allocated, &mut shares);
        tree.shares_of_moments(timeline, &tree.of_site[0], 100, &mut shares);
        shares
    }

    fn tree(functions: u32) -> Tree {
        let nodes = (0..=functions).map(|number| Node { parent: ROOT, function: (number > 0).then_some(7) });
        Tree { nodes: nodes.collect(), of_site: vec![(0..=functions).collect()] }
    }

    fn timeline(lived: &[(u32, u64)]) -> Timeline {
        let lived = lived.iter().map(|(site, bytes)| Lived {
            site: *site,
            from: 0,
            to: Some(1),
            amount: Amount { blocks: 1, bytes: *bytes },
        });
        Timeline { moments: vec![Moment::default(); 2], lived: lived.collect(), allocated: Vec::new() }
    }

    /// What is small by all measures stays if it was a part at some moment; its caller has the rest.
    #[test]
    fn parts_of_a_moment_stay() {
        let tree = tree(3);
        let shares = shares(&tree, &[0, 1_000_000, 10, 10], &timeline(&[(2, 10)]));
        let (nodes, now) = left(&tree.nodes, &shares, 100);
        assert_eq!((nodes.len(), now), (3, vec![ROOT, 1, 2, ROOT]));
    }

    /// Nodes that are too small at every moment are joined early, and no others: the largest shares of those that stay are exact.
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
        let tree = Tree { of_site: vec![(0..500).collect()], nodes };
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
        let timeline = Timeline { moments, lived: lived.clone(), allocated: Vec::new() };
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

    /// One in a hundred is enough, and one in a hundred and one is not.
    #[test]
    fn parts_are_exact() {
        let tree = tree(2);
        let shares = shares(&tree, &[980, 10, 10], &timeline(&[]));
        assert_eq!(left(&tree.nodes, &shares, 100).0.len(), 3);
        assert_eq!(left(&tree.nodes, &shares, 99).0.len(), 1);
    }

    /// Sizes come from the trace, and may be any.
    #[test]
    fn sums_do_not_overflow() {
        let tree = tree(2);
        let most = u64::MAX;
        let shares = shares(&tree, &[0, most, most], &timeline(&[(1, most), (2, most)]));
        assert_eq!(left(&tree.nodes, &shares, 5_000).0.len(), 3);
    }
}
