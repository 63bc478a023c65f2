//! Traits that generated code implements or calls, for reading and writing a record's leaves and for compile-time
//! knowledge about them. These traits form a layer below the readers and writers, which do not depend on generated
//! code.

mod fields;
mod known;
mod protocol;
mod reads;
mod record_in;
mod row;
mod visit;

pub use fields::{Family, ReadFields, WriteFields};
#[doc(hidden)]
pub use fields::{array, each, fmt_flags, optional, put_each, read_vfield};
#[doc(hidden)]
pub use known::{Known, plans};
pub(crate) use known::{has_slots, is_stateless};
#[doc(hidden)]
pub use protocol::no_such_record;
pub use protocol::{DataRecord, Protocol, Puts};
pub use reads::{Reads, ReadsOne, Rows, SectionFamily};
#[doc(hidden)]
pub use record_in::RecordIn;
pub(crate) use row::MOST_UNTIL;
pub use row::{FREE_ITEMS, Put, Row, Source, Stopped};
pub(crate) use visit::{Visit, Walk, walk};
