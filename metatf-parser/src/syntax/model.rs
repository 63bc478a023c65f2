//! Pairs of a `predicted` value to its model.

use pest::iterators::Pair;

use super::Rule;
use super::build::Builder;
use crate::ast::{FieldPath, Model, Predictor, PredictorKind};
use crate::span::Span;
use crate::suggest::{unknown_by, unknown_predictor, unknown_role};

impl Builder<'_, '_> {
    /// Makes a model; `None` for a mistake, which is reported.
    pub(super) fn model(&mut self, pair: &Pair<Rule>) -> Option<Model> {
        let mut predictors = Vec::new();
        for part in pair.clone().into_inner().filter(|p| p.as_rule() == Rule::predictor) {
            predictors.push(self.predictor(&part)?);
        }
        Some(Model { predictors, span: self.tight(pair) })
    }

    fn predictor(&mut self, pair: &Pair<Rule>) -> Option<Predictor> {
        let mut parts = pair.clone().into_inner();
        let first = parts.next()?.as_rule();
        let (mut argument, mut role, mut by) = (None, None, None);
        for part in parts {
            match part.as_rule() {
                Rule::int => argument = Some(self.int(&part)?),
                Rule::role => role = Some(self.role(&part)?),
                Rule::by => by = Some(self.field_path(&Self::find(&part, Rule::field_path)?)),
                _ => {}
            }
        }
        let kind = match (first, argument) {
            (Rule::last_value_word, Some(n)) => PredictorKind::LastValue(n),
            (Rule::fcm_word, Some(order)) => PredictorKind::Fcm(order),
            (Rule::dfcm_word, Some(order)) => PredictorKind::Dfcm(order),
            (Rule::heap_word, _) => role?,
            _ => PredictorKind::Stride,
        };
        Some(Predictor { kind, by, span: self.tight(pair) })
    }

    /// Returns the place of a pair without the white space that an absent optional part leaves at its end.
    fn tight(&self, pair: &Pair<Rule>) -> Span {
        let span = self.span(pair);
        Span::new(span.start, span.start + pair.as_str().trim_end().len())
    }

    fn role(&self, pair: &Pair<Rule>) -> Option<PredictorKind> {
        Some(match pair.clone().into_inner().next()?.as_rule() {
            Rule::allocated_word => PredictorKind::Allocated(self.field_path(&Self::find(pair, Rule::field_path)?)),
            Rule::freed_word => PredictorKind::Freed,
            _ => PredictorKind::Used,
        })
    }

    fn field_path(&self, pair: &Pair<Rule>) -> FieldPath {
        let names = pair.clone().into_inner().filter(|p| p.as_rule() == Rule::name);
        FieldPath { names: names.map(|p| self.name(&p)).collect(), span: self.tight(pair) }
    }

    /// Reports the wrong word.
    pub(super) fn misspelt_model(&mut self, pair: &Pair<Rule>) {
        for part in pair.clone().into_inner() {
            let draft = match part.as_rule() {
                Rule::wrong_predictor => unknown_predictor,
                Rule::wrong_role => unknown_role,
                Rule::wrong_by => unknown_by,
                _ => continue,
            };
            let word = self.span(&part);
            self.report.add(draft(word, part.as_str()));
        }
    }
}
