//! Spans and events of a trace, as described by annotations in the DTD (`tag.span`, `role`). A span extends from one
//! record to another.
//!
//! [`Kinds`] extracts the information in a record, and [`Pairs`] matches ends to beginnings. Memory use is proportional
//! to the number of open spans.
//!
//! ```
//! use metatf::container::WriteOptions;
//! use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
//! use metatf::reader::Event;
//! use metatf_tools::spans::{Found, Kinds, Pairs, Wanted};
//!
//! let dtd = br#"section s 1 {
//!     time.width = 4; time.interpretation = none; time.role = "time"; time.unit = "us";
//!     load: (time) { tag.value = 4; tag.span = "begin"; }
//!     loaded: (time) { tag.value = 5; tag.span = "end load"; }
//! }"#;
//! let schema = Schema::parse("loads.dtd", dtd)?;
//! let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
//! let mut owned = OwnedRecord::default();
//! for json in [r#"{"@section":"s","@record":"load","time":10}"#, r#"{"@section":"s","@record":"loaded","time":35}"#] {
//!     let line = schema.read_json(json.as_bytes(), &mut owned)?;
//!     writer.write(&line, &owned)?;
//! }
//! let file = writer.finish()?;
//!
//! let mut trace = Trace::from_slice(&file)?;
//! let kinds = Kinds::new(&schema, false);
//! let mut pairs = Pairs::new(&kinds, Wanted::default());
//! let (mut number, mut found) = (0, Vec::new());
//! while let Some(entry) = trace.next_entry()? {
//!     let Event::Record(at) = entry.event else { continue };
//!     if let Some(seen) = kinds.seen(&schema, at.record, entry.record) {
//!         pairs.take(number, seen, &mut found);
//!     }
//!     number += 1;
//! }
//! let [Found::Span(span)] = &found[..] else { panic!("one span") };
//! assert_eq!((&*span.name, span.nanoseconds()), ("load", 25_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod found;
mod kinds;
mod pairs;
mod tree;
mod values;

pub use found::{Above, Around, Found, Instant, Span};
pub use kinds::{Does, Kinds, Level, Origin, Seen};
pub use pairs::{Pairs, Wanted};
pub use tree::{Line, Node, Tree};
pub use values::{Value, Values, plain};
