//! Checks whether a leaf can be displayed with its `format`, `values` or `flags` (spec 2). These properties do not
//! affect the stored bytes.

use super::layout::RawLeaf;
use super::lookup::Lookup;
use super::model::Model;
use crate::ast::{Setting, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::schema::{Bits, Format, Interpretation, Leaf, Names, Width};
use crate::span::Span;
use crate::vocabulary::Property;

/// Checks a leaf with its width and interpretation.
pub(super) fn check(model: &Model, lookup: &Lookup, raw: &RawLeaf, leaf: &Leaf, report: &mut Reporter) {
    let place = lookup.find(Property::Format).map_or(raw.site, |f| f.setting.value_span.or(raw.site));
    signed(leaf, place, report);
    format(lookup, leaf, place, report);
    names(model, lookup, raw, leaf, report);
}

/// Warns about `signed` if the 64-bit value is never negative.
fn signed(leaf: &Leaf, place: Span, report: &mut Reporter) {
    let narrow = matches!(leaf.width, Width::Number(w) if w < 8);
    if leaf.format == Format::Signed && leaf.interpretation == Interpretation::None && narrow {
        let message = format!("`{}` is zero-extended, so it is never negative", leaf.name);
        report.add(Draft::new(Code::SignedNarrow, place, message).help(match leaf.width {
            Width::Number(bytes @ 1..) => format!(
                "write `{0}: i{1}` for a number with a sign, or remove the format of `{0}`",
                leaf.name,
                bytes * 8
            ),
            _ => "use `baseOffset 0` instead of `none` to extend the sign".to_owned(),
        }));
    }
}

/// Returns the number of bytes if a width is probably a number of bits.
pub(super) fn in_bits(setting: &Setting) -> Option<u64> {
    let Value::Expression(expression) = &setting.value else { return None };
    let bits = expression.as_int()?.natural()?;
    (bits % 8 == 0 && (16..=64).contains(&bits) && !setting.value_span.is_predefined()).then_some(bits / 8)
}

/// Warns about a format that does not apply to the field.
fn format(lookup: &Lookup, leaf: &Leaf, place: Span, report: &mut Reporter) {
    let number = |most: u8| matches!(leaf.width, Width::Unset) || matches!(leaf.width, Width::Number(w) if w <= most);
    let plain = leaf.interpretation == Interpretation::None;
    let (fits, wanted) = match leaf.format {
        Format::Unset => return,
        Format::CString if leaf.width == Width::Until(0) => (false, "a byte array that may contain a zero byte"),
        Format::Utf8 | Format::CString | Format::Bytes => (!leaf.is_numeric(), "a byte array"),
        Format::Ipv6 | Format::Uuid => {
            (matches!(leaf.width, Width::Array(16) | Width::Variable(_)), "a byte array of 16 bytes")
        }
        Format::Ipv4 | Format::Char => (number(4), "a number of up to 4 bytes"),
        Format::DateNs if too_early(leaf, 8) => (false, "a date in nanoseconds, which requires 8 bytes"),
        Format::DateUs if too_early(leaf, 7) => (false, "a date in microseconds, which requires 7 bytes"),
        Format::DateMs if too_early(leaf, 6) => (false, "a date in milliseconds, which requires 6 bytes"),
        Format::F32 => (number(4) && (!plain || !number(3) || number(0)), "a number of 4 bytes"),
        Format::F64 => (number(8) && (!plain || !number(7) || number(0)), "a number of 8 bytes"),
        _ => (leaf.is_numeric(), "a number"),
    };
    if fits {
        return;
    }
    let name = &leaf.name;
    let width = lookup.find(Property::Width).map(|found| found.setting).filter(|_| wanted.starts_with("a number"));
    if let (Some(bytes), Some(setting)) = (width.and_then(in_bits), width) {
        let message = format!(
            "`{name}` has {} bytes: a width is in bytes, but format \"{}\" is for {wanted}",
            bytes * 8,
            leaf.format.name()
        );
        return report.add(Draft::new(Code::FormatWidth, setting.value_span, message).also(place, "the format").help(
            format!(
                "for {} bits, write `{}.width = {bytes};`; for an array, remove the format",
                bytes * 8,
                setting.path_text()
            ),
        ));
    }
    let typed = width.filter(|setting| setting.path.is_empty() || !setting.value_span.is_predefined());
    if let (Some(Value::Bytes(length)), Some(setting)) = (typed.map(|setting| &setting.value), typed)
        && let Some(bytes @ 1..=8) = length.natural()
    {
        let array = format!("bytes {bytes}");
        let message = format!("format \"{}\" is for a number, and `{array}` is a byte array", leaf.format.name());
        let draft = Draft::new(Code::FormatWidth, setting.value_span, message).also(place, "the format");
        return report.add(draft.help(match leaf.format {
            Format::Hex | Format::Dec => format!("write `{name}: u{}` for a number, or remove the format", bytes * 8),
            _ => format!("write `{name}: u{}`", bytes * 8),
        }));
    }
    {
        let message = format!("format \"{}\" is for {wanted}", leaf.format.name());
        report.add(
            Draft::new(Code::FormatWidth, place, message).label(format!("`{}` is not {wanted}", leaf.name)).help(
                match leaf.format {
                    Format::DateNs | Format::DateUs | Format::DateMs => {
                        format!("write `{name}: u64`, or `{name}.format = \"date_s\";` for seconds since 1970")
                    }
                    Format::Utf8 | Format::Bytes | Format::CString if leaf.is_numeric() => {
                        let array = if leaf.format == Format::Bytes { "bytes 16" } else { "text" };
                        format!("write `{name}: {array}`, or remove the format of `{name}`")
                    }
                    Format::CString => {
                        format!("write `{name}: cstring`, without a width, an interpretation and a format")
                    }
                    format => {
                        let kind = match format {
                            Format::Ipv6 | Format::Uuid => "bytes 16",
                            Format::F64 => "f64",
                            Format::F32 => "f32",
                            Format::Signed => "i64",
                            _ => "u32",
                        };
                        format!("write `{name}: {kind}`, or remove the format of `{name}`")
                    }
                },
            ),
        );
    }
}

/// Checks whether a leaf of fewer bytes than a date requires stores whole dates. A difference may be small.
fn too_early(leaf: &Leaf, bytes: u8) -> bool {
    leaf.interpretation == Interpretation::None
        && matches!(leaf.width, Width::Number(width) if (1..bytes).contains(&width))
}

/// Checks that `values` and `flags` are set only for leaves that are integers.
fn names(model: &Model, lookup: &Lookup, raw: &RawLeaf, leaf: &Leaf, report: &mut Reporter) {
    let Some((setting, _)) = lookup.names(&model.lists) else { return };
    let why = match leaf.format {
        _ if !leaf.is_numeric() => "is a byte array and cannot have `values` or `flags`",
        Format::F32 | Format::F64 => "is a floating-point number and cannot have `values` or `flags`",
        _ if lookup.has_both_names() => "has both `values` and `flags`",
        _ => return beyond(setting.value_span.or(raw.site), leaf, report),
    };
    report.add(
        Draft::new(Code::NamedField, setting.target().or(raw.site), format!("`{}` {why}", leaf.name))
            .also(raw.site, "the field")
            .help(match lookup.find(Property::Width).map(|found| &found.setting.value) {
                Some(Value::Bytes(length)) if matches!(length.magnitude, 1..=8) => {
                    format!(
                        "write `{}: u{}`: an integer may have either `values` or `flags`",
                        leaf.name,
                        length.magnitude * 8
                    )
                }
                _ if why.starts_with("has both") => {
                    format!("an integer has either `values` or `flags`: remove `{LINE}`")
                }
                _ => format!(
                    "only an integer has names of values or bits: write `{}: u32`, or remove `{LINE}`",
                    leaf.name
                ),
            })
            .quote(setting.target().or(raw.site)),
    );
}

/// Warns about a named value or bit that a field never has, because it does not fit in the field's width.
fn beyond(place: Span, leaf: &Leaf, report: &mut Reporter) {
    let Width::Number(width @ 1..8) = leaf.width else { return };
    if leaf.interpretation != Interpretation::None {
        return;
    }
    let bits = u32::from(width) * 8;
    let (what, found) = match &leaf.names {
        Names::None => return,
        // A negative value fits if metadata gives the field a sign.
        Names::Values(list) => {
            let mut values = list.iter().map(|(value, _)| *value).filter(|value| value.cast_signed() >= 0);
            ("value", values.find(|value| value >> bits != 0))
        }
        Names::Flags(list) => {
            let mut last = list.iter().map(|(code, _)| u64::from(Bits::of(*code).last));
            ("bit", last.find(|bit| *bit >= u64::from(bits)))
        }
    };
    if let Names::Flags(list) = &leaf.names
        && masks(place, list, leaf, report)
    {
        return;
    }
    if let Some(found) = found {
        let plural = if width == 1 { "" } else { "s" };
        let message = format!("`{}` has {width} byte{plural}, too few for the {what} {found}", leaf.name);
        report.add(Draft::new(Code::NameBeyondWidth, place, message).help(match (what, bytes_for(found)) {
            ("value", Some(bytes)) => format!("write `{}: u{}`, or change the number", leaf.name, bytes * 8),
            ("bit", _) if found < 64 => format!("write `{}: u{}`, or change the bit", leaf.name, (found / 8 + 1) * 8),
            _ => format!("change the number, or write `{}: u64`", leaf.name),
        }));
    }
}

/// Returns the number of bytes that a value requires.
fn bytes_for(value: u64) -> Option<u32> {
    (1..=8).find(|bytes| *bytes == 8 || value >> (bytes * 8) == 0)
}

/// Warns about names of bits that are probably names of masks: 1, 2, 4 and so on. Returns whether there are such names.
fn masks(place: Span, list: &[(u64, String)], leaf: &Leaf, report: &mut Reporter) -> bool {
    let is_mask = |(index, (code, _)): (usize, &(u64, String))| {
        let bits = Bits::of(*code);
        bits.first == bits.last && u32::try_from(index).is_ok_and(|index| u64::from(bits.first) == 1 << index)
    };
    if list.len() < 3 || !list.iter().enumerate().all(is_mask) {
        return false;
    }
    let bits: Vec<String> = list.iter().enumerate().map(|(index, (_, name))| format!("{index} {name}")).collect();
    let message = format!("the bits of `{}` are 1, 2 and 4, which look like masks", leaf.name);
    report.add(Draft::new(Code::FlagMasks, place, message).help(format!(
        "bits are numbered from 0: write `{}.flags = \"{}\";`, or list the names in another order",
        leaf.name,
        bits.join(", ")
    )));
    true
}
