//! The field used to sort records.

use crate::failure::{Result, usage};
use crate::fields;
use metatf::dynamic::{OwnedRecord, Schema};
use metatf_parser::schema::{Format, LeafId, Occurrence, Record};
use metatf_tools::roles::{self, Place, Role};

/// The position of the sort field in each record type.
pub(crate) struct Keys {
    /// For each record type, the position among the values, and a mask that makes signed numbers comparable as unsigned
    /// numbers.
    places: Vec<Option<(Place, u64)>>,
}

impl Keys {
    /// Finds the field in the records of a schema.
    pub(crate) fn new(schema: &Schema, by: Option<&str>, name: &str) -> Result<Self> {
        let mut places = Vec::new();
        for record in &schema.dtd.records {
            let found = match by {
                Some(by) => named(record, by),
                None => roles::first(record, Role::Time),
            };
            let Some(id) = found.filter(|_| record.tag.is_some()) else {
                places.push(None);
                continue;
            };
            let leaf = record.leaf(id).filter(|leaf| leaf.is_numeric() && !leaf.format.is_float());
            let Some((leaf, place)) = leaf.zip(Place::of(record, id)) else {
                let field = by.unwrap_or("the field of role \"time\"");
                let is = match record.occurrence(id) {
                    Occurrence::Once => "is not an integer",
                    Occurrence::Optional => "is optional",
                    Occurrence::Repeated => "is repeated",
                };
                return usage(format!(
                    "--by: {field} of record {} {is}, but the field must be an integer that occurs once",
                    record.name
                ));
            };
            let sign = if leaf.format == Format::Signed { 1 << 63 } else { 0 };
            places.push(Some((place, sign)));
        }
        match (by, places.iter().any(Option::is_some)) {
            (_, true) => Ok(Self { places }),
            (Some(by), false) if schema.dtd.records.iter().any(|record| named(record, by).is_some()) => {
                usage(format!("--by: {name} has `{by}` only in elements of a stream section, which cannot be sorted"))
            }
            (Some(by), false) => usage(format!("--by: {name} has no field `{by}`; `metatfc show` lists its fields")),
            (None, false) => {
                usage(format!("{name}: no field of its DTD has the role \"time\": choose a field with --by FIELD"))
            }
        }
    }

    /// Returns the key of a record, or `None` if the record lacks the field.
    pub(crate) fn of(&self, record: u16, owned: &OwnedRecord) -> Option<u64> {
        let (place, sign) = self.places.get(usize::from(record))?.as_ref()?;
        Some(place.number(owned)? ^ sign)
    }
}

/// Finds a field by its name or path.
fn named(record: &Record, by: &str) -> Option<LeafId> {
    let names = fields::names(record);
    let found = names.iter().find(|(_, path)| path == by);
    found.or_else(|| names.iter().find(|(_, path)| path.rsplit('.').next() == Some(by))).map(|(id, _)| *id)
}
