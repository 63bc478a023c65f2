//! The attributes of a leaf: its type or size, and how its value follows from the stored bytes.

use metatf_parser::schema::{Dtd, Format, Interpretation, Leaf, Names, Record, Width};

use super::expression::number_text;
use super::yaml::{Map, Yaml};
use crate::docs;

/// The encoding of a number.
#[derive(Clone, Debug)]
pub(super) struct Number {
    /// The stored bytes: 0 to 8. If 0, the value is always `base`.
    pub(super) width: u8,
    /// Whether the stored number is sign-extended.
    pub(super) signed: bool,
    /// The number to add to the stored number.
    base: u64,
    /// Whether the number is an IEEE 754 double.
    is_float: bool,
}

impl Number {
    /// Returns the encoding of a leaf, or the reason why it depends on more than the leaf's bytes.
    pub(super) fn of(dtd: &Dtd, record: &Record, leaf: &Leaf) -> Result<Number, String> {
        let width = match leaf.width {
            Width::Number(width) if leaf.interpretation.stores() => width,
            _ => 0,
        };
        let fail = |reason: &str| {
            let text = dtd.interpretation_text(record, leaf);
            Err(format!(
                "the interpretation `{text}` depends on {reason}, but Kaitai Struct reads each field by itself"
            ))
        };
        let (signed, base) = match leaf.interpretation {
            Interpretation::None => (false, 0),
            Interpretation::BaseOffset(base) => (true, base),
            Interpretation::Default(_) if leaf.header.is_some() => return fail("the header of the file"),
            Interpretation::Default(value) => (false, value),
            Interpretation::BaseOffsetOf(..) | Interpretation::Delta(_) | Interpretation::Stride { .. } => {
                return fail("earlier values");
            }
            Interpretation::SectionOffset(_) | Interpretation::SectionStride { .. } => return fail("another section"),
            Interpretation::Predicted(_) => return fail("a model of earlier values"),
        };
        let float_width = matches!((leaf.format, width), (Format::F32, 4) | (Format::F64, 8));
        let is_float = float_width && !signed && leaf.constant.is_none();
        Ok(Number { width, signed, base, is_float })
    }

    /// Returns the type of the stored number, and whether it is one of Kaitai Struct's own types.
    pub(super) fn stored(&self) -> (String, bool) {
        let letter = match (self.is_float, self.signed) {
            (true, _) => 'f',
            (false, true) => 's',
            (false, false) => 'u',
        };
        (format!("{letter}{}", self.width), matches!(self.width, 1 | 2 | 4 | 8))
    }

    /// Returns the expression of the value, or `None` if the attribute named `raw` is already the value.
    pub(super) fn value(&self, raw: &str) -> Option<String> {
        let raw = match (self.width, self.stored()) {
            (0, _) => return Some(number_text(self.base)),
            (_, (_, true)) => raw.to_owned(),
            (_, (_, false)) => format!("{raw}.value"),
        };
        match self.base.cast_signed() {
            0 => raw.ends_with(".value").then_some(raw),
            base if base < 0 => Some(format!("{raw} - {}", number_text(base.unsigned_abs()))),
            _ => Some(format!("{raw} + {}", number_text(self.base))),
        }
    }

    /// Returns the check of a constant.
    pub(super) fn valid(&self, constant: u64) -> Map {
        let stored = constant.wrapping_sub(self.base);
        let text = match stored.cast_signed() {
            stored if self.signed && stored < 0 => format!("-{}", number_text(stored.unsigned_abs())),
            _ => number_text(stored),
        };
        match self.stored() {
            (_, true) => Map::new().scalar("valid", text),
            _ => Map::new().entry("valid", Yaml::Map(Map::new().scalar("expr", format!("_.value == {text}")))),
        }
    }

    /// Returns the key of a value in an enumeration, or `None` if it does not fit.
    pub(super) fn key(&self, value: u64) -> Option<String> {
        if self.is_float {
            return None;
        }
        match value.cast_signed() {
            signed if self.signed => Some(signed.to_string()),
            0.. => Some(number_text(value)),
            _ => None,
        }
    }
}

/// Returns the type of a stored number whose width Kaitai Struct reads only as bits. Its field `value` is the number.
pub(super) fn odd_number(width: u8, signed: bool, is_little: &str) -> Map {
    let bits = 8 * u32::from(width);
    let part = |id: &str, condition: String| {
        Map::new().scalar("id", id).scalar("type", format!("b{bits}{id}")).scalar("if", condition)
    };
    let instance = |value: String| Yaml::Map(Map::new().scalar("value", value));
    let number = format!("{is_little} ? le : be");
    let (kind, instances) = if signed {
        let value = format!("stored - (stored >= {:#x} ? {:#x} : 0)", 1_u64 << (bits - 1), 1_u64 << bits);
        ("A signed", Map::new().entry("stored", instance(number)).entry("value", instance(value)))
    } else {
        ("An unsigned", Map::new().entry("value", instance(number)))
    };
    Map::new()
        .entry("doc", Yaml::Lines(vec![format!("{kind} number of {width} bytes.")]))
        .entry("seq", Yaml::List(vec![part("le", is_little.to_owned()), part("be", format!("not ({is_little})"))]))
        .entry("instances", Yaml::Map(instances))
}

/// Returns the documentation of a field.
pub(super) fn doc(leaf: &Leaf, has_enum: bool) -> Map {
    let mut lines = docs::lines(leaf.doc.as_deref());
    lines.extend(leaf.unit.as_ref().map(|unit| format!("Unit: {}.", unit.trim())));
    use Format::{Bytes, CString, Dec, F32, F64, Hex, Signed, Unset, Utf8};
    if !matches!(leaf.format, Unset | Dec | Hex | Signed | F32 | F64 | Utf8 | CString | Bytes) {
        lines.push(leaf.format.doc().to_owned());
    }
    if let (Names::Values(list), false) = (&leaf.names, has_enum) {
        let values: Vec<String> = list.iter().map(|(value, name)| format!("{value} {name}")).collect();
        lines.push(format!("Values: {}.", values.join(", ")));
    }
    lines.retain(|line| !line.is_empty());
    Map::new().entry("doc", Yaml::Lines(lines))
}
