//! What models will make of a block, found out before it is planned: the code of every predicted value, and which leaves have
//! to be stored as they are since a stream section has no room for what they leave there.
//!
//! The block is encoded once as a trial: every leaf has eight bytes, so that nothing but that can fail, and what models learn
//! depends on values alone. The copy of the writer's state is thrown away afterwards.

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
    /// Where leaves have to be something else than before: the record from which on, kind and leaf.
    kept_runs: Vec<(u32, usize, usize, Option<Interpretation>)>,
    /// The next record, and the next of `kept_runs`.
    at: (usize, usize),
    /// Of a record's predicted leaves: occurrences, and bytes of the greatest code.
    needs: Vec<(u8, u32, u8)>,
}

/// Notes in the plans of predicted leaves which codes their values have, and in all plans where a leaf cannot keep what it
/// had. `order`: the block's records by section; `resets`: a block begins again; `codes`: they are asked for.
///
/// # Errors
/// What encoding the block will end in, too.
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
        // What stands behind the last record is for the next block.
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

    /// Encodes the next record; `records` are the section's.
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
        // Each round but the last sets a leaf to `none`.
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

    /// Gives every leaf eight bytes, so that any number and any code fits.
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

    /// What a leaf is now.
    fn interpretation(&self, (kind, leaf): (usize, usize)) -> Option<Interpretation> {
        self.state.interpretation(kind, leaf)
    }

    fn change(&mut self, format: &Format, (kind, leaf): (usize, usize), change: Change) {
        let settable = self.plan((kind, leaf)).is_some_and(|plan| plan.settable);
        if let Some(leaf) = u8::try_from(leaf).ok().filter(|_| settable) {
            // What may stand was looked at where it came from.
            self.state.change(format, kind, leaf, change);
        }
    }

    fn plan(&mut self, (kind, leaf): (usize, usize)) -> Option<&mut LeafPlan> {
        self.plans.leaves.get_mut(kind)?.get_mut(leaf)
    }

    /// Leaves become before a record what they have to be from there on.
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

    /// A leaf cannot be what it is from this record on.
    fn refuse(&mut self, format: &Format, row: usize, at: (usize, usize)) {
        self.kept(u32::try_from(row).unwrap_or(u32::MAX), at, None);
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
            plan.keep(u32::try_from(row).unwrap_or(u32::MAX), kept_interpretation(plan.declared.interpretation));
            if let Some(codes) = &mut plan.codes {
                codes.end();
            }
        }
    }

    /// Notes the codes of a record.
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
    /// A leaf of it takes values from a stream section, by stride or by model.
    pub(super) fn has_elements(&self) -> bool {
        let takes = |kept: &Option<Interpretation>| {
            matches!(kept, Some(Interpretation::SectionStride(..) | Interpretation::Predicted(_)))
        };
        self.leaves.iter().flatten().any(|plan| plan.kept_runs.iter().any(|(_, kept)| takes(kept)))
    }

    /// How many cursors of the section move through a stream section: of strides, of models.
    pub(super) fn takers(&self, format: &Format, target: u8) -> usize {
        let kept_runs = || self.leaves.iter().flatten().flat_map(|plan| &plan.kept_runs).filter_map(|(_, kept)| *kept);
        let model = |m: u16| format.models.get(usize::from(m)).is_some_and(|m| m.section == target);
        let strides = kept_runs().any(|kept| matches!(kept, Interpretation::SectionStride(n, _) if n == target));
        let predicts = kept_runs().any(|kept| matches!(kept, Interpretation::Predicted(m) if model(m)));
        usize::from(strides) + usize::from(predicts)
    }

    /// In the next block leaves keep what the trace says, unless state goes on.
    fn settle_kept(&mut self, resets: bool) {
        for plan in self.leaves.iter_mut().flatten() {
            if resets {
                plan.kept = plan.input;
            }
        }
    }
}
