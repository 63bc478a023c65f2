//! `#[metatf(dtd = "..")]`: a typed reader and writer of a trace format, from its DTD.
//!
//! ```ignore
//! #[metatf_derive::metatf(dtd = "dtds/HATF10.dtd")]
//! mod hatf {}
//!
//! let mut trace = hatf::Trace::open("trace.mtf")?;
//! ```
//!
//! The path is relative to the crate's `Cargo.toml`. The crate depends on `metatf`; where that goes by another name,
//! `runtime = "::other_name"` names it. Where traces give fields other widths than the DTD, `expect_widths = "address = 8"`
//! makes code that is fast for those. The code is what a build script with `metatf_codegen::Config` would make, token
//! for token; what the module holds already stays in it. An edit of the DTD rebuilds the crate.
#![forbid(unsafe_code)]

mod attribute;

use proc_macro::TokenStream;

/// Fills a module with the reader and writer of the trace format that a DTD declares. See the crate's head.
#[proc_macro_attribute]
pub fn metatf(arguments: TokenStream, item: TokenStream) -> TokenStream {
    attribute::expand(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
