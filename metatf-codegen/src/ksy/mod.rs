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
use metatf_parser::schema::{LeafId, RawFile, Record, SectionId};

use crate::docs;
use crate::names::Scope;
use crate::options::{OptionError, Options};
use names::{Of, original, take};
use start::Starts;
use types::{Paths, Types};
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
    let mut types = Types::new(dtd);
    types.is_little = starts.is_little();
    let seq = root(&mut types, &raw, &starts);
    if !types.errors.is_empty() {
        return Err(OptionError(types.errors.join("\n")));
    }
    let title = options.source.strip_suffix(".dtd").unwrap_or(&options.source);
    let meta = Map::new()
        .scalar("id", take(&mut Scope::default(), &[title], Of::Type))
        .entry("title", Yaml::Text(title.to_owned()))
        .scalar("ks-version", "0.11");
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
    let mut headers = Vec::new();
    let mut sizes = Vec::new();
    let dtd = types.dtd;
    let (mut records, mut trailer) = (Vec::new(), Vec::new());
    for (id, section) in (0..=u16::MAX).map(SectionId).zip(&dtd.sections).skip(1) {
        let numbers: Vec<usize> = (0..raw.starts.len()).filter(|start| raw.starts[*start].section == id).collect();
        let is_header = section.stream.is_some() && !numbers.is_empty();
        let paths = types.section(section, is_header);
        let (Some(name), Some(kind)) = (&section.name, types.sections.get(&section.number)) else { continue };
        let mut attribute = || {
            let field = take(&mut ids, &[name], Of::Field);
            (Map::new().scalar("id", &field).and(original(&field, name)).scalar("type", kind), field)
        };
        if is_header {
            let (map, field) = attribute();
            let condition = starts.condition(&numbers);
            sizes.extend(
                numbers
                    .iter()
                    .filter_map(|start| size(&paths, raw.starts[*start].records_size?, &field))
                    .map(|size| (condition.clone(), size)),
            );
            headers.push(condition.into_iter().fold(map, |map, condition| map.scalar("if", condition)));
        } else if id == raw.records {
            records.push(attribute().0);
        } else if Some(id) == raw.trailer {
            trailer.push(attribute().0);
        }
    }
    if !sizes.is_empty() {
        let rest = "_io.size - _io.pos".to_owned();
        let size = sizes.into_iter().rev().fold(rest, |rest, (condition, size)| match condition {
            Some(condition) => format!("({condition}) ? {size} : {rest}"),
            None => size,
        });
        records = records.into_iter().map(|map| map.scalar("size", &size)).collect();
    }
    [headers, records, trailer].concat()
}

/// Returns the path of a header's field from the root.
fn size(paths: &Paths, leaf: LeafId, header: &str) -> Option<String> {
    paths.get(&leaf).map(|path| format!("{header}.{path}"))
}
