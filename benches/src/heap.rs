//! The same events as `dtds/heap.dtd`, whose addresses a model of the heap predicts, compressed by zstd at level 3.

use crate::events::Event;
use metatf::container::WriteOptions;
use metatf_derive::metatf;
use std::io::Cursor;

#[metatf(dtd = "../dtds/heap.dtd")]
mod format {}

use format::{Free, Heap, Malloc, Realloc, Record, Thread, Trace, Writer};

pub(crate) fn write(events: &[Event]) -> metatf::Result<Vec<u8>> {
    let options = WriteOptions { chunk_size: 8 << 20, ..WriteOptions::default() };
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), &options)?;
    writer.thread(&Thread { id: 1 })?;
    let (time, stack, usable) = (0, 0, 0);
    for event in events {
        match *event {
            Event::Alloc { size, address } => writer.malloc(&Malloc { time, stack, size, usable, address })?,
            Event::Realloc { old, size, address } => {
                writer.realloc(&Realloc { time, stack, size, usable, old, address })?;
            }
            Event::Free { address } => writer.free(&Free { time, stack, address })?,
        }
    }
    Ok(writer.finish()?.into_inner())
}

/// The sum of all fields.
pub(crate) fn read(trace: &[u8]) -> metatf::Result<u64> {
    let mut trace = Trace::from_slice(trace)?;
    let mut sum = 0_u64;
    while let Some(record) = trace.next()? {
        sum = sum.wrapping_add(match record {
            Record::Heap(Heap::Malloc(m)) => m.size.wrapping_add(m.address),
            Record::Heap(Heap::Realloc(r)) => r.size.wrapping_add(r.old).wrapping_add(r.address),
            Record::Heap(Heap::Free(f)) => f.address,
            _ => 0,
        });
    }
    Ok(sum)
}

/// The sum that reading has to come to.
pub(crate) fn sum(events: &[Event]) -> u64 {
    events.iter().fold(0, |sum, event| {
        sum.wrapping_add(match *event {
            Event::Alloc { size, address } => size.wrapping_add(address),
            Event::Realloc { old, size, address } => size.wrapping_add(old).wrapping_add(address),
            Event::Free { address } => address,
        })
    })
}
