//! Merges ordered sources of records, such as traces converted to the same DTD.
//!
//! ```
//! # use metatf::container::WriteOptions;
//! # use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
//! use metatf_tools::convert::{ConvertError, ConvertOptions, Converter};
//! use metatf_tools::merge::{KeyOf, TraceSource, merge};
//! use metatf_tools::roles::Place;
//!
//! # let dtd = b"section heap 1 { free: (tag, time) { tag.value = 4; time.width = 4; time.interpretation = none; } }";
//! # let schema = Schema::parse("heap.dtd", dtd)?;
//! # let mut files = Vec::new();
//! # for times in [[1, 5], [2, 9]] {
//! #     let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
//! #     for time in times {
//! #         let mut owned = OwnedRecord::default();
//! #         owned.push_number(time);
//! #         writer.record(1, 3, &owned)?;
//! #     }
//! #     files.push(writer.finish()?);
//! # }
//! // The times of the records are 1 and 5 in the first trace, and 2 and 9 in the second trace.
//! let mut sources = Vec::new();
//! for file in &files {
//!     let converter = Converter::new(&schema, &schema, &ConvertOptions::default())?;
//!     // The time is the first value of each record.
//!     let key: KeyOf<'_> = Box::new(|_, owned| Place::Behind(0).number(owned));
//!     sources.push(TraceSource::new(Trace::from_slice(file)?, converter, 0, key));
//! }
//! let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
//! let merged = merge(&mut sources, &mut writer, &mut |writer, keyed| {
//!     writer.record(keyed.section, keyed.record, &keyed.owned).map_err(ConvertError::Write)
//! });
//! assert_eq!(merged, Ok(()));
//!
//! let (file, mut times) = (writer.finish()?, Vec::new());
//! Trace::from_slice(&file)?.for_each(|record| times.push(record.numbers()[1]))?;
//! assert_eq!(times, [1, 2, 5, 9]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::convert::{ConvertError, Converted, ConvertedSink, Converter, at_record};
use metatf::Change;
use metatf::container::ErrorKind;
use metatf::dynamic::{OwnedRecord, Trace};
use metatf::format::{Interpretation, LeafKind};
use metatf::reader::Metadata;
use metatf::reader::{At, Event};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A record with the key that orders it.
#[derive(Clone, Debug, Default)]
pub struct Keyed {
    /// The key; records with smaller keys come first.
    pub key: u64,
    /// Index of the section.
    pub section: usize,
    /// Index of the record.
    pub record: u16,
    /// The values.
    pub owned: OwnedRecord,
}

/// A source of records in ascending order of their keys.
pub trait Source<W, E> {
    /// Reads the next record, and passes unordered table elements to `to`. Returns false at the end.
    ///
    /// # Errors
    /// Returns an error of the source or of `to`.
    fn next(&mut self, to: &mut W, keyed: &mut Keyed) -> Result<bool, E>;
}

/// Passes the records of all sources to `put` in the order of their keys. For equal keys, records of earlier sources
/// come first, and records of the same source keep their order. Besides the memory of the sources themselves, this
/// needs memory for one record per source.
///
/// # Errors
/// Returns the first error of a source or of `put`.
pub fn merge<W, E, S: Source<W, E>>(
    sources: &mut [S],
    to: &mut W,
    put: &mut dyn FnMut(&mut W, &Keyed) -> Result<(), E>,
) -> Result<(), E> {
    let mut waiting = BinaryHeap::with_capacity(sources.len());
    let mut heads = Vec::with_capacity(sources.len());
    for (index, source) in sources.iter_mut().enumerate() {
        let mut head = Keyed::default();
        if source.next(to, &mut head)? {
            waiting.push(Reverse((head.key, index)));
        }
        heads.push((source, head));
    }
    while let Some(Reverse((_, index))) = waiting.pop() {
        let Some((source, head)) = heads.get_mut(index) else { continue };
        // Until its key reaches `limit`, this source has the earliest record, so it need not be compared with the other
        // sources each time.
        let limit = waiting.peek().map(|Reverse(first)| *first);
        loop {
            put(to, head)?;
            if !source.next(to, head)? {
                break;
            }
            if limit.is_some_and(|limit| limit < (head.key, index)) {
                waiting.push(Reverse((head.key, index)));
                break;
            }
        }
    }
    Ok(())
}

/// A function that returns the key of a target record with a given index, or `None` if the record has no position of
/// its own in the order. The function may change numbers in the record.
pub type KeyOf<'k> = Box<dyn FnMut(u16, &mut OwnedRecord) -> Option<u64> + 'k>;

/// A trace as a source. Its records are converted to the target's DTD, and its tables are merged into the target's
/// tables. See the [module](crate::merge) for an example.
pub struct TraceSource<'a> {
    trace: Trace<'a>,
    converter: Converter,
    key: KeyOf<'a>,
    /// The key of the previous record in each section of the target, which records without a key inherit.
    last: Vec<u64>,
    /// For each section of the trace, whether records consume its elements. If so, the target creates the elements
    /// again.
    taken: Vec<bool>,
}

impl<'a> TraceSource<'a> {
    /// Creates a source. Records and comments before the first record with a key get the key `first`.
    pub fn new(mut trace: Trace<'a>, converter: Converter, first: u64, key: KeyOf<'a>) -> Self {
        trace.reader_mut().set_all(true);
        let last = vec![first; converter.target().format.sections.len()];
        let taken = vec![false; trace.schema().format.sections.len()];
        Self { trace, converter, key, last, taken }
    }

    /// Returns the trace at its current position.
    #[must_use]
    pub fn trace(&self) -> &Trace<'a> {
        &self.trace
    }

    /// Returns the converter of the fields.
    #[must_use]
    pub fn converter(&self) -> &Converter {
        &self.converter
    }

    /// Marks the stream section that a metadata record makes a leaf stride through. Rejects an offset that the DTD does
    /// not declare.
    fn metadata(&mut self, at: At, metadata: Metadata) -> Result<(), ConvertError> {
        let format = &self.trace.schema().format;
        let declared = || {
            let section = format.sections.get(at.section)?;
            let records = section.records.iter().filter_map(|&index| format.records.get(usize::from(index)));
            let record = { records }.find(|record| record.tag == metadata.record)?;
            match record.leaves.get(usize::from(metadata.field))?.kind {
                LeafKind::Number { interpretation, .. } => Some(interpretation),
                _ => None,
            }
        };
        match metadata.change() {
            Ok(Change::Interpretation(Interpretation::SectionStride(number, _))) => {
                let taken = format.section_index(number).and_then(|index| self.taken.get_mut(index));
                taken.into_iter().for_each(|taken| *taken = true);
                Ok(())
            }
            Ok(Change::Interpretation(offset @ Interpretation::SectionOffset(_))) if declared() != Some(offset) => {
                let why = "cannot convert an offset that is declared by metadata but not by the DTD";
                Err(ConvertError::Read(at_record(&self.trace, at, ErrorKind::Usage(why))))
            }
            _ => Ok(()),
        }
    }
}

impl<W: ConvertedSink> Source<W, ConvertError> for TraceSource<'_> {
    fn next(&mut self, to: &mut W, keyed: &mut Keyed) -> Result<bool, ConvertError> {
        while let Some(event) = self.trace.reader_mut().next_event().map_err(ConvertError::Read)? {
            match event {
                Event::Metadata(at, metadata) => self.metadata(at, metadata)?,
                Event::Element(at, _) if self.taken.get(at.section) == Some(&true) => continue,
                _ => {}
            }
            match self.converter.apply(&mut self.trace, event, to)? {
                Some(Converted::Record(section, record)) => {
                    self.converter.swap_record(&mut keyed.owned);
                    (keyed.section, keyed.record) = (section, record);
                    let key = (self.key)(record, &mut keyed.owned);
                    let last = self.last.get_mut(section);
                    keyed.key = match (key, last) {
                        (Some(key), Some(last)) => {
                            *last = key;
                            key
                        }
                        (None, Some(last)) => *last,
                        (key, None) => key.unwrap_or(0),
                    };
                    return Ok(true);
                }
                Some(Converted::Element(section, shared)) => {
                    to.element(section, shared, self.converter.owned_record()).map_err(ConvertError::Write)?;
                }
                Some(Converted::Interned(section)) => {
                    to.intern(section, self.converter.owned_record()).map_err(ConvertError::Write)?;
                }
                None => {}
            }
        }
        Ok(false)
    }
}
