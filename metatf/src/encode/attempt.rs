//! An attempt to encode a record: what did not fit, how to take the record back, and the values that models predict when all else
//! fits.

use crate::encode::StreamWriters;
use crate::format::Format;
use crate::formula::{PREVIOUS, Plan, REFERENCED, Width, note, width_of};
use crate::predict::Context;
use crate::state::{Encoding, History, State};
use metatf_container::Order;

/// A value that the leaf's encoding cannot hold as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misfit {
    pub(crate) leaf: u8,
    pub(crate) value: u64,
    /// Bytes that would hold it under the interpretation in force, 1 to 8; or [`UNPREDICTED`].
    pub(crate) needs: u8,
}

/// Marks a predicted leaf whose stream section cannot take the value that no candidate hits: it has to be stored as it is.
pub(crate) const UNPREDICTED: u8 = 0;

/// What a cell held before the record in progress.
#[derive(Clone, Copy, Debug)]
struct CellUndo {
    cell: u32,
    value: u64,
}

/// The attempt in progress; its memory is used again from record to record.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) misfits: Vec<Misfit>,
    undo: Vec<CellUndo>,
    /// Predicted leaves of the record, and the numbers that value models go by.
    predictions: Vec<Prediction>,
    numbers: Vec<u64>,
    /// For the record's predicted leaves whose values its models have learnt.
    codes: Vec<StoredCode>,
    /// Their elements of stream sections.
    elements: Vec<u64>,
}

/// How a value that a model has learnt is stored.
#[derive(Clone, Copy, Debug)]
struct StoredCode {
    code: u64,
    /// From where to where its elements are in [`Attempt::elements`].
    elements: (usize, usize),
}

/// A predicted leaf of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prediction {
    leaf: u8,
    pub(crate) model: u16,
    pub(crate) value: u64,
    pub(crate) context: Context,
    /// Where its code goes in the section's chunk, and how many bytes it has.
    pub(crate) at: usize,
    pub(crate) width: Width,
}

impl Attempt {
    /// Gives the predicted leaves of the record.
    pub(crate) fn predictions(&self) -> &[Prediction] {
        &self.predictions
    }

    /// Gives the predicted leaves of the record, each with its code, once its models have learnt them.
    #[cfg(feature = "dynamic")]
    pub(crate) fn codes(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.predictions.iter().zip(&self.codes).map(|(prediction, known)| (prediction.leaf, known.code))
    }

    /// Starts a record, before its first attempt.
    #[inline]
    pub(crate) fn start_record(&mut self) {
        self.codes.clear();
        self.elements.clear();
    }

    /// Keeps the code of the record's next predicted leaf, whose value its model has learnt. It has no elements.
    #[inline]
    pub(crate) fn push_code(&mut self, code: u64) {
        self.codes.push(StoredCode { code, elements: (0, 0) });
    }

    /// Saves a cell's value from before the record.
    #[inline]
    pub(crate) fn save_cell(&mut self, cell: u32, value: u64) {
        self.undo.push(CellUndo { cell, value });
    }

    /// Adds a predicted leaf, by its plan, and the place where its code goes.
    pub(crate) fn add_prediction(&mut self, state: &State, plan: &Plan, leaf: u8, value: u64, at: usize) {
        #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
        let model = plan.base as u16;
        let context = state.encoding.model_cells.context(model, &state.history.cells, &mut self.numbers);
        self.predictions.push(Prediction { leaf, model, value, context, at, width: plan.width });
    }

    /// Starts an attempt at a record.
    #[inline]
    pub(crate) fn start_attempt(&mut self) {
        self.misfits.clear();
        self.undo.clear();
        self.predictions.clear();
        self.numbers.clear();
    }

    /// Whether the record has predicted leaves.
    #[inline]
    pub(crate) fn predicts(&self) -> bool {
        !self.predictions.is_empty()
    }

    /// Adds a predicted leaf, by the index of its plan, and notes its value. Its model runs when all else of the record fits.
    #[inline(never)]
    pub(crate) fn predict_later(&mut self, state: &mut State, plan: usize, leaf: u8, value: u64, at: usize) {
        let Some(&plan) = state.encoding.plans.get(plan) else { return };
        self.add_prediction(state, &plan, leaf, value, at);
        self.save_cells(&plan, &state.history.cells);
        note(value, &plan, &mut state.history.cells);
    }

    /// Runs the models of the record's predicted leaves, and stores their codes. There are misfits afterwards in two cases. A code
    /// does not fit its width: then the models do not learn again in the record's next attempt. Or the stream section cannot take a
    /// value that no candidate hits, or a strict writer may not widen: then the models have learnt nothing.
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
        // One leaf alone is looked at before it is learnt. Of several, all but the first may fail when others are learnt.
        let may_fail =
            |p: &Prediction| (strict && p.width.is_zero()) || streams.may_refuse(format, reader, target(p.model));
        let risky = self.codes.is_empty() && self.predictions.len() > 1 && self.predictions.iter().any(may_fail);
        let saved = risky.then(|| models.clone());
        for (i, prediction) in self.predictions.iter().enumerate() {
            let context = (prediction.context, &*self.numbers);
            let code = match self.codes.get(i) {
                // Taking the record back took its elements back, too. The stream section took them before, so it does again.
                Some(known) => {
                    let elements = self.elements.get(known.elements.0..known.elements.1).unwrap_or_default();
                    let put = streams.put_all(format, reader, target(prediction.model), elements);
                    debug_assert!(put, "elements that were put before");
                    known.code
                }
                // The code of a hit takes a byte at most, which a strict writer may not add.
                None if (!prediction.width.is_zero() || !strict)
                    && let Some(code) =
                        models.encode_hit(model_cells, prediction.model, context.0, prediction.value) =>
                {
                    self.codes.push(StoredCode { code, elements: (0, 0) });
                    code
                }
                None => {
                    let start = self.elements.len();
                    let is_new = !models.is_known(model_cells, prediction.model);
                    let found =
                        models.find(model_cells, prediction.model, context, prediction.value, &mut self.elements);
                    self.elements.extend_from_slice(found.elements());
                    let needs = width_of(found.code);
                    let refused = strict && needs > prediction.width.get();
                    let elements = self.elements.get(start..).unwrap_or_default();
                    let full = |streams: &mut StreamWriters| {
                        !elements.is_empty() && !streams.put_all(format, reader, target(prediction.model), elements)
                    };
                    if refused || full(streams) {
                        let needs = if refused { needs } else { UNPREDICTED };
                        self.misfits.push(Misfit { leaf: prediction.leaf, value: prediction.value, needs });
                        match saved {
                            Some(saved) => *models = saved,
                            None if is_new => models.drop_new(model_cells, prediction.model),
                            None => {}
                        }
                        self.start_record();
                        return;
                    }
                    models.learn(model_cells, prediction.model, context, prediction.value, &found);
                    self.codes.push(StoredCode { code: found.code, elements: (start, self.elements.len()) });
                    found.code
                }
            };
            let needs = width_of(code);
            if needs > prediction.width.get() {
                self.misfits.push(Misfit { leaf: prediction.leaf, value: prediction.value, needs });
            }
            let stored = out.get_mut(prediction.at..prediction.at + prediction.width.bytes());
            order.store(code, stored.unwrap_or_default());
        }
    }

    /// Saves the cells that a leaf's value is about to overwrite, where later records may look at them.
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

    /// Puts the cells back as they were at [`start_attempt`](Self::start_attempt).
    pub(crate) fn roll_back(&mut self, cells: &mut [u64]) {
        while let Some(undo) = self.undo.pop() {
            if let Some(cell) = cells.get_mut(undo.cell as usize) {
                *cell = undo.value;
            }
        }
    }
}
