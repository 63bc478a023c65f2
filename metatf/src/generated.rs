//! The interface between generated code and this crate. Generated readers and writers use nothing else of it.
//!
//! Generated code checks the version of this interface when it is compiled.
//!
//! The generator does not give records the names of type parameters, such as `AnyRow`. Functions called for each record
//! are inlined in optimized builds only, because a debug build would reserve stack space for every inlined function.

pub use crate::columns::{Arrays, Columns, UnknownField};
pub use crate::record::plans as leaves_of;
pub use crate::record::{
    DataRecord, Family, Protocol, Put, Puts, ReadFields, Reads, ReadsOne, RecordIn, Rows, SectionFamily, Source,
    WriteFields, array, each, fmt_flags, no_such_record, optional, put_each, read_vfield,
};
pub use crate::typed::{Elements, OpenError, RecordType, Records, Section, Table, Trace, TraceOptions, Writer};
pub use metatf_container::{Result, Sink, WriteOptions};

/// The types of a format's tables.
pub mod tables {
    pub use crate::format::{
        ExpectedWidth, ExprOp, Format, Interpretation, Leaf, Magic, Model, Predictor, RawFile, RawStart, Record,
        Repeat, Section, Step, in_order, repeating,
    };
}

/// Major version of this interface, which changes if this crate can no longer compile code generated for earlier
/// versions.
pub const MAJOR: u16 = 1;

/// Minor version of this interface, which increases if items are added.
pub const MINOR: u16 = 0;

/// Fails to compile if code was generated for a version of this interface that this crate does not support.
pub const fn check_version(major: u16, minor: u16) {
    assert!(
        major >= MAJOR,
        "this code was generated for an earlier version of metatf: generate it again with the metatf-codegen of the same \
         release as metatf"
    );
    assert!(
        major == MAJOR && minor <= MINOR,
        "this code was generated for a later version of metatf: update metatf to the release of the metatf-codegen that \
         generated the code"
    );
}

#[cfg(test)]
mod tests {
    use super::{MAJOR, MINOR, check_version};

    #[test]
    fn code_of_this_and_earlier_minor_versions_compiles() {
        (0..=MINOR).for_each(|minor| check_version(MAJOR, minor));
    }

    #[test]
    #[should_panic(expected = "generate it again")]
    fn code_of_an_earlier_major_version_must_be_regenerated() {
        check_version(MAJOR - 1, u16::MAX);
    }

    #[test]
    #[should_panic(expected = "update metatf")]
    fn code_of_a_later_minor_version_requires_an_update() {
        check_version(MAJOR, MINOR + 1);
    }

    #[test]
    #[should_panic(expected = "update metatf")]
    fn code_of_a_later_major_version_requires_an_update() {
        check_version(MAJOR + 1, 0);
    }
}
