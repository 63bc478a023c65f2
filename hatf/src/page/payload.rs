//! What the page's script reads: numbers as varints, compressed.
//!
//! `assets/data.js` reads the same in the same order.

use std::collections::BTreeMap;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use hatf_lab::moments::{Moment, Timeline};
use hatf_lab::sites::{Amount, Measure};

use super::Side;
use super::grid::Grid;
use super::tree::{Part, Tree};

/// Where the script learns that a block was never freed.
const NEVER: u64 = 0;

/// Bytes of numbers and names, compressed, that a page has.
const MOST: usize = 650_000;

/// Nodes that a page has are one of this many shares of all in something.
const SHARES: u64 = 5_000;
/// Even a page that is too large has nodes of this share.
const FEWEST_SHARES: u64 = 100;
/// It also has this many moments.
const FEWEST_MOMENTS: usize = 100;

/// Numbers of a page.
pub(super) struct Payload {
    /// The tree as it was cut.
    pub(super) tree: Tree,
    /// Nodes are left that have one of this many shares.
    pub(super) shares: u64,
    /// The numbers.
    numbers: Vec<u8>,
}

impl Payload {
    /// Cuts a tree, and joins moments, until there are few enough numbers.
    pub(super) fn new(tree: &Tree, sides: &[Side<'_>], measures: &[Measure]) -> Self {
        let mut timelines: Vec<Timeline> = sides.iter().map(|side| side.recorded.timeline.clone()).collect();
        let mut shares = SHARES;
        loop {
            let cut = tree.prune(&timelines, measures, shares);
            let numbers = numbers(&cut, sides, &timelines, measures);
            let moments = timelines.iter().map(|timeline| timeline.moments.len()).max().unwrap_or(0);
            let (few_shares, few_moments) = (shares / 2 < FEWEST_SHARES, moments / 2 < FEWEST_MOMENTS);
            if compressed(&numbers).len() <= MOST || (few_shares && few_moments) {
                return Self { tree: cut, shares, numbers };
            }
            if few_shares || (shares < SHARES / 4 && !few_moments) {
                timelines.iter_mut().for_each(|timeline| *timeline = timeline.halved());
            } else {
                shares /= 2;
            }
        }
    }

    /// Returns the numbers behind a text, compressed, in letters that HTML leaves alone.
    pub(super) fn encode(&self, text: &str) -> String {
        let mut all = Vec::new();
        number(&mut all, text.len() as u64);
        all.extend(text.bytes());
        all.extend(&self.numbers);
        STANDARD.encode(compressed(&all))
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // A vector takes all.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// A column behind the other: what is alike lies together.
fn numbers(tree: &Tree, sides: &[Side<'_>], timelines: &[Timeline], measures: &[Measure]) -> Vec<u8> {
    let mut out = Vec::new();
    timelines.iter().for_each(|timeline| moments(&mut out, &timeline.moments));
    number(&mut out, tree.nodes.len() as u64);
    // The root is its own caller; so is what no stack is known of.
    (0..).zip(&tree.nodes).for_each(|(place, node)| number(&mut out, place - u64::from(node.parent)));
    let functions = tree.functions();
    let function = |group: u32| functions.binary_search(&group).map_or(0, |place| place as u64 + 1);
    tree.nodes.iter().for_each(|node| number(&mut out, node.function.map_or(0, function)));
    for ((part, side), timeline) in tree.parts.iter().zip(sides).zip(timelines) {
        for measure in measures {
            part.own.iter().for_each(|own| amount(&mut out, own.get(*measure)));
        }
        changes(&mut out, part, timeline);
        side.recorded.grids.iter().for_each(|grid| cells(&mut out, part, grid));
    }
    out
}

/// What nodes have in the cells of a table.
fn cells(out: &mut Vec<u8>, part: &Part, grid: &Grid) {
    let mut sums: BTreeMap<(u32, u8, u8), Amount> = BTreeMap::new();
    for cell in &grid.cells {
        sums.entry((part.node(cell.site), cell.row, cell.column)).or_default().sum(cell.amount);
    }
    number(out, sums.len() as u64);
    let mut before = 0;
    for ((node, row, column), sum) in sums {
        number(out, (node - before).into());
        number(out, row.into());
        number(out, column.into());
        amount(out, sum);
        before = node;
    }
}

fn moments(out: &mut Vec<u8>, moments: &[Moment]) {
    number(out, moments.len() as u64);
    let mut before = Moment::default();
    for moment in moments {
        number(out, moment.tick - before.tick);
        number(out, moment.time.saturating_sub(before.time));
        number(out, moment.highest);
        number(out, moment.kept.into());
        before = *moment;
    }
}

/// What nodes allocated in each moment, and what of it lived beyond. What sites of one node have is summed.
fn changes(out: &mut Vec<u8>, part: &Part, timeline: &Timeline) {
    let mut lived: BTreeMap<(u32, u16, u64), Amount> = BTreeMap::new();
    for one in &timeline.lived {
        let span = one.to.map_or(NEVER, |to| u64::from(to - one.from));
        lived.entry((part.node(one.site), one.from, span)).or_default().sum(one.amount);
    }
    let mut allocated: BTreeMap<(u32, u16), Amount> = BTreeMap::new();
    for one in &timeline.allocated {
        allocated.entry((part.node(one.site), one.moment)).or_default().sum(one.amount);
    }
    let mut place = Place::default();
    number(out, lived.len() as u64);
    for ((node, from, span), sum) in lived {
        place.step(out, node, from);
        number(out, span);
        amount(out, sum);
    }
    let mut place = Place::default();
    number(out, allocated.len() as u64);
    for ((node, moment), sum) in allocated {
        place.step(out, node, moment);
        amount(out, sum);
    }
}

/// A node and a moment: each is written as its distance from the one before.
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

/// Writes a number in groups of seven bits, the lowest first.
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
