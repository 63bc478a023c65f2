//! Notations of other languages and near misses, with the line to write instead.
//!
//! A pattern is a list of words. A word in capitals is a [class](super::pattern) and captures the tokens that it
//! matches, as far as necessary rewritten in this language. Any other word matches itself; `a|b` matches either. In the
//! other columns, `$1` is the first capture. `$count` is an earlier number field of the same list. `$repeat` is an earlier
//! field that is named like a count, or else a new field, which `$lead` lists. `$items` is the former, or else `(rest)`.
//! `$new` is the next unused number of a section or a record. An item after `?` is optional: its condition is a bit
//! of an earlier field with flags, or else a count of 0 or 1.

/// The place where a pattern applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The type of a field.
    Kind,
    /// An item of a field list.
    Field,
    /// The head of a section, before its `{`.
    Section,
    /// The head of a type, before its `{` or `;`.
    Type,
    /// The head of a record, before its `{` or `;`.
    Record,
    /// A statement in a record's block or outside of blocks, before its `;`.
    Statement,
    /// A statement in a type's block, before its `;`.
    Assignment,
}

/// A notation and its correction.
pub(super) struct Row {
    pub(super) place: Place,
    pub(super) pattern: &'static str,
    /// The corrected tokens.
    pub(super) write: &'static str,
    /// The description of the mistake; empty to use that of a corrected capture.
    pub(super) message: &'static str,
    /// The continuation of the help after the corrected tokens.
    pub(super) note: &'static str,
}

const ORDER: &str = "the name of a field precedes its type";
const COLON: &str = "expected `:` between the name of a field and its type";
const OPTIONAL: &str = "an optional field is a repetition with a count of 0 or 1";
/// Words of other languages for an optional field.
pub(super) const OPTIONAL_WORDS: &[&str] =
    &["optional", "opt", "maybe", "option", "nullable", "Option", "Optional", "Maybe"];
const ARRAY: &str = "a repetition is written as a count, `*` and the item";
const BYTES: &str = "a byte array is written as `bytes` and its length";
const LENGTH: &str = "a length is a number or an expression, such as `n.value`";
const REST: &str = "a repetition up to the end is written as `(rest)*`";
const UNTIL: &str = "a repetition up to a condition is written as `(until condition)*`";
const COUNT: &str = "a computed count is an expression in parentheses";
const CONSTANT: &str = "a field list contains no values";
const INLINE: &str = "a field list contains no properties";
const HYPHEN: &str = "a name consists of letters, digits and `_`";
const SECTION: &str = "expected `section`, a name and a number";
const TYPE: &str = "expected `type`, a name, `:` and a type";
const LIST: &str = "a record is written as a name, `:` and a field list in parentheses";
const EQUALS: &str = "expected `=` between a property and its value";
const FIELD_FIRST: &str = "a property belongs to a field";

macro_rules! rows {
    ($($place:ident, $message:tt { $($pattern:literal => $write:literal $(, $note:literal)?;)* })*) => {
        /// The rows, of which the first that matches applies.
        pub(super) const ROWS: &[Row] = &[$($(Row {
            place: Place::$place,
            pattern: $pattern,
            write: $write,
            message: $message,
            note: concat!("" $(, $note)?),
        },)*)*];
    };
}

rows! {
    // Types.
    Kind, "the type of a field precedes its interpretation" {
        "INTERPRETATION TYPE" => "$2 $1";
    }
    Kind, "a signed number has a type such as `i32`" {
        "signed u8" => "i8";
        "signed u16" => "i16";
        "signed u32" => "i32";
        "signed u64" => "i64";
        "unsigned TYPE" => "$1";
    }
    Kind, "an interpretation follows its type without parentheses" {
        "TYPE ( INTERPRETATION )" => "$1 $2";
    }
    Kind, "an interpretation follows its type without a comma" {
        "TYPE , INTERPRETATION" => "$1 $2";
    }
    Kind, "this is not an interpretation" {
        "TYPE NEAR" => "$1 $2";
        "TYPE NEAR INT" => "$1 $2 $3";
        "TYPE NEAR INT INT" => "$1 $2 $3 $4";
        "NEAR INT" => "$1 $2";
        "NEAR INT INT" => "$1 $2 $3";
    }
    Kind, "an interpretation refers to a section by its number" {
        "TYPE NEAR SECTION" => "$1 $2 $3";
        "NEAR SECTION" => "$1 $2";
        "TYPE sectionOffset SECTION" => "$1 sectionOffset $2";
        "TYPE sectionOffset SECTION . NAME" => "$1 sectionOffset $2";
        "sectionOffset SECTION . NAME" => "sectionOffset $1";
        "sectionOffset SECTION" => "sectionOffset $1";
        "TYPE sectionStride SECTION INT" => "$1 sectionStride $2 $3";
    }
    Kind, "an interpretation refers to a section by its number" {
        "TYPE references|REFERENCES|reference|refers|ref|in|into|to|from SECTION" => "$1 sectionOffset $2";
        "TYPE references|REFERENCES|ref|in|into|to|from SECTION ( NAME )" => "$1 sectionOffset $2";
        "TYPE references|REFERENCES|ref|in|into|to|from SECTION . NAME" => "$1 sectionOffset $2";
        "TYPE - > SECTION" => "$1 sectionOffset $2";
    }
    Kind, "several predictors are in parentheses" {
        "predicted INT MODELS INT" => "predicted $1 ($2) $3";
        "predicted MODELS INT" => "predicted 1 ($1) $2";
    }
    Kind, "only `heap allocated` has a size" {
        "predicted INT heap freed size|length|len|bytes INT" => "predicted $1 heap freed $2";
        "predicted INT heap used size|length|len|bytes INT" => "predicted $1 heap used $2";
    }
    Kind, "`sectionStride` has two arguments: a section's number and a stride" {
        "TYPE sectionStride SECTION" => "$1 sectionStride $2 1";
        "TYPE sectionStride INT" => "$1 sectionStride $2 1";
        "sectionStride INT" => "sectionStride $1 1";
        "sectionStride SECTION" => "sectionStride $1 1";
    }
    Kind, "`stride` has two arguments: the initial value and the stride" {
        "TYPE stride INT" => "$1 stride 0 $2";
        "TYPE stride" => "$1 stride 0 1";
        "stride INT" => "stride 0 $1";
        "stride" => "stride 0 1";
    }
    Kind, "a default is a number or the value of a header's field" {
        "TYPE default" => "$1 default 0";
        "default" => "default 0";
    }
    Kind, "`none` has no argument" {
        "TYPE none INT" => "$1";
    }
    Kind, "`delta` has one argument, the initial value" {
        "TYPE delta INT INT" => "$1 delta $2";
        "delta INT INT" => "delta $1";
    }
    Kind, "a base is the value of a record's field" {
        "TYPE baseOffset NAME" => "$1 baseOffset $record.$2.value";
        "baseOffset NAME" => "baseOffset $record.$1.value";
    }
    Kind, "an interpretation refers to a section by its number" {
        "TYPE sectionOffset" => "$1 sectionOffset $stream";
        "sectionOffset" => "sectionOffset $stream";
    }
    Kind, "an argument follows its interpretation without a mark" {
        "TYPE delta = INT" => "$1 delta $2";
    }
    Kind, "an argument follows its interpretation without parentheses" {
        "TYPE delta ( INT )" => "$1 delta $2";
    }
    Kind, "an argument follows its interpretation without a mark" {
        "TYPE default = INT" => "$1 default $2";
    }
    Kind, "an argument follows its interpretation without parentheses" {
        "TYPE default ( INT )" => "$1 default $2";
    }
    Kind, "arguments follow their interpretation without parentheses" {
        "TYPE stride ( INT , INT )" => "$1 stride $2 $3";
        "stride ( INT , INT )" => "stride $1 $2";
    }
    Kind, "an argument follows its interpretation without parentheses" {
        "TYPE sectionOffset ( INT )" => "$1 sectionOffset $2";
    }
    Kind, "an interpretation refers to a section by its number" {
        "TYPE sectionOffset ( SECTION )" => "$1 sectionOffset $2";
    }
    Kind, "a default is a number, which characters in single quotes can express" {
        "default TEXT" => "default '$1'";
        "TYPE default TEXT" => "$1 default '$2'";
    }
    Kind, "a base is the value of a record's field" {
        "baseOffset PATH" => "baseOffset $1.value";
        "TYPE baseOffset PATH" => "$1 baseOffset $2.value";
    }
    Kind, "a default is a number or the value of a header's field" {
        "default PATH" => "default $1.value";
        "TYPE default PATH" => "$1 default $2.value";
    }
    Kind, BYTES {
        "BYTE [ EXPR ]" => "$1 $2";
        "[ BYTE ; EXPR ]" => "$1 $2";
        "[ EXPR ] BYTE" => "$2 $1";
        "BYTE < EXPR >" => "$1 $2";
        "BYTE * EXPR" => "$1 $2";
        "BYTE : EXPR" => "$1 $2";
    }
    Kind, "a byte array has no interpretation" {
        "bytes WIDTH INTERPRETATION" => "$1 $2";
        "ARRAY EXPR INTERPRETATION" => "$1 $2";
        "cstring INTERPRETATION" => "cstring";
    }
    Kind, LENGTH {
        "ARRAY EXPR" => "$1 $2";
        "ARRAY = EXPR" => "$1 $2";
        "ARRAY $|@|%|& EXPR" => "$1 $2";
    }
    Kind, BYTES {
        "EXPR ARRAY" => "$2 $1";
    }
    Kind, "a type has no `&`" {
        "& TYPE" => "$1";
    }
    Kind, "there is no word `const`" {
        "const TYPE" => "$1";
    }
    Kind, "a format of Python's `struct` is not a type; a DTD contains no byte order" {
        "STRUCT" => "$1";
    }
    Kind, "a type has no quotes" {
        "TEXT" => "$1";
    }
    Field, "an interpretation is not a name" {
        "RESERVED : KIND" => "$1: $2";
        "RESERVED" => "$1";
    }
    Field, "the value of a tag is in the record's block" {
        "tag =|: INT" => "tag", "; in the block, write `tag.value = $1;`";
    }
    Field, "a number in decimal notation is an `f64`, or an integer in a smaller unit" {
        "NAME : decimal|numeric|number|DECIMAL|NUMERIC|NUMBER|money ( ANY )" => "$1: f64", "; for a number of hundredths, write `$1: i64`";
    }
    Field, "the length of a text has a width of 1, 2 or 4 bytes" {
        "NAME : text|string|str length|len|size|prefix INT" => "$1: text $2",
            "; for a text after a length of $2 bytes, write `$1: text`, and in the block, `$1.length.width = $2;`";
        "NAME : text|string|str u8" => "$1: text";
        "NAME : text|string|str u16" => "$1: text", "; in the block, write `$1.length.width = 2;`";
        "NAME : text|string|str u32" => "$1: text", "; in the block, write `$1.length.width = 4;`";
    }
    Field, "names of values are in the block" {
        "NAME : enum { NAMES }" => "$1: u8", "; in the block, write `$1.values = $2;`";
        "NAME : enum ( NAMES )" => "$1: u8", "; in the block, write `$1.values = $2;`";
        "NAME : TYPE { NAMES }" => "$1: $2", "; in the block, write `$1.values = $3;`";
    }
    Field, "a pointer is a number" {
        "NAME : char *" => "$1: cstring";
        "NAME : * KIND" => "$1: u64", "; in the block, write `$1.format = \"hex\";`";
    }
    Field, "a field has one type" {
        "NAME : ( KIND , KIND )" => "$1_0: $2, $1_1: $3";
        "NAME : ( KIND , KIND , KIND )" => "$1_0: $2, $1_1: $3, $1_2: $4";
        "NAME : INT . . INT" => "$1: u8", "; the size of a number follows its largest value: `u16` up to 65535, and `u32` above";
    }
    // Fields: texts and byte arrays whose end is not a length.
    Field, "a text up to a zero byte is a `cstring`" {
        "NAME : string|text|bytes|cstring until|to 0" => "$1: cstring";
    }
    Field, "only `width` can end a byte array at a certain byte" {
        "NAME : bytes until|to INT" => "$1", "; in the block, write `$1.width = until $2; $1.interpretation = none;`";
    }
    Field, "only `width` can end a text at a certain byte" {
        "NAME : text|cstring|string|line until|to CHARACTER" => "$1",
            "; in the block, write `$1.width = until $2; $1.interpretation = none; $1.format = \"utf8\";`";
        "NAME : text|cstring|string|line until|to INT" => "$1",
            "; in the block, write `$1.width = until $2; $1.interpretation = none; $1.format = \"utf8\";`";
    }
    Field, "only `width` can extend a byte array to the end" {
        "NAME : bytes|blob|buffer *" => "$1",
            "; in the block, write `$1.width = rest; $1.interpretation = none;`";
        "NAME : bytes|blob|buffer ( REST )" => "$1",
            "; in the block, write `$1.width = rest; $1.interpretation = none;`";
        "NAME : bytes|blob|buffer . ." => "$1",
            "; in the block, write `$1.width = rest; $1.interpretation = none;`";
        "NAME : bytes|blob|buffer . . ." => "$1",
            "; in the block, write `$1.width = rest; $1.interpretation = none;`";
        "NAME : bytes|blob|buffer REST" => "$1", "; in the block, write `$1.width = rest; $1.interpretation = none;`";
        "NAME : bytes|blob|buffer REST - ANY" => "$1",
            "; in the block, write `$1.width = rest; $1.interpretation = none;`: the fields of a fixed width after `$1` are not part of it";
        "NAME : bytes|text|string until|to NAME" => "$1",
            "; in the block, write `$1.width = rest; $1.interpretation = none;`: the fields of a fixed width after `$1` are not part of it";
        "NAME : REST - ANY" => "$1",
            "; in the block, write `$1.width = rest; $1.interpretation = none;`: the fields of a fixed width after `$1` are not part of it";
    }
    Field, "only `width` can extend a text to the end" {
        "NAME : text|cstring|string REST" => "$1",
            "; in the block, write `$1.width = rest; $1.interpretation = none; $1.format = \"utf8\";`";
    }
    Field, "only `width` can extend a byte array to the end" {
        "NAME : bytes|text [ ]" => "$1", "; in the block, write `$1.width = rest; $1.interpretation = none;`";
    }
    Field, "expected a type after `:`" {
        "NAME :" => "$1: u32";
        "NAME : NAME :" => "$1: u32";
    }
    Field, "a type is not a number of bytes" {
        "NAME : WIDTH" => "$1: $2", "; for bits of a number, write `$1: u8`, and in the block, `$1.flags = \"0-3 low, 4-7 high\";`";
        "pad|padding|skip|reserved|unused INT" => "padding: bytes $1";
        "NAME WIDTH" => "$1: $2";
        "NAME ( WIDTH )" => "$1: $2";
    }
    Field, "a record has no alignment" {
        "NAME : KIND align|aligned|alignas ANY" => "$1: $2", "; list the bytes before it as a field, as in `padding: bytes 3`";
    }
    Field, OPTIONAL {
        "NAME : KIND * COND" => "($3)*$1: $2";
    }
    Field, BYTES {
        "NAME : [ BYTE ; EXPR ]" => "$1: $2 $3";
        "NAME : BYTE [ EXPR ]" => "$1: $2 $3";
        "NAME : BYTE { EXPR }" => "$1: $2 $3";
        "NAME : BYTE * EXPR" => "$1: $2 $3";
        "NAME : [ EXPR ] BYTE" => "$1: $3 $2";
    }
    Field, LENGTH {
        "NAME : ARRAY EXPR" => "$1: $2 $3";
    }
    Field, OPTIONAL {
        "if|when EXPR { FIELD } else { FIELD }" => "($1)*$2, (($1) == 0)*$3";
    }
    // Fields: conditions.
    Field, OPTIONAL {
        "NAME ? : KIND" => "?$1: $2";
        "NAME : KIND ?" => "?$1: $2";
        "NAME : ? KIND" => "?$1: $2";
        "NAME ?" => "?$1";
        "optional|opt|maybe|option NAME : KIND" => "?$1: $2";
        "optional KIND NAME = INT" => "?$2: $1";
        "optional|opt|maybe|option KIND NAME" => "?$2: $1";
        "optional|opt|maybe|option NAME" => "?$1";
        "NAME : optional|opt|maybe|option|nullable KIND" => "?$1: $2";
        "NAME : KIND optional|opt|nullable" => "?$1: $2";
        "NAME : Option|Optional|optional|option|maybe|Maybe|nullable < KIND >" => "?$1: $2";
        "NAME : Option|Optional|optional|option|maybe|Maybe [ KIND ]" => "?$1: $2";
        "NAME : Option|Optional|optional|option|maybe|Maybe ( KIND )" => "?$1: $2";
        "NAME : KIND if|when|where|iff ( EXPR )" => "($3)*$1: $2";
        "NAME : KIND if|when|where|iff EXPR" => "($3)*$1: $2";
        "NAME if|when|where|iff EXPR" => "($2)*$1";
        "NAME * ( EXPR ) : KIND" => "($2)*$1: $3";
        "if|when ( EXPR ) FIELD" => "($1)*$2";
        "if|when EXPR : FIELD" => "($1)*$2";
        "if|when EXPR NAME : KIND" => "($1)*$2: $3";
        "if|when EXPR * FIELD" => "($1)*$2";
        "if|when EXPR { FIELD }" => "($1)*$2";
        "EXPR ? NAME : KIND" => "($1)*$2: $3";
        "EXPR ? NAME" => "($1)*$2";
    }
    Field, "a field list contains no alternatives" {
        "switch|match|case|union|choice NAME { ANY }" => "",
            "write each case as an optional field, as in `($1.value == 1)*FIELD: u8`";
        "switch|match|case|union|choice ( NAME ) { ANY }" => "",
            "write each case as an optional field, as in `($1.value == 1)*FIELD: u8`";
        "union|oneof|choice { ANY }" => "", "write each case as an optional field, as in `($count.value == 1)*FIELD: u32`";
        "NAME : KIND | ANY" => "", "write each case as an optional field, as in `($count.value == 1)*$1: $2`";
    }
    // Fields: repetitions up to the end or a condition.
    Field, REST {
        "REST * FIELD" => "(rest)*$2";
        "( REST ) * FIELD" => "(rest)*$2";
        "* FIELD" => "(rest)*$1";
        "NAME * : KIND" => "$items*$1: $2";
        "NAME : KIND *" => "$items*$1: $2";
        "NAME *" => "(rest)*$1";
        "NAME +" => "(rest)*$1";
        "FIELD . . ." => "(rest)*$1";
        "NAME : KIND . . ." => "(rest)*$1: $2";
    }
    Field, UNTIL {
        "( while NOT ) * FIELD" => "(until $1)*$2";
        "while NOT * FIELD" => "(until $1)*$2";
    }
    Field, "" {
        "( until EXPR ) * FIELD" => "(until $1)*$2";
    }
    Field, UNTIL {
        "until EXPR * FIELD" => "(until $1)*$2";
        "FIELD * ( until EXPR )" => "(until $2)*$1";
        "NAME until EXPR" => "(until $2)*$1";
        "NAME while NOT" => "(until $2)*$1";
    }
    // Fields: repetitions with a count.
    Field, "a count is listed before its repetition" {
        "( NAME : KIND ) * FIELD" => "$1: $2, $1*$3";
        "NAME : ( NAME : KIND ) * FIELD" => "$2: $3, $1: $2*$4";
    }
    Field, "a field that counts a repetition has no parentheses" {
        "( NAME ) * FIELD" => "$1*$2";
    }
    Field, "" {
        "( EXPR ) * FIELD" => "($1)*$2";
    }
    Field, "expected `*` between a count and the item" {
        "( EXPR ) FIELD" => "($1)*$2";
    }
    Field, "" {
        "NAME * NAME : KIND" => "$1*$2: $3";
    }
    Field, COUNT {
        "EXPR * FIELD" => "($1)*$2";
        "[ COUNT ] * FIELD" => "$1*$2";
        "{ COUNT } * FIELD" => "$1*$2";
    }
    Field, ARRAY {
        "COUNT x|times FIELD" => "$1*$2";
        "FIELD * INT" => "($2)*$1";
        "FIELD * ( EXPR )" => "($2)*$1";
        "NAME : NAME * INT" => "$1: ($3)*$2";
        "NAME : NAME * ( EXPR )" => "$1: ($3)*$2";
        "NAME : KIND * COUNT" => "$3*$1: $2";
    }
    Field, BYTES {
        "BYTE NAME [ EXPR ]" => "$2: $1 $3";
        "NAME [ EXPR ] : BYTE" => "$1: $3 $2";
    }
    Field, ARRAY {
        "NAME : COUNT * { LIST }" => "$1: $2*($3)";
        "NAME : COUNT * [ LIST ]" => "$1: $2*($3)";
        "COUNT * { LIST }" => "$1*($2)";
        "COUNT * [ LIST ]" => "$1*($2)";
        "KIND NAME [ COUNT ]" => "$3*$2: $1";
        "KIND [ COUNT ] NAME" => "$2*$3: $1";
        "NAME [ COUNT ] : KIND" => "$2*$1: $3";
        "NAME : KIND [ COUNT ]" => "$3*$1: $2";
        "NAME : KIND { COUNT }" => "$3*$1: $2";
        "NAME : [ KIND ; COUNT ]" => "$3*$1: $2";
        "NAME : [ COUNT ] KIND" => "$2*$1: $3";
        "NAME [ ] : KIND" => "$lead$repeat*$1: $2";
        "NAME : KIND [ ]" => "$lead$repeat*$1: $2";
        "NAME : [ ] KIND" => "$lead$repeat*$1: $2";
        "NAME : [ KIND ]" => "$lead$repeat*$1: $2";
        "KIND NAME [ ]" => "$lead$repeat*$2: $1";
        "NAME : Vec|vec|List|list|Array|array|vector|repeated|seq|slice|std::vector < KIND >" => "$lead$repeat*$1: $2";
        "NAME : Vec|vec|List|list|Array|array|vector < KIND , COUNT >" => "$3*$1: $2";
        "NAME : List|list|Array|array [ KIND ]" => "$lead$repeat*$1: $2";
        "NAME : List|list|Array|array|repeated|seq of|: KIND" => "$lead$repeat*$1: $2";
        "NAME : repeated|list|array|seq KIND" => "$lead$repeat*$1: $2";
        "repeated KIND NAME = INT" => "$lead$repeat*$2: $1";
        "repeated|repeat|list|array|many KIND NAME" => "$lead$repeat*$2: $1";
        "repeated|repeat|list|array|many NAME : KIND" => "$lead$repeat*$1: $2";
        "repeat|repeated COUNT NAME" => "$1*$2";
        "NAME repeat|repeated|times COUNT" => "$2*$1";
        "NAME [ COUNT ]" => "$2*$1";
        "NAME [ ]" => "$lead$repeat*$1";
        "NAME { COUNT }" => "$2*$1";
        "NAME : NAME [ COUNT ]" => "$1: $3*$2";
        "NAME : NAME [ ]" => "$lead$1: $repeat*$2";
    }
    Field, "" {
        "NAME : REPEAT" => "$1: $2";
    }
    Field, "the name of a repetition is followed by `:`" {
        "NAME = REPEAT" => "$1: $2";
    }
    Field, "the name of a repetition precedes it" {
        "REPEAT as NAME" => "$2: $1";
        "REPEAT : NAME" => "$2: $1";
    }
    Field, "expected `:` after the name of a repetition" {
        "NEW REPEAT" => "$1: $2";
    }
    // Fields: names and types.
    Field, COLON {
        "NAME KIND" => "$1: $2";
    }
    Field, ORDER {
        "KIND NAME" => "$2: $1";
        "KIND : NAME" => "$2: $1";
        "KIND - > NAME" => "$2: $1";
        "KIND NAME = INT" => "$2: $1";
    }
    Field, COLON {
        "NAME = KIND" => "$1: $2";
        "NAME ; KIND" => "$1: $2";
        "NAME . KIND" => "$1: $2";
        "NAME / KIND" => "$1: $2";
        "NAME as|is|of KIND" => "$1: $2";
        "NAME : : KIND" => "$1: $2";
        "NAME : = KIND" => "$1: $2";
        "NAME - > KIND" => "$1: $2";
        "NAME < KIND >" => "$1: $2";
        "NAME ( KIND )" => "$1: $2";
        "NAME [ KIND ]" => "$1: $2";
    }
    Field, "a field begins with its name" {
        "let|var|field|pub|required|attr|member NAME : KIND" => "$1: $2";
        "let|var|field|pub|required|const KIND NAME" => "$2: $1";
        "let|var|field|pub|required NAME" => "$1";
    }
    Field, "the name of a field has no quotes" {
        "TEXT : KIND" => "$1: $2";
        "TEXT" => "$1";
    }
    Field, HYPHEN {
        "NAME - NAME : KIND" => "$1_$2: $3";
        "NAME - NAME - NAME : KIND" => "$1_$2_$3: $4";
        "NAME - NAME" => "$1_$2";
        "NAME . NAME : KIND" => "$1_$2: $3";
        "NAME . NAME" => "$1_$2";
        "@|$ NAME : KIND" => "$1: $2";
    }
    Field, "a name begins with a letter or `_`" {
        "DIGITS : KIND" => "$1: $2";
        "DIGITS" => "$1";
    }
    // Fields: constants and properties.
    Field, "a default is a number, not the name of a value" {
        "NAME : default NAMED" => "$1: default $2";
        "NAME : TYPE default NAMED" => "$1: $2 default $3";
    }
    Field, "a default is a number, which characters in single quotes can express" {
        "NAME : default TEXT" => "$1: default '$2'";
        "NAME : TYPE default TEXT" => "$1: $2 default '$3'";
    }
    Field, CONSTANT {
        "NAME : KIND = INT" => "$1: $2", "; if the value never changes, write `$1.value = $3;` in the block";
        "NAME : KIND = = INT" => "$1: $2", "; if the value never changes, write `$1.value = $3;` in the block";
        "NAME : KIND == INT" => "$1: $2", "; if the value never changes, write `$1.value = $3;` in the block";
        "NAME : KIND = TEXT" => "$1: $2", "; if the value never changes, write `$1.value = '$3';` in the block";
        "NAME = INT" => "$1: u32", "; if the value never changes, write `$1.value = $2;` in the block";
    }
    Field, "a field consists of whole bytes" {
        "KIND NAME : INT" => "$2: $1", "; name its bits in the block, as in `$2.flags = \"0-3 low, 4-7 high\";`";
        "NAME : KIND : INT" => "$1: $2", "; name its bits in the block, as in `$1.flags = \"0-3 low, 4-7 high\";`";
    }
    Field, "a field has no number or offset" {
        "NAME : KIND @ INT" => "$1: $2";
    }
    Field, INLINE {
        "NAME : KIND { ANY }" => "$1: $2", "; in the block, write `$1.$3;`";
        "NAME : KIND [ PROPERTY = ANY ]" => "$1: $2", "; in the block, write `$1.$3 = $4;`";
        "NAME : KIND ( PROPERTY = ANY )" => "$1: $2", "; in the block, write `$1.$3 = $4;`";
        "NAME : KIND ( PROPERTY : ANY )" => "$1: $2", "; in the block, write `$1.$3 = $4;`";
        "NAME : KIND PROPERTY = ANY" => "$1: $2", "; in the block, write `$1.$3 = $4;`";
        "NAME : KIND PROPERTY : ANY" => "$1: $2", "; in the block, write `$1.$3 = $4;`";
        "NAME : KIND . PROPERTY = ANY" => "$1: $2", "; in the block, write `$1.$3 = $4;`";
        "NAME : KIND @ PROPERTY ( ANY )" => "$1: $2", "; in the block, write `$1.$3 = $4;`";
        "NAME : KIND TEXT" => "$1: $2", "; in the block, write `$1.unit = \"$3\";`, or `$1.doc = \"$3\";`";
        "NAME : KIND UNIT" => "$1: $2", "; in the block, write `$1.unit = \"$3\";`";
        "NAME : KIND FORMAT" => "$1: $2", "; in the block, write `$1.format = \"$3\";`";
        "NAME . PROPERTY = ANY" => "$1", "; in the block, write `$1.$2 = $3;`";
    }
    // Fields: nested records.
    Field, "a field list contains no other field list" {
        "NAME : ( LIST )" => "$1", "; define the record in the same section, as `$1: ($2);`";
        "NAME : struct|record { LIST }" => "$1", "; define the record in the same section, as `$1: ($2);`";
        "NAME : { LIST }" => "$1", "; define the record in the same section, as `$1: ($2);`";
        "struct|record { LIST } NAME" => "$2", "; define the record in the same section, as `$2: ($1);`";
        "NAME { LIST }" => "$1", "; define the record in the same section, as `$1: ($2);`";
    }
    Field, "" {
        "NAME : KIND" => "$1: $2";
    }
    Field, "a constant is a number, which characters in single quotes can express" {
        "NAME : TEXT" => "$1: u32", "; in the block, write `$1.value = '$2';`, where the first character is the most significant byte";
    }
    Field, ARRAY {
        "NAME : OTHER NAME" => "$1: $2*$3";
    }
    // Sections.
    Section, SECTION {
        "section|Section|SECTION NAME :|=|#|,|@|id INT" => "section $1 $2";
        "section|Section|SECTION NAME ( INT )" => "section $1 $2";
        "section|Section|SECTION NAME [ INT ]" => "section $1 $2";
        "section|Section|SECTION NAME < INT >" => "section $1 $2";
        "section|Section|SECTION INT :|=|,|- NAME" => "section $2 $1";
        "section|Section|SECTION INT NAME" => "section $2 $1";
        "section|Section|SECTION INT TEXT" => "section $2 $1";
        "section|Section|SECTION TEXT INT" => "section $1 $2";
        "section|Section|SECTION TEXT" => "section $1 $new";
        "section|Section|SECTION : NAME INT" => "section $1 $2";
    }
    Section, HYPHEN {
        "section|Section|SECTION NAME - NAME INT" => "section $1_$2 $3";
        "section|Section|SECTION NAME - NAME" => "section $1_$2 $new";
    }
    Section, "an interpretation is not a name" {
        "section|Section|SECTION RESERVED INT" => "section $1 $2";
    }
    Section, SECTION {
        "section|Section|SECTION NAME INT ANY" => "section $1 $2";
        "section|Section|SECTION NAME NAME" => "section $1 $new";
    }
    Section, "a section has a number from 1 to 255 after its name" {
        "section|Section|SECTION NAME" => "section $1 $new";
    }
    Section, "a section has a name before its number" {
        "section|Section|SECTION INT" => "section log $1";
    }
    Section, SECTION {
        "section|Section|SECTION" => "section log $new";
    }
    Section, "a section begins with the word `section`" {
        "NAME NAME INT" => "section $2 $3";
        "NAME INT NAME" => "section $3 $2";
        "NAME INT" => "section $1 $2";
    }
    // Types.
    Type, TYPE {
        "type NAME =|as|is|:= KIND" => "type $1: $2";
        "type NAME - > KIND" => "type $1: $2";
    }
    Type, HYPHEN {
        "type NAME - NAME : KIND" => "type $1_$2: $3";
    }
    Type, "an interpretation is not a name" {
        "type RESERVED : KIND" => "type $1: $2";
    }
    Type, "" {
        "type NAME : KIND" => "type $1: $2";
    }
    Type, TYPE {
        "type NAME : PROPERTY = ANY" => "type $1: u32", "; in its block, write `{ $2 = $3; }`";
    }
    Type, "the properties of a type are in its block" {
        "type NAME : KIND PROPERTY = ANY" => "type $1: $2 { $3 = $4; }";
        "type NAME : KIND TEXT" => "type $1: $2", "; in its block, write `{ unit = \"$3\"; }`";
    }
    Type, TYPE {
        "typedef|using|alias|newtype|define|Type|typdef|tpye NAME =|: KIND" => "type $1: $2";
        "typedef|using|alias|newtype|define|Type|typdef|tpye KIND NAME" => "type $2: $1";
        "typedef|using|alias|newtype|define|Type|typdef|tpye NAME KIND" => "type $1: $2";
    }
    // A type without its first word.
    Type, "a type begins with the word `type`, and a record is a list in parentheses" {
        "NAME : KIND" => "type $1: $2";
    }
    // Records.
    Record, LIST {
        "type|record|rec|struct|event|message|def|fn|entry|packet NAME : ( LIST )" => "$1: ($2)";
        "type|record|rec|struct|event|message|def|fn|entry|packet NAME =|:= ( LIST )" => "$1: ($2)";
        "type|record|rec|struct|event|message|def|fn|entry|packet NAME ( LIST )" => "$1: ($2)";
        "NAME = ( LIST )" => "$1: ($2)";
        "NAME : = ( LIST )" => "$1: ($2)";
        "NAME : : ( LIST )" => "$1: ($2)";
        "NAME - > ( LIST )" => "$1: ($2)";
        "NAME INT : ( LIST )" => "$1: ($3)", "; in its block, write `tag.value = $2;`";
        "INT : ( LIST )" => "record_$1: ($2)", "; in its block, write `tag.value = $1;`";
        "NAME ( INT ) : ( LIST )" => "$1: ($3)", "; in its block, write `tag.value = $2;`";
        "NAME : record|struct ( LIST )" => "$1: ($2)";
        "NAME : INT ( LIST )" => "$1: ($3)", "; in its block, write `tag.value = $2;`";
        "NAME : [ LIST ]" => "$1: ($2)";
        "NAME : < LIST >" => "$1: ($2)";
        "NAME [ LIST ]" => "$1: ($2)";
    }
    Record, HYPHEN {
        "NAME - NAME : ( LIST )" => "$1_$2: ($3)";
        "NAME . NAME : ( LIST )" => "$1_$2: ($3)";
    }
    Record, "an interpretation is not a name" {
        "RESERVED : ( LIST )" => "$1: ($2)";
    }
    Record, "a name begins with a letter or `_`" {
        "DIGITS : ( LIST )" => "$1: ($2)";
    }
    Record, "a record has at least one field" {
        "NAME : ( )" => "$1: (size: u32)";
        "NAME ( )" => "$1: (size: u32)";
    }
    Record, LIST {
        "NAME ( LIST )" => "$1: ($2)";
        "NAME : LIST )" => "$1: ($2)";
        "NAME LIST )" => "$1: ($2)";
    }
    Record, "" {
        "NAME : ( LIST )" => "$1: ($2)";
    }
    Record, LIST {
        "NAME : LISTS" => "$1: ($2)";
    }
    // Statements.
    Statement, "the catch-all record has the tag `other`" {
        "tag . value = default|else|rest|any|all|others|unknown|otherwise|fallback|_" => "tag.value = other;";
        "tag . value = *" => "tag.value = other;";
    }
    Statement, "a record has the property `tag.value`" {
        "tag|id|type|tag_value|code|opcode =|:|== INT" => "tag.value = $1;";
        "tag|id|type|code|opcode INT" => "tag.value = $1;";
        "tag : = INT" => "tag.value = $1;";
        "@ tag ( INT )" => "tag.value = $1;";
        "value = INT" => "tag.value = $1;";
    }
    Statement, "a DTD does not contain the byte order" {
        "endian|byteorder|byte_order|endianness =|:|== ANY" => "",
            "remove the statement: traces are little-endian by default, and the header of a trace contains the byte order";
    }
    Statement, FIELD_FIRST {
        "PROPERTY =|:|== VALUE" => "$field.$1 = $2;";
        "PROPERTY VALUE" => "$field.$1 = $2;";
    }
    Statement, EQUALS {
        "PATH == VALUE" => "$1 = $2;";
        "PATH : VALUE" => "$1 = $2;";
        "PATH : = VALUE" => "$1 = $2;";
        "PATH = = VALUE" => "$1 = $2;";
        "PATH - > VALUE" => "$1 = $2;";
        "PATH is|to|as|of VALUE" => "$1 = $2;";
        "PATH ( VALUE )" => "$1 = $2;";
    }
    Statement, "expected `.` between a field and its property" {
        "NAME - > PROPERTY = VALUE" => "$1.$2 = $3;";
        "NAME : : PROPERTY = VALUE" => "$1.$2 = $3;";
        "NAME : PROPERTY = VALUE" => "$1.$2 = $3;";
        "NAME PROPERTY = VALUE" => "$1.$2 = $3;";
        "NAME PROPERTY VALUE" => "$1.$2 = $3;";
    }
    Statement, EQUALS {
        "NAME . PROPERTY VALUE" => "$1.$2 = $3;";
        "NAME [ TEXT ] = VALUE" => "$1.$2 = $3;";
        "PROPERTY ( NAME ) = VALUE" => "$2.$1 = $3;";
    }
    Statement, "a property follows its field" {
        "PROPERTY . NAME = VALUE" => "$2.$1 = $3;";
    }
    Statement, FIELD_FIRST {
        ". PROPERTY = VALUE" => "$field.$1 = $2;";
    }
    Statement, "a statement begins with a field" {
        "set|let|var|@ PATH = VALUE" => "$1 = $2;";
    }
    Statement, HYPHEN {
        "NAME - NAME . PROPERTY = VALUE" => "$1_$2.$3 = $4;";
    }
    Statement, "the name of a field has no quotes" {
        "TEXT . PROPERTY = VALUE" => "$1.$2 = $3;";
    }
    Statement, "a statement sets one property" {
        "NAME = { PROPERTY =|: VALUE }" => "$1.$2 = $3;";
        "NAME : { PROPERTY =|: VALUE }" => "$1.$2 = $3;";
        "NAME { PROPERTY =|: VALUE }" => "$1.$2 = $3;";
        "NAME { PROPERTY =|: VALUE ; }" => "$1.$2 = $3;";
    }
    Statement, "a list of names is a string" {
        "PATH . doc = ANY" => "$1.doc = \"$2\";";
        "PATH . unit = ANY" => "$1.unit = \"$2\";";
        "PATH . was = ANY" => "$1.was = \"$2\";";
        "PATH . format = ANY" => "$1.format = \"$2\";";
        "PATH . values = NAMES" => "$1.values = $2;";
        "PATH . flags = NAMES" => "$1.flags = $2;";
    }
    Statement, "a statement ends with `;`" {
        "PATH = VALUE ," => "$1 = $2;";
        "PATH = VALUE :" => "$1 = $2;";
    }
    Statement, "" {
        "PATH . width = EXPR" => "$1.width = $2;";
    }
    Statement, "`rest` ends before the fields of a fixed width that follow" {
        "PATH . width = REST - ANY" => "$1.width = rest;";
    }
    Statement, LENGTH {
        "PATH . width = ( EXPR ) EXPR" => "$1.width = $2;";
    }
    Statement, "" {
        "PATH . interpretation = delta" => "$1.interpretation = delta 0;";
        "PATH . width = until CHARACTER" => "$1.width = until $2;";
        "PATH . width = until" => "$1.width = until 0;";
        "PATH . interpretation = KINDONLY" => "$1.interpretation = $2;";
    }
    Statement, "a string has double quotes" {
        "PATH = CHARACTERS" => "$1 = $2;";
    }
    Statement, "a number has no `+`" {
        "PATH = + INT" => "$1 = $2;";
    }
    Statement, "a value has no brackets" {
        "PATH = [ ANY ]" => "$1 = \"$2\";";
    }
    Statement, "a statement ends with `;`" {
        "PATH = VALUE , ANY" => "$1 = $2;", " and `$3;`";
    }
    Statement, "a field is listed in the parentheses of its record" {
        "NAME : KIND" => "", "add `$1: $2` to the list of the record, as in `NAME: (..., $1: $2)`";
        "KIND NAME" => "", "add `$2: $1` to the list of the record, as in `NAME: (..., $2: $1)`";
    }
    // Statements of types.
    Statement, FIELD_FIRST {
        "NAME = INT" => "", "write the name of the property, as in `$1.value = $2;`";
        "NAME = VALUE" => "$field.$1 = $2;";
    }
    Assignment, "only a record has a tag" {
        "tag . value = INT" => "",
            "remove the statement, or define a record, as in `NAME: (size: u32) { tag.value = $1; }`";
    }
    Assignment, "a type's block contains properties without a field" {
        "NAME . PROPERTY = VALUE" => "$2 = $3;";
    }
    Assignment, EQUALS {
        "PROPERTY : VALUE" => "$1 = $2;";
        "PROPERTY : = VALUE" => "$1 = $2;";
        "PROPERTY VALUE" => "$1 = $2;";
    }
    Assignment, "a list of names is a string" {
        "values = NAMES" => "values = $1;";
        "flags = NAMES" => "flags = $1;";
    }
    Assignment, "a string has double quotes" {
        "PROPERTY = CHARACTERS" => "$1 = $2;";
    }
    Assignment, "a list of names is the value of a property" {
        "NUMBERED" => "values = $1;";
    }
    Assignment, "a string is the value of a property" {
        "TEXT" => "unit = \"$1\";";
    }
}
