//! Measures the size of a trace's leaves with the DTD's encoding and with the planner's cheapest path, without writing
//! a trace.

use super::block::Block;
use super::block_sink::BlockSink;
use super::copy::Copy;
use super::failure::Failure;
use super::leaf_column::{BlockRecords, Values};
use super::leaf_plan::PlannedChange;
use super::planners::Planners;
use super::section_plans::SectionPlans;
use super::setting::{MetadataBytes, Setting, change_cost};
use super::{Groups, Options, Plan};
use metatf::dynamic::{OwnedRecord, Schema, Trace};
use metatf::format::Interpretation;
use std::collections::BTreeMap;

/// Maximum number of encodings to list per leaf; values in further encodings are counted but not listed.
const MOST_SPENT: usize = 4096;

/// The size of a numeric leaf in a trace that a plan may encode differently.
#[derive(Clone, Debug)]
pub struct LeafSurvey {
    /// Index of the section.
    pub section: usize,
    /// Index of the record in the format.
    pub record: u16,
    /// Index of the leaf in the record.
    pub leaf: u8,
    /// Number of values.
    pub values: u64,
    /// Size in bytes with the plan [`Naive`](Plan::Naive), including its metadata records. This plan uses the DTD's
    /// encoding and widens it if a value does not fit.
    pub declared: u64,
    /// Size in bytes with the plan [`Optimal`](Plan::Optimal), including its metadata records.
    pub best: u64,
    /// The encodings that the optimal plan uses for the values, in descending order of frequency.
    pub spent: Vec<Spent>,
}

/// An encoding and the number of values stored in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The interpretation. Previous values set by a plan are replaced by 0, as in `delta 0` and `stride 0 8`.
    pub interpretation: Interpretation,
    /// Number of bytes stored for each value.
    pub width: u8,
    /// Number of values.
    pub values: u64,
}

/// Reads an entire trace, and plans each leaf in blocks as [`recode`](super::recode()) does. Leaves that must keep
/// their interpretation and leaves without values are omitted. `step` is called for every record.
///
/// # Errors
/// Returns an error if the trace is malformed.
pub fn survey(trace: &mut Trace<'_>, mut step: impl FnMut()) -> Result<Vec<LeafSurvey>, Failure> {
    let schema = trace.schema().clone();
    trace.reader_mut().set_all(true);
    let options = Options::default();
    let block = Block::new(&schema.format, &options);
    let mut sink = Survey { schema: schema.clone(), planners: Planners::new(1), leaves: BTreeMap::new() };
    Copy::new(schema, block, Groups::Keep, 1).all(trace, &mut sink, &mut step)?;
    Ok(sink.leaves.into_iter().map(|(place, counts)| counts.finish(place)).collect())
}

/// A leaf: the index of its section, the index of its record in the section, its own index, and the index of its record
/// in the format.
type Place = (usize, usize, usize, u16);

/// A [`BlockSink`] that counts values and bytes.
struct Survey {
    schema: Schema,
    planners: Planners,
    leaves: BTreeMap<Place, Counts>,
}

#[derive(Default)]
struct Counts {
    values: u64,
    declared: u64,
    best: u64,
    spent: BTreeMap<(u8, u64, u8), Spent>,
}

impl Survey {
    fn plan(&mut self, section: &mut SectionPlans, at: usize, plan: Plan) {
        section.begin_again();
        let metadata = MetadataBytes { header: 2 * u32::from(self.schema.format.tag_width) + 2, argument: 1 };
        let changes = section.plan(metadata, plan, &mut self.planners);
        let listed = self.schema.format.sections.get(at).map_or(&[][..], |s| &s.records);
        let mut of_leaf: BTreeMap<(usize, usize), Vec<&PlannedChange>> = BTreeMap::new();
        for change in &changes {
            of_leaf.entry((change.kind, change.leaf)).or_default().push(change);
        }
        for (kind, (records, leaves)) in section.columns.kinds.iter().zip(&section.leaves).enumerate() {
            for (leaf, planned) in leaves.iter().enumerate().filter(|(_, leaf)| leaf.settable) {
                let is_kept = planned.kept_runs.iter().any(|(_, kept)| kept.is_some());
                let values = values(records, leaf);
                if is_kept || values == 0 {
                    continue;
                }
                let place = (at, kind, leaf, listed.get(kind).copied().unwrap_or(0));
                let counts = self.leaves.entry(place).or_default();
                let changes = of_leaf.get(&(kind, leaf)).map_or(&[][..], Vec::as_slice);
                let bytes = walk(records, leaf, (planned.declared, metadata), changes, |setting, values| {
                    if plan == Plan::Optimal {
                        counts.spend(setting, values);
                    }
                });
                match plan {
                    Plan::Optimal => counts.best += bytes,
                    _ => (counts.declared, counts.values) = (counts.declared + bytes, counts.values + values),
                }
            }
        }
    }
}

/// Returns the number of values of a leaf in a block.
fn values(records: &BlockRecords, leaf: usize) -> u64 {
    records.columns.get(leaf).map_or(0, |column| match column.values() {
        Values::Same(_, count) => count as u64,
        Values::Each(values) => values.len() as u64,
    })
}

/// Returns the size of the leaf with these changes. Calls `each` for each setting with the number of values that follow
/// it.
fn walk(
    records: &BlockRecords,
    leaf: usize,
    (mut setting, metadata): (Setting, MetadataBytes),
    changes: &[&PlannedChange],
    mut each: impl FnMut(Setting, u64),
) -> u64 {
    let all = values(records, leaf);
    let ends = records.columns.get(leaf).map(|column| column.ends.as_slice()).filter(|ends| !ends.is_empty());
    // Returns the number of values before a record of the section.
    let before = |row: u32| {
        let records = records.rows.partition_point(|&r| r < row);
        match (ends, records.checked_sub(1)) {
            (Some(ends), Some(last)) => ends.get(last).map_or(all, |&end| u64::from(end)),
            _ => records as u64,
        }
    };
    let (mut bytes, mut done) = (0, 0);
    let ends = changes.iter().map(|change| (before(change.row).min(all), Some(change.change)));
    for (until, change) in ends.chain([(all, None)]) {
        let count = until.saturating_sub(done);
        if count > 0 {
            each(setting, count);
            bytes += count * u64::from(if setting.interpretation.stores() { setting.width } else { 0 });
        }
        done = until.max(done);
        if let Some(change) = change {
            bytes += u64::from(change_cost(metadata, change));
            setting = setting.apply(change).unwrap_or(setting);
        }
    }
    bytes
}

impl Counts {
    fn spend(&mut self, setting: Setting, values: u64) {
        let (kind, argument, interpretation) = match setting.interpretation {
            Interpretation::Delta(_) => (1, 0, Interpretation::Delta(0)),
            Interpretation::Default(value) => (2, value, setting.interpretation),
            Interpretation::Stride(_, stride) => (3, stride, Interpretation::Stride(0, stride)),
            Interpretation::BaseOffset(base) => (4, base, setting.interpretation),
            Interpretation::BaseOffsetOf(..) => (5, 0, setting.interpretation),
            other => (0, 0, other),
        };
        let width = if interpretation.stores() { setting.width } else { 0 };
        let key = (kind, argument, width);
        if self.spent.len() < MOST_SPENT || self.spent.contains_key(&key) {
            let spent = self.spent.entry(key).or_insert(Spent { interpretation, width, values: 0 });
            spent.values += values;
        }
    }

    fn finish(self, (section, _, leaf, record): Place) -> LeafSurvey {
        let Self { values, declared, best, spent } = self;
        let mut spent: Vec<Spent> = spent.into_values().collect();
        spent.sort_by_key(|spent| std::cmp::Reverse(spent.values));
        LeafSurvey { section, record, leaf: u8::try_from(leaf).unwrap_or(u8::MAX), values, declared, best, spent }
    }
}

impl BlockSink for Survey {
    fn block(&mut self, block: &mut Block) -> Result<(), Failure> {
        for (at, section) in block.sections.iter_mut().enumerate() {
            if !section.columns.order.is_empty() {
                self.plan(section, at, Plan::Naive);
                self.plan(section, at, Plan::Optimal);
            }
        }
        block.clear(true);
        Ok(())
    }

    fn element(&mut self, _: (usize, bool), _: Option<u64>, _: &OwnedRecord) -> Result<(), Failure> {
        Ok(())
    }

    fn start_group(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn reset_stream(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
}
