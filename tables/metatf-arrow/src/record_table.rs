//! Records of one type as a table.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use metatf::dynamic::Schema;
use metatf::format::METADATA;
use metatf::reader::At;
use metatf_parser::schema::{Interpretation, Item, Leaf, Record};

use crate::layout::{Layout, Shape};
use crate::source::Source;

/// Name of the column with the record number, which is the number of preceding data records in the trace.
pub const NUMBER: &str = "@number";
/// Name of the column with the section name, in tables of records that may occur in several sections.
pub const SECTION: &str = "@section";
/// Name of the column with the offset of an element in its stream section.
pub const OFFSET: &str = "@offset";

/// The table of a record type.
#[derive(Clone, Debug)]
pub(crate) struct RecordTable {
    pub(crate) source: Arc<Source>,
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// Index of the record type.
    pub(crate) record: u16,
    /// Indices of the sections that may contain the record.
    pub(crate) sections: Vec<usize>,
    /// Whether the record is the element of a stream section.
    pub(crate) is_element: bool,
    /// The columns that precede the columns of the layout.
    pub(crate) lead: Vec<Lead>,
    pub(crate) layout: Layout,
}

impl RecordTable {
    /// Returns whether these columns can be filled from the columns of the dynamic reader, because they contain one
    /// value per record and no references.
    pub(crate) fn is_by_columns(&self, wanted: &[usize]) -> bool {
        let refers = |&column: &usize| {
            let shape = column.checked_sub(self.lead.len()).and_then(|column| self.layout.shapes.get(column));
            shape.is_some_and(Shape::refers)
        };
        self.layout.is_flat() && self.sections.len() == 1 && !self.is_element && !wanted.iter().any(refers)
    }

    /// Returns whether a record or element is a row of this table.
    pub(crate) fn has(&self, at: At, is_element: bool) -> bool {
        at.record == self.record && is_element == self.is_element && self.sections.contains(&at.section)
    }
}

/// A column that is not a field of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    Number,
    Offset,
    Section,
}

/// Returns the tables of a trace.
pub(crate) fn record_tables(source: &Arc<Source>, stored: bool) -> Vec<RecordTable> {
    let schema = &source.schema;
    let tables = names(schema).into_iter().filter_map(|TableName { name, record: index, sections }| {
        let record = schema.record(index)?;
        let section = sections.first().and_then(|&section| schema.section(section));
        let is_element = section.is_some_and(|section| section.stream.is_some());
        let layout = Layout::new(schema, record, stored);
        let mut lead = vec![if is_element { Lead::Offset } else { Lead::Number }];
        if sections.len() > 1 {
            lead.push(Lead::Section);
        }
        let fields = lead.iter().map(|lead| lead.field()).chain(layout.fields.iter().cloned()).collect::<Vec<_>>();
        let doc = record.doc.iter().map(|doc| ("doc".to_owned(), doc.clone())).collect();
        let schema = Arc::new(ArrowSchema::new_with_metadata(fields, doc));
        let source = Arc::clone(source);
        Some(RecordTable { source, name, schema, record: index, sections, is_element, lead, layout })
    });
    tables.collect()
}

/// The name of a table, and the records that it contains.
#[derive(Clone, Debug)]
pub(crate) struct TableName {
    pub(crate) name: String,
    /// Index of the record type.
    pub(crate) record: u16,
    /// Indices of the sections that may contain the record.
    pub(crate) sections: Vec<usize>,
}

/// Returns the names of the tables of a format.
pub(crate) fn names(schema: &Schema) -> Vec<TableName> {
    let kinds = kinds(schema);
    let record_name = |record: u16| schema.record(record).map_or("", |record| record.name.as_str());
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (record, _) in &kinds {
        *counts.entry(record_name(*record)).or_default() += 1;
    }
    let mut taken = HashMap::new();
    let names = kinds.iter().map(|(record, sections)| {
        let section = sections.first().and_then(|&section| schema.section(section)?.name.as_deref());
        let name = record_name(*record);
        let is_shared = counts.get(name).is_some_and(|&count| count > 1);
        let name = section.filter(|_| is_shared).map_or(name.to_owned(), |section| format!("{section}_{name}"));
        // If names are still not unique, append a number to the later names.
        let count = taken.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
        let name = if *count > 1 { format!("{name}_{count}") } else { name };
        TableName { name, record: *record, sections: sections.clone() }
    });
    names.collect()
}

/// Returns the records that have a table, each with the sections that may contain it.
fn kinds(schema: &Schema) -> Vec<(u16, Vec<usize>)> {
    let leaves = || schema.dtd.records.iter().flat_map(|record| &record.leaves);
    let is_target = |section| leaves().any(|leaf| leaf.interpretation == Interpretation::SectionOffset(section));
    // A section of numbers may hold the values of a field (`sectionStride`), which is a column of another table.
    let is_number = |record: &Record| matches!(record.items.as_slice(), [Item::Leaf(id)] if record.leaf(*id).is_some_and(Leaf::is_numeric));
    let mut kinds: Vec<(u16, Vec<usize>)> = Vec::new();
    let mut elements = Vec::new();
    for (index, section) in schema.dtd.sections.iter().enumerate() {
        if schema.dtd.is_of_arrays(section.number) {
            continue;
        }
        if let Some(element) = section.stream {
            if is_target(section.number) || schema.dtd.record(element).is_some_and(|record| !is_number(record)) {
                elements.extend(u16::try_from(element.0).ok().map(|element| (element, vec![index])));
            }
            continue;
        }
        for record in section.records.iter().filter_map(|record| u16::try_from(record.0).ok()).filter(|&r| r > METADATA)
        {
            match kinds.iter_mut().find(|(known, _)| *known == record) {
                Some((_, sections)) => sections.push(index),
                None => kinds.push((record, vec![index])),
            }
        }
    }
    kinds.extend(elements);
    kinds
}

impl Lead {
    fn field(self) -> Field {
        let (name, data_type, doc) = match self {
            Self::Number => (NUMBER, DataType::Int64, "Number of preceding data records in the trace"),
            Self::Offset => (OFFSET, DataType::Int64, "Offset in its stream section"),
            Self::Section => (SECTION, DataType::Utf8, "Section that contains it"),
        };
        Field::new(name, data_type, false).with_metadata([("doc".to_owned(), doc.to_owned())].into())
    }
}
