//! The header for C and C++: emitters that write chunks of a trace by themselves.
//!
//! An event has fixed widths and no state: each chunk is a group of its own, which begins with metadata that say so. What does not
//! depend on the DTD stands in `declarations.h` and `implementation.h`; the rest takes the place of names between two `@`.
//! `implementation.h` is over 400 lines, as it is kept whole: it reads as the C that it becomes.

mod describe;
mod emit;
pub(crate) mod layout;
mod names;
mod tables;

use metatf_parser::Dtd;

use crate::emitters::emitters;
use crate::options::{Lookup, OptionError, Options};
use layout::Layout;

const DECLARATIONS: &str = include_str!("declarations.h");
const IMPLEMENTATION: &str = include_str!("implementation.h");

/// Generates a header of emitters for C and C++. All its names begin with [`Options::emitters`], or else with the DTD's name; of the other
/// options, `renames`, `without_kinds` and `allow_missing` count.
///
/// # Errors
/// Options that name what the DTD does not have, a prefix that is not a name in C, a DTD without events, a record without an emitter unless
/// [`Options::allow_missing`] is set.
pub fn generate_c(dtd: &Dtd, options: &Options) -> Result<String, OptionError> {
    let prefix = match &options.emitters {
        Some(prefix) => names::prefix(prefix)?,
        None => names::prefix_of(&options.source),
    };
    let lookup = Lookup::new(options);
    let emitters = emitters(dtd, &lookup, options)?;
    let layout = Layout::of(dtd, &emitters, options)?;
    if let Some(unused) = lookup.unused_of(&options.renames) {
        return Err(unused);
    }
    let parts =
        [emit::head(&layout, options), DECLARATIONS.to_owned(), emit::events(&layout), IMPLEMENTATION.to_owned()];
    let text = parts.concat();
    let text = text.replacen("@CONSTANTS@\n", &emit::constants(&emitters, &layout), 1);
    let text = text.replacen("@RECORDS@\n", &emit::own(&layout), 1);
    let text = text.replacen("@DESCRIBE@\n", &describe::describe(&emitters, &layout), 1);
    let text = text.replacen("@SHARED@\n", include_str!("shared.h"), 1);
    let text = emit::strings(&layout).iter().fold(text, |text, (name, with)| text.replacen(name, with, 1));
    let text =
        text.replace("pfx_", &format!("{prefix}_")).replace("PFX_", &format!("{}_", prefix.to_ascii_uppercase()));
    // The DTD's own words come last: nothing in them is replaced.
    let tables = tables::tables(dtd, &emitters, &layout, options, &prefix);
    Ok(text.replacen("@CRC@\n", &tables::crc(), 1).replacen("@TABLES@\n", &tables, 1))
}
