//! Words of the language that are not syntax: properties and predictors. (Interpretations and formats are in
//! [`schema`](crate::schema).) A new property requires a row in the table, and code that uses its value.

/// Defines [`Property`] from the table below.
macro_rules! properties {
    ($($variant:ident = $name:literal, $takes:ident, $tag:ident, $nested:literal, $example:literal, $doc:literal;)*) => {
        /// A property defined by the language; other properties are annotations (spec 2).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Property {
            $(#[doc = $doc] $variant,)*
        }

        impl Property {
            /// All properties.
            pub const ALL: &[Property] = &[$(Property::$variant),*];

            /// Returns the property's name in a DTD.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Property::$variant => $name,)*
                }
            }

            /// Returns a sentence that describes the property.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self {
                    $(Property::$variant => $doc,)*
                }
            }

            /// Returns a statement that sets the property.
            #[must_use]
            pub const fn example(self) -> &'static str {
                match self {
                    $(Property::$variant => $example,)*
                }
            }

            /// Returns the kind of value that the property accepts.
            pub(crate) const fn takes(self) -> Takes {
                match self {
                    $(Property::$variant => Takes::$takes,)*
                }
            }

            /// Returns the places where the property may be set for `tag`.
            pub(crate) const fn on_tag(self) -> OnTag {
                match self {
                    $(Property::$variant => OnTag::$tag,)*
                }
            }

            /// Checks whether the property can be set for a nested record itself, not only for its fields.
            pub(crate) const fn on_nested(self) -> bool {
                match self {
                    $(Property::$variant => $nested,)*
                }
            }
        }
    };
}

// The columns are the property's name, the kind of its value, where it may be set for `tag`, whether it may be set for
// a nested record, an example, and its meaning.
properties! {
    Width = "width", Number, TopLevel, false,
        "size.width = 4;", "The number of bytes that a field stores.";
    Interpretation = "interpretation", Interpretation, Never, false,
        "size.interpretation = none;", "The interpretation of the stored bytes.";
    Value = "value", Constant, Block, false,
        "magic.value = 0x7f;", "The value that the field has in every record.";
    Doc = "doc", Text, Anywhere, true,
        "size.doc = \"bytes asked for\";", "A description of the field for human readers.";
    Unit = "unit", Text, Anywhere, false,
        "size.unit = \"bytes\";", "The unit of the value for human readers.";
    Format = "format", Format, Anywhere, false,
        "flags.format = \"hex\";", "The format in which tools print the value.";
    Values = "values", Names, Never, false,
        "state.values = \"0 running, 1 sleeping\";", "Names of values.";
    Flags = "flags", Names, Never, false,
        "mode.flags = \"0 read, 1 write\";", "Names of bits, counted from the least significant, and of bit ranges that hold a number: `4-7 version`.";
    Was = "was", Earlier, Block, false,
        "line.was = \"vector\";", "Earlier names of the field, or for `tag` of the record. Readers accept them in traces as the current name.";
    Previous = "previous", Sharing, Never, false,
        "time.previous = shared;", "Whether fields of this name share their previous value.";
    Section = "section", Constant, Never, false,
        "options.section = 5;", "The section whose records the byte array contains.";
}

impl Property {
    /// Returns the property with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Property> {
        Property::ALL.iter().copied().find(|property| property.name() == name)
    }
}

/// The kind of value that a property accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Number,
    Constant,
    Interpretation,
    Text,
    Format,
    Names,
    Earlier,
    Sharing,
}

impl Takes {
    /// Returns the description of the kind for messages such as "the value of `width` is ...".
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Takes::Number => "an integer, an expression, `bytes N`, `until N` or `rest`",
            Takes::Constant => "an integer",
            Takes::Interpretation => "an interpretation",
            Takes::Text | Takes::Format => "a string",
            Takes::Earlier => "a string of comma-separated names",
            Takes::Names => "a string of numbers and names",
            Takes::Sharing => "the word `own` or `shared`",
        }
    }
}

/// The places where a property may be set for `tag` (spec 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnTag {
    /// Once, at the top level.
    TopLevel,
    /// In the block of each record.
    Block,
    Never,
    Anywhere,
}

/// The tag value of a record that matches all tags not used by another record.
pub(crate) const OTHER: &str = "other";

/// The width of a byte array that extends to the end of its content.
pub(crate) const REST: &str = "rest";

/// The predefined types of fields, the numbers by their width.
pub(crate) const TYPES: [&str; 21] = [
    "u8", "u16", "u24", "u32", "u40", "u48", "u56", "u64", "i8", "i16", "i24", "i32", "i40", "i48", "i56", "i64",
    "f32", "f64", "bytes", "text", "cstring",
];

/// The words that start a predictor.
pub(crate) const PREDICTORS: [&str; 5] = ["lastValue", "stride", "fcm", "dfcm", "heap"];
/// The actions on an address in a heap model.
pub(crate) const ROLES: [&str; 3] = ["allocated", "freed", "used"];
