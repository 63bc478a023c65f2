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

use super::tree::{ROOT, Tree};

/// Where the script learns that a block was never freed.
const NEVER: u64 = 0;

/// Bytes of numbers and names, compressed, that a page has.
const MOST: usize = 650_000;

/// Nodes that a page has are this part of all in something.
const PARTS: u64 = 5_000;
/// Even a page that is too large has nodes of this part.
const FEWEST_PARTS: u64 = 100;
/// It also has this many moments.
const FEWEST_MOMENTS: usize = 100;

/// Numbers of a page.
pub(super) struct Payload {
    /// The tree as it was cut.
    pub(super) tree: Tree,
    /// Nodes are left that have one of this many parts.
    pub(super) parts: u64,
    /// The numbers.
    numbers: Vec<u8>,
}

impl Payload {
    /// Cuts a tree, and joins moments, until there are few enough numbers.
    pub(super) fn new(tree: &Tree, mut timeline: Timeline) -> Self {
        let mut parts = PARTS;
        loop {
            let cut = tree.prune(&timeline, parts);
            let numbers = numbers(&cut, &timeline);
            let (few_parts, few_moments) = (parts / 2 < FEWEST_PARTS, timeline.moments.len() / 2 < FEWEST_MOMENTS);
            if compressed(&numbers).len() <= MOST || (few_parts && few_moments) {
                return Self { tree: cut, parts, numbers };
            }
            if few_parts || (parts < PARTS / 4 && !few_moments) {
                timeline = timeline.halved();
            } else {
                parts /= 2;
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

fn numbers(tree: &Tree, timeline: &Timeline) -> Vec<u8> {
    let mut out = Vec::new();
    let moments = &timeline.moments;
    number(&mut out, moments.len() as u64);
    let mut before = Moment::default();
    for moment in moments {
        number(&mut out, moment.tick - before.tick);
        number(&mut out, moment.time.saturating_sub(before.time));
        number(&mut out, moment.highest);
        number(&mut out, moment.kept.into());
        before = *moment;
    }
    number(&mut out, tree.nodes.len() as u64);
    let functions = tree.functions();
    let function = |group: u32| functions.binary_search(&group).map_or(0, |place| place as u64 + 1);
    for (place, node) in (0..).zip(&tree.nodes) {
        // The root is its own caller; so is what no stack is known of.
        number(&mut out, place - u64::from(node.parent));
        number(&mut out, node.function.map_or(0, function));
        for measure in Measure::ALL {
            amount(&mut out, node.own.get(measure));
        }
    }
    let node = |site: u32| tree.of_site.get(site as usize).copied().unwrap_or(ROOT);
    // What sites of one node have is summed.
    let mut lived: BTreeMap<(u32, u16, u64), Amount> = BTreeMap::new();
    for one in &timeline.lived {
        let span = one.to.map_or(NEVER, |to| u64::from(to - one.from));
        lived.entry((node(one.site), one.from, span)).or_default().sum(one.amount);
    }
    let mut allocated: BTreeMap<(u32, u16), Amount> = BTreeMap::new();
    for one in &timeline.allocated {
        allocated.entry((node(one.site), one.moment)).or_default().sum(one.amount);
    }
    let mut place = Place::default();
    number(&mut out, lived.len() as u64);
    for ((node, from, span), sum) in lived {
        place.step(&mut out, node, from);
        number(&mut out, span);
        amount(&mut out, sum);
    }
    let mut place = Place::default();
    number(&mut out, allocated.len() as u64);
    for ((node, moment), sum) in allocated {
        place.step(&mut out, node, moment);
        amount(&mut out, sum);
    }
    out
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
