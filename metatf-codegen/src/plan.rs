//! Names all items of a DTD (sections, then records, then methods), and builds a struct for each record.

use std::collections::BTreeMap;

use heck::ToShoutySnakeCase;
use metatf_parser::schema::{Dtd, Interpretation, METADATA, Record, RecordId, Section, SectionId};

use crate::columns::columns;
use crate::docs;
use crate::model::{Filled, Implied, Listed, Model, Piece, RecordColumns, Stream, Struct, Tagged};
use crate::names::{Scope, camel, ident, snake};
use crate::options::Lookup;
use crate::shape::Shaper;
use crate::uses::Uses;

/// Types in every generated module, type parameters, and names of Rust's prelude that generated code uses.
const TYPES: &[&str] = &[
    "Record",
    "Element",
    "Trace",
    "Writer",
    "Protocol",
    "Columns",
    "Bytes",
    "NewBytes",
    "AnyHasher",
    "AnyRows",
    "AnyWriter",
    "Break",
    "AnyRow",
    "AnySink",
    "AsRef",
    "Default",
    "Err",
    "From",
    "IntoIterator",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "Result",
    "Send",
    "Some",
    "Vec",
];
/// Methods of every `Trace`, either defined directly or provided by the runtime.
const TRACE_METHODS: &[&str] = &[
    "open",
    "from_slice",
    "read_file",
    "from_read",
    "from_opened",
    "next",
    "next_owned",
    "next_event",
    "next_columns",
    "for_each",
    "try_for_each",
    "par_groups",
    "only",
    "section",
    "elements",
    "set_all",
    "records",
    "into_iter",
    "seek",
    "header",
    "format",
    "reader",
    "reader_mut",
    "user_metadata",
    "warnings",
    "loss_report",
    "explain",
    "unmatched",
    "set",
];
/// Methods of every `Writer`.
const WRITER_METHODS: &[&str] = &[
    "create",
    "new",
    "with_options",
    "write",
    "comment",
    "metadata",
    "user_metadata",
    "set",
    "flush",
    "start_group",
    "inner",
    "records_written",
    "abandon",
    "finish",
    "set_strict",
    "set_keep_order",
];

/// Methods of every `Columns`.
const COLUMNS_METHODS: &[&str] = &[
    "default",
    "len",
    "is_empty",
    "first",
    "order",
    "record",
    "records",
    "deref",
    "deref_mut",
    "clone",
    "of",
    "record_of",
];

/// Returns the model of a DTD.
pub(crate) fn plan(dtd: &Dtd, lookup: &Lookup<'_>) -> Model {
    let mut named = BTreeMap::new();
    for record in dtd.records.iter().skip(3) {
        *named.entry(camel(&record.name)).or_insert(0) += 1;
    }
    let mut planner = Planner {
        dtd,
        named,
        lookup,
        types: Scope::with(TYPES),
        variants: Scope::default(),
        trace: Scope::with(TRACE_METHODS),
        writer: Scope::with(WRITER_METHODS),
        structs: vec![None; dtd.records.len()],
        model: Model::default(),
    };
    let sections: Vec<(usize, &Section)> = dtd.sections.iter().enumerate().collect();
    let tagged = sections.iter().filter(|(_, s)| s.stream.is_none() && data_records(s).next().is_some());
    let enums: Vec<_> = tagged.map(|&(index, s)| (index, s, planner.section_names(s))).collect();
    planner.structs();
    for (index, section, (name, variant, method)) in enums {
        planner.tagged(index, section, name, variant, method);
    }
    for (index, section) in sections {
        if let Some(element) = section.stream {
            planner.stream(index, section, element);
        }
    }
    planner.next_methods();
    planner.columns();
    planner.model
}

/// Returns the records of a section that contain data.
fn data_records(section: &Section) -> impl Iterator<Item = RecordId> + '_ {
    section.records.iter().copied().filter(|&id| id > METADATA)
}

struct Planner<'s, 'd> {
    dtd: &'d Dtd,
    lookup: &'s Lookup<'s>,
    types: Scope,
    variants: Scope,
    trace: Scope,
    writer: Scope,
    /// The number of records with the same type name.
    named: BTreeMap<String, usize>,
    /// The struct of each top record.
    structs: Vec<Option<usize>>,
    model: Model,
}

impl<'d> Planner<'_, 'd> {
    /// Chooses the names of a section's enum, of its variant of `Record`, and of its method of `Trace`.
    fn section_names(&mut self, section: &Section) -> (String, String, String) {
        let name = section_name(section);
        let wanted = self.lookup.rename(&[name.to_owned()]).unwrap_or_else(|| name.to_owned());
        let (camel, snake) = (camel(&wanted), snake(&wanted));
        (
            self.types.take(&[camel.clone(), format!("{camel}Section")]),
            self.variants.take(&[camel]),
            self.trace.take(&[snake.clone(), format!("{snake}_section")]),
        )
    }

    /// Builds a struct for each tagged record and stream element. These structs are all named before any nested record.
    fn structs(&mut self) {
        let records: Vec<(usize, &'d Record)> = self.dtd.records.iter().enumerate().skip(3).collect();
        let names: Vec<String> = records.iter().map(|(_, record)| self.record_name(record)).collect();
        let mut nested = Vec::new();
        for ((id, record), top) in records.into_iter().zip(names) {
            let paths = self.paths(record);
            let mut shaper = Shaper {
                model: &mut self.model,
                types: &mut self.types,
                lookup: self.lookup,
                dtd: self.dtd,
                record,
                uses: Uses::of(record),
                top: top.clone(),
                nested: &mut nested,
            };
            let shape = shaper.top_shape(&paths);
            let section = record.section.and_then(|id| self.dtd.sections.get(usize::from(id.0)));
            let section = section.filter(|section| section.stream.is_some()).and_then(|section| section.doc.as_deref());
            let docs = docs::under(record.doc.as_deref().or(section), title(self.dtd, record));
            let attributes = self.lookup.record_attributes(&paths);
            self.model.structs.push(Struct { name: top, docs, layout: docs::layout(record), attributes, shape });
            if let Some(slot) = self.structs.get_mut(id) {
                *slot = Some(self.model.structs.len() - 1);
            }
        }
    }

    /// Returns the paths of a record in options, which are its name and its name qualified by the section.
    fn paths(&self, record: &Record) -> Vec<String> {
        let section = record.section.and_then(|id| self.dtd.sections.get(usize::from(id.0)));
        let long = section.map(|s| format!("{}.{}", section_name(s), record.name));
        std::iter::once(record.name.clone()).chain(long).collect()
    }

    /// Chooses the name of a record's struct. This is the plain name, unless another section contains a record with the
    /// same name.
    fn record_name(&mut self, record: &Record) -> String {
        if let Some(wanted) = self.lookup.rename(&self.paths(record)) {
            return self.types.take(&[wanted]);
        }
        let (own, of_section) = (camel(&record.name), format!("{}{}", self.section_of(record), camel(&record.name)));
        let long = format!("{of_section}Record");
        let candidates = if self.is_unique(record) { vec![own, of_section, long] } else { vec![of_section, long] };
        self.types.take(&candidates)
    }

    fn section_of(&self, record: &Record) -> String {
        let SectionId(id) = record.section.unwrap_or(SectionId(0));
        self.dtd.sections.get(usize::from(id)).map(|s| camel(section_name(s))).unwrap_or_default()
    }

    fn is_unique(&self, record: &Record) -> bool {
        self.named.get(&camel(&record.name)) == Some(&1)
    }

    fn tagged(&mut self, index: usize, section: &'d Section, name: String, variant: String, method: String) {
        let mut variants = Scope::default();
        let mut records = Vec::new();
        for id in data_records(section) {
            let found = self.dtd.record(id).zip(self.structs.get(id.0 as usize).copied().flatten());
            let Some((record, item)) = found else { continue };
            let paths = self.paths(record);
            let wanted = self.lookup.rename(&paths).unwrap_or_else(|| record.name.clone());
            let variant = variants.take(&[ident(&camel(&wanted)).to_string()]);
            let record_type = self.types.take(&[format!("{variant}In{name}")]);
            let method = self.writer_method(section, record, &wanted);
            let implied = implied(record, self.model.structs.get(item));
            records.push(Listed {
                record: id.0 as usize,
                item,
                variant,
                method,
                record_type,
                implied,
                next: String::new(),
            });
        }
        let bytes = records.iter().any(|r| self.model.item_has_bytes(r.item));
        let docs = docs::lines(section.doc.as_deref());
        let title = section_name(section).to_owned();
        let leaves = self.types.take(&[format!("{}_LEAVES", name.to_shouty_snake_case())]);
        self.model.tagged.push(Tagged { index, name, docs, title, leaves, variant, method, records, bytes });
    }

    /// Chooses the name of a record's method of `Writer`. A global record keeps its name in the global section; in
    /// other sections, the name is prefixed by the section's name.
    fn writer_method(&mut self, section: &Section, record: &Record, wanted: &str) -> String {
        let at_home = self.dtd.sections.get(usize::from(record.section.map_or(0, |s| s.0)));
        let at_home = at_home.is_some_and(|home| home.number == section.number);
        let (own, long) = (snake(wanted), snake(&format!("{}_{wanted}", section_name(section))));
        let last = format!("{long}_record");
        let candidates = if at_home && self.is_unique(record) { vec![own, long, last] } else { vec![long, last] };
        self.writer.take(&candidates)
    }

    fn stream(&mut self, index: usize, section: &Section, element: RecordId) {
        let Some(item) = self.structs.get(element.0 as usize).copied().flatten() else { return };
        let name = section_name(section);
        let wanted = self.lookup.rename(&[name.to_owned()]).unwrap_or_else(|| name.to_owned());
        let method = snake(&wanted);
        let candidates = [method.clone(), format!("{method}_section"), format!("{method}_stream_section")];
        // Use the first name that is unused in both `Trace` and `Writer`.
        let method = self.trace.take(&[self.writer.take(&candidates), candidates[1].clone(), candidates[2].clone()]);
        let filled = filled(self.dtd, section.number);
        let docs = docs::lines(section.doc.as_deref());
        let variant = self.variants_of_elements(&camel(&wanted));
        let title = name.to_owned();
        let (number, offset) = (section.number, Interpretation::SectionOffset(section.number));
        let is_table = self.dtd.records.iter().flat_map(|r| &r.leaves).any(|leaf| leaf.interpretation == offset);
        self.model.streams.push(Stream { index, number, title, item, variant, method, filled, is_table, docs });
    }

    /// Chooses the names of the methods that return the next values of fields that store no bytes. These names are chosen
    /// after those of all other methods, so that existing names do not depend on them.
    fn next_methods(&mut self) {
        let records = self.model.tagged.iter_mut().flat_map(|section| &mut section.records);
        for listed in records.filter(|listed| !listed.implied.is_empty()) {
            let name = format!("next_{}", listed.method.trim_start_matches("r#"));
            listed.next = self.writer.take(&[name.clone(), format!("{name}_record")]);
        }
    }

    /// Chooses the names of the columns of the records in sections. These names are chosen last, so that existing names
    /// do not depend on columns.
    fn columns(&mut self) {
        let mut methods = Scope::with(COLUMNS_METHODS);
        let mut places: BTreeMap<usize, Vec<(String, String)>> = BTreeMap::new();
        for section in &self.model.tagged {
            for listed in &section.records {
                let method = methods.take(&[listed.method.clone(), format!("{}_records", listed.method)]);
                places.entry(listed.record).or_default().push((method, listed.record_type.clone()));
            }
        }
        for (index, places) in places {
            let item = self.structs.get(index).copied().flatten().and_then(|item| self.model.structs.get(item));
            let Some((record, item)) = self.dtd.records.get(index).zip(item) else { continue };
            let (of, paths) = (item.name.clone(), self.paths(record));
            let name = self.types.take(&[format!("{of}Columns"), format!("{of}RecordColumns")]);
            let columns = columns(record, &paths, self.lookup);
            self.model.columns.push(RecordColumns { name, of, record: index, places, columns });
        }
    }

    fn variants_of_elements(&mut self, name: &str) -> String {
        let taken: Vec<&str> = self.model.streams.iter().map(|s| s.variant.as_str()).collect();
        Scope::with(&taken).take(&[ident(name).to_string()])
    }
}

/// Returns the source of the elements of the stream section with this number.
fn filled(dtd: &Dtd, section: u8) -> Filled {
    if dtd.models.iter().any(|model| model.section == section) {
        return Filled::Models;
    }
    let mut leaves = dtd.records.iter().flat_map(|record| &record.leaves);
    if leaves.any(|leaf| leaf.interpretation.stream() == Some(section)) { Filled::Strides } else { Filled::Users }
}

/// Returns the fields of a record that store no bytes although their values are not always 0.
fn implied(record: &Record, fields: Option<&Struct>) -> Vec<Implied> {
    let pieces = fields.into_iter().flat_map(|fields| &fields.shape.pieces);
    let implied = |piece: &Piece| {
        let Piece::One { leaf, field, kind } = piece else { return None };
        let value = match record.leaves.get(usize::from(*leaf))?.interpretation {
            Interpretation::Stride { .. } => None,
            Interpretation::Default(value) if value != 0 => Some(value),
            _ => return None,
        };
        Some(Implied { field: field.clone(), leaf: *leaf, kind: *kind, value })
    };
    pieces.filter_map(implied).collect()
}

fn section_name(section: &Section) -> &str {
    section.name.as_deref().unwrap_or("global")
}

/// Describes a record without a doc comment.
fn title(dtd: &Dtd, record: &Record) -> String {
    let section = record.section.and_then(|id| dtd.sections.get(usize::from(id.0))).and_then(|s| s.name.as_deref());
    match (record.tag, section) {
        _ if record.catch_all => format!("Record `{}`, which matches all tags without their own record.", record.name),
        (Some(tag), _) => format!("Record `{}`, tag {tag}.", record.name),
        (None, Some(section)) => format!("Element `{}` of section `{section}`.", record.name),
        (None, None) => format!("Element `{}`.", record.name),
    }
}
