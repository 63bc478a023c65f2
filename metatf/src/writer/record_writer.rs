//! The public writer, which passes its sink to the methods of [`RecordCore`].

use super::RecordCore;
use crate::encode::RowWriter;
use crate::format::{FormatRef, Interpretation};
use crate::record::{DataRecord, Known, WriteFields};
use crate::state::{Change, Metadata};
use metatf_container::{ExistingTrace, Result, Sink, WriteOptions};
use std::io::{self, Write};
use std::mem::ManuallyDrop;

/// A writer for the records of a trace. [`finish`](Self::finish) must be called; a writer dropped without it prints a
/// message to standard error.
///
/// # Examples
///
/// The DTD in this example declares the record `reading: (tag, time, vfield)`. The record has index 3, because records
/// 0 to 2 are predefined. The second time does not fit in the four bytes that the DTD specifies, so the writer widens
/// the field:
///
/// ```
/// #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
/// mod readings {}
/// use metatf::{Put, RecordWriter, container::WriteOptions, reader::FormatRef};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut writer = RecordWriter::new(Vec::new(), FormatRef::Static(&readings::FORMAT), &WriteOptions::default())?;
/// for time in [42, 1_000_000_000_000] {
///     writer.record(1, 3, |row| {
///         row.number(1, time)?;
///         row.number(2, 1)?; // The number of bytes that follow.
///         row.bytes(3, b"x")
///     })?;
/// }
/// let file = writer.finish()?;
///
/// let mut times = Vec::new();
/// readings::Trace::from_slice(&file)?.only::<readings::Reading>().for_each(|reading| times.push(reading.time))?;
/// assert_eq!(times, [42, 1_000_000_000_000]);
/// # Ok(())
/// # }
/// ```
pub struct RecordWriter<S: Sink> {
    /// Dropped by [`discard`], which is compiled once instead of for each type of sink.
    core: ManuallyDrop<RecordCore<Slot<S>>>,
}

/// A place for a sink, from which the sink is taken when the trace is finished.
struct Slot<S>(Option<S>);

impl<S> Slot<S> {
    fn get(&mut self) -> io::Result<&mut S> {
        self.0.as_mut().ok_or_else(|| io::Error::other("the writer is already finished"))
    }
}

impl<S: Write> Write for Slot<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.get()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.get()?.flush()
    }
}

impl<S: Sink> Sink for Slot<S> {
    fn mark(&mut self) -> Option<u64> {
        self.0.as_mut()?.mark()
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.get()?.overwrite(at, bytes)
    }

    fn memory(&mut self) -> Option<&mut Vec<u8>> {
        self.0.as_mut()?.memory()
    }

    fn is_volatile(&self) -> bool {
        self.0.as_ref().is_some_and(Sink::is_volatile)
    }

    fn existing(&mut self) -> Option<ExistingTrace> {
        self.0.as_mut()?.existing()
    }
}

impl<S: Sink> RecordWriter<S> {
    /// Starts a trace, or continues the trace in an [`AppendFile`](metatf_container::AppendFile).
    ///
    /// # Errors
    /// Returns an error from the sink, or one if the trace to be continued has a DTD with another meaning.
    pub fn new(sink: S, format: FormatRef, options: &WriteOptions) -> Result<Self> {
        Self::for_source(sink, format, Some(options), "")
    }

    /// Starts a trace like [`new`](Self::new). If the options do not name a DTD, the header names `source`.
    pub(crate) fn for_source(sink: S, format: FormatRef, options: Option<&WriteOptions>, source: &str) -> Result<Self> {
        let core = RecordCore::new(Slot(Some(sink)), format, options, source)?;
        let mut writer = Self { core: ManuallyDrop::new(core) };
        writer.core().resume();
        Ok(writer)
    }

    #[inline]
    pub(crate) fn core(&mut self) -> &mut RecordCore<dyn Sink + '_> {
        &mut *self.core
    }

    #[inline]
    pub(crate) fn core_ref(&self) -> &RecordCore<dyn Sink + '_> {
        &*self.core
    }

    /// Sets whether the writer is strict. In a strict writer, a value that does not fit in its leaf's encoding is an
    /// error. Otherwise, it causes a metadata record that changes the encoding. A strict writer adds such a record only at
    /// the start of a group, to let a `delta` or `stride` leaf follow its last value in the previous group.
    pub fn set_strict(&mut self, strict: bool) {
        self.core.strict = strict;
    }

    /// Preserves the order of records across sections by starting a new chunk at every change of section.
    pub fn set_keep_order(&mut self, keep_order: bool) {
        self.core.keep_order = keep_order;
    }

    /// Returns the format being written.
    #[must_use]
    pub fn format(&self) -> &FormatRef {
        &self.core.format
    }

    /// Returns the number of data records written so far.
    #[must_use]
    pub fn records_written(&self) -> u64 {
        self.core_ref().records_written()
    }

    /// Returns the number of the current group. A version 0 trace is a single group.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.core.group
    }

    /// Returns the current interpretation of a leaf, given the indices of its section and record.
    #[must_use]
    pub fn interpretation(&self, section: usize, record: u16, leaf: u8) -> Option<Interpretation> {
        self.core_ref().interpretation(section, record, leaf)
    }

    /// Returns the current value of a leaf that stores nothing and depends on no other value, and is therefore the same
    /// in every record. Returns `None` for other leaves.
    #[cfg(feature = "dynamic")]
    #[doc(hidden)]
    #[must_use]
    pub fn unstored_value(&self, section: usize, record: u16, leaf: u8) -> Option<u64> {
        self.core_ref().unstored_value(section, record, leaf)
    }

    /// Returns the offset that the next new element of a table will have.
    #[must_use]
    pub fn next_offset(&self, section: usize) -> u64 {
        self.core_ref().next_offset(section)
    }

    /// Writes the record with these section and record indices. `encode` fills the leaves after the tag in order. It is
    /// called again if an encoding must change first.
    ///
    /// # Errors
    /// Returns an error from `encode` or the sink, or one for a value that cannot fit.
    #[inline]
    pub fn record(
        &mut self,
        section: usize,
        record: u16,
        mut encode: impl FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        self.core().record(section, record, &mut encode)
    }

    /// Writes a `K`, whose section has `PLANS` plans.
    ///
    /// # Errors
    /// As for [`record`](Self::record).
    #[doc(hidden)]
    #[inline]
    pub fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, fields: &T) -> Result<()> {
        self.core().put::<K, T, PLANS>(fields)
    }

    /// Writes records in sequence.
    ///
    /// # Errors
    /// As for [`record`](Self::record). The records before the failing one are written.
    #[inline]
    pub fn put_all<R: DataRecord>(&mut self, records: impl IntoIterator<Item = R>) -> Result<()> {
        self.core().put_all(records)
    }

    /// Appends an element to a stream section and returns its offset in the section's content. If `shared` is set, the
    /// section is a table that grows over the whole trace. Otherwise, the element belongs to the current group.
    ///
    /// # Errors
    /// Returns an error from `encode`, or one for a value that exceeds the DTD's widths. In a section of single
    /// numbers, the width adapts instead.
    pub fn element(
        &mut self,
        section: usize,
        shared: bool,
        encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<u64> {
        self.core().element(section, shared, encode)
    }

    /// Writes a comment record.
    ///
    /// # Errors
    /// As for [`record`](Self::record).
    pub fn comment(&mut self, section: usize, text: &[u8]) -> Result<()> {
        self.core().comment(section, text)
    }

    /// Writes a metadata record as supplied.
    ///
    /// # Errors
    /// Returns an error if spec 4.1 does not allow the change.
    pub fn metadata(&mut self, section: usize, metadata: &Metadata) -> Result<()> {
        self.core().metadata(section, metadata)
    }

    /// Changes the encoding of a leaf for all following records. The change is repeated in every later group.
    ///
    /// # Errors
    /// Returns an error if spec 4.1 does not allow the change.
    pub fn set(&mut self, section: usize, record: u16, leaf: u8, change: Change) -> Result<()> {
        self.core().set_lasting(section, record, leaf, false, change)
    }

    /// Changes, with a single metadata record, the encoding of every leaf of the section that has the same field name
    /// as this leaf. In all other respects, works like [`set`](Self::set).
    ///
    /// # Errors
    /// Returns an error if spec 4.1 does not allow the change for one of the leaves.
    pub fn set_all(&mut self, section: usize, record: u16, leaf: u8, change: Change) -> Result<()> {
        self.core().set_lasting(section, record, leaf, true, change)
    }

    /// Adds user metadata, a JSON object. Version 0 cannot store user metadata.
    ///
    /// # Errors
    /// Returns an error from the sink, or one if the string is not a JSON object or the file is a version 0 file.
    pub fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.core().user_metadata(json)
    }

    /// Passes all records written so far to the sink and flushes the sink. The following records start another chunk
    /// and, in formats with stream sections, another group. Does nothing for a version 0 file, whose single group
    /// reaches the sink when the trace is finished.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub fn flush(&mut self) -> Result<()> {
        self.core().flush_held(true)
    }

    /// Ends the current group and starts another (version 1), so that the following records can be read without the
    /// preceding ones. Does nothing in version 0, which always has a single group.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub fn start_group(&mut self) -> Result<()> {
        self.core().start_group()
    }

    /// Resets the state of a section inside the group (version 1). Does nothing in version 0, which has no resets.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub fn reset(&mut self, section: usize) -> Result<()> {
        self.core().reset(section)
    }

    /// Writes the remaining data, the index and the footer, and returns the sink.
    ///
    /// # Errors
    /// Returns an error from the sink, or one if supplied elements disagree with the values that records took from
    /// them.
    pub fn finish(mut self) -> Result<S> {
        self.core().finish()?;
        Ok(self.core.sink.0.take().ok_or_else(|| io::Error::other("the writer is already finished"))?)
    }

    /// Drops the writer without printing a message. The trace in the sink remains incomplete.
    pub fn abandon(mut self) {
        self.core().give_up();
    }
}

impl<S: Sink> Drop for RecordWriter<S> {
    fn drop(&mut self) {
        self.core().warn_if_unfinished();
        // SAFETY: a destructor runs once, and nothing uses the core after it.
        unsafe { discard(self.core()) };
    }
}

/// Drops a core.
///
/// # Safety
/// The core must not be used or dropped again.
#[inline(never)]
unsafe fn discard(core: &mut RecordCore<dyn Sink + '_>) {
    // SAFETY: the caller does not use the core again.
    unsafe { std::ptr::drop_in_place(core) };
}

#[cfg(test)]
mod tests {
    use metatf_container::{Sink, WriteOptions};
    use std::io::{self, Write};
    use std::sync::Arc;

    #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
    mod readings {}

    use readings::{Reading, Writer};

    /// A sink that shares a count of references with the test.
    struct Counted(Vec<u8>, #[allow(dead_code, reason = "only counted")] Arc<()>);

    impl Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Counted {}

    #[test]
    fn a_sink_is_dropped_once() {
        let count = Arc::new(());
        let start = |options: &WriteOptions| Writer::with_options(Counted(Vec::new(), Arc::clone(&count)), options);
        let put = |writer: &mut Writer<Counted>| writer.reading(&Reading { time: 1, vfield: b"x" }).unwrap();
        for records in 0..3 {
            let [finished, abandoned, dropped] = [(); 3].map(|()| {
                let mut writer = start(&WriteOptions::default()).unwrap();
                (0..records).for_each(|_| put(&mut writer));
                writer
            });
            assert_eq!(Arc::strong_count(&count), 4);
            drop(dropped);
            assert_eq!(Arc::strong_count(&count), 3);
            abandoned.abandon();
            assert_eq!(Arc::strong_count(&count), 2);
            let sink = finished.finish().unwrap();
            assert_eq!((Arc::strong_count(&count), sink.0.is_empty()), (2, false));
            drop(sink);
            assert_eq!(Arc::strong_count(&count), 1);
        }
        // A writer that cannot start drops its sink, and so does a panic.
        assert!(start(&WriteOptions { version: 7, ..WriteOptions::default() }).is_err());
        assert_eq!(Arc::strong_count(&count), 1);
        let panics = std::panic::catch_unwind(|| {
            let mut writer = start(&WriteOptions::default()).unwrap();
            put(&mut writer);
            std::panic::resume_unwind(Box::new(()))
        });
        assert!(panics.is_err());
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
