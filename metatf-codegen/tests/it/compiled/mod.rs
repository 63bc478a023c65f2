//! The golden files compile with all lints enabled, and the generated readers read what the generated writers write.
#![deny(missing_docs, unused, clippy::all, clippy::pedantic, nonstandard_style)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

#[path = "catch_all.rs"]
mod catch_all_records;
mod evolution;
mod names;
#[path = "optional.rs"]
mod optional_fields;
#[path = "renamed.rs"]
mod renamed_fields;
mod round_trip;

/// A catch-all record.
pub mod catch_all {
    include!("../../golden/catch_all.snap.rs");
}
/// HATF 1.0.
pub mod hatf10 {
    include!("../../golden/HATF10.snap.rs");
}
/// Names that are hard to express in Rust.
pub mod hostile {
    include!("../../golden/hostile.snap.rs");
}
/// Named values and bits.
pub mod named {
    include!("../../golden/named.snap.rs");
}
/// Nested records.
pub mod nested {
    include!("../../golden/nested.snap.rs");
}
/// Optional items.
pub mod optional {
    include!("../../golden/optional.snap.rs");
}
/// Predicted fields.
pub mod predicted {
    include!("../../golden/predicted.snap.rs");
}
/// Renamed fields and records.
pub mod renamed {
    include!("../../golden/renamed.snap.rs");
}
/// Records of every shape.
pub mod shapes {
    include!("../../golden/shapes.snap.rs");
}
/// A string table.
pub mod string_table {
    include!("../../golden/string_table.snap.rs");
}

/// Comments and units that a Rust comment cannot contain.
pub mod text {
    include!("../../golden/text.snap.rs");
}

/// The tables in the generated code match those parsed from the DTD.
#[test]
fn tables_are_the_parsers() {
    use metatf::format::Format;
    let formats = [
        &catch_all::FORMAT,
        &hatf10::FORMAT,
        &hostile::FORMAT,
        &named::FORMAT,
        &nested::FORMAT,
        &predicted::FORMAT,
        &renamed::FORMAT,
        &shapes::FORMAT,
        &string_table::FORMAT,
        &text::FORMAT,
    ];
    for format in formats {
        let parsed = metatf_parser::parse("", format.dtd.as_bytes());
        let tables = Format::from_dtd(&parsed.dtd.unwrap());
        assert_eq!(format!("{format:#?}"), format!("{tables:#?}"));
    }
}
