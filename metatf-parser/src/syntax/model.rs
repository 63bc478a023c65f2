//! Converts the pest pairs of a `predicted` value to its model.

use super::Rule;
use super::build::{Builder, Pair};
use crate::ast::{FieldPath, Int, Model, Name, Predictor, PredictorKind};
use crate::suggest::{unknown_by, unknown_predictor, unknown_role};

impl Builder<'_, '_, '_> {
    pub(super) fn model<'t>(&mut self, revision: Option<Int>, pair: Pair<'t>) -> Model<'t> {
        let span = self.tight(&pair);
        Model { revision, predictors: pair.into_inner().filter_map(|part| self.predictor(part)).collect(), span }
    }

    fn predictor<'t>(&mut self, pair: Pair<'t>) -> Option<Predictor<'t>> {
        let span = self.tight(&pair);
        let mut parts = pair.into_inner();
        let mut word = parts.next()?.as_rule();
        if word == Rule::heap_word {
            word = parts.next()?.as_rule();
        }
        let (mut number, mut allocated, mut by) = (None, Vec::new(), None);
        for part in parts {
            match part.as_rule() {
                Rule::int => number = Some(self.int(&part)),
                Rule::by_word => by = Some(Vec::new()),
                _ => by.as_mut().unwrap_or(&mut allocated).push(self.name(&part)),
            }
        }
        let kind = match word {
            Rule::last_value_word => PredictorKind::LastValue(number?),
            Rule::fcm_word => PredictorKind::Fcm(number?),
            Rule::dfcm_word => PredictorKind::Dfcm(number?),
            Rule::allocated_word => PredictorKind::Allocated(field_path(allocated)?),
            Rule::freed_word => PredictorKind::Freed,
            Rule::used_word => PredictorKind::Used,
            _ => PredictorKind::Stride,
        };
        Some(Predictor { kind, by: by.and_then(field_path), span })
    }

    /// Reports the unknown word.
    pub(super) fn misspelt_model(&mut self, pair: Pair) {
        for part in pair.clone().into_inner() {
            let draft = match part.as_rule() {
                Rule::wrong_predictor => unknown_predictor,
                Rule::wrong_role => unknown_role,
                Rule::wrong_by => unknown_by,
                _ => continue,
            };
            self.mistake(draft(self.span(&part), part.as_str()));
        }
        self.wide_numbers(pair);
    }
}

fn field_path(names: Vec<Name>) -> Option<FieldPath> {
    let span = names.first()?.span.to(names.last()?.span);
    Some(FieldPath { names, span })
}
