//! Converts the pest pairs of a property's value to its syntax tree node. The recursion follows parentheses, which nest
//! at most 32 levels deep.

use super::Rule;
use super::build::{Builder, Pair};
use super::correct::{self, Tokens};
use crate::ast::{Argument, Aspect, Expression, Interpretation, Name, Operator, Reference, Step, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE};
use crate::schema::{Comparison, InterpretationWord};
use crate::suggest::unknown_interpretation;
use crate::vocabulary::Property;

/// Maximum number of steps (operands and operators) in an expression. No format needs more steps, and code generated
/// from an expression is nested as deeply as the expression is long.
const MOST_STEPS: usize = 1000;

impl Builder<'_, '_, '_> {
    /// Builds a value. If the value contains a mistake, reports the mistake and returns [`Value::Broken`].
    pub(super) fn value<'t>(&mut self, property: &Name, pair: Pair<'t>) -> Option<Value<'t>> {
        let inner = pair.into_inner().next()?;
        let value = match inner.as_rule() {
            Rule::interpretation => Value::Interpretation(self.interpretation(inner)?),
            Rule::string => Value::Text(unescape(inner.as_str())),
            // A field to share the previous value with.
            Rule::expression if property.text == Property::Previous.name() && inner.as_str().contains('.') => {
                let place = self.tight(&inner);
                let message = "`previous` must be `own` or `shared`: it names no other field";
                self.mistake(Draft::new(Code::UnknownPrevious, place, message).write(place, "shared"));
                Value::Broken
            }
            Rule::expression => Value::Expression(self.expression(inner)),
            Rule::array => {
                let mut parts = inner.into_inner();
                let (word, number) = (parts.next()?, parts.next()?);
                let number = self.int(&number);
                if word.as_rule() == Rule::until_word { Value::Until(number) } else { Value::Bytes(number) }
            }
            Rule::misspelt => {
                self.misspelt(property, inner)?;
                Value::Broken
            }
            Rule::misspelt_model => {
                self.misspelt_model(inner);
                Value::Broken
            }
            _ => Value::Word(inner.as_str()),
        };
        Some(if self.broken { Value::Broken } else { value })
    }

    pub(super) fn interpretation<'t>(&mut self, pair: Pair<'t>) -> Option<Interpretation<'t>> {
        let mut parts = pair.into_inner();
        let word = InterpretationWord::named(parts.next()?.as_str())?;
        let mut revision = None;
        let argument = |part: Pair<'t>| {
            Some(match part.as_rule() {
                Rule::revision => {
                    revision = part.into_inner().next().map(|part| self.int(&part));
                    return None;
                }
                Rule::model => Argument::Model(self.model(revision, part)),
                Rule::reference => Argument::Base(self.base_reference(word, part)?),
                _ => Argument::Number(self.int(&part)),
            })
        };
        let mut arguments: Vec<_> = parts.filter_map(argument).collect();
        arguments.shrink_to_fit();
        Some(Interpretation { word, arguments })
    }

    fn base_reference<'t>(&mut self, word: InterpretationWord, pair: Pair<'t>) -> Option<Reference<'t>> {
        let reference = self.reference(pair)?;
        // The end of the reference may have been reported.
        if !self.broken && (reference.of != Aspect::Value || reference.path.len() < 2) {
            let path = reference.path.iter().map(|name| name.text).collect::<Vec<_>>().join(".");
            let record = if word == InterpretationWord::Default { "HEADER" } else { "RECORD" };
            self.mistake(
                Draft::new(
                    Code::BadReference,
                    reference.span,
                    match word {
                        InterpretationWord::Default => {
                            "a default must be a number or the value of a field in the file's header"
                        }
                        _ => "a base must be the value of a record's field",
                    },
                )
                .help(match word {
                    InterpretationWord::Default => {
                        format!("write `{LINE}` with the record of the file's header, or a number, as in `default 0`")
                    }
                    _ => format!("write `{LINE}` with the record that contains the field"),
                })
                .line(
                    reference.span,
                    if reference.path.len() < 2 { format!("{record}.{path}.value") } else { format!("{path}.value") },
                ),
            );
        }
        Some(reference)
    }

    /// Builds a reference, which ends in `.value`, `.width` or `.bit N`.
    fn reference<'t>(&mut self, pair: Pair<'t>) -> Option<Reference<'t>> {
        let span = self.tight(&pair);
        let (numbers, names): (Vec<_>, Vec<_>) = pair.into_inner().partition(|part| part.as_rule() == Rule::bit_number);
        let mut path: Vec<Name> = names.iter().map(|part| self.name(part)).collect();
        let last = path.pop()?;
        let of = match (last.text, numbers.first()) {
            ("value", None) => Some(Aspect::Value),
            ("width", None) => Some(Aspect::Width),
            ("bit", Some(number)) => number.as_str().parse().ok().filter(|bit| *bit < 64).map(Aspect::Bit),
            _ => None,
        };
        if of.is_none() {
            let message = match numbers.first() {
                Some(number) => {
                    format!("`{} {}` of a field cannot be used in an expression", last.text, number.as_str())
                }
                None => format!(
                    "expected `.value`, `.width` or `.bit N` after `{}`",
                    path.last().into_iter().chain([&last]).map(|name| name.text).collect::<Vec<_>>().join(".")
                ),
            };
            // Collecting the names takes time proportional to the text.
            let is_range = || self.text.get(span.end()..).is_some_and(|rest| rest.trim_start().starts_with('-'));
            if last.text == "bits" && is_range() {
                let name = path.last().map_or("flags", |name| name.text);
                let draft = Draft::new(Code::BadReference, last.span, message);
                self.mistake(draft.help(format!(
                    "write `{name}.bit 0` for one bit, `{name}.value % 16` for bits 0 to 3, or `{name}.value / 16 % 8` for bits 4 \
                     to 6"
                )));
                return Some(Reference { path, of: Aspect::Value, span });
            }
            let written = match self.report.is_full() {
                true => None,
                false => correct::reference(&Tokens::new(self.text, self.lexed), span),
            };
            let draft = Draft::new(Code::BadReference, last.span, message);
            self.mistake(match written {
                Some(text) => draft.write(span, text.as_str()).replace(span, text),
                // Bits counted from 1.
                None => draft
                    .help(format!("a bit has a number from 0 to 63, as in `{LINE}`"))
                    .line(numbers.first().map_or(span, |number| self.span(number)), "63"),
            });
        }
        Some(Reference { path, of: of.unwrap_or(Aspect::Value), span })
    }

    /// Builds an expression from the pair of an expression with or without parentheses.
    pub(super) fn expression<'t>(&mut self, pair: Pair<'t>) -> Expression<'t> {
        let span = self.tight(&pair);
        let mut steps = Steps::default();
        self.postfix(pair, &mut steps);
        if steps.count > MOST_STEPS {
            self.mistake(
                Draft::new(Code::LongExpression, span, "this expression is too long")
                    .help(format!("an expression may contain at most {MOST_STEPS} operands and operators")),
            );
        }
        Expression { steps: steps.list }
    }

    /// Converts operands and operators to postfix order (spec 2 `expr`, `sum`, `mul`). From left to right, `*`, `/` and
    /// `%` come before `+` and `-`, which come before a comparison.
    fn postfix<'t>(&mut self, pair: Pair<'t>, steps: &mut Steps<'t>) {
        let mut waiting: Vec<Operator> = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::int => steps.push(Step::Int(self.int(&part))),
                Rule::reference => steps.extend(self.reference(part).map(Step::Reference)),
                Rule::parenthesis | Rule::expression => self.postfix(part, steps),
                _ => {
                    let operator = operator(part.as_str());
                    while waiting.last().is_some_and(|w| w.level() >= operator.level()) {
                        steps.extend(waiting.pop().map(Step::Operator));
                    }
                    waiting.push(operator);
                }
            }
        }
        steps.extend(waiting.into_iter().rev().map(Step::Operator));
    }

    /// Reports a word followed by numbers. This is an unknown interpretation, or a property followed by excess numbers.
    fn misspelt(&mut self, property: &Name, pair: Pair) -> Option<()> {
        let mut parts = pair.clone().into_inner();
        let (word, number) = (parts.next()?, parts.next()?);
        self.mistake(if property.text == Property::Interpretation.name() {
            unknown_interpretation(self.span(&word), word.as_str(), self.tight(&pair))
        } else {
            let found = self.first_token(&number);
            Draft::new(Code::Syntax, self.tight(&number), format!("expected `;`, found `{found}`"))
                .write(self.tight(&pair), word.as_str())
                .general()
        });
        self.wide_numbers(pair);
        Some(())
    }

    /// Reports numbers that do not fit in 64 bits in a discarded value.
    pub(super) fn wide_numbers(&mut self, pair: Pair) {
        for number in pair.into_inner().flatten().filter(|part| part.as_rule() == Rule::int) {
            self.int(&number);
        }
    }
}

fn operator(text: &str) -> Operator {
    match text {
        "+" => Operator::Add,
        "-" => Operator::Sub,
        "*" => Operator::Mul,
        "/" => Operator::Div,
        "%" => Operator::Rem,
        _ => Operator::Compare(Comparison::signed(text).unwrap_or(Comparison::Equal)),
    }
}

/// The steps of an expression. Steps beyond the limit are counted but not stored.
#[derive(Default)]
struct Steps<'t> {
    list: Vec<Step<'t>>,
    count: usize,
}

impl<'t> Steps<'t> {
    fn push(&mut self, step: Step<'t>) {
        self.count += 1;
        if self.count <= MOST_STEPS {
            if self.count == 1 {
                self.list.reserve_exact(1); // Most expressions are a single number.
            }
            self.list.push(step);
        }
    }

    fn extend(&mut self, steps: impl IntoIterator<Item = Step<'t>>) {
        steps.into_iter().for_each(|step| self.push(step));
    }
}

/// Returns the text of a string literal. The lexer has already checked its escapes.
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
