//! The building blocks of generated code, which are readers and writers that represent the records of a DTD as Rust
//! types.
//!
//! Generated code declares structs, describes their byte layout with the functions in [`crate::generated`], and uses
//! [`Trace`] and [`Writer`] with these structs. Structs with byte arrays are generic over the owner of the bytes:
//! `Alloc<&[u8]>` borrows them from the trace, and `Alloc` (short for `Alloc<Vec<u8>>`) owns them.
//!
//! # Examples
//!
//! The DTD in this example declares a section `readings` with the record `reading: (tag, time, vfield)`:
//!
//! ```
//! #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
//! mod readings {}
//! use readings::{Reading, Readings, Record, Trace, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut writer = Writer::new(Vec::new())?;
//! writer.reading(&Reading { time: 42, vfield: b"x" })?;
//! let file = writer.finish()?;
//!
//! let mut trace = Trace::from_slice(&file)?;
//! let reading = Reading { time: 42, vfield: b"x".to_vec() };
//! assert_eq!(trace.next_owned()?, Some(Record::Readings(Readings::Reading(reading))));
//! assert_eq!(trace.next_owned()?, None);
//! # Ok(())
//! # }
//! ```

mod error;
mod implied;
#[cfg_attr(not(feature = "dynamic"), allow(dead_code, reason = "only `dynamic` creates maps"))]
mod map;
mod mapped;
mod nested;
mod only;
mod options;
#[cfg(feature = "parallel")]
mod parallel;
mod resolve;
mod section;
#[cfg(test)]
mod tier_tests;
mod trace;
mod unmatched;
mod writer;

pub use crate::record::{
    DataRecord, Family, Protocol, Puts, ReadFields, Reads, ReadsOne, Rows, SectionFamily, Source, WriteFields,
};
#[doc(hidden)]
pub use crate::record::{Known, RecordIn};
pub use error::OpenError;
pub use nested::{Nested, NestedWriter};
pub use only::{Only, RecordType};
pub use options::TraceOptions;
#[cfg(feature = "dynamic")]
pub use resolve::unmatched;
pub use section::{Elements, Section};
pub use trace::{Event, Records, Trace};
pub use unmatched::Unmatched;
pub use writer::{Table, Writer};
