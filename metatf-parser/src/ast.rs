//! The syntax tree, with places; names are borrowed from the text. Its depth is at most 32 (the lexer sees to that), so recursion
//! over it is safe.

use crate::codes::Code;
use crate::diagnostic::Draft;
use crate::nearest::near_property;
use crate::schema::{Comparison, InterpretationWord};
use crate::span::Span;
use crate::vocabulary::Property;

/// A name where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'t> {
    pub(crate) text: &'t str,
    pub(crate) span: Span,
}

/// A DTD: scope 0 is the global one, the others are the sections.
#[derive(Debug, Default)]
pub(crate) struct Ast<'t> {
    pub(crate) doc: Option<String>,
    pub(crate) scopes: Vec<Scope<'t>>,
}

/// The definitions of a section, or the global ones.
#[derive(Debug, Default)]
pub(crate) struct Scope<'t> {
    /// Name and number; `None` for the global scope and where the head could not be parsed.
    pub(crate) head: Option<SectionHead<'t>>,
    pub(crate) doc: Option<Box<str>>,
    /// From its first token to its last; of the global scope nothing.
    pub(crate) extent: Option<Span>,
    pub(crate) records: Vec<Record<'t>>,
    pub(crate) properties: Vec<Setting<'t>>,
}

/// `section name number`.
#[derive(Debug)]
pub(crate) struct SectionHead<'t> {
    pub(crate) name: Name<'t>,
    /// `None` where the number is over 64 bits, which has been reported.
    pub(crate) number: Option<Int>,
}

/// A record's definition.
#[derive(Debug)]
pub(crate) struct Record<'t> {
    pub(crate) name: Name<'t>,
    pub(crate) fields: FieldItem<'t>,
    pub(crate) block: Vec<Setting<'t>>,
    /// The `{` of its block.
    pub(crate) brace: Option<Span>,
    /// From its first token to its last.
    #[cfg_attr(not(feature = "index"), expect(dead_code, reason = "for the index"))]
    pub(crate) extent: Span,
    pub(crate) doc: Option<Box<str>>,
}

/// A piece of a record's field list.
#[derive(Debug)]
pub(crate) enum FieldItem<'t> {
    /// A leaf or a nested record.
    Name(Name<'t>),
    /// `count * body`; the body is a name or a group.
    Repeat { count: Count<'t>, body: Box<FieldItem<'t>> },
    /// A composite.
    Group(Vec<FieldItem<'t>>),
}

/// What says how often something is repeated.
#[derive(Debug)]
pub(crate) enum Count<'t> {
    /// A field.
    Name(Name<'t>),
    /// An expression over earlier fields.
    Computed(Computed<'t>),
}

/// An expression in parentheses.
#[derive(Debug)]
pub(crate) struct Computed<'t> {
    pub(crate) expression: Expression<'t>,
    pub(crate) span: Span,
}

/// `path.name = value;`
#[derive(Debug)]
pub(crate) struct Setting<'t> {
    /// The field's path, at least one name.
    pub(crate) path: Vec<Name<'t>>,
    /// The property's name.
    pub(crate) name: Name<'t>,
    /// The name is in quotes: an annotation that is meant, whatever it looks like.
    pub(crate) quoted: bool,
    /// The property; `None` for an annotation.
    pub(crate) property: Option<Property>,
    pub(crate) value: Value<'t>,
    pub(crate) value_span: Span,
    /// Of an annotation: its value as written, comments aside, with white space as the formatter puts it.
    pub(crate) annotation: Option<Box<str>>,
    pub(crate) doc: Option<Box<str>>,
}

impl Setting<'_> {
    /// Returns the place of path and property name.
    pub(crate) fn target(&self) -> Span {
        self.path.first().map_or(self.name.span, |first| first.span.to(self.name.span))
    }

    /// Returns the path as it is written, without white space.
    pub(crate) fn path_text(&self) -> String {
        self.path.iter().map(|n| n.text).collect::<Vec<_>>().join(".")
    }

    /// Returns the property whose name this is nearly: an annotation that is probably none.
    pub(crate) fn misspells(&self) -> Option<Property> {
        if self.property.is_some() || self.quoted { None } else { near_property(self.name.text) }
    }

    /// Reports what is missing because of the misspelt name.
    pub(crate) fn misspelt(&self, code: Code, message: String) -> Draft {
        let meant = self.misspells().map_or("", Property::name);
        Draft::new(code, self.name.span, message)
            .label(format!("`{}` is no property", self.name.text))
            .help(format!("did you mean `{meant}`?"))
            .replace(self.name.span, meant)
    }

    /// Checks whether this sets a property of `field`, or would except for the property's spelling.
    pub(crate) fn is(&self, field: &str, property: Property) -> bool {
        (self.property == Some(property) || self.misspells() == Some(property))
            && matches!(self.path.as_slice(), [only] if only.text == field)
    }
}

/// A property's value.
#[derive(Debug)]
pub(crate) enum Value<'t> {
    Interpretation(Interpretation<'t>),
    Text(String),
    Word(&'t str),
    Expression(Expression<'t>),
    /// `bytes N`: the width of a byte array.
    Bytes(Int),
    /// `until N`: the width of bytes that end at a byte.
    Until(Int),
    /// Has a mistake that has been reported.
    Broken,
}

/// An interpretation with its arguments.
#[derive(Debug)]
pub(crate) struct Interpretation<'t> {
    pub(crate) word: InterpretationWord,
    /// As many as the word's [arguments](InterpretationWord::arguments), in their order.
    pub(crate) arguments: Vec<Argument<'t>>,
}

/// What stands behind the word of an interpretation.
#[derive(Debug)]
pub(crate) enum Argument<'t> {
    Number(Int),
    /// A base that is a field.
    Base(Reference<'t>),
    Model(Model<'t>),
}

/// What a leaf is predicted by.
#[derive(Debug)]
pub(crate) struct Model<'t> {
    /// The number of the rules that it follows.
    pub(crate) revision: Option<Int>,
    /// At least one.
    pub(crate) predictors: Vec<Predictor<'t>>,
    pub(crate) span: Span,
}

/// A predictor of a model.
#[derive(Debug)]
pub(crate) struct Predictor<'t> {
    pub(crate) kind: PredictorKind<'t>,
    pub(crate) by: Option<FieldPath<'t>>,
    pub(crate) span: Span,
}

/// What a predictor goes on.
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
    /// Checks whether it is the model of a heap.
    pub(crate) fn is_heap(&self) -> bool {
        matches!(self, PredictorKind::Allocated(_) | PredictorKind::Freed | PredictorKind::Used)
    }
}

/// A leaf of the same record, or a record and its leaf.
#[derive(Debug)]
pub(crate) struct FieldPath<'t> {
    /// At least one.
    pub(crate) names: Vec<Name<'t>>,
    pub(crate) span: Span,
}

impl FieldPath<'_> {
    /// Returns the path as it is written, without white space.
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
pub(crate) struct Expression<'t> {
    pub(crate) steps: Vec<Step<'t>>,
}

impl Expression<'_> {
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
pub(crate) enum Step<'t> {
    Int(Int),
    Reference(Reference<'t>),
    Operator(Operator),
}

/// `+`, `-`, `*`, `/`, `%`, or a comparison.
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
    /// How tight it binds: 0 of comparisons, 1 of `+` and `-`, 2 of the others.
    pub(crate) fn level(self) -> u8 {
        match self {
            Operator::Compare(_) => 0,
            Operator::Add | Operator::Sub => 1,
            Operator::Mul | Operator::Div | Operator::Rem => 2,
        }
    }
}

/// `path.value`, `path.width` or `path.bit N`.
#[derive(Debug)]
pub(crate) struct Reference<'t> {
    pub(crate) path: Vec<Name<'t>>,
    pub(crate) of: Aspect,
    pub(crate) span: Span,
}

/// What a reference asks of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aspect {
    Value,
    Width,
    /// 0 to 63, 0 the least significant.
    Bit(u8),
}
