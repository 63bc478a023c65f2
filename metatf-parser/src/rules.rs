//! The lint rules with their names and descriptions.

/// The sentences of [`Rule::explain`] about a rule's state and about what it needs.
macro_rules! words {
    (on: true) => {
        "This rule is on."
    };
    (on: false) => {
        "This rule is off; enable it with --deny."
    };
    (traces: true) => {
        "\nThis rule requires traces: specify them with --trace."
    };
    (traces: false) => {
        ""
    };
}

/// Defines [`Rule`] from the table below.
macro_rules! rules {
    ($($variant:ident = $name:literal, $on:tt, $traces:tt, $doc:literal;)*) => {
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
                    $(Rule::$variant => concat!($name, ": ", $doc, "\n\n", words!(on: $on), words!(traces: $traces)),)*
                }
            }

            /// Returns whether the rule is on by default.
            #[must_use]
            pub const fn is_on(self) -> bool {
                match self {
                    $(Rule::$variant => $on,)*
                }
            }

            /// Returns whether the rule needs traces.
            #[must_use]
            pub const fn needs_traces(self) -> bool {
                match self {
                    $(Rule::$variant => $traces,)*
                }
            }
        }
    };
}

// The columns are the rule's name, whether it is on by default, whether it needs traces, and a description of its
// findings.
rules! {
    UndocumentedSection = "undocumented-section", true, false,
        "A section has no comment above it, and no comment at the head of the DTD covers it.";
    UndocumentedRecord = "undocumented-record", true, false,
        "A record has no comment above it.";
    UndocumentedField = "undocumented-field", false, false,
        "A field has no comment above its properties.";
    EmptySection = "empty-section", true, false,
        "A section has no records, and there are no global records.";
    UnreferencedStream = "unreferenced-stream", true, false,
        "No field refers to a stream section.";
    OverriddenProperty = "overridden-property", true, false,
        "A property has no effect, because a nearer setting overrides it for each of its fields.";
    SimilarNames = "similar-names", true, false,
        "Two names differ only in case or underscores.";
    UnusedRecord = "unused-record", false, true,
        "No trace contains the record.";
    WastefulWidth = "wasteful-width", true, true,
        "Traces would be smaller with a different width.";
    WastefulInterpretation = "wasteful-interpretation", true, true,
        "Traces would be smaller with a different interpretation.";
}

impl Rule {
    /// Returns the rule with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.name() == name)
    }
}
