//! Checks that each offset that the lines refer to is the offset of an element.
//!
//! A reference may precede the line of its element, so references are checked at the end of their group.

use crate::references::{Referring, Starts, Target, leaf_name};
use metatf::container::Sink;
use metatf::dynamic::{Line, OwnedRecord, Schema, Writer};
use metatf_parser::schema::LeafId;
use std::collections::{BTreeMap, HashMap};

/// The references of the current group.
pub(super) struct References {
    referring: Referring,
    /// References whose element has not been found yet.
    open: HashMap<Target, Reference>,
    /// The elements of shared tables, by section.
    tables: BTreeMap<usize, Starts>,
    /// The elements of the group, by section.
    of_group: BTreeMap<usize, Starts>,
    group: u32,
}

/// A reference to an element.
#[derive(Clone, Copy)]
struct Reference {
    line: u64,
    record: u16,
    leaf: LeafId,
}

/// A reference to a missing element.
pub(super) struct Dangling {
    /// The input line that contains the reference.
    pub(super) line: u64,
    message: String,
}

impl References {
    /// Returns `None` if records cannot refer to anything.
    pub(super) fn new<S: Sink>(schema: &Schema, writer: &mut Writer<S>) -> Option<Self> {
        if schema.dtd.sections.iter().all(|section| section.stream.is_none()) {
            return None;
        }
        writer.note_elements();
        Some(Self {
            referring: Referring::new(schema),
            open: HashMap::new(),
            tables: BTreeMap::new(),
            of_group: BTreeMap::new(),
            group: 0,
        })
    }

    /// Adds the references and elements of a written line.
    pub(super) fn take<S: Sink>(
        &mut self,
        number: u64,
        (line, owned): (&Line, &OwnedRecord),
        schema: &Schema,
        writer: &mut Writer<S>,
    ) -> Result<(), Dangling> {
        self.settle(schema, writer)?;
        let Some(at) = (match *line {
            Line::Record(section, record) => Some((section, record)),
            Line::Element(section, _) => element_record(schema, section).map(|record| (section, record)),
            _ => {
                self.referring.changed();
                None
            }
        }) else {
            return Ok(());
        };
        let Self { referring, open, tables, of_group, .. } = self;
        let writer = writer.inner();
        let interpretation = |leaf| writer.interpretation(at.0, at.1, leaf);
        referring.each(at, owned, interpretation, &mut |leaf, target| {
            let has =
                |starts: &BTreeMap<usize, Starts>| starts.get(&target.0).is_some_and(|starts| starts.has(target.1));
            if !has(tables) && !has(of_group) {
                open.entry(target).or_insert(Reference { line: number, record: at.1, leaf });
            }
        });
        Ok(())
    }

    /// Adds the written elements and checks the references of the previous group if it has ended.
    fn settle<S: Sink>(&mut self, schema: &Schema, writer: &mut Writer<S>) -> Result<(), Dangling> {
        let mut of_group = Vec::new();
        for element in writer.take_elements() {
            match element.shared {
                true => self.tables.entry(element.section).or_default().add(element.offset),
                false => of_group.push(element),
            }
        }
        let group = writer.inner().group();
        if group != self.group {
            self.group = group;
            self.end_group(schema)?;
        }
        for element in of_group {
            self.of_group.entry(element.section).or_default().add(element.offset);
        }
        Ok(())
    }

    /// Checks the references of the last group.
    pub(super) fn finish<S: Sink>(&mut self, schema: &Schema, writer: &mut Writer<S>) -> Result<(), Dangling> {
        self.settle(schema, writer)?;
        self.end_group(schema)
    }

    fn end_group(&mut self, schema: &Schema) -> Result<(), Dangling> {
        let of_group = std::mem::take(&mut self.of_group);
        let all = [&self.tables, &of_group];
        let has = |(section, offset): Target| {
            all.iter().any(|starts| starts.get(&section).is_some_and(|starts| starts.has(offset)))
        };
        let dangling = self.open.drain().filter(|(target, _)| !has(*target));
        match dangling.min_by_key(|(_, reference)| (reference.line, reference.leaf.0)) {
            Some((target, reference)) => Err(Dangling::new(schema, target, reference)),
            None => Ok(()),
        }
    }
}

impl Dangling {
    fn new(schema: &Schema, (target, offset): Target, Reference { line, record, leaf }: Reference) -> Self {
        let record = schema.record(record);
        let field = record.map(|record| leaf_name(record, leaf)).unwrap_or_default();
        let record = record.map_or("", |record| &record.name);
        let section = schema.section(target).and_then(|section| section.name.as_deref()).unwrap_or_default();
        let element = schema.section(target).and_then(|s| schema.dtd.record(s.stream?)).map_or("", |r| &r.name);
        let message = format!(
            "record `{record}`: `{field}` is {offset}, but no element of section `{section}` starts at that offset; \
             offsets count bytes from 0, and elements are lines with `\"@section\":\"{section}\",\"@record\":\"{element}\"`"
        );
        Self { line, message }
    }
}

impl std::fmt::Display for Dangling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Returns the index of the record type of a stream section.
fn element_record(schema: &Schema, section: usize) -> Option<u16> {
    schema.format.sections.get(section)?.records.first().copied()
}
