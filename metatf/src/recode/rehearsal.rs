//! What models will make of a block, found out before it is planned: the code of every predicted value, and which leaves have
//! to be stored as they are since a stream section has no room for what they leave there.
//!
//! The block is encoded once as a trial: every leaf has eight bytes, so that nothing but that can fail, and what models learn
//! depends on values alone. The copy of the writer's state is thrown away afterwards.

use super::codes::Codes;
use super::leaves::LeafPlan;
use super::pinned::pinned;
use super::player::Player;
use super::section_plans::SectionPlans;
use crate::buffer::Prefilled;
use crate::encode::{Attempt, RowWriter, StreamWriters};
use crate::format::{Format, Interpretation};
use crate::formula::width_of;
use crate::state::{Change, State};
use crate::writer::RecordWriter;
use metatf_container::{Order, Result, Sink};

/// A copy of what a writer knows when a block begins.
pub(super) struct Rehearsal<'w> {
    format: &'w Format,
    order: Order,
    streams: StreamWriters,
    attempt: Attempt,
    out: Vec<u8>,
}

/// A section in it.
struct Stage<'b> {
    plans: &'b mut SectionPlans,
    state: State,
    players: Vec<Player>,
    /// Where leaves have to be something else than before: the record from which on, kind and leaf.
    pins: Vec<(u32, usize, usize, Option<Interpretation>)>,
    /// The next record, and the next of the pins.
    at: (usize, usize),
    /// Of a record's predicted leaves: occurrences, and bytes of the greatest code.
    needs: Vec<(u8, u32, u8)>,
}

impl<'w> Rehearsal<'w> {
    /// What the writer knows.
    pub(super) fn new<S: Sink>(format: &'w Format, writer: &RecordWriter<S>) -> Self {
        Self {
            format,
            order: writer.order,
            streams: writer.streams.clone(),
            attempt: Attempt::default(),
            out: Vec::new(),
        }
    }

    /// Notes in the plans of predicted leaves which codes their values have, and in all plans where a leaf cannot keep what it
    /// had. `order`: the block's records by section; `resets`: a block begins again; `codes`: they are asked for.
    ///
    /// # Errors
    /// What encoding the block will end in, too.
    pub(super) fn run<S: Sink>(
        mut self,
        writer: &RecordWriter<S>,
        (sections, order): (&mut [SectionPlans], &[(usize, usize)]),
        (resets, codes): (bool, bool),
    ) -> Result<()> {
        let mut stages: Vec<Option<Stage<'_>>> = Vec::new();
        for (section, plans) in sections.iter_mut().enumerate() {
            let state = writer.sections.get(section).map(|s| &s.state);
            let state = state.filter(|_| !plans.columns.order.is_empty() && plans.has_elements());
            stages.push(state.map(|state| Stage::new(self.format, state.clone(), plans, (resets, codes))));
        }
        for &(section, count) in order {
            let Some(Some(stage)) = stages.get_mut(section) else { continue };
            for _ in 0..count {
                self.record(stage)?;
            }
        }
        for mut stage in stages.into_iter().flatten() {
            // What stands behind the last record is for the next block.
            stage.keep(self.format, usize::MAX);
            stage.plans.settle_pins(resets);
        }
        Ok(())
    }

    fn record(&mut self, stage: &mut Stage<'_>) -> Result<()> {
        let row = stage.at.0;
        stage.at.0 += 1;
        if stage.state.history.models.is_outdated() {
            stage.restart(self.format, row);
        }
        stage.keep(self.format, row);
        let section = self.format.sections.get(stage.state.encoding.section);
        let kind = stage.plans.columns.order.get(row).map_or(0, |&kind| usize::from(kind));
        let record = section.and_then(|s| s.records.get(kind)).copied();
        let (Some(record), Some(first)) = (record, record.and_then(|r| stage.state.encoding.plans_of_record(r))) else {
            return Ok(());
        };
        let Some(r) = self.format.records.get(usize::from(record)) else { return Ok(()) };
        self.attempt.start_record();
        // Each round but the last sets a leaf to `none`.
        for _ in 0..=r.leaves.len() {
            if self.attempt((record, first), kind, stage)? {
                break;
            }
            for misfit in std::mem::take(&mut self.attempt.misfits) {
                stage.refuse(self.format, row, (kind, misfit.leaf.into()));
            }
        }
        stage.note(kind, &self.attempt);
        if let (Some(player), Some(records)) = (stage.players.get_mut(kind), stage.plans.columns.kinds.get(kind)) {
            player.advance(records);
        }
        Ok(())
    }

    /// Encodes a record. False where a leaf cannot be what it is.
    fn attempt(&mut self, (record, first): (u16, usize), kind: usize, stage: &mut Stage<'_>) -> Result<bool> {
        let players = stage.players.get_mut(kind).zip(stage.plans.columns.kinds.get(kind));
        let record = self.format.records.get(usize::from(record));
        let (Some((player, records)), Some(record)) = (players, record) else { return Ok(true) };
        let tries = (&mut self.attempt, &mut self.streams);
        let out = (Prefilled::of(&mut self.out), 0);
        let mut row = RowWriter::begin(self.format, (record, first), &mut stage.state, out, self.order, tries);
        row.tag(record.tag);
        player.play(records, &mut row)?;
        if self.attempt.misfits.is_empty() && self.attempt.predicts() {
            let how = (self.order, false);
            self.attempt.predict(self.format, &mut stage.state, &mut self.streams, how, &mut self.out);
        }
        let fits = self.attempt.misfits.is_empty();
        if !fits {
            self.attempt.roll_back(&mut stage.state.history.cells);
            self.streams.roll_back();
        }
        Ok(fits)
    }
}

impl<'b> Stage<'b> {
    fn new(format: &Format, mut state: State, plans: &'b mut SectionPlans, (resets, codes): (bool, bool)) -> Self {
        if resets {
            state.reset(format);
        }
        let mut pins = Vec::new();
        for (kind, leaves) in plans.leaves.iter_mut().enumerate() {
            for (leaf, plan) in leaves.iter_mut().enumerate() {
                let all = std::mem::take(&mut plan.pins);
                pins.extend(all.into_iter().map(|(row, pin)| (row, kind, leaf, pin)));
                plan.input = plan.pin;
                plan.codes = codes.then(Codes::default);
            }
        }
        pins.sort_by_key(|pin| pin.0);
        let players = plans.columns.players(format);
        let mut stage = Self { plans, state, players, pins, at: (0, 0), needs: Vec::new() };
        stage.widen(format);
        stage
    }

    /// Gives every leaf eight bytes, so that any number and any code fits.
    fn widen(&mut self, format: &Format) {
        for kind in 0..self.plans.leaves.len() {
            for leaf in 0..self.plans.leaves.get(kind).map_or(0, Vec::len) {
                self.change(format, (kind, leaf), Change::Width(8));
                let now = self.interpretation((kind, leaf));
                if now.is_some_and(|now| pinned(now).is_none()) {
                    self.change(format, (kind, leaf), Change::Interpretation(Interpretation::None));
                }
            }
        }
    }

    /// What a leaf is now.
    fn interpretation(&self, (kind, leaf): (usize, usize)) -> Option<Interpretation> {
        let first = self.state.encoding.plans_of(kind);
        self.state.encoding.plan(first.checked_add(leaf)?).map(|_| self.state.encoding.interpretation(first + leaf))
    }

    fn change(&mut self, format: &Format, (kind, leaf): (usize, usize), change: Change) {
        let settable = self.plan((kind, leaf)).is_some_and(|plan| plan.settable);
        if let Some(leaf) = u8::try_from(leaf).ok().filter(|_| settable) {
            // What may stand was looked at where it came from.
            let _ = self.state.apply(format, kind, leaf, false, change);
        }
    }

    fn plan(&mut self, (kind, leaf): (usize, usize)) -> Option<&mut LeafPlan> {
        self.plans.leaves.get_mut(kind)?.get_mut(leaf)
    }

    /// Leaves become before a record what they have to be from there on.
    fn keep(&mut self, format: &Format, row: usize) {
        while let Some(&(from, kind, leaf, pin)) = self.pins.get(self.at.1).filter(|pin| pin.0 as usize <= row) {
            self.at.1 += 1;
            self.pin(from, (kind, leaf), pin);
            let now = self.interpretation((kind, leaf));
            let wanted = match pin.unwrap_or(Interpretation::None) {
                Interpretation::Predicted(_) if !matches!(now, Some(Interpretation::Predicted(_))) => {
                    Interpretation::None
                }
                wanted => wanted,
            };
            if now != Some(wanted) {
                self.leave((kind, leaf));
                self.change(format, (kind, leaf), Change::Interpretation(wanted));
            }
        }
    }

    fn pin(&mut self, row: u32, at: (usize, usize), pin: Option<Interpretation>) {
        if let Some(plan) = self.plan(at) {
            if plan.pins.is_empty() {
                plan.pin = pin;
                plan.pins.push((row, pin));
            } else {
                plan.keep(row, pin);
            }
        }
    }

    /// A leaf cannot be what it is from this record on.
    fn refuse(&mut self, format: &Format, row: usize, at: (usize, usize)) {
        self.pin(u32::try_from(row).unwrap_or(u32::MAX), at, None);
        self.leave(at);
        self.change(format, at, Change::Interpretation(Interpretation::None));
    }

    /// A leaf is not what it was.
    fn leave(&mut self, at: (usize, usize)) {
        if let Some(codes) = self.plan(at).and_then(|plan| plan.codes.as_mut()) {
            codes.end();
        }
    }

    /// The section begins again before a record, as the DTD says.
    fn restart(&mut self, format: &Format, row: usize) {
        self.state.reset(format);
        self.widen(format);
        for plan in self.plans.leaves.iter_mut().flatten() {
            plan.keep(u32::try_from(row).unwrap_or(u32::MAX), pinned(plan.declared.interpretation));
            if let Some(codes) = &mut plan.codes {
                codes.end();
            }
        }
    }

    /// Notes the codes of a record.
    fn note(&mut self, kind: usize, attempt: &Attempt) {
        let Some(leaves) = self.plans.leaves.get_mut(kind) else { return };
        self.needs.clear();
        for (leaf, code) in attempt.codes() {
            let need = width_of(code);
            match self.needs.iter_mut().find(|needs| needs.0 == leaf) {
                Some((_, items, most)) => (*items, *most) = (*items + 1, need.max(*most)),
                None => self.needs.push((leaf, 1, need)),
            }
        }
        for &(leaf, items, need) in &self.needs {
            if let Some(codes) = leaves.get_mut(usize::from(leaf)).and_then(|plan| plan.codes.as_mut()) {
                codes.push(items, need);
            }
        }
    }
}

impl SectionPlans {
    /// A leaf of it takes values from a stream section, by stride or by model.
    pub(super) fn has_elements(&self) -> bool {
        let takes = |pin: &Option<Interpretation>| {
            matches!(pin, Some(Interpretation::SectionStride(..) | Interpretation::Predicted(_)))
        };
        self.leaves.iter().flatten().any(|plan| plan.pins.iter().any(|(_, pin)| takes(pin)))
    }

    /// How many cursors of the section move through a stream section: of strides, of models.
    pub(super) fn takers(&self, format: &Format, target: u8) -> usize {
        let pins = || self.leaves.iter().flatten().flat_map(|plan| &plan.pins).filter_map(|(_, pin)| *pin);
        let model = |m: u16| format.models.get(usize::from(m)).is_some_and(|m| m.section == target);
        let strides = pins().any(|pin| matches!(pin, Interpretation::SectionStride(n, _) if n == target));
        let predicts = pins().any(|pin| matches!(pin, Interpretation::Predicted(m) if model(m)));
        usize::from(strides) + usize::from(predicts)
    }

    /// In the next block leaves keep what the trace says, unless state goes on.
    fn settle_pins(&mut self, resets: bool) {
        for plan in self.leaves.iter_mut().flatten() {
            if resets {
                plan.pin = plan.input;
            }
        }
    }
}
