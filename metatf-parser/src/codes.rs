//! Rules that a DTD must follow. Each rule has a stable diagnostic code, the section of the specification that states
//! it, and a short example for `--explain` and the book.

use std::fmt;

use crate::rules::Rule;
use crate::schema::listed_words;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The DTD is rejected.
    Error,
    /// The DTD is accepted, but part of it is probably a mistake.
    Warning,
    /// The DTD is correct, but could be better. Only `lint` makes suggestions.
    Suggestion,
}

/// Defines [`Code`] from the table below.
macro_rules! codes {
    ($($variant:ident = $code:literal, $spec:literal, $rule:expr $(, $example:literal)?;)*) => {
        /// Code of a rule, as in [`Code::as_str`]: `E0104` for an error, `W0101` for a warning, and the name of the rule
        /// for a suggestion.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $rule] $variant,)*
            /// A rule of `lint`.
            Lint(Rule),
        }

        impl Code {
            /// All codes of errors and warnings, in ascending order.
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            /// Returns the stable code, such as `E0104`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $code,)*
                    Code::Lint(rule) => rule.name(),
                }
            }

            /// Returns the rule in one sentence, the section of the specification that states it, and an example that
            /// breaks it. For a lint rule, returns [`Rule::explain`].
            #[must_use]
            pub fn explain(self) -> &'static str {
                match self {
                    $(Code::$variant => concat!(
                        $rule, "\n\nSpecification: section ", $spec, ".\n"
                        $(, "\nFor example, this breaks the rule:\n\n    ", $example, "\n")?
                    ),)*
                    Code::Lint(rule) => rule.explain(),
                }
            }
        }
    };
}

codes! {
    // Text and syntax.
    NotUtf8 = "E0001", "2",
        "A DTD must be valid UTF-8.",
        r#"// caf\xE9"#;
    TooLarge = "E0002", "7",
        "A DTD must not exceed 4 MiB or contain more than 262,000 names, numbers, strings, punctuation marks and comments.";
    OpenComment = "E0003", "2",
        "A `/*` comment must end with `*/`.",
        "/* size in bytes";
    BadString = "E0004", "2",
        r#"A string must end on the line where it starts. Its escapes are `\n`, `\t`, `\r`, `\\` and `\"`."#,
        r#"size.doc = "bytes;"#;
    UnknownCharacter = "E0005", "2",
        "Outside of comments and strings, a DTD may contain only names, numbers and punctuation.",
        "size.width = #4;";
    Syntax = "E0006", "2",
        "A DTD must follow the grammar of the language.",
        "size.width 4;";
    Brace = "E0007", "2",
        "Every `{` of a section or of a record's block must have a matching `}`.",
        "section heap 1 { alloc: (tag) { tag.value = 4;";
    DeepParentheses = "E0008", "3.5",
        "Parentheses may nest at most 32 deep.";
    ReservedWord = "E0009", "2",
        concat!("The interpretation words (", listed_words!(", "), ") cannot be used as names."),
        "alloc: (tag, delta)";
    WideNumber = "E0010", "2",
        "A number must fit in 64 bits.",
        "size.interpretation = default 18446744073709551616;";
    BadReference = "E0011", "2",
        "A reference must end in `.value`, `.width` or `.bit N`, with N from 0 to 63. The base of a `baseOffset` must have the form `RECORD.FIELD.value`.",
        "data.width = length.size;";
    LongExpression = "E0012", "3.2",
        "An expression may contain at most 1000 operands and operators.";
    // Names.
    SectionNameTwice = "E0101", "3.2",
        "Section names must be unique.",
        "section heap 1 { } section heap 2 { }";
    SectionNumberTwice = "E0102", "3.2",
        "Section numbers must be unique.",
        "section heap 1 { } section disk 1 { }";
    SectionNumber = "E0103", "3.2",
        "A section number must be 1 to 255. The global section has number 0.",
        "section heap 256 { }";
    RecordTwice = "E0104", "3.1",
        "A record name must be unique within its scope, and a record of a section must not have the name of a global record.",
        "mark: (tag) { tag.value = 4; } section s 1 { mark: (tag) { tag.value = 5; } }";
    ReservedRecord = "E0105", "2",
        "The records `vfield`, `comment`, `section` and `metadata` are predefined and cannot be declared.",
        "vfield: (length, data)";
    KeyClash = "E0106", "3.1",
        "If a record lists a field name twice, the second field is called `NAME_2` outside the DTD. A group repeated by `COUNT` is called `COUNT_items`. No other field may have such a generated name, or the name given to a repetition.",
        "r: (tag, a, a, a_2) { tag.value = 4; }";
    // Tags.
    TagWithoutValue = "E0201", "3.2",
        "A record that lists `tag` must set `tag.value`.",
        "r: (tag, a) { a.width = 1; a.interpretation = none; }";
    TagNotFirst = "E0202", "3.2",
        "A record may list `tag` only once, as its first field.",
        "r: (a, tag) { tag.value = 4; }";
    TagValue = "E0203", "3.2",
        "A tag value must be a number that fits in the tag's width.",
        "r: (tag) { tag.value = 256; }";
    TagReserved = "E0204", "3.2",
        "The tags 1, 2 and 3 belong to `comment`, `section` and `metadata` unless the top level assigns other tags to these records.",
        "r: (tag) { tag.value = 3; }";
    TagTwice = "E0205", "3.2",
        "A tag value must be unique among the records visible in a section.",
        "r: (tag) { tag.value = 4; } q: (tag) { tag.value = 4; }";
    TagWidth = "E0206", "3.2",
        "A tag must be 1, 2 or 4 bytes wide.",
        "tag.width = 3;";
    TagProperty = "E0207", "3.2",
        "The only properties of `tag` are its width, set once at the top level, and its value, set in each record.",
        "r: (tag) { tag.value = 4; tag.width = 2; }";
    // Scopes and nesting.
    UnknownField = "E0301", "3.1",
        "A property path in a record block must start at a field of that record.",
        "r: (tag, a) { tag.value = 4; b.width = 2; }";
    PathOutsideBlock = "E0302", "3.1",
        "Outside a record block, a property path must be a single field name.",
        "vfield.length.width = 2;";
    PathEnd = "E0303", "3.1",
        "A property path must descend through nested records and end at a number or a byte array.",
        "r: (tag, vfield) { tag.value = 4; vfield.width = 2; }";
    NestsItself = "E0304", "3.5",
        "A record must not nest itself, directly or indirectly.",
        "p: (a, p)";
    NestsTagged = "E0305", "3.5",
        "A tagged record cannot be nested in another record.",
        "r: (tag, comment) { tag.value = 4; }";
    NestsDeep = "E0306", "3.5",
        "Records and groups may nest at most 32 deep.";
    UnknownType = "E0307", "3.1",
        "The type of a field must be a predefined type, a type that the DTD defines, or an untagged record.",
        "r: (a: u17) { tag.value = 4; }";
    // Properties.
    PropertyTwice = "E0401", "3.1",
        "A property may be set only once in a scope.",
        "size.width = 4; size.width = 8;";
    ValueKind = "E0402", "2",
        "A property value must have the type that the property expects.",
        r#"size.width = "4";"#;
    UnknownInterpretation = "E0403", "2",
        concat!("The interpretations are ", listed_words!(" and "), "."),
        "size.interpretation = plain;";
    UnknownPrevious = "E0405", "2",
        "The value of `previous` must be `own` or `shared`.",
        "time.previous = mine;";
    NameList = "E0406", "2",
        "`values` and `flags` list pairs of a number and a name. A number or a name may occur only once. In `flags`, a number is a bit from 0 to 63 or a range of bits such as `4-7`. A name must not be a number or contain a comma. In `flags`, it must not contain `|` or `=`.",
        r#"state.values = "0 running, 1";"#;
    NamedField = "E0407", "2",
        "An integer may have either `values` or `flags`. A byte array or a floating-point number may have neither.",
        r#"a.width = 16; a.interpretation = none; a.values = "0 none";"#;
    // Widths, interpretations, constants.
    NoWidth = "E0501", "3.2",
        "A field must have a width unless its interpretation stores no bytes.",
        "r: (tag, a) { tag.value = 4; a.interpretation = none; }";
    NoInterpretation = "E0502", "3.2",
        "A field must have an interpretation.",
        "r: (tag, a) { tag.value = 4; a.width = 1; }";
    WidthRange = "E0503", "3.2",
        "A width must be 0 to 4294967295.",
        "a.width = -1;";
    ArrayInterpretation = "E0504", "3.2",
        "The interpretation of a byte array (a field with a width over 8 or a computed width) must be `none`.",
        "a.width = 16; a.interpretation = delta 0;";
    ConstantOverflow = "E0505", "3.2",
        "An expression must stay within 0 to 2^64-1 at every step and must not divide by 0.",
        "a.width = 2 - 3;";
    ConstantArray = "E0506", "3.2",
        "A byte array cannot be constant.",
        "a.width = 12; a.interpretation = none; a.value = 1;";
    ConstantRange = "E0507", "3.2",
        "A constant must agree with the width and interpretation of its field.",
        "a.width = 1; a.interpretation = none; a.value = 256;";
    // References.
    UnknownReference = "E0601", "3.2",
        "A width or a count may refer only to earlier fields of the same record.",
        "r: (tag, data) { tag.value = 4; data.width = length.value; }";
    ForwardReference = "E0602", "3.5",
        "A width, a count or a predictor may refer only to fields that precede it.",
        "r: (tag, data, length) { tag.value = 4; data.width = length.value; }";
    OutOfRepetition = "E0603", "3.5",
        "A reference from outside a repetition must not refer to a field inside it.",
        "r: (tag, n*(v), d) { tag.value = 4; d.width = v.value; }";
    NotANumber = "E0604", "3.2",
        "`.value` and `.bit N` require a number field, and `.width` requires a field with an integer width.",
        "r: (tag, vfield, d) { tag.value = 4; d.width = vfield.data.value; }";
    CountName = "E0605", "3.3",
        "The count of a repetition must be a number field other than `tag`, not a record.",
        "r: (tag, vfield*a) { tag.value = 4; }";
    CountLater = "E0606", "3.3",
        "A count that is not listed before its repetition is encoded directly before the repetition. The record must not list such a count again later.",
        "r: (tag, n*a, n) { tag.value = 4; }";
    RestPlace = "E0607", "3.2",
        "A byte array with the width `rest`, or a repetition `(rest)*item`, must not be repeated or optional. Only fields of a fixed width may follow. `sectionOffset` must not refer to a section of such elements.",
        "r: (tag, data, vfield) { tag.value = 4; data.width = rest; data.interpretation = none; }";
    UntilCondition = "E0608", "3.3",
        "The condition of `(until expr)*item` must refer to a field of the items.",
        "section s 1 { r: (n: u8, (until n.value == 0)*x: u8) { tag.value = 4; } }";
    ScannedItems = "E0609", "3.3",
        "A record that contains `(until expr)*item` or `(rest)*item` must not use `sectionStride` or `predicted`.",
        "r: (tag, (until x.value == 0)*x) { tag.value = 4; x.interpretation = sectionStride 2 1; }";
    // Stream sections.
    NoStream = "E0701", "3.5",
        "The argument of `sectionOffset` must be the number of a stream section.",
        "section s 1 { r: (tag, a) { tag.value = 4; a.width = 1; a.interpretation = sectionOffset 1; } }";
    NoNumberStream = "E0702", "3.5",
        "`sectionStride` and `predicted` require the number of a stream section whose element is a single number field.",
        "section t 2 { n: vfield; } section s 1 { r: (tag, a) { tag.value = 4; a.interpretation = sectionStride 2 1; } }";
    StrideRange = "E0703", "3.5",
        "The stride of a `sectionStride` must be at least 1.",
        "a.interpretation = sectionStride 2 0;";
    EmptyElement = "E0704", "3.4",
        "An element of a stream section must store at least one byte, even if all its counts are 0.",
        "section t 2 { n: (x) { x.interpretation = default 1; } }";
    NestedSection = "E0705", "3.7",
        "The property `section` requires the number of a section whose records use no stream sections. Such a section must not nest itself. Sections may nest at most 8 deep.",
        "r: (tag, a) { tag.value = 4; a.width = 9; a.interpretation = none; a.section = 7; }";
    // Previous values and bases.
    InitialsDiffer = "E0801", "3.5",
        "Fields that share a previous value must have the same initial value.",
        "t.previous = shared; a: (tag, t) { tag.value = 4; t.interpretation = stride 1 1; } b: (tag, t) { tag.value = 5; t.interpretation = stride 2 1; }";
    BaseUnknown = "E0802", "3.5",
        "The base of a `baseOffset` must be a number field of a record in the same section, or of a global record.",
        "a.interpretation = baseOffset alloc.object.value;";
    // Limits.
    ManyLeaves = "E0901", "3.5",
        "A record may have at most 255 fields, including nested fields and `tag`.";
    LargeSchema = "E0902", "7",
        "The fields and expressions of a resolved DTD must fit in 16 MiB of memory. The fields of a nested record count once for each place where the record is nested.";
    // Predicted fields.
    PredictorWord = "E1001", "2",
        "The predictors are `lastValue`, `stride`, `fcm`, `dfcm` and `heap`. Each may be followed by `by` and a field. In a `heap` predictor, an address is `allocated`, `freed` or `used`.",
        "a.interpretation = predicted 1 fmc 2 5;";
    PredictorRange = "E1002", "3.5",
        "`lastValue` keeps 1 to 16 values, and the order of `fcm` and `dfcm` is 1 to 3.",
        "a.interpretation = predicted 1 fcm 4 5;";
    ManyCandidates = "E1003", "3.5",
        "A model may have at most 64 candidates. `lastValue n` has n candidates, `stride` has one, and `fcm` and `dfcm` have two each.",
        "a.interpretation = predicted 1 (lastValue 16, lastValue 16, lastValue 16, lastValue 16, stride) 5;";
    HeapAlone = "E1004", "3.5",
        "`heap` is a complete model and cannot be combined with other predictors.",
        "a.interpretation = predicted 1 (heap freed, stride) 5;";
    PredictorField = "E1005", "3.5",
        "A predictor may refer only to number fields: an earlier field of the same record, or `RECORD.FIELD` for a record that the section lists or a global record.",
        "a.interpretation = predicted 1 fcm 2 by size 5;";
    PredictedPlace = "E1006", "3.5",
        "A field in a stream section's element or in a predefined record cannot be predicted.",
        "section t 2 { n: (x) { x.interpretation = predicted 1 stride 2; } }";
    ModelRevision = "E1007", "4.2",
        "A model must state its revision, which selects the prediction rules. The program must support this revision.",
        "a.interpretation = predicted 2 stride 5;";
    // Files without a header.
    MagicField = "E1101", "5.4",
        "A field with the role `magic` must be a number field of a record in a section. The field must have the interpretation `none` and a `value` or `values`, and must not be repeated.",
        r#"section head 1 { prologue: (magic) { magic.width = 4; magic.interpretation = none; magic.role = "magic"; } }"#;
    RawRole = "E1102", "5.4",
        "A field with the role `records_size` must be a number field in a stream section's element that also contains a `magic` field. A field with the role `trailer` must be a number field and the only field of a stream section's element.",
        r#"section s 1 { r: (tag, size) { tag.value = 4; size.width = 4; size.interpretation = none; size.role = "records_size"; } }"#;
    RawSections = "E1103", "5.4",
        "A DTD for files without a header must have one section for the records, in addition to those for data before and after them and for byte arrays. Without such a section, the elements with the `magic` field are the records.",
        r#"section head 1 { prologue: (magic, size) { magic.width = 4; magic.interpretation = none; magic.value = 7; magic.role = "magic"; size.width = 4; size.interpretation = none; size.role = "records_size"; } }"#;
    HeaderField = "E1104", "5.4",
        "The argument `header.field.value` of `default` must name a number in the only record with which a file can begin. Neither this field nor the field that receives the value may be repeated, and the latter must belong to the file's records.",
        r#"section head 1 { h: (magic: u32, version: u8) { magic.value = 7; magic.role = "magic"; } } section s 2 { r: (v: default h.magic.value, h: u8) { tag.value = 4; } q: (w: default r.h.value) { tag.value = 5; } }"#;
    // Warnings.
    UnusedProperty = "W0101", "3.1",
        "A property should apply to a field of at least one record.",
        "attributes.width = 0;";
    UnusedRecord = "W0102", "3.1",
        "An untagged record should be nested in another record or be the element of a stream section.",
        "point: (x, y)";
    SignedNarrow = "W0103", "2",
        "The format `signed` shows the 64-bit value in two's complement, so a field of fewer than 8 bytes with the interpretation `none` is never negative. To extend the sign, use `baseOffset 0`.",
        r#"a.width = 1; a.interpretation = none; a.format = "signed";"#;
    MisspeltProperty = "W0104", "2",
        "A property with a name close to that of a known property is probably misspelled. If it is a deliberate annotation, put its name in quotes.",
        "time.widht = 8;";
    LargeArray = "W0105", "5.2",
        "A byte array should fit in a chunk, whose content is at most 64 MiB.",
        "a.width = 3000000000;";
    NoRecords = "W0106", "2",
        "A DTD should declare at least one record.",
        "time.width = 8;";
    MisleadingText = "W0107", "2",
        "A DTD should not contain characters that change the text direction, or a carriage return without a line feed. Such characters make the text look different from what it means.";
    FormatWidth = "W0108", "2",
        "A format should match the type and width of its field. For example, `uuid` is for byte arrays of 16 bytes, `f32` for numbers of 4 bytes, and `date_ns`, `date_us` and `date_ms` for numbers of at least 8, 7 and 6 bytes.",
        r#"a.width = 8; a.interpretation = none; a.format = "uuid";"#;
    UnknownFormat = "W0109", "2",
        r#"The formats are "dec" "hex" "signed" "f32" "f64" "utf8" "cstring" "bytes" "time_ns" "time_us" "time_s" "date_ns" "date_us" "date_ms" "date_s" "duration_ns" "bool" "char" "chars" "chars_le" "ipv4" "ipv6" "uuid". Others have no effect."#,
        r#"a.width = 1; a.interpretation = none; a.format = "octal";"#;
    StreamAlone = "W0110", "3.4",
        "A section whose only record has no tag is a stream section, to which a field of another section should refer.",
        "section log 1 { event: (name: u16 sectionOffset 2, time: u32); } section names 2 { name: vfield; }";
    NameBeyondWidth = "W0111", "2",
        "The values and bits in `values` and `flags` should fit in the width of the field.",
        r#"a.width = 1; a.interpretation = none; a.flags = "8 late";"#;
    DivisionByZero = "W0112", "3.2",
        "An expression should not divide by 0, because every record would be an error of the trace.",
        "r: (n: u8, data: bytes n.value / 0) { tag.value = 4; }";
    FlagMasks = "W0113", "2",
        "`flags` contains bit numbers starting at 0, not masks, so the bits 1, 2, 4 and so on were probably meant as masks. Items of `values` and `flags` are separated by commas, so another separator between two numbers is probably a mistake.",
        r#"a.width = 1; a.interpretation = none; a.flags = "1 read, 2 write, 4 append";"#;
    NeverHolds = "W0114", "3.3",
        "An expression should not compare a field with a value, or read a bit, that does not fit in the width of the field. Nor should it subtract a number from a bit as if the number were the last bit of a range.",
        "r: (flags: u8, (flags.bit 8)*cpu: u16) { tag.value = 4; }";
}

impl Code {
    /// Returns the severity, which determines whether a DTD is rejected.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Code::Lint(_) => Severity::Suggestion,
            _ if self.as_str().starts_with('W') => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Checks whether the code reports text that could not be parsed.
    pub(crate) fn is_syntax(self) -> bool {
        self.as_str().starts_with("E00")
    }

    /// Checks whether an unparsed definition may cause this diagnostic. If so, the diagnostic is kept only if the
    /// complete text was parsed.
    pub(crate) fn needs_whole_text(self) -> bool {
        use Code::{
            BaseUnknown, EmptyElement, ForwardReference, NestedSection, NoInterpretation, NoNumberStream, NoRecords,
            NoStream, NoWidth, NotANumber, PredictorField, RawSections, TagValue, TagWithoutValue, UnknownField,
            UnknownReference, UnusedProperty, UnusedRecord,
        };
        matches!(
            self,
            TagWithoutValue
                | TagValue
                | UnknownField
                | NoWidth
                | NoInterpretation
                | UnknownReference
                | ForwardReference
                | NotANumber
                | NoStream
                | NoNumberStream
                | EmptyElement
                | NestedSection
                | BaseUnknown
                | PredictorField
                | RawSections
                | UnusedProperty
                | UnusedRecord
                | NoRecords
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the rule of a code such as `E0104`, with an example, or the description of a lint rule such as
/// `similar-names`. Returns `None` if the code is unknown.
#[must_use]
pub fn explain(code: &str) -> Option<&'static str> {
    let found = Code::ALL.iter().find(|c| c.as_str().eq_ignore_ascii_case(code)).map(|c| c.explain());
    found.or_else(|| Rule::named(code).map(Rule::explain))
}
