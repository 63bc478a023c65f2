//! The grammar of a property's value (spec 2). Recursion follows parentheses, at most 32 deep.

use super::cursor::Cursor;
use super::expected::Rule;
use crate::ast::{Argument, Aspect, Expression, Interpretation, Name, Operator, Reference, Step, Value};
use crate::codes::Code;
use crate::diagnostic::Draft;
use crate::lexer::Kind;
use crate::schema::{self, InterpretationWord};
use crate::suggest::unknown_interpretation;
use crate::vocabulary::Property;

/// Steps of an expression, operands and operators together. No format needs more; code made from an expression nests
/// as deep as it is long.
const MOST_STEPS: usize = 1000;

impl<'t> Cursor<'t, '_> {
    /// Reads a value; one with a mistake inside is [`Value::Broken`].
    pub(super) fn value(&mut self, property: &Name) -> Option<Value<'t>> {
        let drafts = self.drafts.len();
        let value = self.rule(Rule::Value, |c| {
            (c.interpretation().map(Value::Interpretation))
                .or_else(|| c.misspelt_model())
                .or_else(|| c.string())
                .or_else(|| c.expression().map(Value::Expression))
                .or_else(|| c.misspelt(property))
                .or_else(|| c.rule(Rule::Word, Self::name).map(|word| Value::Word(word.text)))
        })?;
        Some(if self.drafts.len() > drafts { Value::Broken } else { value })
    }

    fn string(&mut self) -> Option<Value<'t>> {
        let Some(literal) = self.peek(Kind::Text) else { return self.miss(Rule::String) };
        self.at += 1;
        Some(Value::Text(unescape(literal)))
    }

    fn interpretation(&mut self) -> Option<Interpretation<'t>> {
        self.rule(Rule::Interpretation, |c| {
            let Some(word) = c.peek(Kind::Name).and_then(InterpretationWord::named) else {
                return c.miss(Rule::Interpretation);
            };
            c.at += 1;
            let mut arguments = Vec::new();
            for argument in word.arguments() {
                arguments.push(match argument {
                    schema::Argument::Base => match c.int() {
                        Some(number) => Argument::Number(number),
                        None => Argument::Base(c.base_reference()?),
                    },
                    schema::Argument::Model => Argument::Model(c.model()?),
                    _ => Argument::Number(c.int()?),
                });
            }
            Some(Interpretation { word, arguments })
        })
    }

    fn base_reference(&mut self) -> Option<Reference<'t>> {
        let reference = self.reference()?;
        if reference.of != Aspect::Value || reference.path.len() < 2 {
            self.drafts.push(
                Draft::new(Code::BadReference, reference.span, "a base is the value of a record's field")
                    .help("write `baseOffset RECORD.FIELD.value`"),
            );
        }
        Some(reference)
    }

    /// Reads a path that ends in `.value` or `.width`.
    fn reference(&mut self) -> Option<Reference<'t>> {
        let first = self.at;
        let mut path = self.rule(Rule::Reference, |c| c.path(2))?;
        let last = path.pop()?;
        let of = if last.text == "width" { Aspect::Width } else { Aspect::Value };
        if !matches!(last.text, "value" | "width") {
            self.drafts.push(
                Draft::new(
                    Code::BadReference,
                    last.span,
                    format!("`{}` of a field cannot be computed with", last.text),
                )
                .help("a reference ends in `.value` or `.width`"),
            );
        }
        Some(Reference { path, of, span: self.span_from(first) })
    }

    fn expression(&mut self) -> Option<Expression<'t>> {
        let first = self.at;
        let mut steps = Steps::default();
        self.rule(Rule::Expression, |c| c.operands(&mut steps))?;
        if steps.count > MOST_STEPS {
            let span = self.span_from(first);
            self.drafts.push(
                Draft::new(Code::LongExpression, span, "an expression is too long")
                    .help(format!("at most {MOST_STEPS} operands and operators")),
            );
        }
        Some(Expression { steps: steps.list })
    }

    /// Reads operands and operators, and makes them postfix (spec 2 `expr`, `mul`): `*` before `+` and `-`, left to right. A `-`
    /// behind an operand is an operator.
    fn operands(&mut self, steps: &mut Steps<'t>) -> Option<()> {
        let mut waiting: Vec<Operator> = Vec::new();
        self.operand(steps)?;
        while let Some(operator) = self.maybe(|c| {
            let operator = c.operator()?;
            let binds = |w: &Operator| *w == Operator::Mul || operator != Operator::Mul;
            while waiting.last().is_some_and(binds) {
                steps.extend(waiting.pop());
            }
            c.operand(steps)?;
            Some(operator)
        }) {
            waiting.push(operator);
        }
        steps.extend(waiting.into_iter().rev());
        Some(())
    }

    fn operand(&mut self, steps: &mut Steps<'t>) -> Option<()> {
        if let Some(int) = self.int() {
            steps.push(Step::Int(int));
        } else if let Some(reference) = self.reference() {
            steps.push(Step::Reference(reference));
        } else {
            self.rule(Rule::Parenthesis, |c| {
                c.mark(b'(', Rule::OpenParen)?;
                c.rule(Rule::Expression, |c| c.operands(steps))?;
                c.mark(b')', Rule::CloseParen)
            })?;
        }
        Some(())
    }

    fn operator(&mut self) -> Option<Operator> {
        let (mark, operator) = match self.lexed.tokens.get(self.at).map(|t| t.kind) {
            Some(Kind::Mark(b'+')) => (b'+', Operator::Add),
            Some(Kind::Mark(b'-')) => (b'-', Operator::Sub),
            _ => (b'*', Operator::Mul),
        };
        self.mark(mark, Rule::Operator).map(|_| operator)
    }

    /// Reads, and reports, a word with numbers behind it: an interpretation that does not exist, or numbers where the property
    /// ends.
    fn misspelt(&mut self, property: &Name) -> Option<Value<'t>> {
        let (word, place, found) = self.rule(Rule::Misspelt, |c| {
            let word = c.name()?;
            let first = c.at;
            if c.int().is_some() {
                let place = c.span_from(first);
                while c.int().is_some() {}
                return Some((word, place, first));
            }
            c.rule(Rule::Lookalike, |c| c.model().map(|_| c.rest_of_model()))?;
            Some((word, c.span_from(first), first))
        })?;
        self.drafts.push(if property.text == Property::Interpretation.name() {
            unknown_interpretation(word.span, word.text)
        } else {
            let found = self.lexed.tokens.get(found).and_then(|t| self.text.get(t.span.range())).unwrap_or_default();
            Draft::new(Code::Syntax, place, format!("expected `;`, found `{found}`"))
                .help("a property is written `field.property = value;`")
        });
        Some(Value::Broken)
    }
}

/// The steps of an expression. More than are allowed are counted, not kept.
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
                self.list.reserve_exact(1); // most are a number alone
            }
            self.list.push(step);
        }
    }

    fn extend(&mut self, operators: impl IntoIterator<Item = Operator>) {
        operators.into_iter().for_each(|operator| self.push(Step::Operator(operator)));
    }
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
