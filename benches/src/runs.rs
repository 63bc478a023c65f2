//! The same by the readers and the writer of the project.

use crate::events::Event;
use metatf::Change;
use metatf::container::{Codec, WriteOptions};
use metatf::dynamic::{self, Datum};
use metatf::reader;
use metatf_derive::metatf;
use std::io::Cursor;

#[metatf(dtd = "../dtds/HATF10.dtd")]
mod hatf {}

pub(crate) use hatf::{Alloc, Free, Heap, Realloc};
use hatf::{Record, Trace, Writer};

const NOTHING: &[u8] = &[];

/// The records of events; times, threads, heaps and attributes are as the DTD gives them.
pub(crate) fn records(events: &[Event]) -> Vec<Heap<&'static [u8]>> {
    let record = |event: &Event| match *event {
        Event::Alloc { size, address } => {
            Heap::Alloc(Alloc { size, address, time: 0, thread: 0, heap: 0, vfield: NOTHING })
        }
        Event::Realloc { old, address, .. } => {
            Heap::Realloc(Realloc { address: old, address_2: address, time: 0, thread: 0, heap: 0, vfield: NOTHING })
        }
        Event::Free { address } => Heap::Free(Free { address, time: 0, thread: 0, heap: 0, vfield: NOTHING }),
    };
    events.iter().map(record).collect()
}

pub(crate) fn write_generated(records: &[Heap<&[u8]>]) -> metatf::Result<Vec<u8>> {
    let options = WriteOptions { codec: Codec::Stored, ..WriteOptions::default() };
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), &options)?;
    for (record, leaf) in [("alloc", "address"), ("realloc", "address"), ("realloc", "address_2"), ("free", "address")]
    {
        writer.set("heap", record, leaf, Change::Width(8))?;
    }
    for record in records {
        match record {
            Heap::Alloc(alloc) => writer.alloc(alloc)?,
            Heap::Realloc(realloc) => writer.realloc(realloc)?,
            Heap::Free(free) => writer.free(free)?,
            _ => {}
        }
    }
    Ok(writer.finish()?.into_inner())
}

/// The sum of all fields.
pub(crate) fn read_generated(trace: &[u8]) -> metatf::Result<u64> {
    let mut trace = Trace::from_slice(trace)?;
    let mut sum = 0_u64;
    while let Some(record) = trace.next()? {
        sum = sum.wrapping_add(match record {
            Record::Heap(Heap::Alloc(a)) => a.size.wrapping_add(a.address).wrapping_add(a.time | a.thread | a.heap),
            Record::Heap(Heap::Realloc(r)) => {
                r.address.wrapping_add(r.address_2).wrapping_add(r.time | r.thread | r.heap)
            }
            Record::Heap(Heap::Free(f)) => f.address.wrapping_add(f.time | f.thread | f.heap),
            _ => 0,
        });
    }
    Ok(sum)
}

/// The sum of all fields.
pub(crate) fn read_universal(trace: &[u8]) -> Result<u64, Box<dyn std::error::Error>> {
    let mut trace = dynamic::Trace::from_slice(trace)?;
    let mut sum = 0_u64;
    while let Some(entry) = trace.next_entry()? {
        if let reader::Event::Record(_) = entry.event {
            for datum in entry.tape.data() {
                if let Datum::Number(n) = datum {
                    sum = sum.wrapping_add(*n);
                }
            }
        }
    }
    Ok(sum)
}
