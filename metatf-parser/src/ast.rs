//! The syntax tree, with source locations and names borrowed from the text. The lexer limits the depth of the tree to
//! 32, so recursion is safe.

use std::collections::HashSet;

use crate::codes::Code;
use crate::diagnostic::Draft;
use crate::nearest::near_property;
use crate::schema::{Comparison, InterpretationWord, parse_names};
use crate::span::Span;
use crate::vocabulary::Property;

/// A name and its location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'t> {
    pub(crate) text: &'t str,
    pub(crate) span: Span,
}

/// A parsed DTD. Scope 0 is the global scope, and every other scope is a section.
#[derive(Debug, Default)]
pub(crate) struct Ast<'t> {
    pub(crate) doc: Option<String>,
    pub(crate) scopes: Vec<Scope<'t>>,
    /// Names in the heads of definitions that could not be parsed.
    pub(crate) unparsed: HashSet<&'t str>,
}

/// The definitions of a section or of the global scope.
#[derive(Debug, Default)]
pub(crate) struct Scope<'t> {
    /// The section's name and number; `None` for the global scope, or if the head could not be parsed.
    pub(crate) head: Option<SectionHead<'t>>,
    pub(crate) doc: Option<Box<str>>,
    /// The range from the first token to the last; `None` for the global scope.
    pub(crate) extent: Option<Span>,
    pub(crate) records: Vec<Record<'t>>,
    pub(crate) properties: Vec<Setting<'t>>,
    /// The types that the scope defines. The statements in their blocks are in `properties`.
    pub(crate) types: Vec<Typed<'t>>,
}

/// A section head: `section name number`.
#[derive(Debug)]
pub(crate) struct SectionHead<'t> {
    pub(crate) name: Name<'t>,
    /// The section number; `None` if the number did not fit in 64 bits and was reported.
    pub(crate) number: Option<Int>,
}

/// A record definition.
#[derive(Debug)]
pub(crate) struct Record<'t> {
    pub(crate) name: Name<'t>,
    pub(crate) fields: FieldItem<'t>,
    /// The fields that have a type in the field list, in the order of the text.
    pub(crate) types: Vec<Typed<'t>>,
    pub(crate) block: Vec<Setting<'t>>,
    /// The `{` that opens the block.
    pub(crate) brace: Option<Span>,
    /// The range from the first token to the last.
    pub(crate) extent: Span,
    pub(crate) doc: Option<Box<str>>,
}

/// An item of a record's field list.
#[derive(Debug)]
pub(crate) enum FieldItem<'t> {
    /// A leaf or a nested record.
    Name(Name<'t>),
    /// A repetition, `own: count * body`. The body is a name or a group. Few repetitions have their own name, so it is
    /// boxed.
    Repeat { own: Option<Box<Name<'t>>>, count: Count<'t>, body: Box<FieldItem<'t>> },
    /// A group of items in parentheses.
    Group(Vec<FieldItem<'t>>),
}

/// A field with its type, or a type with its definition (spec 2 `type`).
#[derive(Debug)]
pub(crate) struct Typed<'t> {
    /// The field, or the type that is defined.
    pub(crate) name: Name<'t>,
    /// The start of the field or, if it is repeated, of its repetition.
    pub(crate) item: usize,
    /// The name of a type or an untagged record; `None` if there is only an interpretation.
    pub(crate) word: Option<Name<'t>>,
    /// Whether a length follows the word.
    pub(crate) has_length: bool,
    /// The width if there is a length, and the interpretation if it is written.
    pub(crate) settings: Vec<Setting<'t>>,
    pub(crate) doc: Option<Box<str>>,
}

impl Typed<'_> {
    /// Returns the range of the name and its type.
    pub(crate) fn span(&self) -> Span {
        let end = self.settings.iter().map(|s| s.value_span).chain(self.word.map(|word| word.span)).max();
        end.map_or(self.name.span, |end| self.name.span.to(end))
    }
}

/// The count of a repetition.
#[derive(Debug)]
pub(crate) enum Count<'t> {
    /// A field that stores the count.
    Name(Name<'t>),
    /// A count that is not stored.
    Computed(Computed<'t>),
}

/// A count in parentheses, which is not stored.
#[derive(Debug)]
pub(crate) struct Computed<'t> {
    pub(crate) kind: CountKind,
    /// The expression; empty for [`CountKind::Rest`].
    pub(crate) expression: Expression<'t>,
    pub(crate) span: Span,
}

/// The meaning of the expression of a count that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountKind {
    /// The expression over earlier fields is the number of items: `(expr)`.
    Expression,
    /// The items fill the rest of the content: `(rest)`.
    Rest,
    /// The expression over fields of the items is nonzero after the last item: `(until expr)`.
    Until,
}

/// A property setting, `path.name = value;`.
#[derive(Debug)]
pub(crate) struct Setting<'t> {
    /// The path of the field, which consists of one or more names.
    pub(crate) path: Vec<Name<'t>>,
    /// The name of the property.
    pub(crate) name: Name<'t>,
    /// Whether the name is quoted, which marks it as a deliberate annotation even if it resembles a property name.
    pub(crate) quoted: bool,
    /// The property; `None` for an annotation.
    pub(crate) property: Option<Property>,
    pub(crate) value: Value<'t>,
    pub(crate) value_span: Span,
    /// The annotation's value as written, without comments and with the formatter's whitespace.
    pub(crate) annotation: Option<Box<str>>,
    pub(crate) doc: Option<Box<str>>,
}

impl Setting<'_> {
    /// Returns the range of the path and the property name.
    pub(crate) fn target(&self) -> Span {
        self.path.first().map_or(self.name.span, |first| first.span.to(self.name.span))
    }

    /// Returns the path as written, without whitespace.
    pub(crate) fn path_text(&self) -> String {
        self.path.iter().map(|n| n.text).collect::<Vec<_>>().join(".")
    }

    /// Returns the property that this annotation probably misspells.
    pub(crate) fn misspells(&self) -> Option<Property> {
        let is_list = |text: &str| text.contains(',') && parse_names(text, false).is_ok();
        match &self.value {
            _ if self.property.is_some() || self.quoted => None,
            Value::Text(text) if matches!(self.name.text, "enum" | "names" | "labels") && is_list(text) => {
                Some(Property::Values)
            }
            Value::Expression(_) if matches!(self.name.text, "contents" | "content") => Some(Property::Value),
            _ => near_property(self.name.text),
        }
    }

    /// Creates a diagnostic for a missing property that this annotation probably misspells.
    pub(crate) fn misspelt(&self, code: Code, message: String) -> Draft {
        let meant = self.misspells().map_or("", Property::name);
        let value = self.annotation.as_deref().filter(|value| value.len() < 80).unwrap_or("...");
        Draft::new(code, self.name.span, format!("`{}` is not a property, and {message}", self.name.text))
            .help(format!("write `{}.{meant} = {value};`", self.path_text()))
            .replace(self.name.span, meant)
    }

    /// Checks whether this setting sets `property` of `field`, even if the property's name is misspelled.
    pub(crate) fn is(&self, field: &str, property: Property) -> bool {
        (self.property == Some(property) || self.misspells() == Some(property))
            && matches!(self.path.as_slice(), [only] if only.text == field)
    }
}

/// A property value.
#[derive(Debug)]
pub(crate) enum Value<'t> {
    Interpretation(Interpretation<'t>),
    Text(String),
    Word(&'t str),
    Expression(Expression<'t>),
    /// The width of a byte array: `bytes N`.
    Bytes(Int),
    /// The width of a byte array that ends at a given byte: `until N`.
    Until(Int),
    /// A value with a mistake that has already been reported.
    Broken,
}

/// An interpretation with its arguments.
#[derive(Debug)]
pub(crate) struct Interpretation<'t> {
    pub(crate) word: InterpretationWord,
    /// The arguments, in the order of [`InterpretationWord::arguments`].
    pub(crate) arguments: Vec<Argument<'t>>,
}

/// An argument of an interpretation.
#[derive(Debug)]
pub(crate) enum Argument<'t> {
    Number(Int),
    /// The field used as a base.
    Base(Reference<'t>),
    Model(Model<'t>),
}

/// The model that predicts a leaf.
#[derive(Debug)]
pub(crate) struct Model<'t> {
    /// The revision of the prediction rules.
    pub(crate) revision: Option<Int>,
    /// One or more predictors.
    pub(crate) predictors: Vec<Predictor<'t>>,
    pub(crate) span: Span,
}

/// A predictor in a model.
#[derive(Debug)]
pub(crate) struct Predictor<'t> {
    pub(crate) kind: PredictorKind<'t>,
    pub(crate) by: Option<FieldPath<'t>>,
    pub(crate) span: Span,
}

/// The kind of a predictor.
#[derive(Debug)]
pub(crate) enum PredictorKind<'t> {
    LastValue(Int),
    Stride,
    Fcm(Int),
    Dfcm(Int),
    Allocated(FieldPath<'t>),
    Freed,
    Used,
}

impl PredictorKind<'_> {
    /// Checks whether the predictor is a heap model.
    pub(crate) fn is_heap(&self) -> bool {
        matches!(self, PredictorKind::Allocated(_) | PredictorKind::Freed | PredictorKind::Used)
    }
}

/// A path to a leaf of the same record, or to a leaf of another record.
#[derive(Debug)]
pub(crate) struct FieldPath<'t> {
    /// One or more names of the path.
    pub(crate) names: Vec<Name<'t>>,
    pub(crate) span: Span,
}

impl FieldPath<'_> {
    /// Returns the path as written, without whitespace.
    pub(crate) fn text(&self) -> String {
        self.names.iter().map(|n| n.text).collect::<Vec<_>>().join(".")
    }
}

/// An integer as written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Int {
    pub(crate) negative: bool,
    pub(crate) magnitude: u64,
    pub(crate) span: Span,
}

impl Int {
    /// Returns the number in 64-bit two's complement.
    pub(crate) fn bits(self) -> u64 {
        if self.negative { self.magnitude.wrapping_neg() } else { self.magnitude }
    }

    /// Returns the number unless it is negative (`-0` is 0).
    pub(crate) fn natural(self) -> Option<u64> {
        (!self.negative || self.magnitude == 0).then_some(self.magnitude)
    }
}

/// An expression in postfix order.
#[derive(Debug)]
pub(crate) struct Expression<'t> {
    pub(crate) steps: Vec<Step<'t>>,
}

impl Expression<'_> {
    /// Returns the integer if the expression is a single integer.
    pub(crate) fn as_int(&self) -> Option<Int> {
        match self.steps.as_slice() {
            [Step::Int(int)] => Some(*int),
            _ => None,
        }
    }
}

/// A step of an expression: an operand or an operator.
#[derive(Debug)]
pub(crate) enum Step<'t> {
    Int(Int),
    Reference(Reference<'t>),
    Operator(Operator),
}

/// An operator: `+`, `-`, `*`, `/`, `%` or a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Compare(Comparison),
}

impl Operator {
    /// Returns the precedence: 0 for comparisons, 1 for `+` and `-`, 2 for `*`, `/` and `%`.
    pub(crate) fn level(self) -> u8 {
        match self {
            Operator::Compare(_) => 0,
            Operator::Add | Operator::Sub => 1,
            Operator::Mul | Operator::Div | Operator::Rem => 2,
        }
    }
}

/// A reference: `path.value`, `path.width` or `path.bit N`.
#[derive(Debug)]
pub(crate) struct Reference<'t> {
    pub(crate) path: Vec<Name<'t>>,
    pub(crate) of: Aspect,
    pub(crate) span: Span,
}

/// The part of a leaf that a reference reads: its value, its width or a bit of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aspect {
    Value,
    Width,
    /// A bit from 0 (least significant) to 63.
    Bit(u8),
}
