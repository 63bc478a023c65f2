//! Writes widths, interpretations and models in DTD syntax.

use super::{
    Dtd, Expr, ExprOp, HeapRole, Interpretation, Leaf, LeafId, MODEL_REVISION, Model, ModelId, ModelKind, Predictor,
    PredictorKind, Record, RecordId, Width,
};

impl Dtd {
    /// Returns the interpretation of a leaf of `record` in DTD syntax, such as `delta 0` or `baseOffset 0x1000`, or
    /// `computed` for a computed count.
    #[must_use]
    pub fn interpretation_text(&self, record: &Record, leaf: &Leaf) -> String {
        if leaf.computed.is_some() {
            return "computed".to_owned();
        }
        let parts = leaf.interpretation.parts();
        let word = parts.word.name();
        let arguments: Vec<String> = match (leaf.interpretation, parts.numbers.as_slice()) {
            (Interpretation::Default(_), _) if leaf.header.is_some() => {
                leaf.header.iter().map(|(record, leaf)| format!("{}.value", self.leaf_text(*record, *leaf))).collect()
            }
            (Interpretation::BaseOffset(base), _) => vec![format!("{base:#x}")],
            (Interpretation::BaseOffsetOf(record, leaf), _) => vec![format!("{}.value", self.leaf_text(record, leaf))],
            (Interpretation::Stride { initial, stride }, _) => {
                vec![initial.to_string(), stride.cast_signed().to_string()]
            }
            (Interpretation::Predicted(model), _) => vec![self.model_text(record, model)],
            (_, numbers) => numbers.iter().map(u64::to_string).collect(),
        };
        std::iter::once(word.to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
    }

    fn leaf_text(&self, record: RecordId, leaf: LeafId) -> String {
        let Some(record) = self.record(record) else { return "?".to_owned() };
        format!("{}.{}", record.name, record.path_text(leaf))
    }

    /// Returns the arguments of `predicted` for a leaf of `record`: the revision, the model, and the section for values
    /// that match no candidate, as in `1 (lastValue 4, fcm 3 by size) 5`.
    fn model_text(&self, record: &Record, model: ModelId) -> String {
        let Some(model) = self.models.get(usize::from(model.0)) else { return "?".to_owned() };
        let text = ModelText { dtd: self, record };
        format!("{MODEL_REVISION} {} {}", text.model(model), model.section)
    }
}

impl Record {
    fn path_text(&self, leaf: LeafId) -> String {
        self.leaf(leaf).map_or_else(|| "?".to_owned(), |leaf| leaf.path.join("."))
    }

    /// Returns the width of one of this record's leaves, as a number or the expression that computes it.
    #[must_use]
    pub fn width_text(&self, width: &Width) -> String {
        match width {
            Width::Unset => "0".to_owned(),
            Width::Number(bytes) => bytes.to_string(),
            Width::Array(bytes) => format!("{bytes} bytes"),
            Width::Until(end) => format!("until {end}"),
            Width::Rest => "rest".to_owned(),
            Width::Variable(expression) => expression_text(expression, |leaf| self.path_text(leaf)),
        }
    }
}

/// Converts postfix order to infix notation with the necessary parentheses. `path` returns the path of a leaf.
pub(crate) fn expression_text(expression: &Expr, path: impl Fn(LeafId) -> String) -> String {
    let mut stack: Vec<(String, u8)> = Vec::new();
    let mut steps = expression.0.iter().peekable();
    while let Some(step) = steps.next() {
        let (sign, level) = match *step {
            ExprOp::Push(number) => {
                stack.push((number.to_string(), 3));
                continue;
            }
            ExprOp::Leaf(leaf) => {
                let of = match steps.next_if(|next| matches!(next, ExprOp::Bit(_))) {
                    Some(ExprOp::Bit(bit)) => format!("bit {bit}"),
                    _ => "value".to_owned(),
                };
                stack.push((format!("{}.{of}", path(leaf)), 3));
                continue;
            }
            ExprOp::Rest => {
                stack.push(("rest".to_owned(), 3));
                continue;
            }
            ExprOp::Until => {
                let condition = stack.pop().map_or_else(|| "?".to_owned(), |(text, _)| text);
                stack.push((format!("until {condition}"), 0));
                continue;
            }
            // Bits are handled with their leaves above.
            ExprOp::Bit(_) => continue,
            ExprOp::Add => ("+", 1),
            ExprOp::Sub => ("-", 1),
            ExprOp::Mul => ("*", 2),
            ExprOp::Div => ("/", 2),
            ExprOp::Rem => ("%", 2),
            ExprOp::Compare(comparison) => (comparison.sign(), 0),
        };
        let (Some(right), Some(left)) = (stack.pop(), stack.pop()) else { return "?".to_owned() };
        let wrap = |(text, l): (String, u8), least: u8| if l < least { format!("({text})") } else { text };
        // If comparisons are nested, one of them must be in parentheses.
        let least = level.max(1);
        stack.push((format!("{} {sign} {}", wrap(left, least), wrap(right, level + 1)), level));
    }
    stack.pop().map_or_else(|| "?".to_owned(), |(text, _)| text)
}

struct ModelText<'d> {
    dtd: &'d Dtd,
    /// The record of the predicted leaf. Leaves of this record are written without the record name.
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
        match self.dtd.record(record) {
            Some(found) if std::ptr::eq(found, self.record) => found.path_text(leaf),
            _ => self.dtd.leaf_text(record, leaf),
        }
    }
}
