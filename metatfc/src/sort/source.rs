//! The field that stores, for each record, the number of its input trace.

use crate::failure::{Result, usage};
use metatf::dynamic::Schema;
use metatf_parser::schema::LeafId;
use metatf_tools::roles::Place;
use std::sync::Arc;

/// Returns the schema with a field for the trace number added to each record. Nothing is added if a record already
/// contains this field.
pub(super) fn with_field(schema: &Schema, field: &str) -> Result<Schema> {
    if schema.dtd.records.iter().any(|record| record.leaves.iter().any(|leaf| leaf.name == field)) {
        return Ok(schema.clone());
    }
    let properties = format!(
        "\n// The number of the trace that the record comes from.\n{field}.width = 1;\n{field}.interpretation = none;\n\
         {field}.role = \"process\";\n"
    );
    let text = metatf_parser::add_field(schema.dtd.text.as_bytes(), field, &properties);
    let parsed = text.map(|text| metatf_parser::parse("the DTD with this field", text.as_bytes()));
    match parsed.map(|parsed| (parsed.dtd, parsed.diagnostics)) {
        Some((Some(dtd), _)) => Ok(Schema::new(dtd)),
        Some((None, errors)) => {
            let first = errors.first().map_or("it has errors", |error| error.message.as_str());
            usage(format!("--source {field}: the DTD is invalid with this field: {first}"))
        }
        None => usage(format!(
            "--source {field}: the field cannot be added to the DTD: put parentheses around the fields of each record"
        )),
    }
}

/// Returns the position of the field for the trace number in each record type.
pub(super) fn places(schema: &Schema, field: &str) -> Result<Arc<[Option<Place>]>> {
    let mut places = Vec::new();
    for record in &schema.dtd.records {
        let ids = (0..=u8::MAX).map(LeafId).zip(&record.leaves);
        let found = ids.into_iter().find(|(_, leaf)| leaf.name == field && record.tag.is_some());
        let place = match found {
            None => None,
            Some((id, leaf)) => match Place::of(record, id).filter(|_| leaf.is_numeric() && leaf.constant.is_none()) {
                Some(place) => Some(place),
                None => {
                    return usage(format!(
                        "--source: {}.{field} is not a number that occurs once in each record",
                        record.name
                    ));
                }
            },
        };
        places.push(place);
    }
    if places.iter().all(Option::is_none) {
        return usage(format!("--source {field}: no record has a numeric field of this name"));
    }
    Ok(places.into())
}
