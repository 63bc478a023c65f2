//! A small `Copy` error type for every problem with a trace, consisting of a location and a cause.
//!
//! An [`Error`] stores the file offset, the offset in a compressed chunk's content, the start of the record, the
//! section, the record and the leaf (spec 7). It stores only numbers; `Trace::explain` replaces them with the names of
//! the trace's format.
//!
//! # Examples
//!
//! ```
//! use metatf_container::{ErrorKind, Reader};
//!
//! let error = Reader::from_slice(b"GIF89a").err().ok_or("accepted as a trace")?;
//! assert_eq!(error.kind, ErrorKind::NotATrace(*b"GIF8", 4));
//! assert_eq!(error.place.offset, 0);
//! assert_eq!(error.to_string(), "offset 0: not a Meta-TF trace (it begins with `GIF8`)");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{fmt, io};

use super::features::Features;
use super::whole_file::Truncated;

/// The result type for reading and writing traces.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A problem and its location.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// The problem.
    pub kind: ErrorKind,
    /// The location.
    pub place: Place,
}

/// A location in a trace (spec 7). `offset` is exact for content of a version 0 file and of stored chunks. For
/// compressed or filtered chunks, `offset` is the offset of the chunk header, and `content` is the offset in the
/// chunk's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// File offset of the first invalid byte.
    pub offset: u64,
    /// Offset in the chunk's content, if `offset` can only identify the chunk.
    pub content: Option<u64>,
    /// Start of the invalid record: an offset in the chunk's content if `content` is set, otherwise a file offset.
    pub record_start: Option<u64>,
    /// Section number.
    pub section: Option<u8>,
    /// Tag of the invalid record.
    pub tag: Option<u32>,
    /// Index of the leaf in its record.
    pub leaf: Option<u8>,
}

/// The prefix of the message of [`ErrorKind::Truncated`]. Commands search for it to recognize this error inside another
/// message.
pub const TRUNCATED: &str = "the input ends inside";

/// The possible problems with a trace, or with a value being written to a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Reading or writing the file failed.
    Io(SystemError),
    /// A violated rule of the container (spec 5).
    Invalid {
        /// The field or rule, named as in the specification.
        what: &'static str,
        /// The value found.
        found: u64,
        /// The valid values.
        expected: &'static str,
    },
    /// The trace requires features (spec 5.2) that this version of the program does not support.
    UnknownFeatures(Features),
    /// The file is not a trace: it begins with these bytes instead of the magic number. The second value is the number
    /// of bytes present, which is less than 4 if the file is shorter.
    NotATrace([u8; 4], u8),
    /// The input ends inside this structure.
    Truncated(&'static str),
    /// A tag that the section does not declare.
    UnknownTag(u32),
    /// A catch-all record cannot be written with a tag that belongs to another record.
    TagTaken(u32),
    /// A section number that the format does not declare, or 0 in a `section` record.
    UnknownSection(u64),
    /// A constant leaf with a different value.
    NotConstant {
        /// The value in the trace.
        found: u64,
        /// The constant.
        expected: u64,
    },
    /// The number of items written differs from the result of the expression that counts them.
    NotCount {
        /// The number of items written.
        found: u64,
        /// The value of the expression.
        expected: u64,
    },
    /// The items to be written do not end with one that meets the condition of their repetition.
    NoLastItem,
    /// A terminated byte array that does not contain this terminator in its first 65,535 bytes, or a byte array to be
    /// written that does contain it.
    NoEnd(u8),
    /// The result of a width or count expression, which is negative, more than 2^64-1, or more than the available data.
    Length(u64),
    /// An expression whose result is negative, or 2^64 or more.
    Expression,
    /// More repeated items than spec 3.3 allows.
    TooManyItems(u64),
    /// A nonexistent element of a stream section (spec 4).
    NoElement {
        /// The stream section.
        section: u8,
        /// The requested element.
        index: u64,
    },
    /// A code of a predicted leaf for which its model has no candidate.
    NoCandidate(u64),
    /// An offset into a section's content at which no element can be read.
    NoOffset {
        /// The section.
        section: u8,
        /// The offset.
        offset: u64,
    },
    /// A metadata record that violates the rules of spec 4.1.
    Metadata(MetadataRule),
    /// A CRC-32C mismatch.
    Checksum,
    /// An unknown codec.
    Codec(u8),
    /// A codec that this program was built without. The string is the name of the missing feature.
    MissingCodec(&'static str),
    /// The codec rejected the payload.
    Decompress(&'static str),
    /// A chunk whose number of records differs from the number in its header.
    RecordCount {
        /// The number in the header.
        declared: u64,
        /// The actual number in the chunk.
        found: u64,
    },
    /// A value that does not fit in its leaf's encoding, which the writer cannot change or, in strict mode, must not
    /// change.
    DoesNotFit {
        /// The value.
        value: u64,
        /// The current width of the leaf in bytes.
        width: u8,
    },
    /// A value of a leaf that stores nothing (`default` or `stride`), which differs from the value that follows from the
    /// leaf's interpretation. A writer that is not strict changes the encoding instead, if it can.
    NotImplied {
        /// The value.
        found: u64,
        /// The value that follows from the interpretation.
        expected: u64,
    },
    /// The trace's format cannot be reconciled with the reader's (spec 5.3).
    Mismatch(&'static str),
    /// A limit set by the file's class or by the container was reached.
    Limit(&'static str),
    /// A call with invalid arguments or in the wrong state.
    Usage(&'static str),
    /// A missing DTD, or one with errors (the parser reports the details).
    Dtd(&'static str),
}

/// An I/O error that can be copied and compared. It stores the operating system's error code, or the error kind if
/// there is no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemError {
    kind: io::ErrorKind,
    code: Option<i32>,
    truncated: bool,
}

impl SystemError {
    /// The file is shorter than it was when it was opened.
    pub(crate) const TRUNCATED: Self = Self { kind: io::ErrorKind::UnexpectedEof, code: None, truncated: true };

    /// Returns whether another process truncated the file while it was being read.
    #[must_use]
    pub fn is_truncated(self) -> bool {
        self.truncated
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(self) -> io::ErrorKind {
        self.kind
    }
}

impl From<&io::Error> for SystemError {
    fn from(error: &io::Error) -> Self {
        match error.get_ref() {
            Some(why) if why.is::<Truncated>() => Self::TRUNCATED,
            _ => Self { kind: error.kind(), code: error.raw_os_error(), truncated: false },
        }
    }
}

impl From<SystemError> for io::Error {
    fn from(error: SystemError) -> Self {
        match error.code {
            _ if error.truncated => Self::new(error.kind, Truncated),
            Some(code) => Self::from_raw_os_error(code),
            None => error.kind.into(),
        }
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from(*self).fmt(f)
    }
}

/// The rule of spec 4.1 that a metadata record violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataRule {
    /// The record names a tag that its section does not declare.
    UnknownTag,
    /// The record names `section` or `metadata`.
    NotChangeable,
    /// The record has no field with this number.
    NoField,
    /// The field is a tag, a constant or a byte array.
    NotSettable,
    /// A width of more than 8 bytes.
    Width,
    /// A section number greater than 255.
    SectionNumber,
    /// `sectionOffset` to a section other than a stream section.
    OffsetTarget,
    /// `sectionStride` to a section other than a stream section of single numbers.
    StrideTarget,
    /// `sectionStride` in a record whose items end by their content.
    ScannedRecord,
    /// `sectionStride` with a stride less than 1.
    Stride,
    /// A `baseOffset` reference, which may appear only in the DTD.
    Reference,
    /// `predicted`, which may appear only in the DTD.
    Predicted,
    /// An interpretation that stores bytes, for a field without a width.
    NoWidth,
    /// A value of more than 8 bytes (only when writing).
    ValueWidth,
    /// A value that does not fit in the width specified by the property (only when writing).
    ValueOverflow,
}

impl fmt::Display for MetadataRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownTag => "the record names a tag that is not declared in this section",
            Self::NotChangeable => "the record names `section` or `metadata`, which cannot be changed",
            Self::NoField => "the record has no field with this number",
            Self::NotSettable => "the field is a tag, a constant or a byte array",
            Self::Width => "the width exceeds 8",
            Self::SectionNumber => "the section number exceeds 255",
            Self::OffsetTarget => "sectionOffset requires a stream section",
            Self::StrideTarget => "sectionStride requires a stream section with a single numeric leaf",
            Self::ScannedRecord => "sectionStride cannot be set in a record with `(until ..)` or `(rest)` items",
            Self::Stride => "the stride of sectionStride must be at least 1",
            Self::Reference => "a baseOffset reference can only be declared in the DTD",
            Self::Predicted => "a predicted field can only be declared in the DTD",
            Self::NoWidth => "the interpretation stores bytes, but the field never had a width",
            Self::ValueWidth => "the value width exceeds 8",
            Self::ValueOverflow => "the value does not fit in the width specified by its property",
        })
    }
}

impl Error {
    /// Creates an error at an exact file offset.
    #[inline]
    #[must_use]
    pub fn at(offset: u64, kind: ErrorKind) -> Self {
        Self { kind, place: Place { offset, ..Place::default() } }
    }

    /// Returns whether the error refers to bytes of a trace. Returns false if the error has no offset and its cause is
    /// the system, a limit or a value being written.
    #[must_use]
    pub fn has_offset(&self) -> bool {
        use ErrorKind as E;
        match self.kind {
            E::NotATrace(_, length) => length > 0,
            E::Io(_)
            | E::Usage(_)
            | E::Limit(_)
            | E::DoesNotFit { .. }
            | E::NotImplied { .. }
            | E::TagTaken(_)
            | E::Mismatch(_)
            | E::Dtd(_) => self.place.offset > 0,
            _ => true,
        }
    }
}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Self::at(0, ErrorKind::Io((&e).into()))
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Io(error) => write!(f, "{error}"),
            Self::NotATrace(_, 0) => write!(f, "not a Meta-TF trace (it is empty)"),
            Self::NotATrace(bytes, length) => {
                let bytes = bytes.get(..usize::from(length)).unwrap_or_default();
                write!(f, "not a Meta-TF trace (it begins with `{}`)", bytes.escape_ascii())
            }
            Self::Invalid { what, found, expected } => write!(f, "{what} is {found}, expected {expected}"),
            Self::UnknownFeatures(features) => {
                write!(f, "the trace needs {features}, which this version of the program does not support")
            }
            Self::Truncated(what) => write!(f, "{TRUNCATED} {what}"),
            Self::UnknownTag(tag) => write!(f, "tag {tag} is not declared in this section"),
            Self::TagTaken(tag) => write!(f, "tag {tag} belongs to another record of this section"),
            Self::UnknownSection(n) => write!(f, "the format has no section {n}"),
            Self::NotConstant { found, expected } => {
                write!(f, "the value is {found}, expected the constant {expected}")
            }
            Self::NotCount { found, expected } => {
                write!(f, "the record has {found} items, but their count expression yields {expected}")
            }
            Self::NoLastItem => f.write_str("no item meets the condition after `until`, which the last item must meet"),
            Self::NoEnd(end) => write!(
                f,
                "the array must end with byte {end}, within 65,535 bytes, and must not contain this byte elsewhere"
            ),
            Self::Length(n) => write!(f, "the value requires {n} bytes, but fewer bytes remain in the section"),
            Self::Expression => write!(f, "the expression is negative, exceeds 2^64-1, or divides by 0"),
            Self::TooManyItems(n) => {
                write!(f, "the record has {n} repeated items, over 65,536 more than its number of bytes")
            }
            Self::NoElement { section, index } => write!(f, "stream section {section} has no element {index}"),
            Self::NoCandidate(code) => write!(f, "the model has no candidate for code {code}"),
            Self::NoOffset { section, offset } => write!(f, "section {section} has no element at offset {offset}"),
            Self::Metadata(rule) => write!(f, "invalid metadata record: {rule}"),
            Self::Checksum => write!(f, "CRC-32C mismatch"),
            Self::Codec(n) => write!(f, "unknown codec {n}"),
            Self::MissingCodec(name) => {
                write!(f, "{name} is required, but this program was built without the feature `{name}`")
            }
            Self::Decompress(why) => write!(f, "cannot decompress the payload: {why}"),
            Self::RecordCount { declared, found } => {
                write!(f, "the chunk declares {declared} records, but contains {found}")
            }
            Self::DoesNotFit { value, width } => write!(f, "the value {value} does not fit in {width} bytes"),
            Self::NotImplied { found, expected } => {
                write!(f, "the value is {found}, but the field stores nothing and must be {expected}")
            }
            Self::Mismatch(why) => write!(f, "the trace's DTD does not match the reader's: {why}"),
            Self::Limit(what) => write!(f, "limit reached: {what}"),
            Self::Usage(why) => write!(f, "{why}"),
            Self::Dtd(why) => write!(f, "{why}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}", self.offset)?;
        if let Some(content) = self.content {
            write!(f, " (chunk), content offset {content}")?;
        }
        Ok(())
    }
}

/// Prints like `Display`, so that a `main` that returns the error prints a readable message.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_offset() {
            write!(f, "{}: ", self.place)?;
        }
        write!(f, "{}", self.kind)?;
        if let Some(section) = self.place.section {
            write!(f, " (section {section}")?;
            if let Some(tag) = self.place.tag {
                write!(f, ", record with tag {tag}")?;
            }
            if let Some(leaf) = self.place.leaf {
                write!(f, ", leaf {leaf}")?;
            }
            if let Some(start) = self.place.record_start {
                write!(f, ", record begins at {start}")?;
            }
            write!(f, ")")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::{Error, ErrorKind};

    /// Errors are readable in `Debug`, because `fn main() -> Result<()>` prints them this way.
    #[test]
    fn debug_is_a_sentence() {
        let error = Error::at(52, ErrorKind::Checksum);
        assert_eq!(format!("{error:?}"), "offset 52: CRC-32C mismatch");
    }

    #[test]
    fn the_text_of_the_operating_system_is_kept() {
        for code in [4, 5, 24] {
            let system = std::io::Error::from_raw_os_error(code);
            let text = system.to_string();
            assert_eq!(Error::from(system).to_string(), text);
        }
        let without_code = std::io::Error::other("anything");
        assert_eq!(Error::from(without_code).to_string(), "other error");
    }

    #[test]
    fn what_is_no_place_is_not_shown() {
        let usage = ErrorKind::Usage("not a stream section");
        assert_eq!(Error::at(0, usage).to_string(), "not a stream section");
        assert_eq!(Error::at(9, usage).to_string(), "offset 9: not a stream section");
        assert_eq!(Error::at(0, ErrorKind::Checksum).to_string(), "offset 0: CRC-32C mismatch");
    }
}
