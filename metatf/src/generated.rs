//! The interface between generated code and this crate. Generated code names nothing else of this crate.
//!
//! # Versions
//!
//! The interface has its own version, [`MAJOR`] and [`MINOR`]. Generated code states the version for which it was
//! generated, and [`check_version`] checks that version at compile time. This crate compiles code generated for the
//! same major version and for any minor version up to its own.
//!
//! A new minor version may only add:
//! - items of this module, and functions of its types
//! - functions and constants of traits that generated code implements, if they have a default
//! - functions of traits that generated code calls
//! - variants of [`ExprOp`](tables::ExprOp) and [`Interpretation`](tables::Interpretation)
//!
//! A minor version must not change or remove anything that the tables below list: neither names, parameters, results
//! and bounds, nor the values that a function reads, writes or returns. Functions of tables remain usable in constants.
//! The inlining and the number of instructions of a function may change.
//!
//! The tests of `metatf-codegen` compile code generated for each minor version, and use it to write and read traces.
//!
//! # Types that generated types wrap
//!
//! | item | functions that generated code calls |
//! | --- | --- |
//! | [`Trace`] | `section`, `elements`, `into_iter` |
//! | [`TraceOptions`] | `new`, `open`, `read_file`, `from_slice`, `from_read` |
//! | [`Writer`] | `create`, `new`, `with_options`, `finish`, `abandon`, `table`, `next_value`; `inner`, which returns a writer whose `put::<R, _, LEAVES>` writes the fields of a record `R` |
//! | [`Columns`] | `of`, `of_fields`, `record_of`; of the columns of a record, `len`, `numbers`, `signed`, `floats`, `arrays` |
//!
//! The results of these functions are [`Section`], [`Elements`], [`Records`], [`Table`], [`Arrays`], [`OpenError`],
//! [`UnknownField`] and [`Result`]. Parameters are [`Sink`] and [`WriteOptions`].
//!
//! # Traits that generated code implements
//!
//! | item | purpose | items without a default |
//! | --- | --- | --- |
//! | [`Protocol`] | connects the runtime with a format's tables and types | `SOURCE`, `FORMAT`, `Record`, `Element`; `record`, `run`, `one` and `element` have defaults for formats without such records |
//! | [`SectionFamily`] | reads the records of a section | `SECTION`, `FORMAT`, `With`, `read`, `next`, `run`, `one` |
//! | [`DataRecord`] | identifies a record and passes it to a writer | `SECTION`, `place`, `put` |
//! | [`RecordType`] | selects the records of one type | `PLACES`, `pick` |
//! | [`Family`] | selects the type of byte arrays in a record | `With`, `read` |
//! | [`ReadFields`], [`WriteFields`] | read and write the fields of a struct, leaf by leaf | `read_fields`, `write_fields` |
//!
//! # Traits that generated code calls
//!
//! | item | purpose | items |
//! | --- | --- | --- |
//! | [`Source`] | a row from which the leaves of a record are read in order | `Error`, `number`, `bytes`, `stop` |
//! | [`Put`] | a row to which the leaves of a record are written in order | `Error`, `number`, `bytes` |
//! | [`Puts`] | accepts records | `Done`, `put` |
//! | [`Reads`] | reads many records of a section | `section` |
//! | [`ReadsOne`] | reads a single record | `section`, `read` |
//! | [`Rows`] | returns the fields of the next record | `read` |
//!
//! # Functions and constants
//!
//! | item | purpose |
//! | --- | --- |
//! | [`check_version`] | checks the version of this interface |
//! | [`RecordIn`] | a record of a section as a type: `INDEX`, `PLACE`, `leaf` |
//! | [`leaves_of`] | the number of leaves in a section |
//! | [`array`](fn@array), [`each`], [`optional`], [`read_vfield`] | read fixed arrays, repetitions, optional values, and repeated `vfield`s |
//! | [`put_each`] | writes repetitions and optional values |
//! | [`fmt_flags`] | prints flags |
//! | [`no_such_record`] | the error for an unknown index |
//!
//! # Tables
//!
//! | item of [`tables`] | functions |
//! | --- | --- |
//! | `Format` | `new`, `fingerprint`, `tag_width`, `models`, `expected_widths`, `raw_file` |
//! | `Section` | `tagged`, `stream`, `cells`, `initials` |
//! | `Record` | `tagged`, `element`, `was`, `time` |
//! | `Step`, `Repeat` | `in_order`, `repeating`; `Repeat::leaves`, `counted_by` |
//! | `Leaf` | `tag`, `any_tag`, `number`, `array`, `variable`, `until`, `rest`, `computed`, `scanned`; `named`, `was`, `constant`, `of_header` |
//! | `Interpretation`, `ExprOp` | the variants and their fields |
//! | `Model` | `allocated`, `freed`, `used`, `values`; `by`, `misses_in` |
//! | `Predictor` | `last_values`, `stride`, `fcm`, `dfcm`; `by` |
//! | `ExpectedWidth` | `new` |
//! | `RawFile` | `new`, `trailer_in` |
//! | `RawStart` | `new`, `records_size` |
//! | `Magic` | `new` |
//!
//! # Emitters
//!
//! Emitters, which are generated on request, also call the crate `metatf-telemetry`: `Telemetry::{new, is_on, stamp,
//! emit, emit_tail}`, `StringId::number`, and `private::{Slot, intern, text, array}`. These items are not part of this
//! interface, so emitters require the same release of `metatf-codegen` and `metatf-telemetry`.
//!
//! # Names and inlining
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
#[allow(clippy::absurd_extreme_comparisons, reason = "`MINOR` may be 0")]
pub const fn check_version(major: u16, minor: u16) {
    assert!(
        major >= MAJOR,
        "this code was generated for an earlier version of metatf: generate it again with the metatf-codegen of the \
         same release as metatf"
    );
    assert!(
        major == MAJOR && minor <= MINOR,
        "this code was generated for a later version of metatf: update metatf to the release of the metatf-codegen \
         that generated the code"
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
