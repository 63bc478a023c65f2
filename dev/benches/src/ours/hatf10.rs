//! `dtds/HATF10.dtd` and `dtds/HATF10-split.dtd`, which have the same records.

use crate::{Counts, Event, Result};
use metatf::Change;
use metatf::container::WriteOptions;
use metatf::dynamic;
use metatf_derive::metatf;
use metatf_tools::recode::{self, Plan};
use std::io::Read;
use std::path::Path;

// region: expect
#[metatf(dtd = "../../dtds/HATF10.dtd", expect_widths = "address = 8")]
mod plain_format {}
// endregion

#[metatf(dtd = "../../dtds/HATF10-split.dtd")]
mod split_format {}

/// Returns options for uncompressed content without a filter.
#[must_use]
pub fn stored() -> WriteOptions {
    let (codec, filter) = (metatf::container::Codec::Stored, metatf::container::Filter::None);
    WriteOptions { codec, filter, ..WriteOptions::default() }
}

/// Behavior of a writer if a value does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Writes metadata that widens the field.
    Widen,
    /// Fails.
    Strict,
}

/// Defines writers and readers of events in one of the two formats.
macro_rules! format {
    ($(#[$doc:meta])* $name:ident = $module:ident) => {
        $(#[$doc])*
        pub mod $name {
            use super::*;
            use super::$module::{Alloc, Columns, Free, Heap, Realloc, Record, Trace, Writer};

            const NOTHING: &[u8] = &[];

            /// Creates a writer. If `wide` is set, addresses take 8 bytes from the start.
            fn start(
                options: &WriteOptions,
                fit: Fit,
                wide: bool,
                mut out: Vec<u8>,
            ) -> metatf::Result<Writer<Vec<u8>>> {
                out.clear();
                let mut writer = Writer::with_options(out, options)?;
                writer.set_strict(fit == Fit::Strict);
                let leaves = [("alloc", "address"), ("realloc", "address"), ("realloc", "address_2"), ("free", "address")];
                for (record, leaf) in leaves.into_iter().filter(|_| wide) {
                    writer.set("heap", record, leaf, Change::Width(8))?;
                }
                Ok(writer)
            }

            /// Writes the events one by one. Fields that the events lack have the values given by the DTD. If `wide` is
            /// set, addresses take 8 bytes from the start.
            ///
            /// # Errors
            /// A strict writer fails if a value does not fit.
            pub fn write(
                events: &[Event],
                options: &WriteOptions,
                fit: Fit,
                wide: bool,
                out: Vec<u8>,
            ) -> metatf::Result<Vec<u8>> {
                let mut writer = start(options, fit, wide, out)?;
                let (time, thread, heap, vfield) = (0, 0, 0, NOTHING);
                for event in events {
                    match *event {
                        Event::Alloc { size, address } => {
                            writer.alloc(&Alloc { size, address, time, thread, heap, vfield })?;
                        }
                        Event::Realloc { old, address, .. } => {
                            writer.realloc(&Realloc { address: old, address_2: address, time, thread, heap, vfield })?;
                        }
                        Event::Free { address } => writer.free(&Free { address, time, thread, heap, vfield })?,
                    }
                }
                writer.finish()
            }

            /// Does the same as [`write()`] with a single call for all events.
            ///
            /// # Errors
            /// As for [`write()`].
            pub fn write_all(
                events: &[Event],
                options: &WriteOptions,
                fit: Fit,
                wide: bool,
                out: Vec<u8>,
            ) -> metatf::Result<Vec<u8>> {
                let mut writer = start(options, fit, wide, out)?;
                let (time, thread, heap, vfield) = (0, 0, 0, NOTHING);
                writer.write_all(events.iter().map(|event| match *event {
                    Event::Alloc { size, address } => Heap::Alloc(Alloc { size, address, time, thread, heap, vfield }),
                    Event::Realloc { old, address, .. } => {
                        Heap::Realloc(Realloc { address: old, address_2: address, time, thread, heap, vfield })
                    }
                    Event::Free { address } => Heap::Free(Free { address, time, thread, heap, vfield }),
                }))?;
                writer.finish()
            }

            #[inline(always)]
            fn fields(record: &Record<&[u8]>) -> u64 {
                let add = u64::wrapping_add;
                match record {
                    Record::Heap(Heap::Alloc(r)) => {
                        add(add(r.size, r.address), add(r.time | r.thread | r.heap, r.vfield.len() as u64))
                    }
                    Record::Heap(Heap::Realloc(r)) => {
                        add(add(r.address, r.address_2), add(r.time | r.thread | r.heap, r.vfield.len() as u64))
                    }
                    Record::Heap(Heap::Free(r)) => {
                        add(r.address, add(r.time | r.thread | r.heap, r.vfield.len() as u64))
                    }
                    _ => 0,
                }
            }

            #[inline(always)]
            fn note(counts: &mut Counts, record: &Record<&[u8]>) {
                let [allocs, reallocs, frees] = counts;
                match record {
                    Record::Heap(Heap::Alloc(_)) => *allocs += 1,
                    Record::Heap(Heap::Realloc(_)) => *reallocs += 1,
                    Record::Heap(Heap::Free(_)) => *frees += 1,
                    _ => {}
                }
            }

            loops! {}

            /// Returns the total size of all allocations.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn one(trace: &[u8]) -> Result<u64> {
                let mut trace = Trace::from_slice(trace)?;
                let mut sum = 0_u64;
                while let Some(record) = trace.next()? {
                    if let Record::Heap(Heap::Alloc(alloc)) = record {
                        sum = sum.wrapping_add(alloc.size);
                    }
                }
                Ok(sum)
            }

            /// Returns the number of events of each kind.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn count(trace: &[u8]) -> Result<Counts> {
                let mut trace = Trace::from_slice(trace)?;
                let mut counts = [0; 3];
                while let Some(record) = trace.next()? {
                    note(&mut counts, &record);
                }
                Ok(counts)
            }

            /// Returns the total size of all allocations, using `for_each`.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn each_one(trace: &[u8]) -> Result<u64> {
                let mut sum = 0_u64;
                Trace::from_slice(trace)?.for_each(|record| {
                    if let Record::Heap(Heap::Alloc(alloc)) = record {
                        sum = sum.wrapping_add(alloc.size);
                    }
                })?;
                Ok(sum)
            }

            /// Returns the number of events of each kind, using `for_each`.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn each_count(trace: &[u8]) -> Result<Counts> {
                let mut counts = [0; 3];
                Trace::from_slice(trace)?.for_each(|record| note(&mut counts, &record))?;
                Ok(counts)
            }

            /// Returns the total size of all allocations, using `only` and `next_record`.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn only_one(trace: &[u8]) -> Result<u64> {
                let mut trace = Trace::from_slice(trace)?;
                let (mut allocs, mut sum) = (trace.only::<Alloc>(), 0_u64);
                while let Some(alloc) = allocs.next_record()? {
                    sum = sum.wrapping_add(alloc.size);
                }
                Ok(sum)
            }

            /// Returns the total size of all allocations, using `only` and `for_each`.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn only_each_one(trace: &[u8]) -> Result<u64> {
                let (mut trace, mut sum) = (Trace::from_slice(trace)?, 0_u64);
                trace.only::<Alloc>().for_each(|alloc| sum = sum.wrapping_add(alloc.size))?;
                Ok(sum)
            }

            /// Returns the sum of all fields, using columns.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn columns_all(trace: &[u8]) -> Result<u64> {
                let (mut trace, mut columns) = (Trace::from_slice(trace)?, Columns::default());
                let mut sum = 0_u64;
                while trace.next_columns(&mut columns)? {
                    let (a, r, f) = (columns.alloc(), columns.realloc(), columns.free());
                    let numbers = [a.size, a.address, a.time, a.thread, a.heap];
                    let numbers = numbers.into_iter().chain([r.address, r.address_2, r.time, r.thread, r.heap]);
                    for numbers in numbers.chain([f.address, f.time, f.thread, f.heap]) {
                        sum = numbers.iter().fold(sum, |sum, &number| sum.wrapping_add(number));
                    }
                    for bytes in [a.vfield, r.vfield, f.vfield] {
                        sum = sum.wrapping_add(bytes.data().len() as u64);
                    }
                }
                Ok(sum)
            }

            /// Returns the total size of all allocations, using columns.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn columns_one(trace: &[u8]) -> Result<u64> {
                let (mut trace, mut columns) = (Trace::from_slice(trace)?, Columns::default());
                let mut sum = 0_u64;
                while trace.next_columns(&mut columns)? {
                    sum = columns.alloc().size.iter().fold(sum, |sum, &size| sum.wrapping_add(size));
                }
                Ok(sum)
            }

            /// Returns the number of events of each kind, using columns.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn columns_count(trace: &[u8]) -> Result<Counts> {
                let (mut trace, mut columns) = (Trace::from_slice(trace)?, Columns::default());
                let mut counts = [0; 3];
                while trace.next_columns(&mut columns)? {
                    let more = [columns.alloc().records, columns.realloc().records, columns.free().records];
                    for (count, more) in counts.iter_mut().zip(more) {
                        *count += more as u64;
                    }
                }
                Ok(counts)
            }

            /// Returns the sum of all fields in a mapped file, using `for_each`.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn all_open(path: &Path) -> Result<u64> {
                sum_each(Trace::open(path)?)
            }

            /// Returns the sum of all fields read from a source, using `for_each`.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn all_read(read: impl Read + Send) -> Result<u64> {
                sum_each(Trace::from_read(read)?)
            }
        }
    };
}

format! {
    /// `dtds/HATF10.dtd`.
    plain = plain_format
}

format! {
    /// `dtds/HATF10-split.dtd`, which stores addresses in their own stream.
    split = split_format
}

/// Returns plain HATF 1.0 with 8-byte addresses, stored, in version 1.
///
/// # Errors
/// Not expected to fail.
pub fn plain_trace(events: &[Event]) -> metatf::Result<Vec<u8>> {
    plain::write(events, &stored(), Fit::Widen, true, Vec::new())
}

/// Returns the trace re-encoded by the paper's plan `best`, which uses frequent metadata records.
///
/// # Errors
/// Returns the errors of the trace.
pub fn best_trace(trace: &[u8]) -> Result<Vec<u8>> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let options = recode::Options { plan: Plan::Best, ..recode::Options::default() };
    Ok(recode::recode(&mut trace, Vec::new(), &stored(), options, || {})?.0)
}
