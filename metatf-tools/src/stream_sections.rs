//! The stream sections that the leaves of a DTD use.

use metatf::dynamic::Schema;
use metatf_parser::schema::Interpretation;

/// Returns, by section number, whether leaves of the DTD obtain values from a stream section or point into it.
pub(crate) fn reached(schema: &Schema) -> [bool; 256] {
    let mut reached = [false; 256];
    for leaf in schema.dtd.records.iter().flat_map(|r| &r.leaves) {
        let number = match leaf.interpretation {
            Interpretation::SectionOffset(number) => Some(number),
            interpretation => taken_from(schema, interpretation),
        };
        if let Some(number) = number {
            reached[usize::from(number)] = true;
        }
    }
    reached
}

/// Returns, by section number, whether the records that obtain values from a stream section also fill it.
pub(crate) fn filled(schema: &Schema) -> [bool; 256] {
    let mut filled = [false; 256];
    for leaf in schema.dtd.records.iter().flat_map(|r| &r.leaves) {
        if let Some(number) = taken_from(schema, leaf.interpretation) {
            filled[usize::from(number)] = true;
        }
    }
    filled
}

/// Returns the stream section that provides a leaf's values.
fn taken_from(schema: &Schema, interpretation: Interpretation) -> Option<u8> {
    match interpretation {
        Interpretation::SectionStride { section, .. } => Some(section),
        Interpretation::Predicted(model) => schema.dtd.models.get(usize::from(model.0)).map(|m| m.section),
        _ => None,
    }
}

/// Returns the index of the section that a leaf points into.
pub(crate) fn offset_into(schema: &Schema, interpretation: Interpretation) -> Option<usize> {
    match interpretation {
        Interpretation::SectionOffset(number) => schema.format.section_index(number),
        _ => None,
    }
}
