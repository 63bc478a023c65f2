//! Checks that constants agree with their width and interpretation (spec 3.2).

use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::schema::{Interpretation, Leaf, Width};
use crate::span::Span;

/// Checks whether a record can store this constant. Reports an error if not.
pub(super) fn check(leaf: &Leaf, value: u64, place: Span, report: &mut Reporter) -> bool {
    if !leaf.is_numeric() {
        report.add(
            Draft::new(Code::ConstantArray, place, format!("`{}` is a byte array and cannot be constant", leaf.name))
                .help(match leaf.width {
                    Width::Array(bytes @ 1..=8) => {
                        let text = report.source.text(place).filter(|text| text.starts_with('\''));
                        // The first character is the most significant byte.
                        let reversed = text.map_or_else(String::new, |text| {
                            let text: String = text.chars().rev().collect();
                            format!(", and in a little-endian file, `{}.value = {text};`", leaf.name)
                        });
                        format!("write `{}: u{}`{reversed}", leaf.name, bytes * 8)
                    }
                    _ => format!("a constant must be a number of up to 8 bytes: remove `{LINE}`"),
                })
                .quote(place),
        );
        return false;
    }
    let width = if let Width::Number(width) = leaf.width { width } else { 0 };
    let (fits, holds) = match leaf.interpretation {
        Interpretation::None | Interpretation::SectionOffset(_) => {
            (unsigned_fits(value, width), format!("{} 0 to {}", holds_bytes(width), largest(width)))
        }
        Interpretation::BaseOffset(base) => (
            signed_fits(value.wrapping_sub(base), width),
            format!("{} offsets of up to {} from the base {base}", holds_bytes(width), largest(width) >> 1),
        ),
        Interpretation::Default(default) => (value == default, format!("`default` fixes the value at {default}")),
        Interpretation::Stride { initial, stride } => {
            (value == initial && stride == 0, "with `stride`, the value changes from record to record".to_owned())
        }
        Interpretation::Predicted(_) => (false, "a predicted value can differ in each record".to_owned()),
        // The value depends on earlier records of the trace, so the constant cannot be checked here.
        Interpretation::BaseOffsetOf(..) | Interpretation::Delta(_) | Interpretation::SectionStride { .. } => {
            return true;
        }
    };
    if !fits {
        let bytes = (1..8).find(|bytes| unsigned_fits(value, *bytes)).unwrap_or(8);
        let help = match leaf.interpretation {
            Interpretation::None => format!("write `{}: u{}`, or another number", leaf.name, u32::from(bytes) * 8),
            Interpretation::Default(default) if place.is_predefined() || width == 0 => {
                format!("write `{}: default {value}` for the constant, or remove `{LINE}` for {default}", leaf.name)
            }
            _ => format!("write `{}: u{}` for a constant, or remove `{LINE}`", leaf.name, u32::from(bytes) * 8),
        };
        let message = format!("`{}` cannot be {value}: {holds}", leaf.name);
        report.add(Draft::new(Code::ConstantRange, place, message).help(help).quote(place));
    }
    fits
}

fn holds_bytes(width: u8) -> String {
    if width == 1 { "1 byte holds".to_owned() } else { format!("{width} bytes hold") }
}

/// Returns the largest number that fits in `width` bytes, where `width` is 0 to 8.
fn largest(width: u8) -> u64 {
    1_u64.checked_shl(u32::from(width) * 8).map_or(u64::MAX, |n| n - 1)
}

fn unsigned_fits(value: u64, width: u8) -> bool {
    value <= largest(width)
}

/// Checks whether sign-extending the low `width` bytes restores the value.
fn signed_fits(value: u64, width: u8) -> bool {
    if width == 0 {
        return value == 0;
    }
    let sign = (largest(width) >> 1) + 1;
    ((value & largest(width)) ^ sign).wrapping_sub(sign) == value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert!(unsigned_fits(255, 1) && !unsigned_fits(256, 1));
        assert!(unsigned_fits(u64::MAX, 8) && unsigned_fits(0, 0) && !unsigned_fits(1, 0));
        assert!(signed_fits(127, 1) && !signed_fits(128, 1));
        assert!(signed_fits(u64::MAX, 1) && signed_fits(u64::MAX - 127, 1) && !signed_fits(u64::MAX - 128, 1));
        assert!(signed_fits(u64::MAX, 8) && signed_fits(0, 0));
    }
}
