//! The interpretations (spec 4): their words, what follows each word, and what each means for a leaf. A new one is a row of
//! the table, a variant of [`Interpretation`], and an arm in each of its methods.

use super::{LeafId, ModelId, RecordId};

/// Makes [`InterpretationWord`] of the table below.
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

            /// Returns the word in a DTD.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(InterpretationWord::$variant => $word,)*
                }
            }

            /// What follows the word.
            #[must_use]
            pub const fn arguments(self) -> &'static [Argument] {
                match self {
                    $(InterpretationWord::$variant => &[$(Argument::$argument),*],)*
                }
            }

            /// How the value is found, in a sentence.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self {
                    $(InterpretationWord::$variant => $doc,)*
                }
            }
        }
    };
}

// In the order in which messages list them.
words! {
    None = "none" [],
        "The stored integer.";
    Default = "default" [Number],
        "No bytes: always this value.";
    BaseOffset = "baseOffset" [Base],
        "A base plus the sign-extended stored integer.";
    Delta = "delta" [Number],
        "The previous value plus the sign-extended stored integer.";
    Stride = "stride" [Number, Number],
        "No bytes: the previous value plus the stride.";
    SectionOffset = "sectionOffset" [Stream],
        "A byte offset into the content of a stream section.";
    SectionStride = "sectionStride" [NumberStream, Steps],
        "No bytes: the next element of a stream section.";
    Predicted = "predicted" [Model, NumberStream],
        "The number of a model's candidate; a value that no candidate hits stands in a stream section.";
}

/// The words as messages list them: text of constants, where [`InterpretationWord::ALL`] cannot be gone through.
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

/// What follows the word of an interpretation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Argument {
    /// A number of 64 bits, signed or not.
    Number,
    /// A number, or the value of another record's field.
    Base,
    /// The number of a stream section.
    Stream,
    /// The number of a stream section whose elements are one number each.
    NumberStream,
    /// How many elements a cursor moves on, at least 1.
    Steps,
    /// What a field is predicted by.
    Model,
}

/// How stored bytes give a value (spec 4). Numbers are 64-bit two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpretation {
    /// The stored integer.
    None,
    /// Base plus the sign-extended stored integer.
    BaseOffset(u64),
    /// The value last seen for a leaf of a record of the same section, plus the sign-extended stored integer.
    BaseOffsetOf(RecordId, LeafId),
    /// Previous value plus the sign-extended stored integer; the initial previous value.
    Delta(u64),
    /// No bytes: this value.
    Default(u64),
    /// No bytes: previous value plus the stride.
    Stride {
        /// Previous value before the first record.
        initial: u64,
        /// What is added for each record.
        stride: u64,
    },
    /// A byte offset into the content of a stream section, by number.
    SectionOffset(u8),
    /// No bytes: the element of a stream section at the cursor.
    SectionStride {
        /// Number of the stream section.
        section: u8,
        /// How many elements the cursor moves on; at least 1.
        stride: u64,
    },
    /// The number of a model's candidate; what no candidate hits stands in a stream section.
    Predicted(ModelId),
}

impl Interpretation {
    /// Makes an interpretation of its word and its numbers. A base that is a field, and the number of a model, are set later.
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

    /// Returns the word, and the numbers behind it as they are written into tables: name of the variant, arguments.
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

    /// Returns the previous value before the first record; `None` where the previous value does not matter.
    #[must_use]
    pub fn initial(self) -> Option<u64> {
        match self {
            Interpretation::Delta(initial) | Interpretation::Stride { initial, .. } => Some(initial),
            Interpretation::Predicted(_) => Some(0),
            _ => None,
        }
    }

    /// Returns the number of the stream section from which values are taken one after the other. Models name theirs themselves.
    #[must_use]
    pub fn stream(self) -> Option<u8> {
        match self {
            Interpretation::SectionStride { section, .. } => Some(section),
            _ => None,
        }
    }

    /// Checks whether the value depends on nothing that precedes in the trace.
    #[must_use]
    pub fn is_stateless(self) -> bool {
        use Interpretation::{BaseOffset, Default, None, SectionOffset};
        matches!(self, None | BaseOffset(_) | Default(_) | SectionOffset(_))
    }
}

/// An interpretation taken apart: what tables and fingerprints are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The number that stands for it in fingerprints; never changes.
    pub code: u8,
    /// The word in a DTD.
    pub word: InterpretationWord,
    /// The name of the variant, here and in the runtime.
    pub variant: &'static str,
    /// The arguments in their order; indices for a field or a model.
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
