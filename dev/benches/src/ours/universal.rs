//! `dtds/HATF10.dtd` read by the dynamic reader, which obtains the DTD from the trace.

use crate::{Counts, Result};
use metatf::columns::Columns;
use metatf::dynamic::{self, Item, RecordView};
use metatf::format::Format;
use metatf::reader;

/// Returns the sum of a record's numbers, including lengths of byte arrays but without the arrays and the tag.
#[inline(always)]
fn sum_of(record: &RecordView<'_>) -> u64 {
    let numbers = record.numbers().iter().skip(1);
    numbers.fold(0, |sum, &number| sum.wrapping_add(number))
}

/// Returns the sum of all numbers, using the dynamic reader.
///
/// # Errors
/// Returns the errors of the trace.
pub fn all(trace: &[u8]) -> Result<u64> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let mut sum = 0_u64;
    while let Some(record) = trace.next_record()? {
        sum = sum.wrapping_add(sum_of(&record));
    }
    Ok(sum)
}

/// Returns the sum of all numbers, using `for_each`.
///
/// # Errors
/// Returns the errors of the trace.
pub fn each_all(trace: &[u8]) -> Result<u64> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let mut sum = 0_u64;
    trace.for_each(|record| sum = sum.wrapping_add(sum_of(&record)))?;
    Ok(sum)
}

/// Returns the sum of all numbers using owned records, which are required for reading the other contents of a trace.
///
/// # Errors
/// Returns the errors of the trace.
pub fn entries_all(trace: &[u8]) -> Result<u64> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let mut sum = 0_u64;
    while let Some(entry) = trace.next_entry()? {
        if let reader::Event::Record(_) = entry.event {
            for item in entry.record.iter() {
                if let Item::Number(n) = item {
                    sum = sum.wrapping_add(n);
                }
            }
        }
    }
    Ok(sum)
}

/// Returns the index of the record `alloc` in the format, and the index of its leaf `size`, which is also the position
/// of the size among the record's values.
fn alloc_size(format: &Format) -> Result<(u16, usize)> {
    let alloc = format.records.iter().position(|record| record.name == "alloc").ok_or("no alloc")?;
    let leaves = format.records.get(alloc).map_or(&[][..], |record| &record.leaves);
    let size = leaves.iter().position(|leaf| leaf.path == "size").ok_or("no alloc.size")?;
    Ok((u16::try_from(alloc)?, size))
}

/// Returns the total size of all allocations, using the dynamic reader.
///
/// # Errors
/// Returns the errors of the trace.
pub fn one(trace: &[u8]) -> Result<u64> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let (alloc, size) = alloc_size(&trace.schema().format)?;
    let mut sum = 0_u64;
    while let Some(record) = trace.next_record()? {
        if record.record() == alloc {
            sum = sum.wrapping_add(record.numbers().get(size).copied().unwrap_or(0));
        }
    }
    Ok(sum)
}

/// Returns the total size of all allocations, using `for_each`.
///
/// # Errors
/// Returns the errors of the trace.
pub fn each_one(trace: &[u8]) -> Result<u64> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let (alloc, size) = alloc_size(&trace.schema().format)?;
    let mut sum = 0_u64;
    trace.for_each(|record| {
        if record.record() == alloc {
            sum = sum.wrapping_add(record.numbers().get(size).copied().unwrap_or(0));
        }
    })?;
    Ok(sum)
}

/// Event counts for each record of the format.
struct ByRecord(Vec<u64>, [Option<usize>; 3]);

impl ByRecord {
    fn new(format: &Format) -> Self {
        let index = |name: &str| format.records.iter().position(|record| record.name == name);
        Self(vec![0; format.records.len()], ["alloc", "realloc", "free"].map(index))
    }

    #[inline(always)]
    fn note(&mut self, record: u16) {
        if let Some(count) = self.0.get_mut(usize::from(record)) {
            *count += 1;
        }
    }

    fn counts(&self) -> Counts {
        self.1.map(|index| index.and_then(|i| self.0.get(i)).copied().unwrap_or(0))
    }
}

/// Returns the number of events of each kind, using the dynamic reader.
///
/// # Errors
/// Returns the errors of the trace.
pub fn count(trace: &[u8]) -> Result<Counts> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let mut counts = ByRecord::new(&trace.schema().format);
    while let Some(record) = trace.next_record()? {
        counts.note(record.record());
    }
    Ok(counts.counts())
}

/// Returns the number of events of each kind, using the dynamic reader without decoding the records.
///
/// # Errors
/// Returns the errors of the trace.
pub fn skipped_count(trace: &[u8]) -> Result<Counts> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let mut counts = ByRecord::new(&trace.schema().format);
    while let Some(event) = trace.reader_mut().next_event()? {
        if let reader::Event::Record(at) = event {
            counts.note(at.record);
        }
    }
    Ok(counts.counts())
}

/// Returns the number of events of each kind, using `for_each`.
///
/// # Errors
/// Returns the errors of the trace.
pub fn each_count(trace: &[u8]) -> Result<Counts> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let mut counts = ByRecord::new(&trace.schema().format);
    trace.for_each(|record| counts.note(record.record()))?;
    Ok(counts.counts())
}

/// Returns the sum of all numbers and of the lengths of byte arrays, using the dynamic reader in columns.
///
/// # Errors
/// Returns the errors of the trace.
pub fn columns_all(trace: &[u8]) -> Result<u64> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let format = trace.schema().format.clone();
    let mut columns = Columns::of(&format);
    let mut sum = 0_u64;
    while trace.next_columns(&mut columns)? {
        for records in columns.records() {
            let leaves = format.records.get(usize::from(records.record())).map_or(0, |record| record.leaves.len());
            for leaf in (0..leaves).filter_map(|leaf| u8::try_from(leaf).ok()) {
                let numbers = records.numbers(leaf).iter();
                sum = numbers.fold(sum, |sum, &number| sum.wrapping_add(number));
                sum = sum.wrapping_add(records.arrays(leaf).data().len() as u64);
            }
        }
    }
    Ok(sum)
}

/// Returns the total size of all allocations, using the dynamic reader in columns.
///
/// # Errors
/// Returns the errors of the trace.
pub fn columns_one(trace: &[u8]) -> Result<u64> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let format = trace.schema().format.clone();
    let section = format.section_named("heap").ok_or("no section heap")?;
    let (alloc, size) = alloc_size(&format)?;
    let size = u8::try_from(size)?;
    let mut columns = Columns::of(&format);
    let mut sum = 0_u64;
    while trace.next_columns(&mut columns)? {
        let sizes = columns.record(section, alloc).map_or(&[][..], |records| records.numbers(size));
        sum = sizes.iter().fold(sum, |sum, &size| sum.wrapping_add(size));
    }
    Ok(sum)
}

/// Returns the number of events of each kind, using the dynamic reader in columns.
///
/// # Errors
/// Returns the errors of the trace.
pub fn columns_count(trace: &[u8]) -> Result<Counts> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let format = trace.schema().format.clone();
    let names = ["alloc", "realloc", "free"];
    let mut columns = Columns::of(&format);
    let mut counts = [0; 3];
    while trace.next_columns(&mut columns)? {
        for records in columns.records() {
            let name = format.records.get(usize::from(records.record())).map(|record| &*record.name);
            for (count, _) in counts.iter_mut().zip(names).filter(|(_, known)| Some(*known) == name) {
                *count += records.len() as u64;
            }
        }
    }
    Ok(counts)
}
