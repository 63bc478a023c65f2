//! Explains references to missing elements in JSON lines.

use crate::references::leaf_name;
use metatf::dynamic::Schema;
use metatf::internals::Dangling;
use metatf_parser::schema::LeafId;

/// Returns a message about a dangling reference, without its line.
pub(super) fn explain(schema: &Schema, dangling: &Dangling) -> String {
    let Dangling { record, leaf, target: (target, offset), .. } = *dangling;
    let record = schema.record(record);
    let field = record.map(|record| leaf_name(record, LeafId(leaf))).unwrap_or_default();
    let record = record.map_or("", |record| &record.name);
    let section = schema.section(target).and_then(|section| section.name.as_deref()).unwrap_or_default();
    let element = schema.section(target).and_then(|s| schema.dtd.record(s.stream?)).map_or("", |r| &r.name);
    format!(
        "record `{record}`: `{field}` is {offset}, but no element of section `{section}` starts at that offset; \
         offsets count bytes from 0, and elements are lines with `\"@section\":\"{section}\",\"@record\":\"{element}\"`"
    )
}
