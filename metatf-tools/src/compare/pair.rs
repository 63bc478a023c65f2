//! Pairs the sections, records and fields that have the same name in two formats.

use super::ignored::Ignored;
use super::{OneSided, Which};
use crate::stream_sections::{offset_into, reached};
use metatf::dynamic::Schema;
use metatf::format::{COMMENT, METADATA, SECTION};
use metatf_parser::schema::{Item, LeafId, Record, Repeated};

/// A field defined by both formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafPair {
    pub(super) left: u8,
    pub(super) right: u8,
    /// The indices of the sections that the offsets refer to, if both leaves are offsets.
    pub(super) offsets: Option<[usize; 2]>,
    /// Whether both leaves are addresses to compare by identity.
    pub(super) address: bool,
}

/// A record defined by both formats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordPair {
    /// Index of the record on the right.
    pub(super) right: u16,
    pub(super) leaves: Vec<LeafPair>,
    /// Whether both records have the same leaves in the same order, and all leaves are compared by value. If so, the
    /// records are equal if their owned records are equal.
    pub(super) whole: bool,
}

/// The paired sections and records of two formats.
#[derive(Debug)]
pub(super) struct Pairs {
    /// Pairs of section indices, including stream sections.
    pub(super) sections: Vec<[usize; 2]>,
    /// The record pairs, by the indices of the left section and record.
    records: Vec<Vec<Option<RecordPair>>>,
    /// Whether a record is compared, by side, section index and record index.
    pub(super) kept: [Vec<Vec<bool>>; 2],
    /// The sections, records and fields defined by only one of the formats.
    pub(super) only: Vec<OneSided>,
    /// Number of paired records, excluding predefined records, and the total number.
    pub(super) common: usize,
    pub(super) total: usize,
}

impl Pairs {
    /// Pairs two formats, except for `ignored` fields and records.
    pub(super) fn new(left: &Schema, right: &Schema, ignored: &Ignored) -> Self {
        let table = |s: &Schema| vec![vec![false; s.dtd.records.len()]; s.dtd.sections.len()];
        let mut pairs = Self {
            sections: Vec::new(),
            records: vec![vec![None; left.dtd.records.len()]; left.dtd.sections.len()],
            kept: [table(left), table(right)],
            only: Vec::new(),
            common: 0,
            total: 0,
        };
        let schemas = [left, right];
        for (l, section) in left.dtd.sections.iter().enumerate() {
            let right_section = right.dtd.sections.iter().position(|s| s.name == section.name);
            match right_section.filter(|&r| is_stream(right, r) == is_stream(left, l)) {
                Some(r) => pairs.section(schemas, [l, r], ignored),
                None => pairs.lone_section(schemas, Which::Left, l),
            }
        }
        for r in 0..right.dtd.sections.len() {
            if pairs.sections.iter().all(|pair| pair[1] != r) {
                pairs.lone_section(schemas, Which::Right, r);
            }
        }
        pairs
    }

    pub(super) fn record(&self, section: usize, record: u16) -> Option<&RecordPair> {
        self.records.get(section)?.get(usize::from(record))?.as_ref()
    }

    /// Returns the record of a section on the left that is paired with a record on the right.
    pub(super) fn left_of(&self, section: usize, right: u16) -> Option<u16> {
        let mut records = (0_u16..).zip(self.records.get(section)?);
        records.find(|(_, pair)| pair.as_ref().is_some_and(|pair| pair.right == right)).map(|(left, _)| left)
    }

    fn lone_section(&mut self, schemas: [&Schema; 2], which: Which, index: usize) {
        let schema = schemas[which as usize];
        self.total += own_records(schema, index).into_iter().filter(|&r| r != COMMENT).count();
        // If records stride through or point into a stream, its elements are compared together with these records.
        let Some(section) = schema.dtd.sections.get(index) else { return };
        if section.stream.is_none() || !reached(schema)[usize::from(section.number)] {
            let name = section.name.as_deref().unwrap_or("(global)");
            self.only.push(OneSided { which, what: format!("section {name}") });
        }
    }

    fn section(&mut self, schemas: [&Schema; 2], [l, r]: [usize; 2], ignored: &Ignored) {
        self.sections.push([l, r]);
        let [left, right] = schemas;
        let mut found = Vec::new();
        for a in own_records(left, l) {
            let Some(left_record) = left.record(a) else { continue };
            if ignored.record(left_record) {
                continue;
            }
            let own = a != COMMENT;
            self.total += usize::from(own);
            let twin = own_records(right, r).into_iter().find(|&b| {
                let stream = is_stream(left, l);
                right.record(b).is_some_and(|record| stream || record.name == left_record.name)
            });
            match twin.and_then(|b| Some((b, right.record(b)?))) {
                Some((b, right_record)) => {
                    found.push(b);
                    self.common += usize::from(own);
                    let pair = self.leaves(schemas, (a, left_record), (b, right_record), ignored);
                    self.keep([l, r], a, pair);
                }
                None => self.lone_record(schemas, Which::Left, l, left_record),
            }
        }
        for b in own_records(right, r) {
            if let Some(record) = right.record(b).filter(|record| !found.contains(&b) && !ignored.record(record)) {
                self.total += 1;
                self.lone_record(schemas, Which::Right, r, record);
            }
        }
    }

    fn keep(&mut self, sections: [usize; 2], left: u16, pair: RecordPair) {
        for ((kept, section), record) in self.kept.iter_mut().zip(sections).zip([left, pair.right]) {
            if let Some(kept) = kept.get_mut(section).and_then(|s| s.get_mut(usize::from(record))) {
                *kept = true;
            }
        }
        let place = self.records.get_mut(sections[0]).and_then(|s| s.get_mut(usize::from(left)));
        if let Some(place) = place {
            *place = Some(pair);
        }
    }

    fn lone_record(&mut self, schemas: [&Schema; 2], which: Which, section: usize, record: &Record) {
        let name = qualified(schemas[which as usize], section, &record.name);
        self.only.push(OneSided { which, what: format!("record {name}") });
    }

    /// Pairs the leaves of two records by path. The length of a `vfield` is compared as part of its data.
    fn leaves(
        &mut self,
        schemas: [&Schema; 2],
        (a, left): (u16, &Record),
        (b, right): (u16, &Record),
        ignored: &Ignored,
    ) -> RecordPair {
        let mut lengths = Vec::new();
        vfield_lengths(&left.items, &mut lengths);
        let mut pair = RecordPair { right: b, leaves: Vec::new(), whole: true };
        let mut taken = [false; 256];
        for (i, leaf) in (0..=u8::MAX).zip(&left.leaves).filter(|(_, leaf)| !leaf.is_tag()) {
            let twins = (0..=u8::MAX).zip(&right.leaves).filter(|(_, l)| !l.is_tag() && l.path == leaf.path);
            let twin = twins.into_iter().find(|(j, _)| !taken[usize::from(*j)]);
            if let Some((j, _)) = twin {
                taken[usize::from(j)] = true;
            }
            if ignored.leaf(left, a, leaf) {
                pair.whole = false;
                continue;
            }
            match twin {
                Some((j, other)) if other.is_numeric() == leaf.is_numeric() => {
                    let offsets = offset_into(schemas[0], leaf.interpretation)
                        .zip(offset_into(schemas[1], other.interpretation))
                        .map(|(l, r)| [l, r]);
                    let address = ignored.address(leaf);
                    pair.whole &= offsets.is_none() && !address && i == j;
                    if !lengths.contains(&LeafId(i)) {
                        pair.leaves.push(LeafPair { left: i, right: j, offsets, address });
                    }
                }
                twin => {
                    pair.whole = false;
                    self.lone_leaf(Which::Left, left, &leaf.path, twin.is_some());
                }
            }
        }
        for (taken, leaf) in taken.iter().zip(&right.leaves).filter(|(taken, leaf)| !**taken && !leaf.is_tag()) {
            pair.whole &= taken;
            if !ignored.leaf(right, b, leaf) {
                self.lone_leaf(Which::Right, right, &leaf.path, false);
            }
        }
        pair.whole &= layouts_agree(schemas, a, b);
        pair
    }

    fn lone_leaf(&mut self, which: Which, record: &Record, path: &[String], other_kind: bool) {
        let kind = if other_kind { " (a number in one DTD, bytes in the other)" } else { "" };
        let what = format!("field {}.{}{kind}", record.name, path.join("."));
        self.only.push(OneSided { which, what });
    }
}

/// Returns whether both records determine the counts of repetitions in the same way, so that positions in their owned
/// records correspond.
fn layouts_agree([left, right]: [&Schema; 2], a: u16, b: u16) -> bool {
    let steps = |schema: &Schema, record: u16| {
        schema.format.records.get(usize::from(record)).map(|r| (r.steps.to_vec(), r.leaves.len()))
    };
    steps(left, a) == steps(right, b)
}

pub(super) fn qualified(schema: &Schema, section: usize, record: &str) -> String {
    match schema.section(section).and_then(|s| s.name.as_deref()) {
        Some(section) => format!("{section} {record}"),
        None => record.to_owned(),
    }
}

pub(super) fn is_stream(schema: &Schema, section: usize) -> bool {
    schema.section(section).is_some_and(|s| s.stream.is_some())
}

/// Returns the indices of a section's data records, including comments, or of its element.
fn own_records(schema: &Schema, section: usize) -> Vec<u16> {
    let records = schema.format.sections.get(section).map_or(&[][..], |s| &s.records);
    records.iter().copied().filter(|&r| r != SECTION && r != METADATA).collect()
}

/// Collects the length leaves of `vfield`s. Items nest at most 32 levels deep (spec 3.5), which bounds the recursion.
fn vfield_lengths(items: &[Item], out: &mut Vec<LeafId>) {
    let mut nested = |record: &str, items: &[Item]| match items {
        [Item::Leaf(length), Item::Leaf(_)] if record == "vfield" => out.push(*length),
        _ => vfield_lengths(items, out),
    };
    for item in items {
        match item {
            Item::Leaf(_) | Item::Repeat { body: Repeated::Leaf(_), .. } => {}
            Item::Nested { record, items, .. } => nested(record, items),
            Item::Repeat { body: Repeated::Record { record, items, .. }, .. } => nested(record, items),
            Item::Repeat { body: Repeated::Group(items), .. } => nested("", items),
        }
    }
}
