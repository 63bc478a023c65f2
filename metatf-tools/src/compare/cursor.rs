//! A cursor over the records of one of the two traces.

use super::Input;
use metatf::container::Result;
use metatf::dynamic::{OwnedRecord, Trace};
use metatf::reader::{At, Event};

/// The records that a pass compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// All records except stream elements.
    Records,
    /// The records of the section with this index, or the elements of a stream section.
    Section(usize),
}

/// A cursor over the records of a pass.
pub(super) struct PassCursor<'t, 'a> {
    pub(super) trace: Trace<'a>,
    pass: Pass,
    /// Whether to compare each record, by section and record.
    kept: &'t [Vec<bool>],
    /// Whether metadata made a leaf stride through a stream section or point into it, by section number.
    pub(super) reached: [bool; 256],
    /// The number of records or elements seen in each section.
    pub(super) counts: Vec<u64>,
    elements: u64,
}

/// The position of a record to compare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) at: At,
    /// The number of earlier data records in the trace or, for an element, the number of earlier elements in the
    /// section.
    pub(super) number: u64,
}

impl<'t, 'a> PassCursor<'t, 'a> {
    pub(super) fn open(input: &mut Input<'_, 'a>, pass: Pass, stream: bool, kept: &'t [Vec<bool>]) -> Result<Self> {
        let mut trace = Trace::new(input.schema.clone(), (input.open)()?)?;
        trace.reader_mut().set_all(stream);
        let counts = vec![0; input.schema.dtd.sections.len()];
        Ok(Self { trace, pass, kept, reached: [false; 256], counts, elements: 0 })
    }

    /// Advances to the next record of the pass, whose values are in [`record`](Self::record).
    pub(super) fn next(&mut self, step: &mut dyn FnMut()) -> Result<Option<Spot>> {
        while let Some(event) = self.trace.next_entry()?.map(|entry| entry.event) {
            let (at, number) = match event {
                Event::Record(at) => (at, self.trace.reader().records_read().saturating_sub(1)),
                Event::Comment(at) => (at, self.trace.reader().records_read()),
                Event::Element(at, _) => (at, self.elements),
                Event::Metadata(_, metadata) => {
                    // These are sectionOffset and sectionStride (spec 4.1), whose first value is the section.
                    if matches!(metadata.property & 7, 5 | 7)
                        && let Some(reached) =
                            self.reached.get_mut(usize::try_from(metadata.values[0]).unwrap_or(usize::MAX))
                    {
                        *reached = true;
                    }
                    continue;
                }
                Event::Section(..) | Event::Group(_) | Event::Reset(_) => continue,
            };
            step();
            if let Some(count) = self.counts.get_mut(at.section) {
                *count += 1;
            }
            let element = matches!(event, Event::Element(..));
            let wanted = match self.pass {
                Pass::Records => !element,
                Pass::Section(section) => at.section == section,
            };
            self.elements += u64::from(wanted && element);
            if wanted && self.is_kept(at) {
                return Ok(Some(Spot { at, number }));
            }
        }
        Ok(None)
    }

    fn is_kept(&self, at: At) -> bool {
        self.kept.get(at.section).and_then(|s| s.get(usize::from(at.record))).copied().unwrap_or(false)
    }

    pub(super) fn record(&self) -> &OwnedRecord {
        self.trace.record()
    }
}
