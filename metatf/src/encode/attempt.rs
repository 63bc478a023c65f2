//! An attempt to encode a record. It stores the values that did not fit, the data for rolling the record back, and the
//! predicted values, whose models run once all other values fit.

use crate::encode::StreamWriters;
use crate::format::Format;
use crate::formula::{PREVIOUS, Plan, REFERENCED, Width, note, width_of};
use crate::predict::Models;
use crate::predict::{Cells, Context};
use crate::state::{Encoding, History, State};
use metatf_container::{ErrorKind, Order, TimeRange};

/// A value that the leaf's current encoding cannot represent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misfit {
    pub(crate) leaf: u8,
    pub(crate) value: u64,
    /// The number of bytes required to store the value under the current interpretation, 1 to 8, or [`UNPREDICTED`].
    pub(crate) needs: u8,
    /// The only value that the leaf can have, if its interpretation stores nothing.
    pub(crate) expected: Option<u64>,
}

impl Misfit {
    /// Returns the error for a leaf whose encoding, with this width, must not change.
    pub(crate) fn error(&self, width: u8) -> ErrorKind {
        match self.expected {
            Some(expected) => ErrorKind::NotImplied { found: self.value, expected },
            None => ErrorKind::DoesNotFit { value: self.value, width },
        }
    }
}

/// Marks a predicted leaf whose value matches no candidate and cannot be added to the stream section, so it must be
/// stored directly.
pub(crate) const UNPREDICTED: u8 = 0;

/// The value of a cell before the current record.
#[derive(Clone, Copy, Debug)]
struct CellUndo {
    cell: u32,
    value: u64,
}

/// The current attempt, whose memory is reused from record to record.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) misfits: Vec<Misfit>,
    /// The times of all records since the group began, including records that could not be encoded.
    pub(crate) times: TimeRange,
    undo: Vec<CellUndo>,
    /// The counts of items that end by their content, with the numbers of items given. They belong to the last record
    /// with such items.
    pub(crate) scanned: Vec<(u8, u64)>,
    /// The predicted leaves of the record.
    predictions: Vec<Prediction>,
    /// The numbers that value models depend on.
    numbers: Vec<u64>,
    learnt: LearntCodes,
}

impl Default for Attempt {
    fn default() -> Self {
        Self {
            misfits: Vec::new(),
            times: TimeRange::EMPTY,
            undo: Vec::new(),
            scanned: Vec::new(),
            predictions: Vec::new(),
            numbers: Vec::new(),
            learnt: LearntCodes::default(),
        }
    }
}

/// The codes of the record's predicted leaves whose values the models have already learned.
#[derive(Debug, Default)]
struct LearntCodes {
    codes: Vec<StoredCode>,
    /// The stream section elements of the codes.
    elements: Vec<u64>,
}

/// The code of a value that a model has learned.
#[derive(Clone, Copy, Debug)]
struct StoredCode {
    code: u64,
    /// The start and end of the code's elements in [`LearntCodes::elements`].
    elements: (usize, usize),
}

/// A predicted leaf of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prediction {
    leaf: u8,
    pub(crate) model: u16,
    pub(crate) value: u64,
    pub(crate) context: Context,
    /// The position of the leaf's code in the section's chunk.
    pub(crate) at: usize,
    /// The width of the leaf's code.
    pub(crate) width: Width,
}

impl LearntCodes {
    /// Returns the code of the record's predicted leaf with this index and its elements, if the model has learned the
    /// value.
    fn get(&self, index: usize) -> Option<(u64, &[u64])> {
        let known = self.codes.get(index)?;
        Some((known.code, self.elements.get(known.elements.0..known.elements.1).unwrap_or_default()))
    }

    /// Runs the model of a leaf and returns the code if the value is a hit. A hit is a value that the heap's fast path
    /// encodes without stream section elements; its code takes at most one byte. Otherwise, returns `None` and changes
    /// nothing.
    fn learn_hit(&mut self, (cells, models): (&Cells, &mut Models), prediction: &Prediction) -> Option<u64> {
        let code = models.encode_hit(cells, prediction.model, prediction.context, prediction.value)?;
        self.codes.push(StoredCode { code, elements: (0, 0) });
        Some(code)
    }

    /// Runs the model of a leaf and returns the code. `put` adds the elements of the code to the stream section. If the
    /// code takes more than `most` bytes, the error is the size of the code; otherwise, if `put` rejects the elements,
    /// the error is [`UNPREDICTED`]. The model learns nothing on an error.
    fn learn(
        &mut self,
        (cells, models): (&Cells, &mut Models),
        &Prediction { model, value, context, .. }: &Prediction,
        numbers: &[u64],
        most: u8,
        put: impl FnOnce(&[u64]) -> bool,
    ) -> Result<u64, u8> {
        let start = self.elements.len();
        let is_new = !models.is_known(cells, model);
        let found = models.find(cells, model, (context, numbers), value, &mut self.elements);
        self.elements.extend_from_slice(found.elements());
        let needs = width_of(found.code);
        let elements = self.elements.get(start..).unwrap_or_default();
        let refused = needs > most;
        if refused || !elements.is_empty() && !put(elements) {
            if is_new {
                models.drop_new(cells, model);
            }
            self.elements.truncate(start);
            return Err(if refused { needs } else { UNPREDICTED });
        }
        models.learn(cells, model, (context, numbers), value, &found);
        self.codes.push(StoredCode { code: found.code, elements: (start, self.elements.len()) });
        Ok(found.code)
    }
}

impl Attempt {
    /// Returns the predicted leaves of the record.
    pub(crate) fn predictions(&self) -> &[Prediction] {
        &self.predictions
    }

    /// Returns the predicted leaves of the record with their codes, once its models have learned their values.
    #[cfg(feature = "dynamic")]
    pub(crate) fn codes(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.predictions.iter().zip(&self.learnt.codes).map(|(prediction, known)| (prediction.leaf, known.code))
    }

    /// Starts a record, before its first attempt.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn start_record(&mut self) {
        self.learnt.codes.clear();
        self.learnt.elements.clear();
    }

    /// Returns whether models have learned values of the record.
    pub(crate) fn has_learnt(&self) -> bool {
        !self.learnt.codes.is_empty()
    }

    /// Stores the code of the record's next predicted leaf after its model has learned the value. The code has no
    /// stream section elements.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn push_code(&mut self, code: u64) {
        self.learnt.codes.push(StoredCode { code, elements: (0, 0) });
    }

    /// Sets a cell and saves its value from before the record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn set_cell(&mut self, cell: u32, value: u64, cells: &mut [u64]) {
        if let Some(before) = cells.get_mut(cell as usize) {
            self.undo.push(CellUndo { cell, value: std::mem::replace(before, value) });
        }
    }

    /// Adds a predicted leaf, given by its plan, and the position of its code.
    pub(crate) fn add_prediction(
        &mut self,
        encoding: &Encoding,
        cells: &[u64],
        plan: &Plan,
        (leaf, value): (u8, u64),
        at: usize,
    ) {
        let prediction = self.prediction(encoding, cells, plan, (leaf, value), at);
        self.predictions.push(prediction);
    }

    fn prediction(
        &mut self,
        encoding: &Encoding,
        cells: &[u64],
        plan: &Plan,
        (leaf, value): (u8, u64),
        at: usize,
    ) -> Prediction {
        #[allow(clippy::cast_possible_truncation, reason = "model indices fit in 16 bits")]
        let model = plan.base as u16;
        let context = encoding.model_cells.context(model, cells, &mut self.numbers);
        Prediction { leaf, model, value, context, at, width: plan.width }
    }

    /// Runs the model of a predicted leaf whose value is not an immediate hit. Returns the code if the stream section
    /// accepts its elements. Returns `None` otherwise, in which case the model has learned nothing.
    pub(crate) fn predict_now(
        &mut self,
        format: &Format,
        (encoding, history): (&Encoding, &mut History),
        streams: &mut StreamWriters,
        plan: &Plan,
        value: (u8, u64),
    ) -> Option<u64> {
        self.numbers.clear();
        let prediction = self.prediction(encoding, &history.cells, plan, value, 0);
        let Self { learnt, numbers, .. } = self;
        let models = (&encoding.model_cells, &mut history.models);
        learnt
            .learn(models, &prediction, numbers, u8::MAX, |elements| {
                streams.put_of_model(format, encoding.section, prediction.model, elements)
            })
            .ok()
    }

    /// Starts the only attempt that `stateful.rs` makes at a record. If `logged` is set, the record's predicted leaves
    /// are stored.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn start_stateful(&mut self, logged: bool) {
        self.start_record();
        self.undo.clear();
        if logged {
            self.predictions.clear();
        }
    }

    /// Starts an attempt at a record.
    #[inline]
    pub(crate) fn start_attempt(&mut self) {
        self.misfits.clear();
        self.undo.clear();
        self.predictions.clear();
        self.numbers.clear();
    }

    /// Returns whether the record has predicted leaves.
    #[inline]
    pub(crate) fn predicts(&self) -> bool {
        !self.predictions.is_empty()
    }

    /// Adds a predicted leaf, given by the index of its plan, and stores its value. Its model runs once the rest of the
    /// record fits.
    #[inline(never)]
    pub(crate) fn predict_later(&mut self, state: &mut State, plan: usize, leaf: u8, value: u64, at: usize) {
        let Some(&plan) = state.encoding.plans.get(plan) else { return };
        self.add_prediction(&state.encoding, &state.history.cells, &plan, (leaf, value), at);
        self.save_cells(&plan, &state.history.cells);
        note(value, &plan, &mut state.history.cells);
    }

    /// Runs the models of the record's predicted leaves and stores their codes. Misfits arise in two cases. If a code
    /// does not fit in its width, the models do not learn again in the next attempt at the record. If a value matches
    /// no candidate and the stream section does not accept it, or if a strict writer would have to widen a leaf, the
    /// models have learned nothing.
    pub(crate) fn predict(
        &mut self,
        format: &Format,
        state: &mut State,
        streams: &mut StreamWriters,
        (order, strict): (Order, bool),
        out: &mut [u8],
    ) {
        let State { encoding: Encoding { section, model_cells, .. }, history: History { models, .. } } = state;
        let reader = format.sections.len() + *section;
        let target = |model: u16| format.models.get(usize::from(model)).map_or(0, |m| m.section);
        // A leaf is checked before its own model learns, so a single leaf needs no backup. If there are several leaves,
        // a later one may fail after the models of earlier ones have learned.
        let may_fail =
            |p: &Prediction| (strict && p.width.is_zero()) || streams.may_refuse(format, reader, target(p.model));
        let risky = !self.has_learnt() && self.predictions.len() > 1 && self.predictions.iter().any(may_fail);
        let saved = risky.then(|| models.clone());
        for (i, prediction) in self.predictions.iter().enumerate() {
            let mut put = |elements: &[u64]| streams.put_of_model(format, *section, prediction.model, elements);
            let learnt = match self.learnt.get(i) {
                // Rolling the record back also removed its elements. The stream section accepted them before, so it
                // accepts them again.
                Some((code, elements)) => {
                    let put = put(elements);
                    debug_assert!(put, "elements that the stream accepted before");
                    Ok(code)
                }
                None => {
                    // In a strict writer, a code that exceeds its width is an error.
                    let most = if strict { prediction.width.get() } else { u8::MAX };
                    let hit = (most > 0).then(|| self.learnt.learn_hit((model_cells, models), prediction)).flatten();
                    hit.map_or_else(
                        || self.learnt.learn((model_cells, models), prediction, &self.numbers, most, put),
                        Ok,
                    )
                }
            };
            let code = match learnt {
                Ok(code) => code,
                Err(needs) => {
                    let (leaf, value) = (prediction.leaf, prediction.value);
                    self.misfits.push(Misfit { leaf, value, needs, expected: None });
                    if let Some(saved) = saved {
                        *models = saved;
                    }
                    return self.start_record();
                }
            };
            let needs = width_of(code);
            if needs > prediction.width.get() {
                let (leaf, value) = (prediction.leaf, prediction.value);
                self.misfits.push(Misfit { leaf, value, needs, expected: None });
            }
            let stored = out.get_mut(prediction.at..prediction.at + prediction.width.bytes());
            order.store(code, stored.unwrap_or_default());
        }
    }

    /// Saves those cells that a leaf's value is about to overwrite and that later records may read.
    #[inline]
    pub(crate) fn save_cells(&mut self, plan: &Plan, cells: &[u64]) {
        let mut save = |cell: u32| {
            self.undo.push(CellUndo { cell, value: cells.get(cell as usize).copied().unwrap_or(0) });
        };
        if plan.is(PREVIOUS) {
            save(plan.write);
        }
        if plan.is(REFERENCED) {
            save(plan.last);
        }
    }

    /// Sets the cells to their values at [`start_attempt`](Self::start_attempt). The attempt continues.
    pub(crate) fn undo_cells(&self, cells: &mut [u64]) {
        for undo in self.undo.iter().rev() {
            if let Some(cell) = cells.get_mut(undo.cell as usize) {
                *cell = undo.value;
            }
        }
    }

    /// Restores the cells to their values at [`start_attempt`](Self::start_attempt).
    pub(crate) fn roll_back(&mut self, cells: &mut [u64]) {
        while let Some(undo) = self.undo.pop() {
            if let Some(cell) = cells.get_mut(undo.cell as usize) {
                *cell = undo.value;
            }
        }
    }
}
