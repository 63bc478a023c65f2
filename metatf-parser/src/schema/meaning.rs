//! Checks whether two DTDs have the same meaning, ignoring whitespace, comments and annotations (spec 5.3).
//!
//! The meaning of a DTD is written in a canonical form that is identical on every platform. Numbers are little-endian
//! 64-bit integers, strings and lists are preceded by their lengths, and choices are encoded as numbers. The scope that
//! sets a property does not affect the meaning; `doc`, `unit`, `format` and annotations are omitted.

use super::{
    Dtd, Expr, ExprOp, HeapRole, Interpretation, Item, Leaf, LeafId, Model, ModelKind, Predictor, PredictorKind,
    Record, RecordId, Repeated, Section, Width,
};

impl Dtd {
    /// Checks whether traces of one DTD are also valid with the other DTD and decode to the same values.
    #[must_use]
    pub fn same_meaning(&self, other: &Dtd) -> bool {
        self.canonical() == other.canonical()
    }

    /// Returns the 64-bit FNV-1a hash of the canonical form. DTDs with the same meaning have the same fingerprint on
    /// every platform.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        self.canonical().iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
    }

    fn canonical(&self) -> Vec<u8> {
        let mut out = Canonical(Vec::new());
        out.number(self.tag_width);
        out.list(&self.sections, Canonical::section);
        out.list(&self.records, Canonical::record);
        // Models are written only if there are any, so that a DTD without models keeps its fingerprint.
        if !self.models.is_empty() {
            out.list(&self.models, Canonical::model);
        }
        out.0
    }
}

/// The canonical form written so far.
struct Canonical(Vec<u8>);

impl Canonical {
    fn number(&mut self, number: impl Into<u64>) {
        self.0.extend(number.into().to_le_bytes());
    }

    fn length(&mut self, length: usize) {
        self.number(u64::try_from(length).unwrap_or(u64::MAX));
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.0.extend(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.length(items.len());
        items.iter().for_each(|item| write(self, item));
    }

    fn optional(&mut self, number: Option<u64>) {
        self.number(u64::from(number.is_some()));
        self.number(number.unwrap_or(0));
    }

    fn section(&mut self, section: &Section) {
        self.number(section.number);
        self.text(section.name.as_deref().unwrap_or_default());
        self.optional(section.stream.map(|r| r.0.into()));
        self.list(&section.records, |out, r| out.number(r.0));
        self.list(&section.cells, |out, cells| out.list(cells, |out, cell| out.number(*cell)));
        self.list(&section.cell_initials, |out, initial| out.number(*initial));
    }

    fn record(&mut self, record: &Record) {
        self.text(&record.name);
        self.optional(record.section.map(|s| s.0.into()));
        // A catch-all record is written as a value that no tag can have.
        self.optional(if record.catch_all { Some(u64::MAX) } else { record.tag.map(u64::from) });
        self.list(&record.items, Self::item);
        self.list(&record.leaves, Self::leaf);
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Leaf(leaf) => {
                self.number(0_u8);
                self.number(leaf.0);
            }
            Item::Nested { key, record, items, .. } => {
                self.number(1_u8);
                self.text(key);
                self.text(record);
                self.list(items, Self::item);
            }
            Item::Repeat { count, key, body } => {
                self.number(2_u8);
                self.number(count.0);
                self.text(key);
                self.repeated(body);
            }
        }
    }

    fn repeated(&mut self, body: &Repeated) {
        match body {
            Repeated::Leaf(leaf) => {
                self.number(0_u8);
                self.number(leaf.0);
            }
            Repeated::Group(items) => {
                self.number(1_u8);
                self.list(items, Self::item);
            }
            Repeated::Record { record, items, .. } => {
                self.number(2_u8);
                self.text(record);
                self.list(items, Self::item);
            }
        }
    }

    fn leaf(&mut self, leaf: &Leaf) {
        self.text(&leaf.name);
        self.text(&leaf.key);
        self.width(&leaf.width);
        self.interpretation(leaf.interpretation);
        self.optional(leaf.constant);
        // The expression is written only if present, so that a DTD without expressions keeps its fingerprint.
        if let Some(expression) = &leaf.computed {
            self.list(&expression.0, |out, step| out.step(*step));
        }
        if let Some((record, header)) = leaf.header {
            self.text("header");
            self.number(record.0);
            self.number(header.0);
        }
        if let Some(section) = leaf.section {
            self.text("section");
            self.number(section);
        }
    }

    fn width(&mut self, width: &Width) {
        match width {
            Width::Unset => self.number(0_u8),
            Width::Number(bytes) => {
                self.number(1_u8);
                self.number(*bytes);
            }
            Width::Array(bytes) => {
                self.number(2_u8);
                self.number(*bytes);
            }
            Width::Until(end) => {
                self.number(4_u8);
                self.number(*end);
            }
            Width::Rest => self.number(5_u8),
            Width::Variable(Expr(steps)) => {
                self.number(3_u8);
                self.list(steps, |out, step| out.step(*step));
            }
        }
    }

    fn step(&mut self, step: ExprOp) {
        match step {
            ExprOp::Push(number) => {
                self.number(0_u8);
                self.number(number);
            }
            ExprOp::Leaf(leaf) => {
                self.number(1_u8);
                self.number(leaf.0);
            }
            ExprOp::Add => self.number(2_u8),
            ExprOp::Sub => self.number(3_u8),
            ExprOp::Mul => self.number(4_u8),
            ExprOp::Div => self.number(5_u8),
            ExprOp::Rem => self.number(6_u8),
            ExprOp::Bit(bit) => {
                self.number(7_u8);
                self.number(bit);
            }
            ExprOp::Compare(comparison) => {
                self.number(8_u8);
                self.text(comparison.sign());
            }
            ExprOp::Rest => self.number(9_u8),
            ExprOp::Until => self.number(10_u8),
        }
    }

    fn interpretation(&mut self, interpretation: Interpretation) {
        let parts = interpretation.parts();
        let number = |index: usize| parts.numbers.get(index).copied().unwrap_or(0);
        self.number(parts.code);
        self.number(number(0));
        self.number(number(1));
    }

    fn model(&mut self, model: &Model) {
        self.number(model.section);
        match &model.kind {
            ModelKind::Values(predictors) => {
                self.number(0_u8);
                self.list(predictors, |out, predictor| out.predictor(*predictor));
            }
            ModelKind::Heap { role, by } => {
                self.number(1_u8);
                let (code, size) = match role {
                    HeapRole::Allocated { size } => (0_u8, Some(*size)),
                    HeapRole::Freed => (1, None),
                    HeapRole::Used => (2, None),
                };
                self.number(code);
                self.leaf_of(size);
                self.leaf_of(*by);
            }
        }
    }

    fn predictor(&mut self, predictor: Predictor) {
        let (code, argument) = match predictor.kind {
            PredictorKind::LastValue(n) => (0_u8, n),
            PredictorKind::Stride => (1, 0),
            PredictorKind::Fcm(order) => (2, order),
            PredictorKind::Dfcm(order) => (3, order),
        };
        self.number(code);
        self.number(argument);
        self.leaf_of(predictor.by);
    }

    fn leaf_of(&mut self, leaf: Option<(RecordId, LeafId)>) {
        self.optional(leaf.map(|(record, _)| record.0.into()));
        self.number(leaf.map_or(0, |(_, leaf)| leaf.0));
    }
}
