//! The interface between generated code and this crate. Generated readers and writers use nothing else of it.
//!
//! Generated code checks the version of this interface when it is compiled.
//!
//! The generator does not give records the names of type parameters, such as `AnyRow`. Functions called for each record
//! are inlined in optimized builds only, because a debug build would reserve stack space for every inlined function.

pub use crate::columns::{Arrays, Columns, UnknownField};
pub use crate::record::{
    DataRecord, Family, Protocol, Put, Puts, ReadFields, Reads, ReadsOne, Rows, SectionFamily, Shape, Source,
    WriteFields, array, each, fmt_flags, no_such_record, optional, plans, put_each, read_vfield,
};
pub use crate::typed::{Elements, OpenError, RecordType, Records, Section, Table, Trace, TraceOptions, Writer};
pub use metatf_container::{Result, Sink, WriteOptions};

/// The types of a format's tables.
pub mod tables {
    pub use crate::format::{
        ExpectedWidth, ExprOp, Format, HeapRole, Interpretation, Leaf, Magic, Model, ModelKind, Predictor,
        PredictorKind, RawFile, RawStart, Record, Section, Step, in_order,
    };
}

/// Version of this interface.
pub const VERSION: u32 = 7;

/// Fails to compile if code was generated for a different version of this interface.
pub const fn check_version(version: u32) {
    assert!(
        version == VERSION,
        "the metatf-codegen that generated this code does not match this version of metatf: generate the code again, \
         or use the same version of both crates"
    );
}

#[cfg(test)]
mod tests {
    use super::{VERSION, check_version};

    #[test]
    fn code_of_this_version_is_taken() {
        check_version(VERSION);
    }

    #[test]
    #[should_panic(expected = "generate the code again")]
    fn stale_code_is_refused_with_a_sentence() {
        check_version(VERSION + 1);
    }
}
