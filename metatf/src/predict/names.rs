//! Descriptions of the codes of predicted leaves, for annotated dumps and for statistics.

use super::heap::describe;
use crate::format::{HeapRole, Model, ModelKind, Predictor, PredictorKind};

impl Model {
    /// Describes a code (specification, 4.2), as in `newest freed of its class`. The description does not imply that
    /// the candidate exists, which depends on what the model has learned.
    #[must_use]
    pub fn code_in_words(&self, code: u64) -> String {
        match &self.kind {
            ModelKind::Values(predictors) => candidate(predictors, code),
            ModelKind::Heap { role: HeapRole::Allocated { .. }, .. } => describe::allocation(code),
            ModelKind::Heap { .. } => describe::free(code),
        }
    }

    /// Returns whether elements of the model's stream section complete the code.
    #[must_use]
    pub fn takes_elements(&self, code: u64) -> bool {
        match &self.kind {
            ModelKind::Values(predictors) => code == predictors.iter().map(candidates).sum::<u64>(),
            ModelKind::Heap { role, .. } => describe::takes_elements(matches!(role, HeapRole::Allocated { .. }), code),
        }
    }
}

fn candidates(predictor: &Predictor) -> u64 {
    match predictor.kind {
        PredictorKind::LastValue(n) => n.into(),
        PredictorKind::Stride => 1,
        PredictorKind::Fcm(_) | PredictorKind::Dfcm(_) => 2,
    }
}

fn candidate(predictors: &[Predictor], code: u64) -> String {
    let mut rest = code;
    for predictor in predictors {
        if rest < candidates(predictor) {
            let name = match predictor.kind {
                PredictorKind::LastValue(n) => format!("lastValue {n}"),
                PredictorKind::Stride => return "stride".to_owned(),
                PredictorKind::Fcm(order) => format!("fcm {order}"),
                PredictorKind::Dfcm(order) => format!("dfcm {order}"),
            };
            return format!("{name}, candidate {rest}");
        }
        rest -= candidates(predictor);
    }
    if rest == 0 { "not predicted, the next element".to_owned() } else { "no such candidate".to_owned() }
}
