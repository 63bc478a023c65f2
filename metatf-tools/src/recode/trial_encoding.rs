//! Determines the results of models for a block before planning. The results are the code of every predicted value, and
//! the leaves that must be stored unpredicted because a stream section has no room for their misses.
//!
//! The block is encoded once as a trial, on a copy of the writer's state that is discarded afterwards. Every leaf is
//! eight bytes wide, so that nothing else can fail; the widths do not affect the models, which learn only from values.

use super::codes::Codes;
use super::column_encoder::ColumnEncoder;
use super::kept_interpretation::kept_interpretation;
use super::leaf_plan::LeafPlan;
use super::section_plans::SectionPlans;
use metatf::container::{Result, Sink};
use metatf::format::{Format, Interpretation};
use metatf::internals::{TrialEncoder, TrialState};
use metatf::{Change, RecordWriter};

/// A section of the block.
struct TrialSection<'b> {
    plans: &'b mut SectionPlans,
    state: TrialState,
    encoders: Vec<ColumnEncoder>,
    /// Changes to the interpretations that leaves must keep, each as the first record, kind, leaf and interpretation.
    kept_runs: Vec<(u32, usize, usize, Option<Interpretation>)>,
    /// The next record, and the next entry of `kept_runs`.
    at: (usize, usize),
    /// For each predicted leaf of the current record: the leaf, the number of its occurrences, and the width of its
    /// largest code.
    needs: Vec<(u8, u32, u8)>,
}

/// Adds to the plans of predicted leaves the codes of their values, and to all plans the records from which a leaf
/// cannot keep its interpretation. `order` lists the block's records by section. `resets` indicates whether the block
/// starts with reset state, and `codes` whether codes are requested.
///
/// # Errors
/// Returns the error that encoding the block would also return.
pub(super) fn encode_as_trial<S: Sink>(
    format: &Format,
    writer: &RecordWriter<S>,
    (sections, order): (&mut [SectionPlans], &[(usize, usize)]),
    (resets, codes): (bool, bool),
) -> Result<()> {
    let mut encoder = TrialEncoder::new(format, writer);
    let mut trials: Vec<Option<TrialSection<'_>>> = Vec::new();
    for (section, plans) in sections.iter_mut().enumerate() {
        let has_elements = !plans.columns.order.is_empty() && plans.has_elements();
        let state = has_elements.then(|| TrialState::new(writer, section)).flatten();
        trials.push(state.map(|state| TrialSection::new(format, state, plans, (resets, codes))));
    }
    for &(section, count) in order {
        let Some(Some(trial)) = trials.get_mut(section) else { continue };
        let records = format.sections.get(section).map_or(&[][..], |s| &s.records);
        for _ in 0..count {
            trial.record(format, records, &mut encoder)?;
        }
    }
    for mut trial in trials.into_iter().flatten() {
        // Changes after the last record apply to the next block.
        trial.keep(format, usize::MAX);
        trial.plans.settle_kept(resets);
    }
    Ok(())
}

impl<'b> TrialSection<'b> {
    fn new(format: &Format, mut state: TrialState, plans: &'b mut SectionPlans, (resets, codes): (bool, bool)) -> Self {
        if resets {
            state.reset(format);
        }
        let mut kept_runs = Vec::new();
        for (kind, leaves) in plans.leaves.iter_mut().enumerate() {
            for (leaf, plan) in leaves.iter_mut().enumerate() {
                let all = std::mem::take(&mut plan.kept_runs);
                kept_runs.extend(all.into_iter().map(|(row, kept)| (row, kind, leaf, kept)));
                plan.input = plan.kept;
                plan.codes = codes.then(Codes::default);
            }
        }
        kept_runs.sort_by_key(|kept| kept.0);
        let encoders = plans.columns.encoders(format);
        let mut trial = Self { plans, state, encoders, kept_runs, at: (0, 0), needs: Vec::new() };
        trial.widen(format);
        trial
    }

    /// Encodes the next record. `records` lists the records of the section.
    fn record(&mut self, format: &Format, records: &[u16], trial: &mut TrialEncoder<'_>) -> Result<()> {
        let row = self.at.0;
        self.at.0 += 1;
        if self.state.is_outdated() {
            self.restart(format, row);
        }
        self.keep(format, row);
        let kind = self.plans.columns.order.get(row).map_or(0, |&kind| usize::from(kind));
        let Some(&record) = records.get(kind) else { return Ok(()) };
        let leaves = format.records.get(usize::from(record)).map_or(0, |r| r.leaves.len());
        trial.start_record();
        // Each round except the last sets a leaf to `none`.
        for _ in 0..=leaves {
            let encoder = self.encoders.get_mut(kind).zip(self.plans.columns.kinds.get(kind));
            let Some((encoder, columns)) = encoder else { return Ok(()) };
            if trial.attempt(&mut self.state, record, |row| encoder.encode(columns, row))? {
                break;
            }
            for leaf in trial.misfits() {
                self.refuse(format, row, (kind, leaf.into()));
            }
        }
        self.note(kind, trial);
        if let (Some(encoder), Some(columns)) = (self.encoders.get_mut(kind), self.plans.columns.kinds.get(kind)) {
            encoder.advance(columns);
        }
        Ok(())
    }

    /// Sets the width of every leaf to eight bytes, so that any number and any code fits.
    fn widen(&mut self, format: &Format) {
        for kind in 0..self.plans.leaves.len() {
            for leaf in 0..self.plans.leaves.get(kind).map_or(0, Vec::len) {
                self.change(format, (kind, leaf), Change::Width(8));
                let now = self.interpretation((kind, leaf));
                if now.is_some_and(|now| kept_interpretation(now).is_none()) {
                    self.change(format, (kind, leaf), Change::Interpretation(Interpretation::None));
                }
            }
        }
    }

    /// Returns the current interpretation of a leaf.
    fn interpretation(&self, (kind, leaf): (usize, usize)) -> Option<Interpretation> {
        self.state.interpretation(kind, leaf)
    }

    fn change(&mut self, format: &Format, (kind, leaf): (usize, usize), change: Change) {
        let settable = self.plan((kind, leaf)).is_some_and(|plan| plan.settable);
        if let Some(leaf) = u8::try_from(leaf).ok().filter(|_| settable) {
            // The caller has checked that the change is allowed.
            self.state.change(format, kind, leaf, change);
        }
    }

    fn plan(&mut self, (kind, leaf): (usize, usize)) -> Option<&mut LeafPlan> {
        self.plans.leaves.get_mut(kind)?.get_mut(leaf)
    }

    /// Sets leaves to the interpretations that they must keep from this record on.
    fn keep(&mut self, format: &Format, row: usize) {
        while let Some(&(from, kind, leaf, kept)) = self.kept_runs.get(self.at.1).filter(|kept| kept.0 as usize <= row)
        {
            self.at.1 += 1;
            self.kept(from, (kind, leaf), kept);
            let now = self.interpretation((kind, leaf));
            let wanted = match kept.unwrap_or(Interpretation::None) {
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

    fn kept(&mut self, row: u32, at: (usize, usize), kept: Option<Interpretation>) {
        if let Some(plan) = self.plan(at) {
            if plan.kept_runs.is_empty() {
                plan.kept = kept;
                plan.kept_runs.push((row, kept));
            } else {
                plan.keep(row, kept);
            }
        }
    }

    /// Notes that a leaf cannot keep its interpretation from this record on, and sets the leaf to `none`.
    fn refuse(&mut self, format: &Format, row: usize, at: (usize, usize)) {
        self.kept(u32::try_from(row).unwrap_or(u32::MAX), at, None);
        self.leave(at);
        self.change(format, at, Change::Interpretation(Interpretation::None));
    }

    /// Records that a leaf has lost its interpretation.
    fn leave(&mut self, at: (usize, usize)) {
        if let Some(codes) = self.plan(at).and_then(|plan| plan.codes.as_mut()) {
            codes.end();
        }
    }

    /// Resets the section to the DTD's state before a record.
    fn restart(&mut self, format: &Format, row: usize) {
        self.state.reset(format);
        self.widen(format);
        for plan in self.plans.leaves.iter_mut().flatten() {
            plan.keep(u32::try_from(row).unwrap_or(u32::MAX), kept_interpretation(plan.declared.interpretation));
            if let Some(codes) = &mut plan.codes {
                codes.end();
            }
        }
    }

    /// Adds the codes of a record to the plans of its leaves.
    fn note(&mut self, kind: usize, trial: &TrialEncoder<'_>) {
        let Some(leaves) = self.plans.leaves.get_mut(kind) else { return };
        self.needs.clear();
        for (leaf, need) in trial.codes() {
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
    /// Returns whether a leaf of the section obtains values from a stream section, by a stride or a model.
    pub(super) fn has_elements(&self) -> bool {
        let takes = |kept: &Option<Interpretation>| {
            matches!(kept, Some(Interpretation::SectionStride(..) | Interpretation::Predicted(_)))
        };
        self.leaves.iter().flatten().any(|plan| plan.kept_runs.iter().any(|(_, kept)| takes(kept)))
    }

    /// Returns the number of the section's cursors, for strides and models, that move through a stream section.
    pub(super) fn takers(&self, format: &Format, target: u8) -> usize {
        let kept_runs = || self.leaves.iter().flatten().flat_map(|plan| &plan.kept_runs).filter_map(|(_, kept)| *kept);
        let model = |m: u16| format.models.get(usize::from(m)).is_some_and(|m| m.section == target);
        let strides = kept_runs().any(|kept| matches!(kept, Interpretation::SectionStride(n, _) if n == target));
        let predicts = kept_runs().any(|kept| matches!(kept, Interpretation::Predicted(m) if model(m)));
        usize::from(strides) + usize::from(predicts)
    }

    /// Restores the interpretations of the trace for the next block, unless the state continues.
    fn settle_kept(&mut self, resets: bool) {
        for plan in self.leaves.iter_mut().flatten() {
            if resets {
                plan.kept = plan.input;
            }
        }
    }
}
