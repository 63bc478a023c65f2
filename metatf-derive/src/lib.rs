//! `#[metatf(dtd = "..")]` generates a typed reader and writer for a trace format from its DTD.
//!
//! ```ignore
//! #[metatf_derive::metatf(dtd = "dtds/HATF10.dtd")]
//! mod hatf {}
//!
//! let mut trace = hatf::Trace::open("trace.mtf")?;
//! ```
//!
//! The path is relative to the crate's `Cargo.toml`. The crate must depend on `metatf`; if the dependency is renamed,
//! add `runtime = "::other_name"`. If field widths in traces differ from the DTD, `expect_widths = "address = 8"`
//! generates code optimized for the actual widths. The generated code is identical, token for token, to the output of
//! `metatf_codegen::Config` in a build script. Existing items in the module are kept. Editing the DTD triggers a
//! rebuild of the crate.
#![forbid(unsafe_code)]

mod attribute;

use proc_macro::TokenStream;

/// Fills a module with a reader and a writer for the trace format declared by a DTD. See the crate documentation.
#[proc_macro_attribute]
pub fn metatf(arguments: TokenStream, item: TokenStream) -> TokenStream {
    attribute::expand(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
