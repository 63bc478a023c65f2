//! HATF 1.0 in Meta-TF.

use metatf::container::Reader;

use super::{EventWriter, Form, TraceReader, heap};
use crate::Result;
use crate::hatf10::{Hatf10Reader, Hatf10Writer};
use crate::loss::Losses;
use crate::trace::dtd_has;

pub(super) static FORM: Form = Form {
    name: "hatf10",
    about: "HATF 1.0 as a Meta-TF trace (HATF10.dtd)",
    suffixes: &[],
    sniff: |head| head.trace.is_some_and(is_hatf10),
    open: Some(|input, note| {
        let reader = Hatf10Reader::of(input.into_container_of(&FORM)?)?;
        reader.unmatched().into_iter().flat_map(heap::lines).for_each(|line| note(&line));
        Ok(TraceReader::new(reader))
    }),
    create: Some(|output, options| Ok(Box::new(Hatf10Writer::new(output, &options.write)?))),
    lost: "stacks, usable sizes and page-level calls; failed calls, marks, phases, thread names and lost events become \
           comments",
};

/// Recognizes the DTD by its name, or else by a record that no other DTD defines.
fn is_hatf10(trace: &Reader<'_>) -> bool {
    match trace.header().dtd_url.rsplit('/').next() {
        Some("HATF10.dtd") => true,
        Some("heap.dtd") => false,
        _ => dtd_has(trace, "createHeap"),
    }
}

impl EventWriter for Hatf10Writer<'_> {
    fn finish(self: Box<Self>) -> Result<Losses> {
        (*self).finish()
    }

    fn abandon(self: Box<Self>) {
        (*self).abandon();
    }
}
