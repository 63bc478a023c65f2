//! Rules that a DTD must follow. Each rule has a stable diagnostic code, the section of the specification that states
//! it, and a short example for `--explain` and the book.

use std::fmt;

use crate::schema::listed_words;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The DTD is rejected.
    Error,
    /// The DTD is accepted, but part of it is probably a mistake.
    Warning,
}

/// Defines [`Code`] from the table below.
macro_rules! codes {
    ($($variant:ident = $code:literal, $spec:literal, $rule:expr $(, $example:literal)?;)*) => {
        /// Code of a rule, as in [`Code::as_str`]: `E0104` for an error, `W0101` for a warning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $rule] $variant,)*
        }

        impl Code {
            /// All codes, in ascending order.
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            /// Returns the stable code, such as `E0104`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $code,)*
                }
            }

            /// Returns the rule in one sentence, the section of the specification that states it, and an example that
            /// breaks it.
            #[must_use]
            pub fn explain(self) -> &'static str {
                match self {
                    $(Code::$variant => concat!(
                        $rule, "\n\nSpecification: section ", $spec, ".\n"
                        $(, "\nFor example, this breaks the rule:\n\n    ", $example, "\n")?
                    ),)*
                }
            }
        }
    };
}

codes! {
    // Text and syntax.
    NotUtf8 = "E0001", "2",
        "A DTD is UTF-8 text.",
        r#"// caf\xE9"#;
    TooLarge = "E0002", "7",
        "A DTD is at most 4 MiB long, and holds at most 262,000 names, numbers, strings, marks and comments.";
    OpenComment = "E0003", "2",
        "A `/*` comment ends with `*/`.",
        "/* size in bytes";
    BadString = "E0004", "2",
        r#"A string ends on the line where it starts; its escapes are `\n`, `\t`, `\r`, `\\` and `\"`."#,
        r#"size.doc = "bytes;"#;
    UnknownCharacter = "E0005", "2",
        "Outside of comments and strings a DTD holds names, numbers and punctuation.",
        "size.width = #4;";
    Syntax = "E0006", "2",
        "The text follows the grammar of the language.",
        "size.width 4;";
    Brace = "E0007", "2",
        "Every `{` of a section or a record's block has its `}`.",
        "section heap 1 { alloc: (tag) { tag.value = 4;";
    DeepParentheses = "E0008", "3.5",
        "Parentheses nest at most 32 deep.";
    ReservedWord = "E0009", "2",
        concat!("The interpretation words (", listed_words!(", "), ") are not names."),
        "alloc: (tag, delta)";
    WideNumber = "E0010", "2",
        "A number fits 64 bits.",
        "size.interpretation = default 18446744073709551616;";
    BadReference = "E0011", "2",
        "A reference ends in `.value`, `.width` or `.bit N`, N from 0 to 63; the base of a `baseOffset` is `RECORD.FIELD.value`.",
        "data.width = length.size;";
    LongExpression = "E0012", "3.2",
        "An expression has at most 1000 operands and operators.";
    // Names.
    SectionNameTwice = "E0101", "3.2",
        "Section names are unique.",
        "section heap 1 { } section heap 2 { }";
    SectionNumberTwice = "E0102", "3.2",
        "Section numbers are unique.",
        "section heap 1 { } section disk 1 { }";
    SectionNumber = "E0103", "3.2",
        "A section's number is 1 to 255; 0 is the global section.",
        "section heap 256 { }";
    RecordTwice = "E0104", "3.1",
        "A record's name is used once in its scope, and a section's record may not take a global record's name.",
        "mark: (tag) { tag.value = 4; } section s 1 { mark: (tag) { tag.value = 5; } }";
    ReservedRecord = "E0105", "2",
        "`vfield`, `comment`, `section` and `metadata` are predefined.",
        "vfield: (length, data)";
    KeyClash = "E0106", "3.1",
        "Where a field stands twice in a record, the second is called `NAME_2` outside the DTD, and a repeated group is `COUNT_items`; no other field may have that name.",
        "r: (tag, a, a, a_2) { tag.value = 4; }";
    // Tags.
    TagWithoutValue = "E0201", "3.2",
        "A record that lists `tag` sets `tag.value`.",
        "r: (tag, a) { a.width = 1; a.interpretation = none; }";
    TagNotFirst = "E0202", "3.2",
        "Where it is listed, `tag` is the first field, once.",
        "r: (a, tag) { tag.value = 4; }";
    TagValue = "E0203", "3.2",
        "A tag value is a number that fits the tag's width.",
        "r: (tag) { tag.value = 256; }";
    TagReserved = "E0204", "3.2",
        "1, 2 and 3 are the tags of `comment`, `section` and `metadata`, unless the top level gives these others.",
        "r: (tag) { tag.value = 3; }";
    TagTwice = "E0205", "3.2",
        "A tag value is unique among the records visible in a section.",
        "r: (tag) { tag.value = 4; } q: (tag) { tag.value = 4; }";
    TagWidth = "E0206", "3.2",
        "A tag is 1, 2 or 4 bytes wide.",
        "tag.width = 3;";
    TagProperty = "E0207", "3.2",
        "`tag` has only a width, set once, at the top level, and in each record its value.",
        "r: (tag) { tag.value = 4; tag.width = 2; }";
    // Scopes and nesting.
    UnknownField = "E0301", "3.1",
        "A property in a record's block starts at a field of that record.",
        "r: (tag, a) { tag.value = 4; b.width = 2; }";
    PathOutsideBlock = "E0302", "3.1",
        "Outside a record's block a property names one field.",
        "vfield.length.width = 2;";
    PathEnd = "E0303", "3.1",
        "A property's path descends through nested records and ends at a field of numbers or bytes.",
        "r: (tag, vfield) { tag.value = 4; vfield.width = 2; }";
    NestsItself = "E0304", "3.5",
        "A record does not nest itself, directly or not.",
        "p: (a, p)";
    NestsTagged = "E0305", "3.5",
        "A tagged record is not nested in another.",
        "r: (tag, comment) { tag.value = 4; }";
    NestsDeep = "E0306", "3.5",
        "Records and groups nest at most 32 deep.";
    // Properties.
    PropertyTwice = "E0401", "3.1",
        "A property is set once in a scope.",
        "size.width = 4; size.width = 8;";
    ValueKind = "E0402", "2",
        "A property has the kind of value that it takes.",
        r#"size.width = "4";"#;
    UnknownInterpretation = "E0403", "2",
        concat!("The interpretations are ", listed_words!(" and "), "."),
        "size.interpretation = plain;";
    UnknownPrevious = "E0405", "2",
        "`previous` is `own` or `shared`.",
        "time.previous = mine;";
    NameList = "E0406", "2",
        "`values` and `flags` list numbers and names. No number and no name stands twice; the numbers of `flags` are those of bits, 0 to 63; a name is not a number and holds no comma, that of a bit no `|`.",
        r#"state.values = "0 running, 1";"#;
    NamedField = "E0407", "2",
        "An integer has either `values` or `flags`; a byte array or a floating-point number has neither.",
        r#"a.width = 16; a.interpretation = none; a.values = "0 none";"#;
    // Widths, interpretations, constants.
    NoWidth = "E0501", "3.2",
        "A field has a width, unless its interpretation stores no bytes.",
        "r: (tag, a) { tag.value = 4; a.interpretation = none; }";
    NoInterpretation = "E0502", "3.2",
        "A field has an interpretation.",
        "r: (tag, a) { tag.value = 4; a.width = 1; }";
    WidthRange = "E0503", "3.2",
        "A width is 0 to 4294967295.",
        "a.width = -1;";
    ArrayInterpretation = "E0504", "3.2",
        "A byte array (a width over 8, or computed) is `none`.",
        "a.width = 16; a.interpretation = delta 0;";
    ConstantOverflow = "E0505", "3.2",
        "An expression stays between 0 and 2^64-1 at every step, and does not divide by 0.",
        "a.width = 2 - 3;";
    ConstantArray = "E0506", "3.2",
        "A byte array is not constant.",
        "a.width = 12; a.interpretation = none; a.value = 1;";
    ConstantRange = "E0507", "3.2",
        "A constant agrees with its field's width and interpretation.",
        "a.width = 1; a.interpretation = none; a.value = 256;";
    // References.
    UnknownReference = "E0601", "3.2",
        "A width or a count is computed from earlier fields of the same record.",
        "r: (tag, data) { tag.value = 4; data.width = length.value; }";
    ForwardReference = "E0602", "3.5",
        "A width, a count or a predictor refers to fields that stand before it.",
        "r: (tag, data, length) { tag.value = 4; data.width = length.value; }";
    OutOfRepetition = "E0603", "3.5",
        "A reference does not lead into a repetition that is over.",
        "r: (tag, n*(v), d) { tag.value = 4; d.width = v.value; }";
    NotANumber = "E0604", "3.2",
        "`.value` and `.bit N` need a number, `.width` a width that is an integer.",
        "r: (tag, vfield, d) { tag.value = 4; d.width = vfield.data.value; }";
    CountName = "E0605", "3.3",
        "What counts a repetition is a number field, not a record and not `tag`.",
        "r: (tag, vfield*a) { tag.value = 4; }";
    CountLater = "E0606", "3.3",
        "A count that is encoded in place is not listed again later.",
        "r: (tag, n*a, n) { tag.value = 4; }";
    // Stream sections.
    NoStream = "E0701", "3.5",
        "`sectionOffset` names the number of a stream section.",
        "section s 1 { r: (tag, a) { tag.value = 4; a.width = 1; a.interpretation = sectionOffset 1; } }";
    NoNumberStream = "E0702", "3.5",
        "`sectionStride` and `predicted` name the number of a stream section of one number field.",
        "section t 2 { n: vfield; } section s 1 { r: (tag, a) { tag.value = 4; a.interpretation = sectionStride 2 1; } }";
    StrideRange = "E0703", "3.5",
        "The stride of a `sectionStride` is at least 1.",
        "a.interpretation = sectionStride 2 0;";
    EmptyElement = "E0704", "3.4",
        "An element of a stream section stores at least one byte, whatever its counts.",
        "section t 2 { n: (x) { x.interpretation = default 1; } }";
    NestedSection = "E0705", "3.7",
        "The bytes of an array are records of a section that takes nothing from stream sections; it does not nest itself, and sections nest at most 8 deep.",
        "r: (tag, a) { tag.value = 4; a.width = 9; a.interpretation = none; a.section = 7; }";
    // Previous values and bases.
    InitialsDiffer = "E0801", "3.5",
        "Fields that share a previous value have one initial value.",
        "t.previous = shared; a: (tag, t) { tag.value = 4; t.interpretation = stride 1 1; } b: (tag, t) { tag.value = 5; t.interpretation = stride 2 1; }";
    BaseUnknown = "E0802", "3.5",
        "The base of a `baseOffset` is a number field of a record that the section lists, or a global one.",
        "a.interpretation = baseOffset alloc.object.value;";
    // Limits.
    ManyLeaves = "E0901", "3.5",
        "A record has at most 255 fields, nested ones and `tag` included.";
    LargeSchema = "E0902", "7",
        "What a DTD resolves to takes at most 16 MiB of memory: fields, expressions, and the leaves of records nested many times.";
    // Predicted fields.
    PredictorWord = "E1001", "2",
        "The predictors are `lastValue`, `stride`, `fcm`, `dfcm` and `heap`; each may go `by` a field; in a heap an address is `allocated`, `freed` or `used`.",
        "a.interpretation = predicted 1 fmc 2 5;";
    PredictorRange = "E1002", "3.5",
        "`lastValue` takes 1 to 16 values, `fcm` and `dfcm` have an order of 1 to 3.",
        "a.interpretation = predicted 1 fcm 4 5;";
    ManyCandidates = "E1003", "3.5",
        "A model has at most 64 candidates: n of `lastValue n`, one of `stride`, two of each `fcm` and `dfcm`.",
        "a.interpretation = predicted 1 (lastValue 16, lastValue 16, lastValue 16, lastValue 16, stride) 5;";
    HeapAlone = "E1004", "3.5",
        "`heap` is a model of its own and stands beside no other predictor.",
        "a.interpretation = predicted 1 (heap freed, stride) 5;";
    PredictorField = "E1005", "3.5",
        "A predictor goes by a number field: an earlier one of the same record, or `RECORD.FIELD` of a record that the section lists, or of a global one.",
        "a.interpretation = predicted 1 fcm 2 by size 5;";
    PredictedPlace = "E1006", "3.5",
        "A field of a stream section's element or of a predefined record is not predicted.",
        "section t 2 { n: (x) { x.interpretation = predicted 1 stride 2; } }";
    ModelRevision = "E1007", "4.2",
        "A model has a revision, the number of the rules that it follows, and this version knows it.",
        "a.interpretation = predicted 2 stride 5;";
    // Files without a header.
    MagicField = "E1101", "5.4",
        "A field of role `magic` is a number of a section's record, is `none`, is not repeated, and has a `value` or `values`.",
        r#"section head 1 { prologue: (magic) { magic.width = 4; magic.interpretation = none; magic.role = "magic"; } }"#;
    RawRole = "E1102", "5.4",
        "A field of role `records_size` is a number of a stream section's element that has a `magic`; one of role `trailer` is the only field of a stream section's element.",
        r#"section s 1 { r: (tag, size) { tag.value = 4; size.width = 4; size.interpretation = none; size.role = "records_size"; } }"#;
    RawSections = "E1103", "5.4",
        "Beside what stands before and behind the records, a DTD of files without a header has one section, which has the records.",
        r#"section head 1 { prologue: (magic) { magic.width = 4; magic.interpretation = none; magic.value = 7; magic.role = "magic"; } }"#;
    // Warnings.
    UnusedProperty = "W0101", "3.1",
        "A property is for a field that some record has.",
        "attributes.width = 0;";
    UnusedRecord = "W0102", "3.1",
        "An untagged record is nested by some record, or is the element of a stream section.",
        "point: (x, y)";
    SignedNarrow = "W0103", "2",
        "`signed` is the two's complement of the 64-bit value: a field of under 8 bytes that is `none` is never negative. Use `baseOffset 0`, which extends the sign.",
        r#"a.width = 1; a.interpretation = none; a.format = "signed";"#;
    MisspeltProperty = "W0104", "2",
        "A property whose name is nearly that of a known one is probably meant to be that one. The name of an annotation that is meant stands in quotes.",
        "time.widht = 8;";
    LargeArray = "W0105", "5.2",
        "A byte array fits into a chunk, whose content has at most 64 MiB.",
        "a.width = 3000000000;";
    NoRecords = "W0106", "2",
        "A DTD declares records.",
        "time.width = 8;";
    MisleadingText = "W0107", "2",
        "A text reads as it looks: it holds no characters that change the direction of writing, and no carriage return but at the end of a line.";
    FormatWidth = "W0108", "2",
        "A format fits its field: `utf8` and `bytes` are for byte arrays, `ipv6` and `uuid` for those of 16 bytes, `ipv4` and `char` for numbers of up to 4 bytes, `f64` for numbers of 8, all others for numbers.",
        r#"a.width = 8; a.interpretation = none; a.format = "uuid";"#;
    UnknownFormat = "W0109", "2",
        r#"The formats are "dec" "hex" "signed" "f64" "utf8" "cstring" "bytes" "time_ns" "time_us" "time_s" "date_ns" "date_us" "date_ms" "date_s" "duration_ns" "bool" "char" "chars" "chars_le" "ipv4" "ipv6" "uuid". Another one has no effect."#,
        r#"a.width = 1; a.interpretation = none; a.format = "octal";"#;
}

impl Code {
    /// Returns the severity: an error rejects a DTD, a warning does not.
    #[must_use]
    pub fn severity(self) -> Severity {
        if self.as_str().starts_with('W') { Severity::Warning } else { Severity::Error }
    }

    /// Checks whether the code reports text that could not be parsed.
    pub(crate) fn is_syntax(self) -> bool {
        self.as_str().starts_with("E00")
    }

    /// Checks whether an unparsed definition may cause this diagnostic. Such a diagnostic is kept only if the complete
    /// text was parsed.
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

/// Returns the rule of a code such as `E0104`, with an example, or `None` if the code is unknown.
#[must_use]
pub fn explain(code: &str) -> Option<&'static str> {
    Code::ALL.iter().find(|c| c.as_str().eq_ignore_ascii_case(code)).map(|c| c.explain())
}
