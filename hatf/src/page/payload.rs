//! What the page's script reads: numbers as varints, compressed.
//!
//! `assets/data.js` reads the same in the same order.

use std::io::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use hatf_lab::moments::{Allocated, Lived, Moment, Timeline};
use hatf_lab::sites::{Amount, Measure};

use super::Side;
use super::grid::GridCell;
use super::tree::{Cut, Tree, new_number};
use crate::threads::both;

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
    pub(super) tree: Cut,
    /// Nodes are left that have one of this many shares.
    pub(super) shares: u64,
    /// The numbers.
    numbers: Vec<u8>,
}

impl Payload {
    /// Cuts a tree, and joins moments, until there are few enough numbers.
    ///
    /// # Errors
    /// The system has no thread.
    pub(super) fn new(tree: &Tree, sides: &[Side<'_>], measures: &[Measure], threads: usize) -> io::Result<Self> {
        let (mut shares, mut cut) = (SHARES, tree.cut(sides, measures, SHARES, threads)?);
        let by_node = |(side, of_site): (&Side<'_>, &Vec<u32>)| ByNode::new(side, of_site, threads);
        let mut parts = sides.iter().zip(&cut.of_site).map(by_node).collect::<io::Result<Vec<_>>>()?;
        let mut now = numbers(&cut, &parts, measures);
        loop {
            let moments = parts.iter().map(|part| part.timeline.moments.len()).max().unwrap_or(0);
            let (few_shares, few_moments) = (shares / 2 < FEWEST_SHARES, moments / 2 < FEWEST_MOMENTS);
            if few_shares && few_moments {
                return Ok(Self { tree: cut, shares, numbers: now });
            }
            // While it is looked how small they are, those that come next are made.
            let mut next = || {
                let smaller = if few_shares || (shares < SHARES / 4 && !few_moments) {
                    parts.iter_mut().for_each(|part| part.timeline = part.timeline.halved());
                    None
                } else {
                    let (smaller, now) = cut.again(shares / 2);
                    parts.iter_mut().for_each(|part| part.number_again(&now));
                    Some(smaller)
                };
                (numbers(smaller.as_ref().unwrap_or(&cut), &parts, measures), smaller)
            };
            let (is_small, (numbers, smaller)) = if threads > 1 {
                both(threads, || is_small(&now), next)?
            } else if is_small(&now) {
                return Ok(Self { tree: cut, shares, numbers: now });
            } else {
                (false, next())
            };
            if is_small {
                return Ok(Self { tree: cut, shares, numbers: now });
            }
            now = numbers;
            if let Some(smaller) = smaller {
                (shares, cut) = (shares / 2, smaller);
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

/// Bytes that are compressed before it is looked whether they are too many.
const PIECE: usize = 1 << 16;

/// Returns whether numbers have at most [`MOST`] bytes when they are compressed.
fn is_small(numbers: &[u8]) -> bool {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut written =
        numbers.chunks(PIECE).map(|piece| encoder.write_all(piece).is_ok() && encoder.get_ref().len() <= MOST);
    written.all(|fits| fits) && encoder.finish().is_ok_and(|compressed| compressed.len() <= MOST)
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // A vector takes all.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// What nodes of a tree have of a trace, each in order; where sites are named, nodes are meant.
struct ByNode {
    timeline: Timeline,
    grids: Vec<Vec<GridCell>>,
}

impl ByNode {
    /// Sums what sites of one node have.
    fn new(side: &Side<'_>, of_site: &[u32], threads: usize) -> io::Result<Self> {
        let (timeline, grids) = (&side.recorded.timeline, &side.recorded.grids);
        let lived = || lived_by(&timeline.lived, of_site);
        let others = || {
            let allocated = allocated_by(&timeline.allocated, of_site);
            (allocated, grids.iter().map(|grid| cells_by(&grid.cells, of_site)).collect())
        };
        let (lived, (allocated, grids)) = both(threads, lived, others)?;
        Ok(Self { timeline: Timeline { moments: timeline.moments.clone(), lived, allocated }, grids })
    }

    /// Gives nodes other numbers, and sums what has the same.
    fn number_again(&mut self, now: &[u32]) {
        let Timeline { lived, allocated, .. } = &mut self.timeline;
        *lived = lived_by(lived, now);
        *allocated = allocated_by(allocated, now);
        self.grids.iter_mut().for_each(|cells| *cells = cells_by(cells, now));
    }
}

fn lived_by(list: &[Lived], now: &[u32]) -> Vec<Lived> {
    let number = |one: &Lived| Lived { site: new_number(now, one.site), ..*one };
    sum_equal(list, number, |one| one.site, Lived::key, |one| &mut one.amount)
}

fn allocated_by(list: &[Allocated], now: &[u32]) -> Vec<Allocated> {
    let number = |one: &Allocated| Allocated { site: new_number(now, one.site), ..*one };
    sum_equal(list, number, |one| one.site, Allocated::key, |one| &mut one.amount)
}

fn cells_by(list: &[GridCell], now: &[u32]) -> Vec<GridCell> {
    let number = |one: &GridCell| GridCell { site: new_number(now, one.site), ..*one };
    sum_equal(list, number, |one| one.site, GridCell::key, |one| &mut one.amount)
}

/// Gives sites or nodes other numbers, sorts what they have by key, in which they come first, and sums what has the same key.
fn sum_equal<T: Copy>(
    before: &[T],
    number: impl Fn(&T) -> T,
    node: impl Fn(&T) -> u32,
    key: impl Fn(&T) -> u64,
    amount: impl Fn(&mut T) -> &mut Amount,
) -> Vec<T> {
    // Most nodes have what one site or node had before, which is in order: so nodes are sorted by counting, and each by itself.
    let nodes = before.iter().map(|one| node(&number(one))).max().map_or(0, |most| most as usize + 1);
    let mut places = vec![0; nodes];
    for one in before {
        places.get_mut(node(&number(one)) as usize).into_iter().for_each(|count| *count += 1);
    }
    let mut start = 0;
    for place in &mut places {
        start += std::mem::replace(place, start);
    }
    let mut list = before.to_vec();
    for one in before.iter().map(number) {
        let Some(place) = places.get_mut(node(&one) as usize) else { continue };
        list.get_mut(*place).into_iter().for_each(|to| *to = one);
        *place += 1;
    }
    let mut start = 0;
    for end in places {
        list.get_mut(start..end).into_iter().for_each(|of_node| of_node.sort_unstable_by_key(&key));
        start = end;
    }
    list.dedup_by(|one, before| {
        let same = key(one) == key(before);
        if same {
            let other = *amount(one);
            amount(before).sum(other);
        }
        same
    });
    list.shrink_to_fit();
    list
}

/// A column behind the other: what is alike lies together.
fn numbers(tree: &Cut, parts: &[ByNode], measures: &[Measure]) -> Vec<u8> {
    let mut out = Vec::new();
    parts.iter().for_each(|part| moments(&mut out, &part.timeline.moments));
    number(&mut out, tree.nodes.len() as u64);
    // The root is its own caller; so is what no stack is known of.
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

/// What nodes have in the cells of a table.
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
        number(out, moment.kept.into());
        before = *moment;
    }
}

/// What nodes allocated in each moment, and what of it lived beyond.
fn changes(out: &mut Vec<u8>, timeline: &Timeline) {
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
