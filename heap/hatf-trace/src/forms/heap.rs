//! The native format of this project.

use metatf::container::Reader;
use metatf::typed::Unmatched;

use super::{EventWriter, Form, TraceReader};
use crate::Result;
use crate::heap::{GROUP_RECORDS, HeapOptions, HeapReader, HeapWriter};
use crate::loss::Losses;
use crate::trace::dtd_has;

/// The native format of this project, which `hatf record` writes.
pub static FORM: Form = Form {
    name: "heap",
    about: "This project's own format (heap.dtd)",
    suffixes: &[".mtf"],
    sniff: |head| head.trace.is_some_and(is_heap),
    open: Some(|input, note| {
        let reader = HeapReader::of(input.into_container_of(&FORM)?)?;
        reader.unmatched().into_iter().flat_map(lines).for_each(|line| note(&line));
        Ok(TraceReader::new(reader))
    }),
    create: Some(|output, options| {
        let resolution = options.resolution.unwrap_or(1);
        let group_records = options.group_records.unwrap_or(GROUP_RECORDS);
        let options = HeapOptions { write: options.write.clone(), resolution, group_records, plain: false };
        Ok(Box::new(HeapWriter::new(output, &options)?))
    }),
    lost: "HATF 1.0 heaps and attributes, and realloc kinds that contradict the addresses",
};

/// Recognizes the DTD by its name, or else by its records. The record name `malloc` is not enough, because other DTDs
/// may use it.
fn is_heap(trace: &Reader<'_>) -> bool {
    match trace.header().dtd_url.rsplit('/').next() {
        Some("HATF10.dtd") => false,
        Some("heap.dtd") => true,
        _ => dtd_has(trace, "malloc") && dtd_has(trace, "thread_start") && !dtd_has(trace, "createHeap"),
    }
}

/// Formats the mismatches between a trace with another version of the DTD and this reader. Records that the trace's DTD
/// lacks are omitted, because an earlier recorder did not write them.
pub(super) fn lines(unmatched: &Unmatched) -> Vec<String> {
    let mut unmatched = unmatched.clone();
    unmatched.absent.retain(|place| place.matches('.').count() > 1);
    unmatched.to_string().lines().map(|line| format!("warning: {line}")).collect()
}

impl EventWriter for HeapWriter<'_> {
    fn finish(self: Box<Self>) -> Result<Losses> {
        (*self).finish()
    }

    fn abandon(self: Box<Self>) {
        (*self).abandon();
    }
}
