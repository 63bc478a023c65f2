//! Converts the pest pairs of one item to its syntax tree node. The recursion follows parentheses, which nest at most
//! 32 levels deep.

use super::Rule;
use crate::ast::{
    Argument, Computed, Count, CountKind, Expression, FieldItem, Int, Interpretation, Name, SectionHead, Setting,
    Typed, Value,
};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::lexer::Lexed;
use crate::schema::InterpretationWord;
use crate::span::Span;
use crate::vocabulary::Property;

pub(super) type Pair<'t> = pest::iterators::Pair<'t, Rule>;

/// An item without the content of its braces.
pub(super) enum Item<'t> {
    Section { head: SectionHead<'t>, brace: Span },
    Record { name: Name<'t>, fields: FieldItem<'t>, types: Vec<Typed<'t>>, brace: Option<Span> },
    Type { typed: Typed<'t>, brace: Option<Span> },
    Property(RawProperty<'t>),
}

/// A property before its doc is known.
pub(super) struct RawProperty<'t> {
    pub(super) path: Vec<Name<'t>>,
    pub(super) name: Name<'t>,
    pub(super) quoted: bool,
    pub(super) value: Value<'t>,
    pub(super) value_span: Span,
}

/// A builder of nodes from the pairs of one item. The grammar guarantees that the parts of a rule exist, so methods
/// return `None` only if the grammar and the builder disagree.
pub(super) struct Builder<'l, 'r, 's> {
    pub(super) text: &'l str,
    /// Offset of the item in the text; offsets from pest are relative to it.
    pub(super) base: usize,
    pub(super) lexed: &'l Lexed,
    pub(super) report: &'r mut Reporter<'s>,
    /// Whether the item contains a mistake that pest does not detect.
    pub(super) broken: bool,
}

impl Builder<'_, '_, '_> {
    pub(super) fn span(&self, pair: &Pair) -> Span {
        let span = pair.as_span();
        Span::new(self.base + span.start(), self.base + span.end())
    }

    /// Returns the span of a pair without the trailing whitespace that pest includes if an optional part is absent.
    pub(super) fn tight(&self, pair: &Pair) -> Span {
        let span = self.span(pair);
        let next = self.lexed.tokens.partition_point(|token| token.span.start() < span.end());
        next.checked_sub(1).and_then(|last| self.lexed.tokens.get(last)).map_or(span, |last| span.to(last.span))
    }

    /// Returns the text of a pair's first token.
    pub(super) fn first_token<'t>(&self, pair: &Pair<'t>) -> &'t str {
        let start = self.span(pair).start();
        let index = self.lexed.tokens.partition_point(|token| token.span.start() < start);
        let end = self.lexed.tokens.get(index).map_or(start, |token| token.span.end());
        pair.as_str().get(..end.saturating_sub(start)).unwrap_or_default()
    }

    /// Reports a mistake.
    pub(super) fn mistake(&mut self, draft: Draft) {
        self.broken = true;
        self.report.add(draft);
    }

    pub(super) fn name<'t>(&self, pair: &Pair<'t>) -> Name<'t> {
        Name { text: pair.as_str(), span: self.span(pair) }
    }

    pub(super) fn item<'t>(&mut self, pair: Pair<'t>) -> Option<Item<'t>> {
        let rule = pair.as_rule();
        if matches!(rule, Rule::property | Rule::assignment) {
            return self.property(pair).map(Item::Property);
        }
        let mut parts = pair.into_inner();
        if rule == Rule::section_head {
            let (_word, name) = (parts.next()?, self.name(&parts.next()?));
            let number = self.int(&parts.next()?);
            let head = SectionHead { name, number: (!self.broken).then_some(number) };
            return Some(Item::Section { head, brace: self.span(&parts.next()?) });
        }
        if rule == Rule::type_head {
            let (_word, name) = (parts.next()?, self.name(&parts.next()?));
            let (brace, kind): (Vec<_>, Vec<_>) = parts.partition(|part| part.as_rule() == Rule::open_brace);
            let typed = self.typed(name, kind.into_iter())?;
            return Some(Item::Type { typed, brace: brace.first().map(|brace| self.span(brace)) });
        }
        let mut types = Vec::new();
        let (name, fields) = (self.name(&parts.next()?), self.field_item(parts.next()?, &mut types)?);
        Some(Item::Record { name, fields, types, brace: parts.next().map(|brace| self.span(&brace)) })
    }

    /// Builds a type from the parts of `kind` in the grammar.
    fn typed<'t>(&mut self, name: Name<'t>, parts: impl Iterator<Item = Pair<'t>>) -> Option<Typed<'t>> {
        let mut typed =
            Typed { name, item: name.span.start(), word: None, has_length: false, settings: Vec::new(), doc: None };
        for part in parts {
            let value_span = self.tight(&part);
            let (property, value) = match part.as_rule() {
                Rule::name => {
                    typed.word = Some(self.name(&part));
                    continue;
                }
                Rule::expression => {
                    typed.has_length = true;
                    let expression = self.expression(part);
                    let value = expression.as_int().map_or(Value::Expression(expression), Value::Bytes);
                    (Property::Width, value)
                }
                Rule::interpretation => (Property::Interpretation, Value::Interpretation(self.interpretation(part)?)),
                _ => (Property::Interpretation, Value::Interpretation(initial_delta(value_span))),
            };
            let value = if self.broken { Value::Broken } else { value };
            typed.settings = vec![type_setting(name, property, value, value_span)];
        }
        Some(typed)
    }

    fn field_item<'t>(&mut self, pair: Pair<'t>, types: &mut Vec<Typed<'t>>) -> Option<FieldItem<'t>> {
        let rule = pair.as_rule();
        if matches!(rule, Rule::typed | Rule::name | Rule::group) {
            return self.field(pair, types);
        }
        let start = self.span(&pair).start();
        let is_named = rule == Rule::named;
        let mut parts = pair.into_inner();
        let own = if is_named { Some(Box::new(self.name(&parts.next()?))) } else { None };
        let (first, body) = (parts.next()?, parts.next());
        let Some(body) = body else { return self.field(first, types) };
        let count = match first.as_rule() {
            Rule::parenthesis => {
                let span = self.span(&first);
                Count::Computed(Computed { kind: CountKind::Expression, expression: self.expression(first), span })
            }
            Rule::scanned => {
                let span = self.span(&first);
                let until = first.into_inner().find(|part| part.as_rule() == Rule::expression);
                let kind = if until.is_some() { CountKind::Until } else { CountKind::Rest };
                let none = Expression { steps: Vec::new() };
                let expression = until.map_or(none, |part| self.expression(part));
                Count::Computed(Computed { kind, expression, span })
            }
            _ => Count::Name(self.name(&first)),
        };
        let is_typed = body.as_rule() == Rule::typed;
        let body = Box::new(self.field(body, types)?);
        types.last_mut().filter(|_| is_typed).into_iter().for_each(|typed| typed.item = start);
        Some(FieldItem::Repeat { own, count, body })
    }

    /// Builds a leaf, a nested record or a group.
    fn field<'t>(&mut self, pair: Pair<'t>, types: &mut Vec<Typed<'t>>) -> Option<FieldItem<'t>> {
        Some(match pair.as_rule() {
            Rule::group => {
                FieldItem::Group(pair.into_inner().filter_map(|part| self.field_item(part, types)).collect())
            }
            Rule::typed => {
                let mut parts = pair.into_inner();
                let name = self.name(&parts.next()?);
                types.push(self.typed(name, parts)?);
                FieldItem::Name(name)
            }
            _ => FieldItem::Name(self.name(&pair)),
        })
    }

    fn property<'t>(&mut self, pair: Pair<'t>) -> Option<RawProperty<'t>> {
        let mut path = Vec::with_capacity(2); // Most paths have a field and a property.
        let (mut quoted, mut value) = (false, None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::name => path.push(self.name(&part)),
                // The text between the quotes, verbatim.
                Rule::string => {
                    let text = part.as_str();
                    path.push(Name { text: text.get(1..text.len() - 1)?, span: self.span(&part) });
                    quoted = true;
                }
                _ => value = Some(part),
            }
        }
        let (name, value) = (path.pop()?, value?);
        let value_span = self.tight(&value);
        Some(RawProperty { path, name, quoted, value: self.value(&name, value)?, value_span })
    }

    /// Builds a number. Reports a number that does not fit in 64 bits.
    pub(super) fn int(&mut self, pair: &Pair) -> Int {
        let span = self.span(pair);
        let (negative, digits) =
            pair.as_str().strip_prefix('-').map_or((false, pair.as_str()), |digits| (true, digits));
        let magnitude = magnitude(digits).filter(|magnitude| !negative || *magnitude <= 1 << 63);
        if magnitude.is_none() {
            self.mistake(
                Draft::new(Code::WideNumber, span, "number does not fit in 64 bits")
                    .help("numbers range from -9223372036854775808 to 18446744073709551615"),
            );
        }
        Int { negative, magnitude: magnitude.unwrap_or(0), span }
    }
}

/// Returns the interpretation `delta 0`, which a type can write as `delta`.
pub(super) fn initial_delta<'t>(span: Span) -> Interpretation<'t> {
    let zero = Int { negative: false, magnitude: 0, span };
    Interpretation { word: InterpretationWord::Delta, arguments: vec![Argument::Number(zero)] }
}

/// Returns the setting of a property that a type contains.
fn type_setting<'t>(name: Name<'t>, property: Property, value: Value<'t>, value_span: Span) -> Setting<'t> {
    Setting {
        path: vec![name],
        name: Name { text: property.name(), span: value_span },
        quoted: false,
        property: Some(property),
        value,
        value_span,
        annotation: None,
        doc: None,
    }
}

/// Parses a number. Returns `None` if the number does not fit in 64 bits.
fn magnitude(text: &str) -> Option<u64> {
    if let Some(characters) = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
        return Some(characters.bytes().fold(0, |number, byte| number << 8 | u64::from(byte)));
    }
    let (radix, digits) = text.strip_prefix("0x").map_or((10, text), |digits| (16, digits));
    digits
        .chars()
        .filter_map(|c| c.to_digit(radix))
        .try_fold(0_u64, |number, digit| number.checked_mul(u64::from(radix))?.checked_add(u64::from(digit)))
}
