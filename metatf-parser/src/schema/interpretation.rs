//! The interpretations (spec 4), with their words, arguments and effects on a leaf. A new interpretation needs a row in
//! the table, a variant of [`Interpretation`], and an arm in each of its methods.

use super::{LeafId, ModelId, RecordId};

/// Defines [`InterpretationWord`] from the table below.
macro_rules! words {
    ($($variant:ident = $word:literal [$($argument:ident),*], $doc:literal;)*) => {
        /// The word of an interpretation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum InterpretationWord {
            $(#[doc = $doc] $variant,)*
        }

        impl InterpretationWord {
            /// All words.
            pub const ALL: &[InterpretationWord] = &[$(InterpretationWord::$variant),*];

            /// Returns the word as written in a DTD.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(InterpretationWord::$variant => $word,)*
                }
            }

            /// Returns the arguments that follow the word.
            #[must_use]
            pub const fn arguments(self) -> &'static [Argument] {
                match self {
                    $(InterpretationWord::$variant => &[$(Argument::$argument),*],)*
                }
            }

            /// Returns a sentence that describes the value.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self {
                    $(InterpretationWord::$variant => $doc,)*
                }
            }
        }
    };
}

// The words are in the order in which messages list them.
words! {
    None = "none" [],
        "The stored integer.";
    Default = "default" [Base],
        "Stores no bytes. The value is the argument, which may be a field in the header of another program's file.";
    BaseOffset = "baseOffset" [Base],
        "The base plus the sign-extended stored integer. The base is a number, or the last value of a field in another \
         record.";
    Delta = "delta" [Number],
        "The previous value plus the sign-extended stored integer. The argument is the initial previous value.";
    Stride = "stride" [Number, Number],
        "Stores no bytes. The value is the previous value plus the stride. The arguments are the previous value before \
         the first record, and the stride. The first value is their sum.";
    SectionOffset = "sectionOffset" [Stream],
        "The offset of an element, in bytes from the start of the stream section with this number.";
    SectionStride = "sectionStride" [NumberStream, Steps],
        "Stores no bytes. The value is the next element of the stream section with this number. All such leaves of a \
         section share one position in the stream section, and each value advances it by the second argument.";
    Predicted = "predicted" [Model, NumberStream],
        "A model computes candidates for the value from earlier records and leaves, and the stored integer selects a \
         candidate or the next element of a stream section. The arguments are the model's revision and description, \
         and the number of that section.";
}

/// Joins the words for messages. This is a macro because constants cannot iterate over [`InterpretationWord::ALL`].
macro_rules! listed_words {
    ($before_last:literal) => {
        concat!(
            "`none`, `default`, `baseOffset`, `delta`, `stride`, `sectionOffset`, `sectionStride`",
            $before_last,
            "`predicted`"
        )
    };
}
pub(crate) use listed_words;

impl InterpretationWord {
    /// Returns the interpretation word with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<InterpretationWord> {
        InterpretationWord::ALL.iter().copied().find(|word| word.name() == name)
    }
}

/// An argument of an interpretation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Argument {
    /// A 64-bit number, signed or unsigned.
    Number,
    /// A number, or the value of a field in another record.
    Base,
    /// The number of a stream section.
    Stream,
    /// The number of a stream section whose elements are single numbers.
    NumberStream,
    /// The number of elements by which a cursor advances, at least 1.
    Steps,
    /// The model that predicts a field.
    Model,
}

/// The rule that turns stored bytes into a value (spec 4). Numbers are 64-bit two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpretation {
    /// The stored integer.
    None,
    /// The base plus the sign-extended stored integer.
    BaseOffset(u64),
    /// The last value of a leaf, in this or another record of the same section, plus the sign-extended stored integer.
    BaseOffsetOf(RecordId, LeafId),
    /// The previous value plus the sign-extended stored integer. The argument is the initial previous value.
    Delta(u64),
    /// A fixed value. No bytes are stored.
    Default(u64),
    /// The previous value plus the stride. No bytes are stored.
    Stride {
        /// The previous value before the first record.
        initial: u64,
        /// The increment per record.
        stride: u64,
    },
    /// A byte offset into the content of the stream section with this number.
    SectionOffset(u8),
    /// The element at the cursor of a stream section. No bytes are stored.
    SectionStride {
        /// The number of the stream section.
        section: u8,
        /// The number of elements by which the cursor advances, at least 1.
        stride: u64,
    },
    /// The number of the model's candidate that equals the value. Values that match no candidate are stored in a stream
    /// section.
    Predicted(ModelId),
}

impl Interpretation {
    /// Returns the interpretation for a word and its numeric arguments. The caller later sets the field to which a base
    /// refers and the index of a model.
    pub(crate) fn new(word: InterpretationWord, numbers: &[u64]) -> Option<Interpretation> {
        use InterpretationWord as W;
        let section = |number: u64| u8::try_from(number).ok();
        Some(match (word, numbers) {
            (W::None, []) => Interpretation::None,
            (W::Default, &[value]) => Interpretation::Default(value),
            (W::BaseOffset, &[base]) => Interpretation::BaseOffset(base),
            (W::Delta, &[initial]) => Interpretation::Delta(initial),
            (W::Stride, &[initial, stride]) => Interpretation::Stride { initial, stride },
            (W::SectionOffset, &[number]) => Interpretation::SectionOffset(section(number)?),
            (W::SectionStride, &[number, stride]) => {
                Interpretation::SectionStride { section: section(number)?, stride }
            }
            (W::Predicted, &[_]) => Interpretation::Predicted(ModelId(0)),
            _ => return None,
        })
    }

    /// Returns the word and its arguments, as used in tables.
    #[must_use]
    pub fn parts(self) -> Parts {
        use InterpretationWord as W;
        let (code, word, variant, numbers) = match self {
            Interpretation::None => (0, W::None, "None", vec![]),
            Interpretation::BaseOffset(base) => (1, W::BaseOffset, "BaseOffset", vec![base]),
            Interpretation::BaseOffsetOf(record, leaf) => {
                (2, W::BaseOffset, "BaseOffsetOf", vec![record.0.into(), leaf.0.into()])
            }
            Interpretation::Delta(initial) => (3, W::Delta, "Delta", vec![initial]),
            Interpretation::Default(value) => (4, W::Default, "Default", vec![value]),
            Interpretation::Stride { initial, stride } => (5, W::Stride, "Stride", vec![initial, stride]),
            Interpretation::SectionOffset(section) => (6, W::SectionOffset, "SectionOffset", vec![section.into()]),
            Interpretation::SectionStride { section, stride } => {
                (7, W::SectionStride, "SectionStride", vec![section.into(), stride])
            }
            Interpretation::Predicted(model) => (8, W::Predicted, "Predicted", vec![model.0.into()]),
        };
        Parts { code, word, variant, numbers }
    }

    /// Checks whether a leaf stores bytes.
    #[must_use]
    pub fn stores(self) -> bool {
        use Interpretation::{Default, SectionStride, Stride};
        !matches!(self, Default(_) | Stride { .. } | SectionStride { .. })
    }

    /// Returns the previous value before the first record, or `None` if the interpretation does not use a previous
    /// value.
    #[must_use]
    pub fn initial(self) -> Option<u64> {
        match self {
            Interpretation::Delta(initial) | Interpretation::Stride { initial, .. } => Some(initial),
            Interpretation::Predicted(_) => Some(0),
            _ => None,
        }
    }

    /// Returns the number of the stream section that provides the values. For a predicted leaf, the section number is
    /// in the model instead.
    #[must_use]
    pub fn stream(self) -> Option<u8> {
        match self {
            Interpretation::SectionStride { section, .. } => Some(section),
            _ => None,
        }
    }

    /// Checks whether the value is independent of earlier records in the trace.
    #[must_use]
    pub fn is_stateless(self) -> bool {
        use Interpretation::{BaseOffset, Default, None, SectionOffset};
        matches!(self, None | BaseOffset(_) | Default(_) | SectionOffset(_))
    }
}

/// The parts of an interpretation, for generated tables and for fingerprints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The interpretation's number in fingerprints, which never changes.
    pub code: u8,
    /// The word as written in a DTD.
    pub word: InterpretationWord,
    /// The name of the enum variant, which is the same in this crate and in the runtime.
    pub variant: &'static str,
    /// The arguments in order. A field or a model is represented by its index.
    pub numbers: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_that_of_the_table() {
        let words: Vec<String> = InterpretationWord::ALL.iter().map(|word| format!("`{}`", word.name())).collect();
        assert_eq!(listed_words!(", "), words.join(", "));
    }
}
