//! The header for C and C++ with a reader of traces of one DTD, at level *plain* (spec 10) with all codecs and
//! filters except `columns`.
//!
//! Each record becomes a struct and a function that decodes it, with a line per field. The state of a field can change
//! anywhere in a trace, so each line calls a function that decodes by the field's current state. The `.h` files contain
//! the parts that do not depend on the DTD, one question per file; names between two `@` are replaced by the other
//! parts.

mod declare;
mod decode;
mod print;
mod shape;
mod tables;

use metatf_parser::schema::{Dtd, Interpretation};

use super::{names, tables as text};
use crate::options::{Lookup, OptionError, Options};
use shape::shape;

/// The parts of the header, in order.
const PARTS: &[&str] = &[
    include_str!("declarations.h"),
    include_str!("values.h"),
    include_str!("metadata.h"),
    include_str!("codecs.h"),
    include_str!("dtd.h"),
    include_str!("file.h"),
    include_str!("chunks.h"),
    "@DECODE@\n",
    include_str!("next.h"),
    include_str!("print.h"),
    include_str!("end.h"),
];

/// Generates a header with a reader for C and C++. All names in the header start with `prefix`. The only option used is
/// `renames`.
///
/// # Errors
/// Returns an error if an option refers to an item that is not in the DTD, the prefix is not a valid C name, or the DTD
/// contains a predicted field or a field whose end depends on its content.
pub fn generate_c_reader(dtd: &Dtd, options: &Options, prefix: &str) -> Result<String, OptionError> {
    let prefix = names::prefix(prefix)?;
    refuse_predicted(dtd)?;
    refuse_scanned(dtd)?;
    let lookup = Lookup::new(options);
    let shape = shape(dtd, &lookup);
    if let Some(unused) = lookup.unused_of(&options.renames) {
        return Err(unused);
    }
    // The structs contain text of the DTD, so they come last, and the text of the DTD replaces the last of its marks.
    let replaced = [
        ("@CRC@\n", text::crc()),
        ("@TABLES@\n", tables::tables(dtd, &shape)),
        ("@DECODE@\n", decode::functions(&shape)),
        ("@PRINT@\n", print::functions(&shape)),
        ("@KINDS@\n", declare::kinds(&shape)),
        ("@MEMBERS@\n", declare::members(&shape)),
        ("@STRUCTS@\n", declare::structs(&shape)),
    ];
    let parts = declare::head(options) + &PARTS.concat();
    let parts = replaced.iter().fold(parts, |parts, (name, with)| parts.replacen(name, with, 1));
    let parts = parts.replace("pfx_", &format!("{prefix}_"));
    let parts = parts.replace("PFX_", &format!("{}_", prefix.to_ascii_uppercase()));
    let (before, after) = parts.rsplit_once("@DTD@\n").unwrap_or((&parts, ""));
    Ok(format!("{before}{}{after}", text::parts(&dtd.text)))
}

/// Returns an error that names the first predicted field.
fn refuse_predicted(dtd: &Dtd) -> Result<(), OptionError> {
    for record in &dtd.records {
        let predicted =
            |leaf: &&metatf_parser::schema::Leaf| matches!(leaf.interpretation, Interpretation::Predicted(_));
        if let Some(leaf) = record.leaves.iter().find(predicted) {
            return Err(OptionError(format!(
                "the field `{}` of the record `{}` is predicted, but readers for C have level plain, without predicted \
                 fields: convert the traces with `metatfc convert --to-dtd` to a DTD with another interpretation",
                leaf.path.join("."),
                record.name
            )));
        }
    }
    Ok(())
}

/// Returns an error that names the first array or repetition whose end depends on its content.
fn refuse_scanned(dtd: &Dtd) -> Result<(), OptionError> {
    for record in &dtd.records {
        if let Some(leaf) = record.ends_by_content() {
            let part = if leaf.computed.is_some() { leaf.key.clone() } else { leaf.path.join(".") };
            return Err(OptionError(format!(
                "the end of `{part}` in the record `{}` depends on its content, but readers for C have level plain, \
                 without `rest` and `until`: use a length (`data.width = length.value;`) or a count (`n*item`)",
                record.name
            )));
        }
    }
    Ok(())
}
