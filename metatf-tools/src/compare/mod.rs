//! Compares the values of two traces, regardless of their encoding. Metadata, widths, interpretations, chunks, groups,
//! codecs, and the class, byte order and version of the container make no difference.
//!
//! Both traces are read from the start once for each section that contains records, with one chunk of each trace in
//! memory at a time. Sections, records and fields are compared if they have the same name in both DTDs. If leaves
//! stride through or point into a stream section, its elements are compared through these leaves. Any other stream
//! section is compared element by element. Offsets are compared by the elements they refer to.
//!
//! ```
//! use metatf::container::{Reader, WriteOptions};
//! use metatf::dynamic::{OwnedRecord, Schema, Writer};
//! use metatf_tools::compare::{CompareOptions, Input, What, compare};
//!
//! # let dtd = b"section s 1 { malloc: (tag, size) { tag.value = 4; size.width = 4; size.interpretation = none; } }";
//! # let schema = Schema::parse("heap.dtd", dtd)?;
//! # let mut files = Vec::new();
//! # for sizes in [[16, 32], [16, 48]] {
//! #     let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
//! #     for size in sizes {
//! #         let mut owned = OwnedRecord::default();
//! #         owned.push_number(size);
//! #         writer.record(1, 3, &owned)?;
//! #     }
//! #     files.push(writer.finish()?);
//! # }
//! // The sizes of the records are 16 and 32 in the first trace, and 16 and 48 in the second trace.
//! let (mut open_left, mut open_right) = (|| Reader::from_slice(&files[0]), || Reader::from_slice(&files[1]));
//! let left = Input { schema: schema.clone(), open: &mut open_left };
//! let right = Input { schema, open: &mut open_right };
//! let result = compare(left, right, &CompareOptions::default(), &mut || {}).map_err(|(_, error)| error)?;
//!
//! assert_eq!((result.records[0].counts, result.records[0].differ), ([2, 2], 1));
//! let What::Field(name, [Some(left), Some(right)]) = &result.differences[0].what else { panic!("a field differs") };
//! assert_eq!((&**name, &*left.text, &*right.text), ("size", "32", "48"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cursor;
mod ignored;
mod offsets;
mod pair;
mod report;
mod summary;
mod user;

pub use report::{CompareOptions, Comparison, Difference, Named, OneSided, RecordSummary, Shown, What, Which};

use crate::field_names::name_at;
use crate::value_indices::ValueIndices;
use cursor::{Pass, PassCursor, Spot};
use ignored::Ignored;
use metatf::container::{Error, Reader, Result};
use metatf::dynamic::{OwnedRecord, Schema};
use metatf::format::COMMENT;
use metatf::internals::{print_bytes, print_number};
use metatf::reader::Item;
use metatf_parser::schema::{Format, LeafId, Names};
use offsets::Offsets;
use pair::Pairs;
use summary::{Tally, key_of_right};

/// A trace to compare, with its schema and a function that opens it. See the [module](crate::compare) for an example.
pub struct Input<'i, 'a> {
    /// The schema for reading the trace.
    pub schema: Schema,
    /// Opens the trace at its start. May be called repeatedly.
    pub open: &'i mut dyn FnMut() -> Result<Reader<'a>>,
}

/// Returns the names of sections, fields and records in the options that neither DTD defines.
#[must_use]
pub fn unknown_names(left: &Schema, right: &Schema, options: &CompareOptions) -> Vec<String> {
    let known = |name: &&String| [left, right].iter().any(|s| section_named(s, name).is_some());
    let sections = options.sections.iter().filter(|name| !known(name)).cloned();
    sections.chain(Ignored::new(&options.ignore).unknown(&[left, right])).collect()
}

fn section_named(schema: &Schema, name: &str) -> Option<usize> {
    schema.format.section_named(name).or((name == "0").then_some(0))
}

/// Compares two traces. `step` is called for every record read.
///
/// # Errors
/// Returns the first error in either trace, and the trace that it occurred in.
pub fn compare<'i, 'a>(
    left: Input<'i, 'a>,
    right: Input<'i, 'a>,
    options: &CompareOptions,
    step: &mut dyn FnMut(),
) -> Result<Comparison, (Which, Error)> {
    let ignored = Ignored::new(&options.ignore);
    let mut pairs = Pairs::new(&left.schema, &right.schema, &ignored);
    let mut out = Comparison { only: std::mem::take(&mut pairs.only), ..Comparison::default() };
    out.nothing_in_common = pairs.common == 0 && pairs.total > 0;
    let left_schema = left.schema.clone();
    let mut comparer = Comparer {
        inputs: [left, right],
        tally: Tally::new(&left_schema),
        in_step: true,
        pairs: &pairs,
        options,
        step,
        out,
        offsets: Offsets::default(),
        indices: [ValueIndices::default(), ValueIndices::default()],
        counts: [None, None],
        reached: [false; 256],
    };
    comparer.records()?;
    comparer.elements()?;
    if options.metadata {
        comparer.metadata()?;
    }
    let Comparer { mut out, tally, .. } = comparer;
    out.records = tally.finish(&left_schema);
    Ok(out)
}

struct Comparer<'c, 'i, 'a> {
    inputs: [Input<'i, 'a>; 2],
    pairs: &'c Pairs,
    options: &'c CompareOptions,
    step: &'c mut dyn FnMut(),
    out: Comparison,
    tally: Tally,
    /// Whether the record types were equal at all positions of the pass so far.
    in_step: bool,
    offsets: Offsets,
    indices: [ValueIndices; 2],
    /// Number of records in each section, once they have been counted.
    counts: [Option<Vec<u64>>; 2],
    /// Whether each stream section, by section number in the left trace, is compared through the leaves that refer to
    /// it.
    reached: [bool; 256],
}

type Cursors<'t, 'a> = [PassCursor<'t, 'a>; 2];

impl<'c, 'a> Comparer<'c, '_, 'a> {
    /// Returns whether the comparison can stop.
    fn is_full(&self) -> bool {
        self.options.stop && !self.has_room()
    }

    /// Returns whether the list of differences has room for another one.
    fn has_room(&self) -> bool {
        self.options.max == 0 || self.out.differences.len() < self.options.max
    }

    /// Adds a difference to the list, if the list has room for it.
    fn list(&mut self, difference: Difference) {
        if self.has_room() {
            self.out.differences.push(difference);
        } else {
            self.out.stopped = true;
        }
    }

    /// Returns whether a pair of sections was requested by name.
    fn is_named(&self, [left, right]: [usize; 2]) -> bool {
        let named = |(which, index): (usize, usize), name: &str| {
            section_named(&self.inputs[which].schema, name).is_some_and(|found| found == index)
        };
        self.options.sections.iter().any(|name| named((0, left), name) || named((1, right), name))
    }

    /// Compares all sections of tagged records.
    fn records(&mut self) -> Result<(), (Which, Error)> {
        if self.options.order {
            return self.pass(Pass::Records, Pass::Records, false);
        }
        for &pair in &self.pairs.sections {
            let [left, right] = pair;
            let tagged = !pair::is_stream(&self.inputs[0].schema, left);
            if tagged && self.is_wanted(pair) && !self.is_full() && self.may_hold(pair) {
                self.pass(Pass::Section(left), Pass::Section(right), false)?;
            }
        }
        Ok(())
    }

    fn is_wanted(&self, pair: [usize; 2]) -> bool {
        self.options.sections.is_empty() || self.is_named(pair)
    }

    /// Returns whether one of the traces may contain records of a section.
    fn may_hold(&self, pair: [usize; 2]) -> bool {
        let counts = |(counts, section): (&Option<Vec<u64>>, usize)| {
            counts.as_ref().is_none_or(|c| c.get(section).is_none_or(|&n| n > 0))
        };
        self.counts.iter().zip(pair).any(counts)
    }

    /// Compares stream sections that no leaf strides through or points into, and stream sections requested by name.
    fn elements(&mut self) -> Result<(), (Which, Error)> {
        self.counts = [None, None];
        let reached = [0, 1].map(|i| crate::stream_sections::reached(&self.inputs[i].schema));
        for &pair in &self.pairs.sections {
            if !pair::is_stream(&self.inputs[0].schema, pair[0]) {
                continue;
            }
            let number = |i: usize| {
                let section = self.inputs[i].schema.format.sections.get(pair[i]);
                usize::from(section.map_or(0, |s| s.number))
            };
            let through = self.reached[number(0)] || (0..2).any(|i| reached[i][number(i)]);
            let wanted = if self.options.sections.is_empty() { !through } else { self.is_named(pair) };
            if wanted && !self.is_full() && self.may_hold(pair) {
                self.pass(Pass::Section(pair[0]), Pass::Section(pair[1]), true)?;
            }
        }
        Ok(())
    }

    /// Reads both traces once.
    fn pass(&mut self, left: Pass, right: Pass, stream: bool) -> Result<(), (Which, Error)> {
        let pairs = self.pairs;
        self.in_step = true;
        let [a, b] = &mut self.inputs;
        let mut cursors = [
            PassCursor::open(a, left, stream, &pairs.kept[0]).map_err(|e| (Which::Left, e))?,
            PassCursor::open(b, right, stream, &pairs.kept[1]).map_err(|e| (Which::Right, e))?,
        ];
        loop {
            let [l, r] = &mut cursors;
            let spots =
                [l.next(self.step).map_err(|e| (Which::Left, e))?, r.next(self.step).map_err(|e| (Which::Right, e))?];
            match spots {
                [Some(l), Some(r)] => self.both(&mut cursors, [l, r])?,
                [None, None] => break,
                [Some(l), None] => self.rest(&mut cursors, Which::Left, l)?,
                [None, Some(r)] => self.rest(&mut cursors, Which::Right, r)?,
            }
            if self.is_full() {
                self.out.stopped = true;
                return Ok(());
            }
        }
        self.note(cursors);
        Ok(())
    }

    /// Collects the record counts of both traces, and the stream sections that leaves of either trace refer to.
    fn note(&mut self, cursors: Cursors<'_, '_>) {
        let [left, right] = cursors;
        for (number, through) in left.reached.iter().enumerate() {
            self.reached[number] |= through;
        }
        // `reached` uses the left trace's section numbers, so map the right trace's numbers by name.
        for &[l, r] in &self.pairs.sections {
            let number = |i: usize, index: usize| {
                usize::from(self.inputs[i].schema.format.sections.get(index).map_or(0, |s| s.number))
            };
            let (l, r) = (number(0, l), number(1, r));
            self.reached[l] |= right.reached[r];
        }
        self.counts = [Some(left.counts), Some(right.counts)];
    }

    fn named(&self, which: Which, spot: Spot) -> Named {
        let record = self.inputs[which as usize].schema.record(spot.at.record);
        Named { record: record.map_or_else(String::new, |r| r.name.clone()), number: spot.number }
    }

    fn section_name(&self, which: Which, index: usize) -> Option<String> {
        self.inputs[which as usize].schema.section(index).and_then(|s| s.name.clone())
    }

    /// Reports the remaining records of one trace after the other trace has ended.
    fn rest(&mut self, cursors: &mut Cursors<'_, '_>, which: Which, first: Spot) -> Result<(), (Which, Error)> {
        let mut more = 0;
        let mut next = Some(first);
        while let Some(spot) = next {
            more += 1;
            self.tally.one(which, self.key(which, spot));
            next = cursors[which as usize].next(self.step).map_err(|e| (which, e))?;
        }
        let named = Some(self.named(which, first));
        self.list(Difference {
            section: self.section_name(which, first.at.section),
            records: if which == Which::Left { [named, None] } else { [None, named] },
            what: What::More(which, more),
        });
        Ok(())
    }

    /// Compares two records at the same position.
    fn both(&mut self, cursors: &mut Cursors<'_, '_>, spots: [Spot; 2]) -> Result<(), (Which, Error)> {
        let [l, r] = spots;
        let pairs = self.pairs;
        self.out.compared += 1;
        let pair = pairs.record(l.at.section, l.at.record);
        let together = pairs.sections.contains(&[l.at.section, r.at.section]);
        let Some(pair) = pair.filter(|pair| pair.right == r.at.record && together) else {
            let difference = Difference {
                section: self.section_name(Which::Left, l.at.section),
                records: [Some(self.named(Which::Left, l)), Some(self.named(Which::Right, r))],
                what: What::Record,
            };
            self.tally.one(Which::Left, self.key(Which::Left, l));
            self.tally.one(Which::Right, self.key(Which::Right, r));
            if std::mem::replace(&mut self.in_step, false) {
                self.out.out_of_step.push(difference.clone());
            }
            self.list(difference);
            return Ok(());
        };
        let key = (l.at.section, l.at.record);
        self.tally.both(key, self.in_step);
        if pair.whole && cursors[0].record() == cursors[1].record() {
            return Ok(());
        }
        let mut indices = std::mem::take(&mut self.indices);
        for (i, indices) in indices.iter_mut().enumerate() {
            if let Some(record) = self.inputs[i].schema.format.records.get(usize::from(spots[i].at.record)) {
                indices.fill(record, cursors[i].record());
            }
        }
        let mut differs = false;
        for leaf in &pair.leaves {
            differs |= self.leaf(cursors, spots, *leaf, &indices)?;
        }
        if differs && self.in_step {
            self.tally.differ(key);
        }
        self.indices = indices;
        Ok(())
    }

    /// Returns the left trace's type of a record, or of the corresponding record.
    fn key(&self, which: Which, spot: Spot) -> Option<summary::Key> {
        let key = (spot.at.section, spot.at.record);
        if which == Which::Left { Some(key) } else { key_of_right(self.pairs, key) }
    }

    /// Compares the values of a leaf. Returns whether any values differ.
    fn leaf(
        &mut self,
        cursors: &mut Cursors<'_, '_>,
        spots: [Spot; 2],
        leaf: pair::LeafPair,
        indices: &[ValueIndices; 2],
    ) -> Result<bool, (Which, Error)> {
        let (left, right) = (indices[0].of(leaf.left), indices[1].of(leaf.right));
        let mut differs = false;
        for i in 0..left.len().max(right.len()) {
            let at = [left.get(i).copied(), right.get(i).copied()];
            if self.is_full() || !self.differ(cursors, leaf, at)? {
                continue;
            }
            if !differs && self.in_step {
                self.count_field(cursors, spots, leaf, at);
            }
            differs = true;
            if !self.has_room() {
                self.out.stopped = true;
                continue;
            }
            let leaves = [leaf.left, leaf.right];
            let mut name = String::new();
            let mut values = [None, None];
            for side in [1, 0] {
                let Some(place) = at[side] else { continue };
                let Some(record) = self.inputs[side].schema.record(spots[side].at.record) else { continue };
                name = name_at(record, cursors[side].record(), place);
                let id = LeafId(leaves[side]);
                let (format, names) = record.leaf(id).map_or((Format::Unset, &Names::None), |l| (l.format, &l.names));
                let shown = show(&mut cursors[side], spots[side], id, place, (format, names), leaf.offsets);
                values[side] = Some(shown);
            }
            self.list(Difference {
                section: self.section_name(Which::Left, spots[0].at.section),
                records: [Some(self.named(Which::Left, spots[0])), Some(self.named(Which::Right, spots[1]))],
                what: What::Field(name, values),
            });
        }
        Ok(differs)
    }

    /// Counts a differing field by its name, without the indices of repeated items.
    fn count_field(
        &mut self,
        cursors: &Cursors<'_, '_>,
        spots: [Spot; 2],
        leaf: pair::LeafPair,
        at: [Option<usize>; 2],
    ) {
        let name = || {
            let side = usize::from(at[0].is_none());
            let record = self.inputs[side].schema.record(spots[side].at.record);
            let full = record.zip(at[side]).map(|(record, place)| name_at(record, cursors[side].record(), place));
            let full = full.unwrap_or_default();
            let parts = full.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest));
            parts.collect()
        };
        self.tally.field((spots[0].at.section, spots[0].at.record), leaf.left, name);
    }

    /// Returns whether two values differ.
    fn differ(
        &mut self,
        cursors: &mut Cursors<'_, '_>,
        leaf: pair::LeafPair,
        at: [Option<usize>; 2],
    ) -> Result<bool, (Which, Error)> {
        let [Some(left), Some(right)] = at else { return Ok(true) };
        let numbers = number(cursors[0].record(), left).zip(number(cursors[1].record(), right));
        if let (Some(sections), Some((l, r))) = (leaf.offsets, numbers) {
            let [a, b] = cursors;
            return Ok(!self.offsets.same(self.pairs, [a, b], sections, [l, r])?);
        }
        if let (true, Some((l, r))) = (leaf.address, numbers) {
            return Ok(!self.offsets.addresses.same(l, r));
        }
        Ok(values_differ([cursors[0].record(), cursors[1].record()], [left, right]))
    }
}

fn number(owned: &OwnedRecord, place: usize) -> Option<u64> {
    match owned.get(place) {
        Some(Item::Number(n)) => Some(n),
        _ => None,
    }
}

fn values_differ([left, right]: [&OwnedRecord; 2], [a, b]: [usize; 2]) -> bool {
    match (left.get(a), right.get(b)) {
        (Some(Item::Number(a)), Some(Item::Number(b))) => a != b,
        (Some(Item::Bytes(a)), Some(Item::Bytes(b))) => a != b,
        _ => true,
    }
}

/// Formats a value. Offsets are followed by their elements.
fn show(
    cursor: &mut PassCursor<'_, '_>,
    spot: Spot,
    leaf: LeafId,
    place: usize,
    (format, names): (Format, &Names),
    offsets: Option<[usize; 2]>,
) -> Shown {
    let mut out = Vec::new();
    let mut text = None;
    let format = if spot.at.record == COMMENT { Format::Utf8 } else { format };
    match cursor.record().get(place) {
        Some(Item::Number(n)) => {
            let resolved = offsets.is_some() && cursor.trace.resolve(spot.at, leaf, n, &mut out).unwrap_or(false);
            if !resolved {
                out.clear();
                print_number(&mut out, n, format);
                text = Some(names.text(n).map_or_else(
                    || {
                        let mut text = String::new();
                        format.write_number(&mut text, n);
                        text
                    },
                    Into::into,
                ));
            }
        }
        Some(Item::Bytes(bytes)) => {
            print_bytes(&mut out, bytes, format);
            text = format.word_of_bytes(bytes);
        }
        None => {}
    }
    let json = String::from_utf8_lossy(&out).into_owned();
    Shown { text: text.unwrap_or_else(|| json.clone()), json }
}
