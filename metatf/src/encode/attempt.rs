//! What is kept while a record is encoded: how to take it back, what did not fit, and the values that models are to tell when all
//! else fits.

use crate::container::Order;
use crate::encode::StreamWriters;
use crate::format::Format;
use crate::formula::{PREVIOUS, Plan, REFERENCED, note, width_of};
use crate::predict::Context;
use crate::state::State;

/// A value that the leaf's encoding cannot hold as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misfit {
    pub(crate) leaf: u8,
    pub(crate) value: u64,
    /// Bytes that would hold it under the interpretation in force, 1 to 8; or [`UNPREDICTED`].
    pub(crate) needs: u8,
}

/// A predicted leaf whose stream section has no room for what no candidate hits: it has to be stored as it is.
pub(crate) const UNPREDICTED: u8 = 0;

/// What a cell held before the record in progress.
#[derive(Clone, Copy, Debug)]
struct Undo {
    cell: u32,
    value: u64,
}

/// What is kept while a record is encoded, so that it can be taken back; reused from record to record.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) misfits: Vec<Misfit>,
    undo: Vec<Undo>,
    /// Predicted leaves of the record, and what value models go by.
    pending: Vec<Pending>,
    numbers: Vec<u64>,
    /// For the record's predicted leaves whose values its models have learnt.
    codes: Vec<Known>,
    /// What they leave to stream sections.
    elements: Vec<u64>,
}

/// How a value that a model has learnt is stored.
#[derive(Clone, Copy, Debug)]
struct Known {
    code: u64,
    /// From where to where its elements are in [`Attempt::elements`].
    elements: (usize, usize),
}

/// A predicted leaf whose code is not known yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    leaf: u8,
    model: u16,
    value: u64,
    context: Context,
    /// Where its code goes.
    at: usize,
    width: u8,
}

/// A predicted leaf of a record that was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    pub(crate) model: u16,
    pub(crate) value: u64,
    pub(crate) context: Context,
    /// Where its code is in the section's chunk, and of how many bytes.
    pub(crate) at: usize,
    pub(crate) width: u8,
}

impl Attempt {
    /// The predicted leaves of the record.
    pub(crate) fn noted(&self) -> impl Iterator<Item = Noted> + '_ {
        self.pending.iter().map(|p| {
            let Pending { model, value, context, at, width, .. } = *p;
            Noted { model, value, context, at, width }
        })
    }

    /// The predicted leaves of the record, each with its code, once its models have learnt them.
    #[cfg(feature = "dynamic")]
    pub(crate) fn codes(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.pending.iter().zip(&self.codes).map(|(pending, known)| (pending.leaf, known.code))
    }

    /// A record, before its first attempt.
    #[inline]
    pub(crate) fn start_record(&mut self) {
        self.codes.clear();
        self.elements.clear();
    }

    /// Of the next predicted leaf of the record the code is known, which is all there is to store.
    #[inline]
    pub(crate) fn know(&mut self, code: u64) {
        self.codes.push(Known { code, elements: (0, 0) });
    }

    /// Keeps what a cell held before the record.
    #[inline]
    pub(crate) fn keep(&mut self, cell: u32, value: u64) {
        self.undo.push(Undo { cell, value });
    }

    /// Notes a predicted leaf, by the index of its plan, and where its code goes.
    pub(crate) fn note(&mut self, state: &State, plan: usize, value: u64, at: usize) {
        let Some(&Plan { base, width, .. }) = state.plans.get(plan) else { return };
        #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
        let model = base as u16;
        let context = state.model_cells.context(model, &state.cells, &mut self.numbers);
        self.pending.push(Pending { leaf: 0, model, value, context, at, width });
    }

    /// An attempt at a record.
    #[inline]
    pub(crate) fn start(&mut self) {
        self.misfits.clear();
        self.undo.clear();
        self.pending.clear();
        self.numbers.clear();
    }

    /// Whether the record has predicted leaves.
    #[inline]
    pub(crate) fn predicts(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Notes a predicted leaf, by the index of its plan, and where its code goes: models run when all else of the record
    /// fits.
    #[inline(never)]
    pub(crate) fn pend(&mut self, state: &mut State, plan: usize, leaf: u8, value: u64, at: usize) {
        let Some(&plan) = state.plans.get(plan) else { return };
        #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
        let model = plan.base as u16;
        let context = state.model_cells.context(model, &state.cells, &mut self.numbers);
        self.pending.push(Pending { leaf, model, value, context, at, width: plan.width });
        self.remember(&plan, &state.cells);
        note(value, &plan, &mut state.cells);
    }

    /// Runs the models of the record's predicted leaves, and puts their codes in place. There are misfits afterwards where a
    /// code does not fit its width: what the models have learnt they do not learn again in the record's next attempt. Or
    /// where the stream section cannot take what no candidate hits, or a strict writer may not widen: then the models have
    /// learnt nothing.
    pub(crate) fn predict(
        &mut self,
        format: &Format,
        state: &mut State,
        streams: &mut StreamWriters,
        (order, strict): (Order, bool),
        out: &mut [u8],
    ) {
        let State { section, models, model_cells, .. } = state;
        let reader = format.sections.len() + *section;
        let target = |model: u16| format.models.get(usize::from(model)).map_or(0, |m| m.section);
        // One leaf alone is looked at before it is learnt. Of several, all but the first may fail when others are learnt.
        let may_fail = |p: &Pending| (strict && p.width == 0) || streams.may_refuse(format, reader, target(p.model));
        let risky = self.codes.is_empty() && self.pending.len() > 1 && self.pending.iter().any(may_fail);
        let saved = risky.then(|| models.clone());
        for (i, pending) in self.pending.iter().enumerate() {
            let context = (pending.context, &*self.numbers);
            let code = match self.codes.get(i) {
                // Taking the record back took its elements back, too. There was room for them, so there is.
                Some(known) => {
                    let elements = self.elements.get(known.elements.0..known.elements.1).unwrap_or_default();
                    let put = streams.put_all(format, reader, target(pending.model), elements);
                    debug_assert!(put, "elements that were put before");
                    known.code
                }
                // The code of a hit takes a byte at most, which a strict writer may not add.
                None if (pending.width > 0 || !strict)
                    && let Some(code) = models.encode_hit(model_cells, pending.model, context.0, pending.value) =>
                {
                    self.codes.push(Known { code, elements: (0, 0) });
                    code
                }
                None => {
                    let start = self.elements.len();
                    let (known, room) = (models.is_known(model_cells, pending.model), models.room());
                    let found = models.find(model_cells, pending.model, context, pending.value, &mut self.elements);
                    self.elements.extend_from_slice(found.elements());
                    let needs = width_of(found.code);
                    let refused = strict && needs > pending.width;
                    let elements = self.elements.get(start..).unwrap_or_default();
                    let full = |streams: &mut StreamWriters| {
                        !elements.is_empty() && !streams.put_all(format, reader, target(pending.model), elements)
                    };
                    if refused || full(streams) {
                        let needs = if refused { needs } else { UNPREDICTED };
                        self.misfits.push(Misfit { leaf: pending.leaf, value: pending.value, needs });
                        match saved {
                            Some(saved) => *models = saved,
                            None if !known => models.forget(model_cells, pending.model, room),
                            None => {}
                        }
                        self.start_record();
                        return;
                    }
                    models.learn(model_cells, pending.model, context, pending.value, &found);
                    self.codes.push(Known { code: found.code, elements: (start, self.elements.len()) });
                    found.code
                }
            };
            let needs = width_of(code);
            if needs > pending.width {
                self.misfits.push(Misfit { leaf: pending.leaf, value: pending.value, needs });
            }
            let stored = out.get_mut(pending.at..pending.at + usize::from(pending.width));
            order.store(code, stored.unwrap_or_default());
        }
    }

    /// Keeps what a leaf's value is about to overwrite and later records may look at.
    #[inline]
    pub(crate) fn remember(&mut self, plan: &Plan, cells: &[u64]) {
        let mut keep = |cell: u32| {
            self.undo.push(Undo { cell, value: cells.get(cell as usize).copied().unwrap_or(0) });
        };
        if plan.is(PREVIOUS) {
            keep(plan.write);
        }
        if plan.is(REFERENCED) {
            keep(plan.last);
        }
    }

    /// Puts the cells back as they were at [`Attempt::start`].
    pub(crate) fn roll_back(&mut self, cells: &mut [u64]) {
        while let Some(undo) = self.undo.pop() {
            if let Some(cell) = cells.get_mut(undo.cell as usize) {
                *cell = undo.value;
            }
        }
    }
}
