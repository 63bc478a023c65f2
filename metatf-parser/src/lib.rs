//! Compiles the text of a Meta-TF DTD to a resolved schema, with diagnostics.
//!
//! ```
//! let text = b"section heap 1 { free: (tag, address) { tag.value = 4; address.width = 8; address.interpretation = none; } }";
//! let parsed = metatf_parser::parse("heap.dtd", text);
//! let dtd = parsed.dtd.ok_or("errors")?;
//! let heap = dtd.section_named("heap").ok_or("no section")?;
//! let free = dtd.find_record(heap, "free").ok_or("no record")?;
//! assert_eq!(free.tag, Some(4));
//! # Ok::<(), &str>(())
//! ```
//!
//! A diagnostic contains a stable code and a location, and often a related location and a suggestion. A single run
//! reports every mistake:
//!
//! ```
//! let text = b"section heap 1 { free: (tag, address) { tag.value = 4; adress.width = 8; } }";
//! let parsed = metatf_parser::parse("heap.dtd", text);
//! let shown = metatf_parser::render(&parsed.diagnostics[1], "heap.dtd", text, false);
//! assert!(shown.starts_with("error[E0301]: record `free` has no field `adress`"));
//! assert!(shown.contains("heap.dtd:1:56") && shown.contains("write `address.width = 8;`"));
//! ```
//!
//! The stages are `text` (UTF-8), `lexer` (tokens, comments, nesting depth), `syntax` (a syntax tree, built with pest
//! one item at a time), `resolve` (names, lookup and checks, one file for each family of rules) and [`schema`]. After a
//! syntax error, `repair` searches for an edit of a few tokens that makes the text valid. Modules
//! import only from earlier stages, as shown in DESIGN.md. [`Code`] lists the rules with the section of the
//! specification that states each of them. No input causes a panic, and no stage recurses deeper than the 32 levels
//! that a DTD may nest.
#![forbid(unsafe_code)]

mod add_field;
mod ast;
mod codes;
#[cfg(feature = "index")]
mod complete;
mod diagnostic;
mod fix;
mod foreign;
mod format;
#[cfg(feature = "index")]
mod hover;
#[cfg(feature = "index")]
pub mod index;
mod lexer;
mod line;
#[cfg(feature = "index")]
mod lint;
mod nearest;
mod parse;
#[cfg(feature = "index")]
mod position;
#[cfg(feature = "index")]
mod rename;
mod render;
mod repair;
mod resolve;
mod rules;
pub mod schema;
mod span;
mod suggest;
mod syntax;
mod text;
#[cfg(feature = "index")]
mod tokens;
mod vocabulary;
mod words;

pub use add_field::add_field;
pub use codes::{Code, Severity, explain};
#[cfg(feature = "index")]
pub use complete::{Completion, CompletionKind, complete};
pub use diagnostic::{Diagnostic, Label, Suggestion};
pub use fix::{Fixed, fix};
pub use format::{format, shorten};
#[cfg(feature = "index")]
pub use hover::{Hint, Hover, hints, hover, width_text};
#[cfg(feature = "index")]
pub use lint::{Allowed, lint};
#[cfg(feature = "index")]
pub use parse::index;
pub use parse::{Parsed, parse};
#[cfg(feature = "index")]
pub use position::{Columns, Lines};
#[cfg(feature = "index")]
pub use rename::rename;
pub use render::render;
pub use rules::Rule;
pub use schema::Dtd;
pub use text::{MOST_BYTES, MOST_EMBEDDED_BYTES};
#[cfg(feature = "index")]
pub use tokens::{TokenKind, tokens};
pub use vocabulary::Property;
