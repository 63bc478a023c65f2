//! The same events in `dtds/heap.dtd`, which predicts addresses with a heap model, and in two formats without that
//! model: `heap-values.dtd`, with predictors that have no knowledge of heaps, and `heap-split.dtd`, without predictors.
//! All of them are compressed with zstd at level 3.

use crate::{Counts, Event, Result};
use metatf::container::WriteOptions;
use metatf_derive::metatf;

#[metatf(dtd = "../../dtds/heap.dtd")]
mod model_format {}

#[metatf(dtd = "../../dtds/heap-values.dtd")]
mod values_format {}

#[metatf(dtd = "../../dtds/heap-split.dtd")]
mod split_format {}

/// Writes events to memory.
pub type Write = fn(&[Event], &WriteOptions, Vec<u8>) -> metatf::Result<Vec<u8>>;

/// Returns options with large chunks, as written by `hatf`.
#[must_use]
pub fn options() -> WriteOptions {
    WriteOptions { chunk_size: 8 << 20, ..WriteOptions::default() }
}

/// Defines writers and readers of events. The brackets contain the fields that the events lack, first for allocations
/// and then for frees.
macro_rules! format {
    ($(#[$doc:meta])* $name:ident = $module:ident [$($more:ident)*] [$($also:ident)*] $($begin:ident)?) => {
        $(#[$doc])*
        pub mod $name {
            use super::*;
            use super::$module::{Free, Heap, Malloc, Realloc, Record, Trace, Writer};

            /// Writes the events.
            ///
            /// # Errors
            /// Not expected to fail.
            pub fn write(events: &[Event], options: &WriteOptions, mut out: Vec<u8>) -> metatf::Result<Vec<u8>> {
                out.clear();
                let mut writer = Writer::with_options(out, options)?;
                $(writer.$begin(&super::$module::Thread { id: 1 })?;)?
                for event in events {
                    match *event {
                        Event::Alloc { size, address } => {
                            writer.malloc(&Malloc { size, address, $($more: 0),* })?;
                        }
                        Event::Realloc { old, size, address } => {
                            writer.realloc(&Realloc { size: size.into(), old, address, $($more: 0),* })?;
                        }
                        Event::Free { address } => writer.free(&Free { address, $($also: 0),* })?,
                    }
                }
                writer.finish()
            }

            #[inline(always)]
            fn fields(record: &Record) -> u64 {
                match record {
                    Record::Heap(Heap::Malloc(m)) => m.size.wrapping_add(m.address),
                    Record::Heap(Heap::Realloc(r)) => r.size.wrapping_add(r.old).wrapping_add(r.address),
                    Record::Heap(Heap::Free(f)) => f.address,
                    _ => 0,
                }
            }

            #[inline(always)]
            fn size(record: &Record) -> u64 {
                if let Record::Heap(Heap::Malloc(malloc)) = record { malloc.size } else { 0 }
            }

            #[inline(always)]
            fn note(counts: &mut Counts, record: &Record) {
                let [allocs, reallocs, frees] = counts;
                match record {
                    Record::Heap(Heap::Malloc(_)) => *allocs += 1,
                    Record::Heap(Heap::Realloc(_)) => *reallocs += 1,
                    Record::Heap(Heap::Free(_)) => *frees += 1,
                    _ => {}
                }
            }

            loops! {}

            /// Returns the total size of all allocations, using `for_each`.
            ///
            /// # Errors
            /// Returns the errors of the trace.
            pub fn each_one(trace: &[u8]) -> Result<u64> {
                let mut sum = 0_u64;
                Trace::from_slice(trace)?.for_each(|record| sum = sum.wrapping_add(size(&record)))?;
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
        }
    };
}

format! {
    /// `dtds/heap.dtd`.
    model = model_format [time stack usable] [time stack] thread
}

format! {
    /// `dtds/heap-values.dtd`.
    values = values_format [] []
}

format! {
    /// `dtds/heap-split.dtd`.
    split = split_format [] []
}

/// `dtds/heap.dtd` as in recordings, with a time for each event in a stream section. The shipped events have no times,
/// so these are artificial, with one to four ticks between consecutive events.
pub mod timed {
    use super::model_format::{Free, Heap, Malloc, Realloc, Record, Thread, Trace, Writer};
    use super::*;
    use metatf::Change;
    use metatf::format::Interpretation;

    /// The number of the section with the times.
    const TIMES: u8 = 4;

    /// Returns the times of the events.
    fn times() -> impl Iterator<Item = u64> {
        (1_u64..).scan(0, |time, event| {
            *time += 1 + (event.wrapping_mul(0x9e37_79b9) >> 20) % 4;
            Some(*time)
        })
    }

    /// Returns the sum of the times, which readers add to the sum of sizes and addresses.
    #[must_use]
    pub fn sum(events: usize) -> u64 {
        times().take(events).fold(0, u64::wrapping_add)
    }

    /// Writes the events.
    ///
    /// # Errors
    /// Not expected to fail.
    pub fn write(events: &[Event], options: &WriteOptions, mut out: Vec<u8>) -> metatf::Result<Vec<u8>> {
        out.clear();
        let mut writer = Writer::with_options(out, options)?;
        let change = Change::Interpretation(Interpretation::SectionStride(TIMES, 1));
        writer.set_all("heap", "malloc", "time", change)?;
        writer.thread(&Thread { id: 1 })?;
        for (event, time) in events.iter().zip(times()) {
            match *event {
                Event::Alloc { size, address } => {
                    writer.malloc(&Malloc { time, size, address, stack: 0, usable: 0 })?;
                }
                Event::Realloc { old, size, address } => {
                    writer.realloc(&Realloc { time, size: size.into(), old, address, stack: 0, usable: 0 })?;
                }
                Event::Free { address } => writer.free(&Free { time, address, stack: 0 })?,
            }
        }
        writer.finish()
    }

    #[inline(always)]
    fn fields(record: &Record) -> u64 {
        match record {
            Record::Heap(Heap::Malloc(m)) => m.size.wrapping_add(m.address).wrapping_add(m.time),
            Record::Heap(Heap::Realloc(r)) => r.size.wrapping_add(r.old).wrapping_add(r.address).wrapping_add(r.time),
            Record::Heap(Heap::Free(f)) => f.address.wrapping_add(f.time),
            _ => 0,
        }
    }

    loops! {}
}

/// Adds up to `most` events from a trace of `dtds/heap.dtd`; other records are skipped.
///
/// # Errors
/// Returns the errors of the trace.
pub fn read_events(trace: &[u8], most: usize, events: &mut Vec<Event>) -> Result<()> {
    use model_format::{Heap, Record, Trace};
    let mut trace = Trace::from_slice(trace)?;
    let end = events.len().saturating_add(most);
    while events.len() < end
        && let Some(record) = trace.next()?
    {
        events.push(match record {
            Record::Heap(Heap::Malloc(m)) => Event::Alloc { size: m.size, address: m.address },
            Record::Heap(Heap::Calloc(c)) => Event::Alloc { size: c.size, address: c.address },
            Record::Heap(Heap::Memalign(m)) => Event::Alloc { size: m.size, address: m.address },
            Record::Heap(Heap::Realloc(r)) => Event::realloc(r.old, r.size, r.address)?,
            Record::Heap(Heap::Free(f)) => Event::Free { address: f.address },
            _ => continue,
        });
    }
    Ok(())
}
