//! The header for C and C++, with emitters that write complete chunks of a trace.
//!
//! The fields of an event have fixed widths and depend on no state. Each chunk is a separate group that starts with the
//! metadata for these widths. `declarations.h` and `implementation.h` contain the parts that do not depend on the DTD;
//! names between two `@` are replaced by the other parts. `implementation.h` exceeds 400 lines so that it can be read
//! like the generated C code.

mod describe;
mod emit;
mod expression;
mod fields;
mod functions;
mod intern;
pub(crate) mod layout;
mod leaves;
mod names;
mod nested;
pub(crate) mod put;
mod read;
mod statements;
mod tables;
mod types;

use metatf_parser::Dtd;
pub use read::generate_c_reader;

use crate::emitters::{Reach, emitters};
use crate::options::{Lookup, OptionError, Options};
use layout::Layout;

const DECLARATIONS: &str = include_str!("declarations.h");
const IMPLEMENTATION: &str = include_str!("implementation.h");
const SHARED: &str = include_str!("shared.h");
/// Functions for records that are not plain.
const NESTED: &str = include_str!("nested.h");

/// Generates a header of emitters for C and C++. All names in the header start with [`Options::emitters`] or, if this
/// option is not set, with the name of the DTD. The only other options used are `renames`, `without_kinds` and
/// `allow_missing`.
///
/// # Errors
/// Returns an error if an option refers to an item that is not in the DTD, the prefix is not a valid C name, the DTD
/// defines no events, or a record has no emitter and [`Options::allow_missing`] is not set.
pub fn generate_c(dtd: &Dtd, options: &Options) -> Result<String, OptionError> {
    let prefix = match &options.emitters {
        Some(prefix) => names::prefix(prefix)?,
        None => names::prefix_of(&options.source),
    };
    let lookup = Lookup::new(options);
    let emitters = emitters(dtd, &lookup, options, Reach::Nested)?;
    let layout = Layout::of(dtd, &emitters, options, &[DECLARATIONS, NESTED, IMPLEMENTATION, SHARED])?;
    if let Some(unused) = lookup.unused_of(&options.renames) {
        return Err(unused);
    }
    let parts = [&emit::head(&layout, options), DECLARATIONS, NESTED, &emit::events(&layout), IMPLEMENTATION];
    let text = parts.concat();
    let text = text.replacen("@CONSTANTS@\n", &emit::constants(&emitters, &layout), 1);
    let text = text.replacen("@RECORDS@\n", &emit::own(&layout), 1);
    let text = text.replacen("@DESCRIBE@\n", &describe::describe(&emitters, &layout), 1);
    let text = text.replacen("@SHARED@\n", SHARED, 1);
    let text = intern::parts(&layout).iter().fold(text, |text, (name, with)| text.replacen(name, with, 1));
    let text =
        text.replace("pfx_", &format!("{prefix}_")).replace("PFX_", &format!("{}_", prefix.to_ascii_uppercase()));
    // Insert the text of the DTD last, so that nothing in this text is replaced.
    let tables = tables::tables(dtd, &emitters, &layout, options, &prefix);
    Ok(text.replacen("@CRC@\n", &tables::crc(), 1).replacen("@TABLES@\n", &tables, 1))
}
