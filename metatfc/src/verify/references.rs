//! Checks that each offset that a trace refers to is the offset of an element.
//!
//! Each thread reads groups, collects their references, and checks references to elements of the same group. References
//! to shared tables are checked afterwards in trace order, because a table contains only the elements that precede the
//! group.

use metatf::Change;
use metatf::container::{Error, ErrorKind, Place};
use metatf::dynamic::{OwnedRecord, Schema, Trace};
use metatf::format::Interpretation::SectionOffset;
use metatf::internals::{Referring, Starts, Target};
use metatf::reader::{At, Event};
use metatf_parser::schema::Interpretation;
use std::collections::{BTreeMap, HashMap};

/// Number of recent references to remember when reading a group, so that repeated references can be skipped.
const RECENT: usize = 1 << 12;

/// The results of one thread for a part of a group.
#[derive(Default)]
pub(super) struct OfGroup {
    /// Elements of shared tables, in order.
    elements: Vec<Target>,
    /// References to elements outside the group, each with the error to report if the element is missing.
    references: Vec<(Target, Error)>,
}

/// The references of the group being read.
pub(super) struct References {
    referring: Referring,
    /// Whether leaves refer to a section, by section index. Elements of other sections are ignored.
    targets: Vec<bool>,
    /// Recent references, by hash.
    recent: Vec<Option<Target>>,
    open: HashMap<Target, Error>,
    /// The elements of the group itself, by section.
    starts: BTreeMap<usize, Starts>,
    /// The references of the record being read.
    found: Vec<(u8, Target)>,
    owned: OwnedRecord,
}

/// The elements of shared tables seen so far, by section.
#[derive(Default)]
pub(super) struct Tables(BTreeMap<usize, Starts>);

impl References {
    /// Returns `None` if records cannot refer to anything.
    pub(super) fn new(schema: &Schema) -> Option<Self> {
        if schema.dtd.sections.iter().all(|section| section.stream.is_none()) {
            return None;
        }
        let mut targets = vec![false; schema.dtd.sections.len()];
        for leaf in schema.dtd.records.iter().flat_map(|record| &record.leaves) {
            if let Interpretation::SectionOffset(number) = leaf.interpretation {
                refer(schema, &mut targets, number);
            }
        }
        Some(Self {
            referring: Referring::new(schema),
            targets,
            recent: vec![None; RECENT],
            open: HashMap::new(),
            starts: BTreeMap::new(),
            found: Vec::new(),
            owned: OwnedRecord::default(),
        })
    }

    /// Reads the next record, unless another event comes first. Returns whether a record was read.
    pub(super) fn record(&mut self, group: &mut Trace<'_>) -> metatf::Result<bool> {
        let Some(view) = group.reader_mut().plain_record()? else { return Ok(false) };
        let at = view.at();
        if let Some(leaves) = self.referring.known(at.section, at.record) {
            let numbers = view.numbers();
            let offset = |leaf: u8| numbers.get(usize::from(leaf)).copied();
            self.found.extend(leaves.iter().filter_map(|&(leaf, target)| Some((leaf, (target, offset(leaf)?)))));
        } else {
            self.owned.clear();
            for value in view.iter().skip(view.first_value()) {
                match value {
                    metatf::dynamic::Item::Number(number) => self.owned.push_number(number),
                    metatf::dynamic::Item::Bytes(_) => self.owned.push_bytes(&[]),
                }
            }
            let owned = std::mem::take(&mut self.owned);
            self.find(group, at, &owned);
            self.owned = owned;
        }
        self.note(group, at);
        Ok(true)
    }

    /// Processes an event that [`record`](Self::record) did not read.
    pub(super) fn event(&mut self, group: &Trace<'_>, event: Event, out: &mut OfGroup) {
        match event {
            Event::Record(at) => {
                self.find(group, at, group.record());
                self.note(group, at);
            }
            Event::Element(at, shared) => {
                let offset = group.reader().element_offset(at).filter(|_| self.targets.get(at.section) == Some(&true));
                match offset {
                    Some(offset) if shared => out.elements.push((at.section, offset)),
                    Some(offset) => self.starts.entry(at.section).or_default().add(offset),
                    None => {}
                }
                self.find(group, at, group.record());
                self.note(group, at);
            }
            Event::Metadata(_, metadata) => {
                if let Ok(Change::Interpretation(SectionOffset(number))) = metadata.change() {
                    refer(group.schema(), &mut self.targets, number);
                }
                self.referring.changed();
            }
            Event::Reset(_) | Event::Section(..) => self.referring.changed(),
            Event::Group(_) => {
                self.end_group(out);
                self.referring.changed();
            }
            Event::Comment(_) => {}
        }
    }

    /// Checks the references to elements of the group, and outputs all other references.
    pub(super) fn end_group(&mut self, out: &mut OfGroup) {
        let starts = std::mem::take(&mut self.starts);
        let is_here = |(section, offset): Target| starts.get(&section).is_some_and(|starts| starts.has(offset));
        let open = self.open.drain().filter(|(target, _)| !is_here(*target));
        out.references.extend(open);
        self.recent.fill(None);
    }

    /// Finds the references of a record.
    fn find(&mut self, group: &Trace<'_>, at: At, owned: &OwnedRecord) {
        let found = &mut self.found;
        let interpretation = |leaf| group.reader().interpretation(at, leaf);
        self.referring.each((at.section, at.record), owned, interpretation, &mut |leaf, target| {
            found.push((leaf, target));
        });
    }

    /// Adds the references found in a record.
    fn note(&mut self, group: &Trace<'_>, at: At) {
        for (leaf, target) in self.found.drain(..) {
            let hash = target.1.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52 ^ target.0 as u64;
            let recent = usize::try_from(hash).ok().and_then(|hash| self.recent.get_mut(hash % RECENT));
            if recent.as_ref().is_some_and(|recent| **recent == Some(target)) {
                continue;
            }
            recent.into_iter().for_each(|recent| *recent = Some(target));
            self.open.entry(target).or_insert_with(|| dangling(group, at, leaf, target));
        }
    }
}

impl Tables {
    /// Adds the results of one thread for the next part of the trace.
    ///
    /// # Errors
    /// Returns the first reference to a missing element.
    pub(super) fn take(&mut self, found: OfGroup) -> metatf::Result<()> {
        for (section, offset) in found.elements {
            self.0.entry(section).or_default().add(offset);
        }
        let has = |(section, offset): Target| self.0.get(&section).is_some_and(|starts| starts.has(offset));
        let dangling = found.references.iter().filter(|(target, _)| !has(*target)).map(|(_, error)| *error);
        dangling.min_by_key(|error| (error.place.offset, error.place.record_start)).map_or(Ok(()), Err)
    }
}

/// Records that leaves refer to the section with this number.
fn refer(schema: &Schema, targets: &mut [bool], number: u8) {
    let index = schema.format.section_index(number);
    index.and_then(|index| targets.get_mut(index)).into_iter().for_each(|target| *target = true);
}

/// Returns the error for the last record, whose `leaf` refers to a missing element.
fn dangling(group: &Trace<'_>, at: At, leaf: u8, (target, offset): Target) -> Error {
    let schema = group.schema();
    let number = |index| schema.section(index).map(|section| section.number);
    let mut place = group.reader().bytes_of(at).map_or_else(Place::default, |(place, _)| place);
    place.record_start = Some(place.content.unwrap_or(place.offset));
    place.section = number(at.section);
    place.tag = schema.record(at.record).and_then(|record| record.tag);
    place.leaf = Some(leaf);
    Error { kind: ErrorKind::NoOffset { section: number(target).unwrap_or(0), offset }, place }
}
