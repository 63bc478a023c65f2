//! The lint rules with their names and descriptions.

/// The states of a rule, for [`Rule::explain`].
macro_rules! words {
    (on) => {
        "This rule is on."
    };
    (off) => {
        "This rule is off; enable it with --deny."
    };
    (text) => {
        ""
    };
    (traces) => {
        "\nThis rule requires traces: specify them with --trace."
    };
}

/// Defines [`Rule`] from the table below.
macro_rules! rules {
    ($($variant:ident = $name:literal, $state:ident, $needs:ident, $doc:literal;)*) => {
        /// A rule of `metatfc check --lint`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $doc] $variant,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Rule] = &[$(Rule::$variant),*];

            /// Returns the rule's name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Rule::$variant => $name,)*
                }
            }

            /// Returns a sentence that describes the findings of the rule, and whether the rule is on by default.
            #[must_use]
            pub const fn explain(self) -> &'static str {
                match self {
                    $(Rule::$variant => concat!($name, ": ", $doc, "\n\n", words!($state), words!($needs)),)*
                }
            }

            /// Returns whether the rule is on by default.
            #[must_use]
            pub const fn is_on(self) -> bool {
                match self {
                    $(Rule::$variant => matches!(stringify!($state).as_bytes(), b"on"),)*
                }
            }

            /// Returns whether the rule needs traces.
            #[must_use]
            pub const fn needs_traces(self) -> bool {
                match self {
                    $(Rule::$variant => matches!(stringify!($needs).as_bytes(), b"traces"),)*
                }
            }
        }
    };
}

// The columns are the rule's name, whether it is on by default, whether it needs the text alone or traces, too, and a
// description of its findings.
rules! {
    UndocumentedSection = "undocumented-section", on, text,
        "A section has no comment above it, and no comment at the head of the DTD covers it.";
    UndocumentedRecord = "undocumented-record", on, text,
        "A record has no comment above it.";
    UndocumentedField = "undocumented-field", off, text,
        "A field has no comment above its properties.";
    EmptySection = "empty-section", on, text,
        "A section has no records, and there are no global records.";
    UnreferencedStream = "unreferenced-stream", on, text,
        "No field refers to a stream section.";
    OverriddenProperty = "overridden-property", on, text,
        "A property has no effect, because a nearer setting overrides it for each of its fields.";
    SimilarNames = "similar-names", on, text,
        "Two names differ only in case or underscores.";
    UnusedRecord = "unused-record", off, traces,
        "No trace contains the record.";
    WastefulWidth = "wasteful-width", on, traces,
        "Traces would be smaller with a different width.";
    WastefulInterpretation = "wasteful-interpretation", on, traces,
        "Traces would be smaller with a different interpretation.";
}

impl Rule {
    /// Returns the rule with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.name() == name)
    }
}
