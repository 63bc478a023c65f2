//! The grammar of a `predicted` value's model (spec 2). Only `predicted` and `stride` are reserved: `heap`, `by`, `used` and the
//! others are words here and names everywhere else, also in the paths of a model (`heap allocated by by used 2`).

use super::cursor::Cursor;
use super::expected::Rule;
use crate::ast::{FieldPath, Model, Name, Predictor, PredictorKind, Value};
use crate::lexer::Kind;
use crate::suggest::{unknown_by, unknown_predictor, unknown_role};
use crate::vocabulary::{PREDICTORS, ROLES};

impl<'t> Cursor<'t, '_> {
    /// A predictor, or several in parentheses.
    pub(super) fn model(&mut self) -> Option<Model<'t>> {
        let first = self.at;
        let predictors = self.rule(Rule::Model, |c| {
            if let Some(predictor) = c.predictor() {
                return Some(vec![predictor]);
            }
            c.mark(b'(', Rule::OpenParen)?;
            let predictors = c.list(Self::predictor)?;
            c.mark(b')', Rule::CloseParen)?;
            Some(predictors)
        })?;
        Some(Model { predictors, span: self.span_from(first) })
    }

    fn predictor(&mut self) -> Option<Predictor<'t>> {
        self.rule(Rule::Predictor, |c| {
            let first = c.at;
            let Some(word) = c.peek(Kind::Name).filter(|word| PREDICTORS.contains(word)) else {
                return c.miss(Rule::Predictor);
            };
            c.at += 1;
            let kind = match word {
                "lastValue" => PredictorKind::LastValue(c.int()?),
                "fcm" => PredictorKind::Fcm(c.int()?),
                "dfcm" => PredictorKind::Dfcm(c.int()?),
                "heap" => c.role()?,
                _ => PredictorKind::Stride,
            };
            let by = c.rule(Rule::By, |c| c.keyword("by", Rule::ByWord).and_then(|_| c.field_path()));
            Some(Predictor { kind, by, span: c.span_from(first) })
        })
    }

    fn role(&mut self) -> Option<PredictorKind<'t>> {
        self.rule(Rule::Role, |c| {
            if c.keyword("allocated", Rule::AllocatedWord).is_some() {
                return Some(PredictorKind::Allocated(c.field_path()?));
            }
            let freed = c.keyword("freed", Rule::FreedWord).map(|_| PredictorKind::Freed);
            freed.or_else(|| c.keyword("used", Rule::UsedWord).map(|_| PredictorKind::Used))
        })
    }

    /// A leaf of the same record, or a record and its leaf.
    fn field_path(&mut self) -> Option<FieldPath<'t>> {
        let first = self.at;
        let names = self.rule(Rule::FieldPath, |c| c.path(1))?;
        Some(FieldPath { names, span: self.span_from(first) })
    }

    /// Reads, and reports, a model with a wrong word where a predictor, a role or `by` goes.
    pub(super) fn misspelt_model(&mut self) -> Option<Value<'t>> {
        let draft = self.rule(Rule::MisspeltModel, |c| {
            if c.peek(Kind::Name) != Some("predicted") {
                return c.miss(Rule::WordAndModel);
            }
            c.at += 1;
            let _optional = c.mark(b'(', Rule::OpenParen);
            while c.maybe(|c| c.predictor().and_then(|_| c.mark(b',', Rule::Comma))).is_some() {}
            let by = |c: &mut Self| c.predictor().and_then(|_| c.wrong_word(&["by"], Rule::WrongBy));
            let role =
                |c: &mut Self| c.keyword("heap", Rule::HeapStart).and_then(|_| c.wrong_word(&ROLES, Rule::WrongRole));
            let draft = if let Some(word) = c.maybe(by) {
                unknown_by(word.span, word.text)
            } else if let Some(word) = c.maybe(role) {
                unknown_role(word.span, word.text)
            } else {
                let word = c.wrong_word(&PREDICTORS, Rule::WrongPredictor)?;
                unknown_predictor(word.span, word.text)
            };
            c.rest_of_model();
            Some(draft)
        })?;
        self.drafts.push(draft);
        Some(Value::Broken)
    }

    /// Reads a name that is none of the words that may stand here.
    fn wrong_word(&mut self, right: &[&str], rule: Rule) -> Option<Name<'t>> {
        match self.peek(Kind::Name) {
            Some(word) if right.contains(&word) => None,
            _ => self.name_as(rule),
        }
    }

    /// Skips whatever may stand in a model.
    pub(super) fn rest_of_model(&mut self) {
        let in_model = |kind| matches!(kind, Kind::Name | Kind::Int | Kind::Mark(b'.' | b',' | b'(' | b')' | b'-'));
        while self.lexed.tokens.get(self.at).is_some_and(|t| in_model(t.kind)) {
            self.at += 1;
        }
    }
}
