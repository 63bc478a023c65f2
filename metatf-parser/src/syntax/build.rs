//! pest's pairs to the syntax tree. Recursion follows parentheses, at most 32 deep.

use pest::iterators::{Pair, Pairs};

use super::Rule;
use crate::ast::{
    Argument, Aspect, Expression, FieldItem, Int, Interpretation, Name, Operator, Reference, Step, Value,
};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::InterpretationWord;
use crate::span::Span;
use crate::suggest::unknown_interpretation;
use crate::vocabulary::Property;

/// Steps of an expression, operands and operators together. No format needs more; code made from an expression nests
/// as deep as it is long.
const MOST_STEPS: usize = 1000;

/// A property before its doc is known.
pub(super) struct RawProperty {
    pub(super) path: Vec<Name>,
    pub(super) name: Name,
    pub(super) quoted: bool,
    pub(super) value: Value,
    pub(super) value_span: Span,
}

/// Makes tree nodes of the pairs of one item.
pub(super) struct Builder<'r, 's> {
    /// Where in the text the item starts: pest counts from there.
    pub(super) base: usize,
    pub(super) report: &'r mut Reporter<'s>,
}

impl Builder<'_, '_> {
    pub(super) fn span(&self, pair: &Pair<Rule>) -> Span {
        let span = pair.as_span();
        Span::new(self.base + span.start(), self.base + span.end())
    }

    pub(super) fn name(&self, pair: &Pair<Rule>) -> Name {
        Name { text: pair.as_str().to_owned(), span: self.span(pair) }
    }

    /// Returns the first pair of a rule inside another.
    pub(super) fn find<'i>(pair: &Pair<'i, Rule>, rule: Rule) -> Option<Pair<'i, Rule>> {
        pair.clone().into_inner().find(|p| p.as_rule() == rule)
    }

    pub(super) fn fields(&self, pair: &Pair<Rule>) -> FieldItem {
        let inner = pair.clone().into_inner().next();
        match inner {
            Some(p) if p.as_rule() == Rule::repetition => self.repetition(&p),
            Some(p) if p.as_rule() == Rule::group => self.group(&p),
            Some(p) => FieldItem::Name(self.name(&p)),
            None => FieldItem::Group(Vec::new()),
        }
    }

    fn group(&self, pair: &Pair<Rule>) -> FieldItem {
        let items = pair.clone().into_inner().filter(|p| p.as_rule() == Rule::field_item);
        FieldItem::Group(items.map(|p| self.fields(&p)).collect())
    }

    fn repetition(&self, pair: &Pair<Rule>) -> FieldItem {
        let mut parts = pair.clone().into_inner().filter(|p| p.as_rule() != Rule::star);
        let count = parts.next().map(|p| self.name(&p));
        let body = parts.next().map(|p| match p.as_rule() {
            Rule::group => self.group(&p),
            _ => FieldItem::Name(self.name(&p)),
        });
        match (count, body) {
            (Some(count), Some(body)) => FieldItem::Repeat { count, body: Box::new(body) },
            _ => FieldItem::Group(Vec::new()),
        }
    }

    pub(super) fn property(&mut self, pair: &Pair<Rule>) -> Option<RawProperty> {
        let target = Self::find(pair, Rule::target)?;
        let mut path = self.names(target.clone().into_inner());
        let quoted = Self::find(&target, Rule::quoted);
        let name = match &quoted {
            Some(quoted) => Name { text: unescape(quoted.as_str()), span: self.span(quoted) },
            None => path.pop()?,
        };
        let value = Self::find(pair, Rule::value)?;
        let inner = value.clone().into_inner().next();
        let (value, value_span) = match inner {
            Some(inner) if inner.as_rule() == Rule::misspelt => self.misspelt(&name, &inner),
            Some(inner) if inner.as_rule() == Rule::misspelt_model => {
                self.misspelt_model(&inner);
                (Value::Broken, self.span(&inner))
            }
            _ => (self.value(&value).unwrap_or(Value::Broken), self.span(&value)),
        };
        Some(RawProperty { path, name, quoted: quoted.is_some(), value, value_span })
    }

    fn names(&self, pairs: Pairs<Rule>) -> Vec<Name> {
        pairs.filter(|p| p.as_rule() == Rule::name).map(|p| self.name(&p)).collect()
    }

    /// Makes a value; `None` for a mistake, which is reported.
    fn value(&mut self, pair: &Pair<Rule>) -> Option<Value> {
        let inner = pair.clone().into_inner().next()?;
        match inner.as_rule() {
            Rule::interpretation => self.interpretation(&inner).map(Value::Interpretation),
            Rule::string => Some(Value::Text(unescape(inner.as_str()))),
            Rule::expression => self.expression(&inner).map(Value::Expression),
            _ => Some(Value::Word(inner.as_str().to_owned())),
        }
    }

    /// Reports a word with numbers behind it: an interpretation that does not exist, or numbers where the property ends.
    fn misspelt(&mut self, property: &Name, pair: &Pair<Rule>) -> (Value, Span) {
        let mut parts = pair.clone().into_inner();
        let (Some(word), Some(number)) = (parts.next(), parts.next()) else { return (Value::Broken, self.span(pair)) };
        if property.text == Property::Interpretation.name() {
            self.report.add(unknown_interpretation(self.span(&word), word.as_str()));
            return (Value::Broken, self.span(pair));
        }
        let found = number.as_str().split_whitespace().next().unwrap_or_default();
        let found = format!("expected `;`, found `{found}`");
        self.report.add(
            Draft::new(Code::Syntax, self.span(&number), found).help("a property is written `field.property = value;`"),
        );
        (Value::Broken, self.span(pair))
    }

    /// Makes an interpretation; `None` for a mistake, which is reported.
    fn interpretation(&mut self, pair: &Pair<Rule>) -> Option<Interpretation> {
        let mut parts = pair.clone().into_inner();
        let word = InterpretationWord::named(parts.next()?.as_str())?;
        let mut arguments = Vec::new();
        for part in parts {
            arguments.push(match part.as_rule() {
                Rule::model => Argument::Model(self.model(&part)?),
                Rule::reference => Argument::Base(self.base_reference(&part)?),
                _ => Argument::Number(self.int(&part)?),
            });
        }
        Some(Interpretation { word, arguments })
    }

    fn base_reference(&mut self, pair: &Pair<Rule>) -> Option<Reference> {
        let reference = self.reference(pair)?;
        if reference.of == Aspect::Value && reference.path.len() >= 2 {
            return Some(reference);
        }
        self.report.add(
            Draft::new(Code::BadReference, reference.span, "a base is the value of a record's field")
                .help("write `baseOffset RECORD.FIELD.value`"),
        );
        None
    }

    fn reference(&mut self, pair: &Pair<Rule>) -> Option<Reference> {
        let span = self.span(pair);
        let mut path = self.names(pair.clone().into_inner());
        let last = path.pop()?;
        let of = match last.text.as_str() {
            "value" => Aspect::Value,
            "width" => Aspect::Width,
            other => {
                self.report.add(
                    Draft::new(Code::BadReference, last.span, format!("`{other}` of a field cannot be computed with"))
                        .help("a reference ends in `.value` or `.width`"),
                );
                return None;
            }
        };
        Some(Reference { path, of, span })
    }

    /// Makes an expression postfix (spec 2 `expr`, `mul`): `*` before `+` and `-`, left to right.
    fn expression(&mut self, pair: &Pair<Rule>) -> Option<Expression> {
        let mut steps = Vec::new();
        let complete = self.postfix(pair, &mut steps);
        if steps.len() > MOST_STEPS {
            self.report.add(
                Draft::new(Code::LongExpression, self.span(pair), "an expression is too long")
                    .help(format!("at most {MOST_STEPS} operands and operators")),
            );
            return None;
        }
        complete.map(|()| Expression { steps })
    }

    fn postfix(&mut self, pair: &Pair<Rule>, steps: &mut Vec<Step>) -> Option<()> {
        let mut complete = Some(());
        let mut waiting: Vec<Operator> = Vec::new();
        for part in pair.clone().into_inner() {
            match part.as_rule() {
                Rule::int => match self.int(&part) {
                    Some(int) => steps.push(Step::Int(int)),
                    None => complete = None,
                },
                Rule::reference => match self.reference(&part) {
                    Some(reference) => steps.push(Step::Reference(reference)),
                    None => complete = None,
                },
                Rule::parenthesis => {
                    let inner = Self::find(&part, Rule::expression)?;
                    if self.postfix(&inner, steps).is_none() {
                        complete = None;
                    }
                }
                _ => {
                    let operator = operator(part.as_str());
                    while waiting.last().is_some_and(|w| *w == Operator::Mul || operator != Operator::Mul) {
                        steps.extend(waiting.pop().map(Step::Operator));
                    }
                    waiting.push(operator);
                }
            }
        }
        steps.extend(waiting.into_iter().rev().map(Step::Operator));
        complete
    }

    pub(super) fn int(&mut self, pair: &Pair<Rule>) -> Option<Int> {
        let span = self.span(pair);
        let parsed = parse_int(pair.as_str());
        if parsed.is_none() {
            self.report.add(
                Draft::new(Code::WideNumber, span, "a number does not fit 64 bits")
                    .help("numbers go from -9223372036854775808 to 18446744073709551615"),
            );
        }
        parsed.map(|(negative, magnitude)| Int { negative, magnitude, span })
    }
}

fn operator(text: &str) -> Operator {
    match text {
        "+" => Operator::Add,
        "-" => Operator::Sub,
        _ => Operator::Mul,
    }
}

/// Returns sign and magnitude; `None` where the number does not fit 64 bits.
fn parse_int(text: &str) -> Option<(bool, u64)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    let mut magnitude = 0_u64;
    for digit in digits.chars().filter_map(|c| c.to_digit(radix)) {
        magnitude = magnitude.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))?;
    }
    (!negative || magnitude <= 1 << 63).then_some((negative, magnitude))
}

/// Returns a string's text: the lexer has checked its escapes.
fn unescape(literal: &str) -> String {
    let inner = literal.strip_prefix('"').and_then(|s| s.strip_suffix('"')).unwrap_or(literal);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => out.extend(chars.next().map(|e| match e {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            })),
            (c, false) => out.push(c),
        }
    }
    out
}
