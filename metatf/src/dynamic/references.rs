//! References, which are offsets in `sectionOffset` leaves, and the elements that they refer to (spec 4).
//!
//! A reference may precede its element, so references are checked at the end of their group.

use super::{Item, Line, OwnedRecord, Schema};
use crate::format::{Format, Interpretation, LeafKind, Steps};
use crate::writer::RecordWriter;
use metatf_container::{Error, ErrorKind, Place, Sink};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

/// A referenced element, as the index of its section and its offset in the section.
pub type Target = (usize, u64);

/// The leaves of each record that contain references. Metadata records can change this set.
#[derive(Debug)]
pub struct Referring {
    format: Arc<Format>,
    /// The leaves, by section and record.
    known: Vec<Vec<Leaves>>,
    /// The current generation. Leaves found in an earlier generation are invalid.
    generation: u64,
}

/// The leaves of a record that contain references.
#[derive(Clone, Debug, Default)]
struct Leaves {
    generation: u64,
    /// The leaves, each with the index of the section that it refers to.
    leaves: Vec<(u8, usize)>,
    /// Whether the position of a leaf varies between records.
    repeats: bool,
}

/// The offsets of the elements in a section.
#[derive(Debug, Default)]
pub struct Starts {
    /// The offset of the first bit.
    from: u64,
    bits: Vec<u64>,
}

impl Referring {
    /// Creates a list of no leaves.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let format = Arc::clone(&schema.format);
        Self { known: vec![Vec::new(); format.sections.len()], format, generation: 1 }
    }

    /// Discards all leaves, because interpretations may have changed.
    pub fn changed(&mut self) {
        self.generation += 1;
    }

    /// Returns the leaves of a record that contain references, each with the index of the section that it refers to.
    /// Returns `None` if they are unknown, or if their positions vary between records.
    #[inline]
    #[must_use]
    pub fn known(&self, section: usize, record: u16) -> Option<&[(u8, usize)]> {
        let known = self.known.get(section)?.get(usize::from(record))?;
        let is_plain = known.generation == self.generation && (!known.repeats || known.leaves.is_empty());
        is_plain.then_some(&*known.leaves)
    }

    /// Calls `visit` for each reference of a record, with the leaf and the referenced element. `interpretation` returns
    /// the current interpretation of a leaf.
    pub fn each(
        &mut self,
        (section, index): (usize, u16),
        owned: &OwnedRecord,
        interpretation: impl Fn(u8) -> Option<Interpretation>,
        visit: &mut dyn FnMut(u8, Target),
    ) {
        let Some(record) = self.format.records.get(usize::from(index)) else { return };
        let Some(of_section) = self.known.get_mut(section) else { return };
        if of_section.is_empty() {
            of_section.resize_with(self.format.records.len(), Leaves::default);
        }
        let Some(known) = of_section.get_mut(usize::from(index)) else { return };
        if known.generation != self.generation {
            known.generation = self.generation;
            known.repeats = record.steps.iter().any(|step| matches!(step, crate::format::Step::Repeat { .. }));
            known.leaves.clear();
            for (id, leaf) in (0..=u8::MAX).zip(&*record.leaves) {
                let is_number = matches!(leaf.kind, LeafKind::Number { .. });
                if let (true, Some(Interpretation::SectionOffset(number))) = (is_number, interpretation(id)) {
                    known.leaves.extend(self.format.section_index(number).map(|target| (id, target)));
                }
            }
        }
        if known.leaves.is_empty() {
            return;
        }
        let mut found = |leaf: u8, offset: u64| {
            if let Some((_, target)) = known.leaves.iter().find(|(other, _)| *other == leaf) {
                visit(leaf, (*target, offset));
            }
        };
        let mut numbers = Numbers { owned, next: 0, last: [0; 256], found: &mut found };
        let Ok(()) = record.walk(record.first_value(), &mut numbers);
    }
}

/// A walk over an owned record that visits its numbers.
struct Numbers<'o> {
    owned: &'o OwnedRecord,
    next: usize,
    /// The last number of each leaf.
    last: [u64; 256],
    found: &'o mut dyn FnMut(u8, u64),
}

impl Steps for Numbers<'_> {
    type Error = Infallible;

    fn number(&mut self, leaf: u8) -> Result<(), Infallible> {
        if let Some(Item::Number(number)) = self.owned.get(self.next) {
            self.last[usize::from(leaf)] = number;
            (self.found)(leaf, number);
        }
        self.next += 1;
        Ok(())
    }

    fn bytes(&mut self, _: u8) -> Result<(), Infallible> {
        self.next += 1;
        Ok(())
    }

    fn items(&mut self, count: u8) -> Result<u64, Infallible> {
        // Every item has at least one value.
        let left = self.owned.len().saturating_sub(self.next) as u64;
        Ok(self.last[usize::from(count)].min(left))
    }
}

impl Starts {
    /// Adds an element. Elements must be added in order.
    pub fn add(&mut self, offset: u64) {
        if self.bits.is_empty() {
            self.from = offset;
        }
        let Some((word, bit)) = self.place(offset) else { return };
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        if let Some(word) = self.bits.get_mut(word) {
            *word |= bit;
        }
    }

    /// Returns whether an element begins at this offset.
    #[must_use]
    pub fn has(&self, offset: u64) -> bool {
        self.place(offset).is_some_and(|(word, bit)| self.bits.get(word).is_some_and(|word| word & bit != 0))
    }

    fn place(&self, offset: u64) -> Option<(usize, u64)> {
        let at = offset.checked_sub(self.from)?;
        Some((usize::try_from(at / 64).ok()?, 1 << (at % 64)))
    }
}

/// An element written by a [`Writer`](super::Writer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenElement {
    /// Index of the element's section.
    pub section: usize,
    /// Offset of the element in the section's content.
    pub offset: u64,
    /// Whether the element belongs to a shared table.
    pub shared: bool,
}

/// The references of the current group of a trace being written.
#[derive(Debug)]
pub struct References {
    referring: Referring,
    /// References whose element has not been found yet.
    open: HashMap<Target, Dangling>,
    /// The elements of shared tables, by section.
    tables: BTreeMap<usize, Starts>,
    /// The elements of the group, by section.
    of_group: BTreeMap<usize, Starts>,
    group: u32,
}

/// A reference to a missing element.
#[derive(Clone, Copy, Debug)]
pub struct Dangling {
    /// The number of the line or record that contains the reference.
    pub number: u64,
    /// Index of the section that contains the record.
    pub section: usize,
    /// Index of the record.
    pub record: u16,
    /// Index of the leaf.
    pub leaf: u8,
    /// The missing element.
    pub target: Target,
}

impl References {
    /// Returns `None` if records cannot refer to anything.
    #[must_use]
    pub fn new(schema: &Schema) -> Option<Self> {
        if schema.dtd.sections.iter().all(|section| section.stream.is_none()) {
            return None;
        }
        let referring = Referring::new(schema);
        let (tables, of_group) = (BTreeMap::new(), BTreeMap::new());
        Some(Self { referring, open: HashMap::new(), tables, of_group, group: 0 })
    }

    /// Adds the references and elements of a written line, which has this number.
    ///
    /// # Errors
    /// Returns the first dangling reference of the group that the line ends.
    pub fn take<S: Sink>(
        &mut self,
        number: u64,
        (line, owned): (&Line, &OwnedRecord),
        elements: impl Iterator<Item = WrittenElement>,
        writer: &RecordWriter<S>,
    ) -> Result<(), Dangling> {
        self.settle(elements, writer.group())?;
        let at = match *line {
            Line::Record(section, record) => Some((section, record)),
            Line::Element(section, _) => {
                let of = self.referring.format.sections.get(section);
                of.and_then(|of| Some((section, *of.records.first()?)))
            }
            _ => {
                self.referring.changed();
                None
            }
        };
        if let Some((section, record)) = at {
            self.add((number, section, record), owned, writer);
        }
        Ok(())
    }

    fn add<S: Sink>(
        &mut self,
        (number, section, record): (u64, usize, u16),
        owned: &OwnedRecord,
        writer: &RecordWriter<S>,
    ) {
        let Self { referring, open, tables, of_group, .. } = self;
        let interpretation = |leaf| writer.interpretation(section, record, leaf);
        referring.each((section, record), owned, interpretation, &mut |leaf, target| {
            let has =
                |starts: &BTreeMap<usize, Starts>| starts.get(&target.0).is_some_and(|starts| starts.has(target.1));
            if !has(tables) && !has(of_group) {
                open.entry(target).or_insert(Dangling { number, section, record, leaf, target });
            }
        });
    }

    /// Adds the written elements and checks the references of the previous group if it has ended.
    fn settle(&mut self, elements: impl Iterator<Item = WrittenElement>, group: u32) -> Result<(), Dangling> {
        let mut of_group = Vec::new();
        for element in elements {
            match element.shared {
                true => self.tables.entry(element.section).or_default().add(element.offset),
                false => of_group.push(element),
            }
        }
        if group != self.group {
            self.group = group;
            self.end_group()?;
        }
        for element in of_group {
            self.of_group.entry(element.section).or_default().add(element.offset);
        }
        Ok(())
    }

    /// Checks the references of the last group.
    ///
    /// # Errors
    /// Returns the first dangling reference.
    pub fn finish<S: Sink>(
        &mut self,
        elements: impl Iterator<Item = WrittenElement>,
        writer: &RecordWriter<S>,
    ) -> Result<(), Dangling> {
        self.settle(elements, writer.group())?;
        self.end_group()
    }

    fn end_group(&mut self) -> Result<(), Dangling> {
        let of_group = std::mem::take(&mut self.of_group);
        let all = [&self.tables, &of_group];
        let has = |(section, offset): Target| {
            all.iter().any(|starts| starts.get(&section).is_some_and(|starts| starts.has(offset)))
        };
        let dangling = self.open.drain().filter(|(target, _)| !has(*target)).map(|(_, dangling)| dangling);
        dangling.min_by_key(|dangling| (dangling.number, dangling.leaf)).map_or(Ok(()), Err)
    }
}

impl Dangling {
    /// Returns the error of the trace.
    #[must_use]
    pub fn error(&self, schema: &Schema) -> Error {
        let number = |index| schema.section(index).map(|section| section.number);
        let kind = ErrorKind::NoOffset { section: number(self.target.0).unwrap_or(0), offset: self.target.1 };
        let tag = schema.record(self.record).and_then(|record| record.tag);
        let place = Place { section: number(self.section), tag, leaf: Some(self.leaf), ..Place::default() };
        Error { kind, place }
    }
}
