//! Encodes a block whose leaves have been planned.

use super::block::Block;
use super::leaf_plan::PlannedChange;
use metatf::container::{Codec, Filter, Result, Sink, WriteOptions};
use metatf::dynamic::Writer;
use metatf::format::Format;
use metatf::reader::Metadata;

/// The counts of the records written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Data records.
    pub records: u64,
    /// Planned metadata records.
    pub metadata: u64,
}

/// Encodes a block's records. The changes in `plans`, which are listed by section, are written before the records that
/// they affect. If `resets` is set, each section starts with reset state. For `argument_bytes`, see [`Options`].
/// Returns the counts of the records written.
pub(super) fn put<S: Sink>(
    writer: &mut Writer<S>,
    format: &Format,
    block: &mut Block,
    plans: &[Vec<PlannedChange>],
    (resets, argument_bytes): (bool, u8),
) -> Result<Report> {
    let Block { sections, order, .. } = block;
    sections.iter_mut().for_each(|section| section.reset = resets);
    let mut report = Report::default();
    let mut encoders: Vec<_> = sections.iter().zip(plans).map(|(s, changes)| s.encoders(format, changes)).collect();
    let mut at = vec![(0_usize, 0_usize); sections.len()];
    // A section with models may be reset to the DTD's state at any point when the models become too large.
    let narrows = format.models.is_empty();
    for &(section, count) in order.iter() {
        let (Some(plan), Some(encoders), Some(at), Some(changes), Some(s)) = (
            sections.get_mut(section),
            encoders.get_mut(section),
            at.get_mut(section),
            plans.get(section),
            format.sections.get(section),
        ) else {
            continue;
        };
        let inner = writer.inner();
        if std::mem::take(&mut plan.reset) {
            inner.reset(section)?;
        }
        for _ in 0..count {
            while let Some(change) = changes.get(at.1).filter(|d| d.row as usize == at.0) {
                let record = s.records.get(change.kind).and_then(|&r| format.records.get(usize::from(r)));
                let leaf = u8::try_from(change.leaf).unwrap_or(u8::MAX);
                let metadata = Metadata::new(record.map_or(0, |r| r.tag), leaf, change.change);
                inner.metadata(section, &metadata.with_arguments(argument_bytes))?;
                report.metadata += 1;
                at.1 += 1;
            }
            let kind = plan.columns.order.get(at.0).map_or(0, |&k| usize::from(k));
            at.0 += 1;
            let (Some(encoder), Some(records), Some(&record)) =
                (encoders.get_mut(kind), plan.columns.kinds.get(kind), s.records.get(kind))
            else {
                continue;
            };
            inner.record(section, record, |row| encoder.encode(records, row))?;
            if encoder.advance(records)
                && narrows
                && let Some(r) = format.records.get(usize::from(record))
            {
                encoder.narrow(records, r, |leaf| inner.unstored_value(section, record, leaf));
            }
            report.records += u64::from(record != metatf::format::COMMENT);
        }
    }
    Ok(report)
}

/// Returns whether chunks of records are stored uncompressed.
pub(super) fn is_stored(write: &WriteOptions) -> bool {
    let filtered = !matches!(write.filter, Filter::None | Filter::Auto);
    write.version == 0 || (write.codec == Codec::Stored && write.trial.is_none() && !filtered)
}
