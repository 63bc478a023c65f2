//! Numeric data for the report's script, encoded as compressed varints.
//!
//! `assets/data.js` reads the data in the same order.

use std::io::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use hatf_lab::history::{Allocated, Lived, Moment, SiteTimeline};
use hatf_lab::sites::{Amount, Measure, sum_equal};

use super::Side;
use super::grid::GridCell;
use super::tree::{Cut, Lists, Tree, new_number};
use crate::threads::both;

/// Value that tells the script that a block was never freed.
const NEVER: u64 = 0;

/// Maximum size of the compressed data in a report, in bytes.
const MOST: usize = 650_000;

/// Denominator of the minimum share of any total at which a node of the call tree is kept.
const SHARES: u64 = 5_000;
/// Denominator of the minimum share at which a node is kept even if the report exceeds its maximum size.
const FEWEST_SHARES: u64 = 100;
/// Minimum number of points in time kept.
const FEWEST_MOMENTS: usize = 100;

/// Numeric data of a report.
pub(super) struct Payload {
    /// The pruned call tree.
    pub(super) tree: Cut,
    /// Denominator of the share for which nodes are kept.
    pub(super) shares: u64,
    /// The compressed data.
    numbers: Vec<u8>,
}

impl Payload {
    /// Prunes the tree and merges points in time until the data is small enough.
    ///
    /// # Errors
    /// Returns an error if no thread can be created.
    pub(super) fn new(tree: &Tree, sides: &[Side<'_>], measures: &[Measure], threads: usize) -> io::Result<Self> {
        let mut size = Size::new(tree, sides, measures, threads)?;
        loop {
            // The next smaller size is usually needed as well, so it is computed in parallel.
            let next = || (threads > 1 && !size.is_least()).then(|| size.smaller(measures));
            let (packed, smaller) = both(threads, || size.packed(), next)?;
            if let Some(numbers) = packed {
                return Ok(Self { tree: size.cut, shares: size.shares, numbers });
            }
            size = smaller.unwrap_or_else(|| size.smaller(measures));
        }
    }

    /// Compresses a string and the numbers, and encodes them in characters that need no escaping in HTML.
    pub(super) fn encode(&self, text: &str) -> [String; 2] {
        let text = compressed(text.as_bytes(), Compression::default(), usize::MAX).unwrap_or_default();
        [&text, &self.numbers].map(|bytes| STANDARD.encode(bytes))
    }
}

/// The report's data, reduced to a certain size.
struct Size {
    shares: u64,
    cut: Cut,
    parts: Vec<ByNode>,
    numbers: Vec<u8>,
}

impl Size {
    /// Returns the data at the largest size.
    fn new(tree: &Tree, sides: &[Side<'_>], measures: &[Measure], threads: usize) -> io::Result<Self> {
        let cut = tree.cut(sides, measures, SHARES, threads)?;
        let by_node = |(side, of_site): (&Side<'_>, &Vec<u32>)| ByNode::new(side, of_site, cut.nodes.len(), threads);
        let parts = sides.iter().zip(&cut.of_site).map(by_node).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { shares: SHARES, numbers: numbers(&cut, &parts, measures), cut, parts })
    }

    /// Returns whether no more points in time can be merged, because there are few or because most of them must be
    /// kept.
    fn has_few_moments(&self) -> bool {
        let has_few = |part: &ByNode| {
            let moments = &part.timeline.moments;
            let joined = moments.iter().filter(|moment| !moment.kept).count() / 2;
            moments.len() / 2 < FEWEST_MOMENTS || joined < moments.len() / 8
        };
        self.parts.iter().all(has_few)
    }

    /// Returns whether this is the smallest size.
    fn is_least(&self) -> bool {
        self.shares / 2 < FEWEST_SHARES && self.has_few_moments()
    }

    /// Returns whether the next smaller size has fewer nodes rather than fewer points in time.
    fn has_smaller_tree(&self) -> bool {
        self.shares / 2 >= FEWEST_SHARES && (self.shares >= SHARES / 4 || self.has_few_moments())
    }

    /// Returns the compressed numbers, or `None` if they are too large and a smaller size is available.
    fn packed(&self) -> Option<Vec<u8>> {
        let best = Compression::default();
        if self.is_least() {
            return compressed(&self.numbers, best, usize::MAX);
        }
        // Fast compression takes a quarter of the time. If its result exceeds the limit by more than a quarter, so will
        // the result of the best compression.
        compressed(&self.numbers, Compression::fast(), MOST + MOST / 4)?;
        compressed(&self.numbers, best, MOST)
    }

    /// Returns the next smaller size.
    fn smaller(&self, measures: &[Measure]) -> Self {
        let with = |shares, cut: Cut, parts: Vec<ByNode>| {
            let numbers = numbers(&cut, &parts, measures);
            Self { shares, cut, parts, numbers }
        };
        if self.has_smaller_tree() {
            let (cut, now) = self.cut.again(self.shares / 2);
            let parts = self.parts.iter().map(|part| part.number_again(&now, cut.nodes.len())).collect();
            return with(self.shares / 2, cut, parts);
        }
        let halved = |part: &ByNode| ByNode { timeline: part.timeline.halved(), grids: part.grids.clone() };
        with(self.shares, self.cut.clone(), self.parts.iter().map(halved).collect())
    }
}

/// Number of bytes to compress between checks of the size limit.
const PIECE: usize = 1 << 16;

/// Compresses bytes, or returns `None` if the result is larger than `most`.
fn compressed(bytes: &[u8], how: Compression, most: usize) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), how);
    for piece in bytes.chunks(PIECE) {
        // Writing to a vector never fails.
        encoder.write_all(piece).ok().filter(|()| encoder.get_ref().len() <= most)?;
    }
    encoder.finish().ok().filter(|compressed| compressed.len() <= most)
}

/// The amounts of a trace by tree node, in order. Site numbers are node numbers here.
struct ByNode {
    timeline: SiteTimeline,
    grids: Vec<Vec<GridCell>>,
}

impl ByNode {
    /// Sums the amounts of the sites of each node.
    fn new(side: &Side<'_>, of_site: &[u32], nodes: usize, threads: usize) -> io::Result<Self> {
        let (timeline, grids) = (&side.recorded.timeline, &side.recorded.grids);
        let moments = timeline.moments.clone();
        let others = || {
            let grids = grids.iter().map(|grid| cells_by(&grid.cells, of_site, nodes)).collect();
            (lived_by(&timeline.lived, of_site, nodes), grids)
        };
        let allocated = || allocated_by(&timeline.allocated, of_site, nodes, moments.len());
        let ((lived, grids), allocated) = both(threads, others, allocated)?;
        Ok(Self { timeline: SiteTimeline { moments, lived, allocated }, grids })
    }

    /// Renumbers the nodes and sums the amounts of nodes that get the same number.
    fn number_again(&self, now: &[u32], nodes: usize) -> Self {
        let SiteTimeline { moments, lived, allocated, .. } = &self.timeline;
        let allocated = allocated_by(allocated, now, nodes, moments.len());
        let timeline = SiteTimeline { moments: moments.clone(), lived: lived_by(lived, now, nodes), allocated };
        Self { timeline, grids: self.grids.iter().map(|cells| cells_by(cells, now, nodes)).collect() }
    }
}

fn lived_by(list: &[Lived], now: &[u32], nodes: usize) -> Vec<Lived> {
    let of_nodes = list.iter().map(|one| Lived { site: new_number(now, one.site), ..*one });
    let mut list = Lists::new(nodes, of_nodes.map(|one| (one.site, one))).sorted_by_key(Lived::key);
    sum_equal(&mut list, Lived::key, |one| &mut one.amount);
    list
}

/// Sums allocations by node and point in time without sorting, because there are too many entries to sort.
fn allocated_by(list: &[Allocated], now: &[u32], nodes: usize, moments: usize) -> Vec<Allocated> {
    let of_nodes = list.iter().map(|one| (new_number(now, one.site), (one.moment, one.amount)));
    let of_nodes = Lists::new(nodes, of_nodes);
    let (mut all, mut sums) = (Vec::new(), vec![Amount::default(); moments]);
    for site in (0..nodes).filter_map(|node| u32::try_from(node).ok()) {
        let (mut first, mut last) = (u16::MAX, 0);
        for (moment, amount) in of_nodes.get(site) {
            (first, last) = (first.min(*moment), last.max(*moment));
            sums.get_mut(usize::from(*moment)).into_iter().for_each(|sum| sum.sum(*amount));
        }
        for moment in first..=last {
            let Some(sum) = sums.get_mut(usize::from(moment)).filter(|sum| sum.blocks > 0) else { continue };
            all.push(Allocated { site, moment, amount: std::mem::take(sum) });
        }
    }
    all
}

fn cells_by(list: &[GridCell], now: &[u32], nodes: usize) -> Vec<GridCell> {
    let of_nodes = list.iter().map(|one| GridCell { site: new_number(now, one.site), ..*one });
    let mut list = Lists::new(nodes, of_nodes.map(|one| (one.site, one))).sorted_by_key(GridCell::key);
    sum_equal(&mut list, GridCell::key, |one| &mut one.amount);
    list
}

/// Writes the numbers column by column, so that similar numbers are adjacent.
fn numbers(tree: &Cut, parts: &[ByNode], measures: &[Measure]) -> Vec<u8> {
    let mut out = Vec::new();
    parts.iter().for_each(|part| moments(&mut out, &part.timeline.moments));
    number(&mut out, tree.nodes.len() as u64);
    // The root is its own caller, and also the caller of allocations without a known stack.
    (0..).zip(&tree.nodes).for_each(|(place, node)| number(&mut out, place - u64::from(node.parent)));
    let functions = tree.functions();
    let function = |group: u32| functions.binary_search(&group).map_or(0, |place| place as u64 + 1);
    tree.nodes.iter().for_each(|node| number(&mut out, node.function.map_or(0, function)));
    for (own, part) in tree.own.iter().zip(parts) {
        for measure in measures {
            own.iter().for_each(|own| amount(&mut out, own.get(*measure)));
        }
        changes(&mut out, &part.timeline);
        part.grids.iter().for_each(|cells| grid(&mut out, cells));
    }
    out
}

/// Writes the amounts of nodes in the cells of a table.
fn grid(out: &mut Vec<u8>, cells: &[GridCell]) {
    number(out, cells.len() as u64);
    let mut before = 0;
    for cell in cells {
        number(out, (cell.site - before).into());
        number(out, cell.row.into());
        number(out, cell.column.into());
        amount(out, cell.amount);
        before = cell.site;
    }
}

fn moments(out: &mut Vec<u8>, moments: &[Moment]) {
    number(out, moments.len() as u64);
    let mut before = Moment::default();
    for moment in moments {
        number(out, moment.tick - before.tick);
        number(out, moment.time.saturating_sub(before.time));
        number(out, moment.highest);
        number(out, u64::from(moment.kept) | u64::from(moment.exact) << 1);
        before = *moment;
    }
}

/// Writes the allocations of each node in each interval, and the blocks that outlived the interval.
fn changes(out: &mut Vec<u8>, timeline: &SiteTimeline) {
    let mut place = Place::default();
    number(out, timeline.lived.len() as u64);
    for one in &timeline.lived {
        place.step(out, one.site, one.from);
        number(out, one.to.map_or(NEVER, |to| u64::from(to - one.from)));
        amount(out, one.amount);
    }
    let mut place = Place::default();
    number(out, timeline.allocated.len() as u64);
    for one in &timeline.allocated {
        place.step(out, one.site, one.moment);
        amount(out, one.amount);
    }
}

/// A node and a point in time, each written as the difference from the previous one.
#[derive(Default)]
struct Place {
    node: u32,
    moment: u16,
}

impl Place {
    fn step(&mut self, out: &mut Vec<u8>, node: u32, moment: u16) {
        if node != self.node {
            self.moment = 0;
        }
        number(out, (node - self.node).into());
        number(out, (moment - self.moment).into());
        *self = Self { node, moment };
    }
}

fn amount(out: &mut Vec<u8>, amount: Amount) {
    number(out, amount.blocks);
    if amount.blocks > 0 {
        number(out, amount.bytes);
    }
}

/// Writes a varint: groups of seven bits, lowest first.
fn number(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}
