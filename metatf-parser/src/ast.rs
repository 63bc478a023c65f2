//! The syntax tree, with places. Its depth is at most 32 (the lexer sees to that), so recursion over it is safe.

use crate::codes::Code;
use crate::diagnostic::Draft;
use crate::schema::InterpretationWord;
use crate::span::Span;
use crate::suggest::near_property;
use crate::vocabulary::Property;

/// A name where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// A DTD: scope 0 is the global one, the others are the sections.
#[derive(Debug, Default)]
pub(crate) struct Ast {
    pub(crate) doc: Option<String>,
    pub(crate) scopes: Vec<Scope>,
}

/// The definitions of a section, or the global ones.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Name and number; `None` for the global scope and where the head could not be parsed.
    pub(crate) head: Option<SectionHead>,
    pub(crate) doc: Option<String>,
    pub(crate) records: Vec<Record>,
    pub(crate) properties: Vec<Setting>,
}

/// `section name number`.
#[derive(Debug)]
pub(crate) struct SectionHead {
    pub(crate) name: Name,
    /// `None` where the number is over 64 bits, which has been reported.
    pub(crate) number: Option<Int>,
}

/// A record's definition.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: Name,
    pub(crate) fields: FieldItem,
    pub(crate) block: Vec<Setting>,
    pub(crate) doc: Option<String>,
}

/// A piece of a record's field list.
#[derive(Debug)]
pub(crate) enum FieldItem {
    /// A leaf or a nested record.
    Name(Name),
    /// `count * body`; the body is a name or a group.
    Repeat { count: Name, body: Box<FieldItem> },
    /// A composite.
    Group(Vec<FieldItem>),
}

/// `path.name = value;`
#[derive(Debug)]
pub(crate) struct Setting {
    /// The field's path, at least one name.
    pub(crate) path: Vec<Name>,
    /// The property's name.
    pub(crate) name: Name,
    /// The name is in quotes: an annotation that is meant, whatever it looks like.
    pub(crate) quoted: bool,
    /// The property; `None` for an annotation.
    pub(crate) property: Option<Property>,
    pub(crate) value: Value,
    pub(crate) value_span: Span,
    /// Of an annotation: its value as written, comments aside, with white space as the formatter puts it.
    pub(crate) annotation: Option<String>,
    pub(crate) doc: Option<String>,
}

impl Setting {
    /// Returns the place of path and property name.
    pub(crate) fn target(&self) -> Span {
        self.path.first().map_or(self.name.span, |first| first.span.to(self.name.span))
    }

    /// Returns the path as it is written, without white space.
    pub(crate) fn path_text(&self) -> String {
        self.path.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(".")
    }

    /// Returns the property whose name this is nearly: an annotation that is probably none.
    pub(crate) fn misspells(&self) -> Option<Property> {
        if self.property.is_some() || self.quoted { None } else { near_property(&self.name.text) }
    }

    /// Reports what is missing because of the misspelt name.
    pub(crate) fn misspelt(&self, code: Code, message: String) -> Draft {
        let meant = self.misspells().map_or("", Property::name);
        Draft::new(code, self.name.span, message)
            .label(format!("`{}` is no property", self.name.text))
            .help(format!("did you mean `{meant}`?"))
    }

    /// Checks whether this sets a property of `field`, or would but for the property's spelling.
    pub(crate) fn is(&self, field: &str, property: Property) -> bool {
        (self.property == Some(property) || self.misspells() == Some(property))
            && matches!(self.path.as_slice(), [only] if only.text == field)
    }
}

/// A property's value.
#[derive(Debug)]
pub(crate) enum Value {
    Interpretation(Interpretation),
    Text(String),
    Word(String),
    Expression(Expression),
    /// Has a mistake that has been reported.
    Broken,
}

/// An interpretation with its arguments.
#[derive(Debug)]
pub(crate) struct Interpretation {
    pub(crate) word: InterpretationWord,
    /// As many as the word's [arguments](InterpretationWord::arguments), in their order.
    pub(crate) arguments: Vec<Argument>,
}

/// What stands behind the word of an interpretation.
#[derive(Debug)]
pub(crate) enum Argument {
    Number(Int),
    /// A base that is a field.
    Base(Reference),
    Model(Model),
}

/// What a leaf is predicted by.
#[derive(Debug)]
pub(crate) struct Model {
    /// At least one.
    pub(crate) predictors: Vec<Predictor>,
    pub(crate) span: Span,
}

/// A predictor of a model.
#[derive(Debug)]
pub(crate) struct Predictor {
    pub(crate) kind: PredictorKind,
    pub(crate) by: Option<FieldPath>,
    pub(crate) span: Span,
}

/// What a predictor goes on.
#[derive(Debug)]
pub(crate) enum PredictorKind {
    LastValue(Int),
    Stride,
    Fcm(Int),
    Dfcm(Int),
    Allocated(FieldPath),
    Freed,
    Used,
}

impl PredictorKind {
    /// Checks whether it is the model of a heap.
    pub(crate) fn is_heap(&self) -> bool {
        matches!(self, PredictorKind::Allocated(_) | PredictorKind::Freed | PredictorKind::Used)
    }
}

/// A leaf of the same record, or a record and its leaf.
#[derive(Debug)]
pub(crate) struct FieldPath {
    /// At least one.
    pub(crate) names: Vec<Name>,
    pub(crate) span: Span,
}

impl FieldPath {
    /// Returns the path as it is written, without white space.
    pub(crate) fn text(&self) -> String {
        self.names.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(".")
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
    /// Returns the number as 64-bit two's complement.
    pub(crate) fn bits(self) -> u64 {
        if self.negative { self.magnitude.wrapping_neg() } else { self.magnitude }
    }

    /// Returns the number, where it is not negative (`-0` is 0).
    pub(crate) fn natural(self) -> Option<u64> {
        (!self.negative || self.magnitude == 0).then_some(self.magnitude)
    }
}

/// An expression in postfix form.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) steps: Vec<Step>,
}

impl Expression {
    /// Returns the integer, where the expression is just that.
    pub(crate) fn as_int(&self) -> Option<Int> {
        match self.steps.as_slice() {
            [Step::Int(int)] => Some(*int),
            _ => None,
        }
    }
}

/// A step of an expression.
#[derive(Debug)]
pub(crate) enum Step {
    Int(Int),
    Reference(Reference),
    Operator(Operator),
}

/// `+`, `-` or `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Sub,
    Mul,
}

/// `path.value` or `path.width`.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) path: Vec<Name>,
    pub(crate) of: Aspect,
    pub(crate) span: Span,
}

/// What a reference asks of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aspect {
    Value,
    Width,
}
