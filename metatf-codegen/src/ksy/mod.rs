//! Descriptions of raw files (spec 5.4) in the language of Kaitai Struct, from which its compiler generates parsers in
//! other languages.
//!
//! Each section, record, nested record and repeated group becomes a type. All types are in one list, because the
//! compiler resolves a name in the innermost type first. A description has no state: each value follows from the bytes
//! of its field, so `delta`, `stride`, references to other sections and predictors are errors.

mod expression;
mod leaf;
mod names;
mod sections;
mod start;
mod types;
mod yaml;

use metatf_parser::Dtd;
use metatf_parser::schema::{RawFile, Record, SectionId};

use crate::docs;
use crate::names::Scope;
use crate::options::{OptionError, Options};
use names::{Of, original, take};
use start::Starts;
use types::Types;
use yaml::{Map, Yaml};

/// The field of a file's content and its type.
const CONTENT: &str = "content";

/// Generates a Kaitai Struct description of the raw files that a DTD describes. The only option used is
/// [`Options::source`].
///
/// # Errors
/// Returns an error if the DTD describes no raw files, or if Kaitai Struct cannot express some of its fields. The error
/// names each of these fields and the reason.
pub fn generate_ksy(dtd: &Dtd, options: &Options) -> Result<String, OptionError> {
    let Some(raw) = dtd.raw_file() else {
        let message = "the DTD does not describe files without a header: no field has the role `magic`, from which \
                       Kaitai Struct could derive the byte order";
        return Err(OptionError(message.to_owned()));
    };
    let records: Vec<&Record> = raw.starts.iter().filter_map(|start| dtd.record(start.record)).collect();
    let starts = Starts::new(&records, &raw, &mut Scope::with(&[CONTENT])).map_err(OptionError)?;
    let title = options.source.strip_suffix(".dtd").unwrap_or(&options.source);
    let id = take(&mut Scope::default(), &[title], Of::Type);
    let mut types = Types::new(dtd, &[CONTENT, &id], starts.is_little());
    let seq = root(&mut types, &raw, &starts);
    if !types.errors.is_empty() {
        return Err(OptionError(types.errors.join("\n")));
    }
    let meta = Map::new().scalar("id", id).entry("title", Yaml::Text(title.to_owned())).scalar("ks-version", "0.11");
    let all = |list: Vec<(String, Map)>| {
        Yaml::Map(list.into_iter().fold(Map::new(), |map, (name, body)| map.entry(name, Yaml::Map(body))))
    };
    // The type that sets the byte order cannot contain the instances from which the byte order follows.
    let content = Map::new()
        .entry("meta", Yaml::Map(Map::new().entry("endian", Yaml::Map(starts.endian()))))
        .entry("seq", Yaml::List(seq))
        .entry("types", all(types.types))
        .entry("enums", all(types.enums));
    let description = Map::new()
        .entry("meta", Yaml::Map(meta))
        .entry("doc", Yaml::Lines(docs::lines(dtd.doc.as_deref())))
        .entry("seq", Yaml::List(vec![Map::new().scalar("id", CONTENT).scalar("type", CONTENT)]))
        .entry("instances", Yaml::Map(starts.instances))
        .entry("types", Yaml::Map(Map::new().entry(CONTENT, Yaml::Map(content))));
    let source = docs::plain(&options.source);
    Ok(format!("# Generated from {source} by metatfc gen --lang ksy: edit the DTD instead.\n{}", description.render(0)))
}

/// Adds the types of all sections, and returns the attributes of a file: its headers, its records and the rest.
fn root(types: &mut Types<'_>, raw: &RawFile, starts: &Starts) -> Vec<Map> {
    let mut ids = Scope::default();
    let (mut headers, mut records, mut trailer) = (Vec::new(), Vec::new(), Vec::new());
    let mut sizes: Vec<(Option<String>, String)> = Vec::new();
    let dtd = types.dtd;
    for (id, section) in (0..=u16::MAX).map(SectionId).zip(&dtd.sections).skip(1) {
        let is_header = section.stream.is_some() && id != raw.records;
        let start = (0..).zip(&raw.starts).find(|(_, start)| is_header && start.section == id);
        let paths = types.section(section, start.is_some());
        let (Some(name), Some(kind)) = (&section.name, types.sections.get(&section.number)) else { continue };
        let list = match start {
            Some(_) => &mut headers,
            None if id == raw.records => &mut records,
            None if Some(id) == raw.trailer => &mut trailer,
            // The records of a byte array.
            None => continue,
        };
        let field = take(&mut ids, &[name], Of::Field);
        let attribute = Map::new().scalar("id", &field).and(original(&field, name)).scalar("type", kind);
        let condition = start.and_then(|(number, _)| starts.condition(number));
        if let Some(path) = start.and_then(|(_, start)| paths.get(&start.records_size?)) {
            sizes.push((condition.clone(), format!("{field}.{path}")));
        }
        list.push(condition.into_iter().fold(attribute, |attribute, condition| attribute.scalar("if", condition)));
    }
    if !sizes.is_empty() {
        let rest = "_io.size - _io.pos".to_owned();
        let size = sizes.into_iter().rev().fold(rest, |rest, (condition, size)| match condition {
            Some(condition) => format!("({condition}) ? {size} : {rest}"),
            None => size,
        });
        records = records.into_iter().map(|records| records.scalar("size", &size)).collect();
    }
    [headers, records, trailer].concat()
}
