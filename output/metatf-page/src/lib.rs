//! Reports and their output formats.
//!
//! A [`Report`] is a struct that serializes to JSON and creates a [`Page`] of blocks with exact values. Digits, column
//! widths and line breaks are chosen when [`render`] prints a page in one of four formats: text that fits a terminal,
//! Markdown, HTML, or an SVG picture.
//!
//! ```
//! use metatf_page::{Block, Column, Form, Note, Page, Table, Value, render};
//!
//! let mut page = Page::new("grep.mtf");
//! page.push(Note::new("{} live in {} blocks").with([Value::Bytes(14_848), Value::Count(221)]));
//! page.heading("SITES");
//! let mut table = Table::new([Column::new("bytes"), Column::new(""), Column::new("by size")]);
//! table.row([Value::Count(11_403), Value::Part(11_403, 14_848), Value::text("64 bytes")]);
//! page.push(table);
//!
//! let mut out = Vec::new();
//! render(&page, Form::text(None), &mut out).unwrap();
//! let text = "grep.mtf\n  14.5 KiB live in 221 blocks\n\nSITES\n   bytes         by size\n  11,403  76.7%  64 bytes\n";
//! assert_eq!(String::from_utf8(out).unwrap(), text);
//! ```
//!
//! Pages contain data from traces, so every format escapes control characters and markup.

mod axis;
mod chart;
mod escape;
mod form;
mod html;
mod intervals;
mod layout;
mod map;
mod markdown;
mod note;
mod page;
mod shorten;
mod svg;
mod table;
mod text;
mod tree;
pub mod units;
mod value;

pub use chart::{Chart, Mark, Series, Shape};
pub use escape::{is_control, markup, shown};
pub use form::{Form, render};
pub use html::blocks as html_blocks;
pub use intervals::{Intervals, Panel};
pub use layout::wrapped;
pub use map::{AddressMap, Region};
pub use note::Note;
pub use page::{Block, Facts, Page, Report};
pub use shorten::shortened;
pub use table::{Column, Table};
pub use text::TextStyle;
pub use tree::{Flame, Node};
pub use value::{Unit, Value};
