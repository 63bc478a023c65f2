//! The runtime interface of generated code.

mod sections;

#[doc(hidden)]
pub use crate::__metatf_records as records;
pub use crate::columns::{Arrays, Columns};
pub use crate::container::{Sink, WriteOptions};
use crate::format::{Leaf, LeafKind, Step};
pub use crate::record::{
    Family, Put, ReadFields, Shape, Source, WriteFields, array, each, fmt_flags, optional, plans, put_each, read_vfield,
};
pub use crate::typed::{Elements, OpenError, Records, Section, Table, Trace, TraceOptions, Writer};
pub use metatf_container::Result;
use metatf_container::{Error, ErrorKind};

/// Version of the interface between generated code and this crate.
pub const CODEGEN_VERSION: u32 = 6;

/// Fails to compile if code was generated for a different version of this crate.
pub const fn check_codegen(version: u32) {
    assert!(
        version == CODEGEN_VERSION,
        "the metatf-codegen that generated this code does not match this version of metatf: generate the code again, \
         or use the same version of both crates"
    );
}

/// Returns the error for a section or record index unknown to the generated code, which means that the format and the
/// code do not match.
#[must_use]
#[cold]
pub fn no_such_record() -> Error {
    Error::at(0, ErrorKind::Usage("the generated code has no such record"))
}

/// Returns the layout of a record without repetitions, which consists of its leaves in order.
#[must_use]
pub const fn flat<const N: usize>(leaves: &[Leaf]) -> [Step; N] {
    let mut steps = [Step::Number(0); N];
    let mut leaf = 0;
    let mut i = 0;
    while i < N && i < leaves.len() {
        steps[i] = match leaves[i].kind {
            LeafKind::Array(_) | LeafKind::Variable(_) | LeafKind::Until(_) => Step::Bytes(leaf),
            LeafKind::Number { .. } | LeafKind::Tag | LeafKind::AnyTag | LeafKind::Computed(_) => Step::Number(leaf),
        };
        leaf += 1;
        i += 1;
    }
    steps
}

/// Expands the table of a generated module to its format and the functions of its sections.
///
/// The rows are:
///
/// - `raw`: the start and end of files without a header;
/// - `section`: number, name, kind, listed records, the cells of their leaves' previous values, and the initial values
///   of these cells;
/// - `record`: index, name, earlier names after `~`, and tag; the struct and, for each section that lists the record,
///   the section, variant of `Record`, enum and variant; then its leaves, each with the data it stores and its earlier
///   paths after `~`;
/// - `model`: the model of a predicted leaf;
/// - `enum`: the records of a section, in groups whose tags are compared together;
/// - `elements`: the elements of a stream section.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_records {
    (
        format $source:literal $fingerprint:literal $tag_width:literal;
        types $($type:ident $(<$bytes:ident>)?),*;
        $(raw $raw:tt;)?
        $(expected $expected_record:literal $expected_leaf:literal $expected_width:literal;)*
        $(section $number:literal $section:literal $section_kind:ident $section_tables:tt)*
        $(record $index:literal $name:literal $(~ $was:literal)* $tag:literal $of:tt $leaves:tt)*
        $(model $model_section:literal $model:ident($($predictor:tt)*);)*
        $(enum $enum_section:literal $variant:ident $enum:tt $enum_body:tt)*
        $(elements $stream:literal $stream_variant:ident $element:tt;)*
    ) => {
        /// The tables of the format.
        pub static FORMAT: $crate::format::Format = $crate::format::Format {
            dtd: ::std::borrow::Cow::Borrowed(DTD),
            fingerprint: $fingerprint,
            tag_width: $tag_width,
            raw: $crate::__metatf_raw!($($raw)?),
            expected: ::std::borrow::Cow::Borrowed(&[$(
                $crate::format::ExpectedWidth {
                    record: $expected_record,
                    leaf: $expected_leaf,
                    width: $expected_width,
                }
            ),*]),
            sections: ::std::borrow::Cow::Borrowed(
                &[$($crate::__metatf_section_tables!($number $section $section_kind $section_tables)),*],
            ),
            records: ::std::borrow::Cow::Borrowed(&[$($crate::__metatf_record_tables!($name $(~ $was)* $tag $leaves)),*]),
            models: ::std::borrow::Cow::Borrowed(&[$(
                $crate::format::Model {
                    section: $model_section,
                    kind: $crate::__metatf_model!($model $($predictor)*),
                }
            ),*]),
        };

        /// The format as a type for the runtime.
        #[derive(Clone, Copy, Debug)]
        pub struct Protocol;

        $crate::__metatf_sections! {
            $source FORMAT Protocol;
            $($type $(<$bytes>)?)*;
            $(enum $enum_section $variant $enum $enum_body)*
            $(elements $stream $stream_variant $element;)*
        }
        $($crate::__metatf_places! { $index $of })*
    };
}

/// Expands to the tables of a section.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_section_tables {
    ($number:literal $name:literal $kind:ident {
        records [$($listed:literal)*]; cells [$($cell:literal)*]; initials [$($initial:tt)*];
    }) => {
        $crate::format::Section {
            number: $number,
            name: ::std::borrow::Cow::Borrowed($name),
            stream: $crate::__metatf_is_stream!($kind),
            records: ::std::borrow::Cow::Borrowed(&[$($listed),*]),
            cells: ::std::borrow::Cow::Borrowed(&[$($cell),*]),
            initials: ::std::borrow::Cow::Borrowed($crate::__metatf_initials!($($initial)*)),
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_is_stream {
    (tagged) => {
        false
    };
    (stream) => {
        true
    };
}

/// Expands to the tables of a record.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_record_tables {
    ($name:literal $(~ $was:literal)* $tag:literal {
        $($path:literal $(($field:literal))? $kind:ident($($arg:tt)*) $(= $constant:literal)? $(~ $earlier:literal)*),* $(; $($step:ident($($at:literal),*))*)?
    }) => {{
        const LEAVES: &[$crate::format::Leaf] = &[$(
            $crate::format::Leaf {
                field: ::std::borrow::Cow::Borrowed($crate::__metatf_field!($path $($field)?)),
                path: ::std::borrow::Cow::Borrowed($path),
                was: ::std::borrow::Cow::Borrowed(&[$(::std::borrow::Cow::Borrowed($earlier)),*]),
                kind: $crate::__metatf_kind!($kind $($arg)*),
                constant: $crate::__metatf_constant!($($constant)?),
            }
        ),*];
        const STEPS: &[$crate::format::Step] = $crate::__metatf_steps!($([$($step($($at),*))*])?);
        $crate::format::Record {
            name: ::std::borrow::Cow::Borrowed($name),
            was: ::std::borrow::Cow::Borrowed(&[$(::std::borrow::Cow::Borrowed($was)),*]),
            tag: $tag,
            leaves: ::std::borrow::Cow::Borrowed(LEAVES),
            steps: ::std::borrow::Cow::Borrowed(STEPS),
        }
    }};
}

/// Expands `zero 41`, or a list of individual initial values.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_initials {
    (zero $n:literal) => { &[0; $n] };
    ($($initial:literal)*) => { &[$($initial),*] };
}

/// Expands to the name of a leaf's field, which defaults to the complete path.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_field {
    ($path:literal) => {
        $path
    };
    ($path:literal $field:literal) => {
        $field
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_constant {
    () => {
        ::core::option::Option::None
    };
    ($value:literal) => {
        ::core::option::Option::Some($value)
    };
}

/// Expands `{ 2 4; start 1 3 size 6 { 0 [7 8] } }`: the sections of the records and of the data after them, then the
/// section, record, size and magic fields of each start.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_raw {
    () => { ::core::option::Option::None };
    ({
        $records:literal $($trailer:literal)?;
        $(start $section:literal $record:literal $(size $size:literal)? { $($leaf:literal [$($value:literal)*])* })*
    }) => {
        ::core::option::Option::Some($crate::format::RawFile {
            starts: ::std::borrow::Cow::Borrowed(&[$(
                $crate::format::RawStart {
                    section: $section,
                    record: $record,
                    magic: ::std::borrow::Cow::Borrowed(&[$(
                        $crate::format::Magic { leaf: $leaf, values: ::std::borrow::Cow::Borrowed(&[$($value),*]) }
                    ),*]),
                    records_size: $crate::__metatf_constant!($($size)?),
                }
            ),*]),
            records: $records,
            trailer: $crate::__metatf_constant!($($trailer)?),
        })
    };
}

/// Expands to the given steps or, for a record without repetitions, to its leaves in order (`LEAVES` must be in scope).
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_steps {
    () => { &$crate::generated::flat::<{ LEAVES.len() }>(LEAVES) };
    ([$($step:ident($($at:literal),*))*]) => { &[$($crate::__metatf_step!($step $($at)*)),*] };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_step {
    (number $leaf:literal) => {
        $crate::format::Step::Number($leaf)
    };
    (bytes $leaf:literal) => {
        $crate::format::Step::Bytes($leaf)
    };
    (repeat $count:literal $end:literal) => {
        $crate::format::Step::Repeat { count: $count, end: $end }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_kind {
    (tag) => { $crate::format::LeafKind::Tag };
    (any_tag) => { $crate::format::LeafKind::AnyTag };
    (array $n:literal) => { $crate::format::LeafKind::Array($n) };
    (until $end:literal) => { $crate::format::LeafKind::Until($end) };
    (variable $($op:ident $(($value:literal))?),*) => {
        $crate::format::LeafKind::Variable(::std::borrow::Cow::Borrowed(
            &[$($crate::format::ExprOp::$op $(($value))?),*],
        ))
    };
    (computed $($op:ident $(($value:literal))?),*) => {
        $crate::format::LeafKind::Computed(::std::borrow::Cow::Borrowed(
            &[$($crate::format::ExprOp::$op $(($value))?),*],
        ))
    };
    (number $width:literal $interpretation:ident $($value:literal)*) => {
        $crate::format::LeafKind::Number {
            width: $width,
            interpretation: $crate::__metatf_interpretation!($interpretation $($value)*),
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_interpretation {
    (None) => { $crate::format::Interpretation::None };
    ($kind:ident $($value:literal)+) => { $crate::format::Interpretation::$kind($($value),+) };
}

/// Expands `values(LastValue 4, Stride, Fcm 3 by 4 1)` or `heap(Allocated 4 1 by 5 0)`. A leaf is given by its record
/// and its own index.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_model {
    (values $($kind:ident $($argument:literal)? $(by $record:literal $leaf:literal)?),*) => {
        $crate::format::ModelKind::Values(::std::borrow::Cow::Borrowed(&[$(
            $crate::format::Predictor {
                kind: $crate::format::PredictorKind::$kind $(($argument))?,
                by: $crate::__metatf_leaf!($($record $leaf)?),
            }
        ),*]))
    };
    (heap Allocated $size_record:literal $size_leaf:literal $(by $record:literal $leaf:literal)?) => {
        $crate::format::ModelKind::Heap {
            role: $crate::format::HeapRole::Allocated { size: ($size_record, $size_leaf) },
            by: $crate::__metatf_leaf!($($record $leaf)?),
        }
    };
    (heap $role:ident $(by $record:literal $leaf:literal)?) => {
        $crate::format::ModelKind::Heap {
            role: $crate::format::HeapRole::$role,
            by: $crate::__metatf_leaf!($($record $leaf)?),
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_leaf {
    () => {
        ::core::option::Option::None
    };
    ($record:literal $leaf:literal) => {
        ::core::option::Option::Some(($record, $leaf))
    };
}

#[cfg(test)]
mod tests {
    use super::{CODEGEN_VERSION, check_codegen};

    #[test]
    fn code_of_this_version_is_taken() {
        check_codegen(CODEGEN_VERSION);
    }

    #[test]
    #[should_panic(expected = "generate the code again")]
    fn stale_code_is_refused_with_a_sentence() {
        check_codegen(CODEGEN_VERSION + 1);
    }
}
