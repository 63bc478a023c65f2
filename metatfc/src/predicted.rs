//! The models of predicted fields, as the language writes them.

use metatf_parser::schema::{
    Dtd, HeapRole, LeafId, Model, ModelId, ModelKind, Predictor, PredictorKind, Record, RecordId,
};

/// Formats the model of a field of `record`: `predicted (lastValue 4, fcm 3 by size) 5`.
pub(crate) fn text(dtd: &Dtd, record: &Record, model: ModelId) -> String {
    let Some(model) = dtd.models.get(usize::from(model.0)) else { return "predicted ?".to_owned() };
    let text_of = ModelText { dtd, record };
    format!("predicted {} {}", text_of.model(model), model.section)
}

struct ModelText<'d> {
    dtd: &'d Dtd,
    /// The record whose leaf is predicted: its own leaves go without its name.
    record: &'d Record,
}

impl ModelText<'_> {
    fn model(&self, model: &Model) -> String {
        match &model.kind {
            ModelKind::Values(predictors) => match predictors.as_slice() {
                [only] => self.predictor(only),
                several => {
                    let several: Vec<String> = several.iter().map(|p| self.predictor(p)).collect();
                    format!("({})", several.join(", "))
                }
            },
            ModelKind::Heap { role, by } => {
                let role = match role {
                    HeapRole::Allocated { size } => format!("allocated {}", self.leaf(*size)),
                    HeapRole::Freed => "freed".to_owned(),
                    HeapRole::Used => "used".to_owned(),
                };
                format!("heap {role}{}", self.by(*by))
            }
        }
    }

    fn predictor(&self, predictor: &Predictor) -> String {
        let kind = match predictor.kind {
            PredictorKind::LastValue(n) => format!("lastValue {n}"),
            PredictorKind::Stride => "stride".to_owned(),
            PredictorKind::Fcm(order) => format!("fcm {order}"),
            PredictorKind::Dfcm(order) => format!("dfcm {order}"),
        };
        kind + &self.by(predictor.by)
    }

    fn by(&self, leaf: Option<(RecordId, LeafId)>) -> String {
        leaf.map_or_else(String::new, |leaf| format!(" by {}", self.leaf(leaf)))
    }

    fn leaf(&self, (record, leaf): (RecordId, LeafId)) -> String {
        let Some(record) = self.dtd.record(record) else { return "?".to_owned() };
        let path = record.leaf(leaf).map_or_else(|| "?".to_owned(), |l| l.path.join("."));
        if std::ptr::eq(record, self.record) { path } else { format!("{}.{path}", record.name) }
    }
}
