//! Options for opening a trace.

use super::resolve::{Choice, Opened, Own, choose};
use super::{OpenError, Trace};
use crate::reader::{FormatRef, RecordReader, recognized};
use crate::record::Protocol;
use metatf_container::{ByteRanges, Class, Order, Reader};
use std::io::Read;
use std::path::Path;

/// Options for opening a trace: the DTD used to read it (spec 5.3), and whether to continue after corruption (spec
/// 5.2).
///
/// # Examples
///
/// Salvaging skips a corrupt record and reports the loss. The DTD declares the record `reading: (tag, time, vfield)`:
///
/// ```
/// #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
/// mod readings {}
/// use metatf::typed::TraceOptions;
/// use readings::{Reading, Trace, Writer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut writer = Writer::new(Vec::new())?;
/// writer.reading(&Reading { time: 1, vfield: b"lost" })?;
/// writer.start_group()?;
/// writer.reading(&Reading { time: 2, vfield: b"kept" })?;
/// let mut file = writer.finish()?;
/// let at = file.windows(4).position(|bytes| bytes == b"lost").ok_or("no such bytes")?;
/// file[at] ^= 1;
///
/// let mut trace = Trace::from_opened(TraceOptions::new().salvage(true).from_slice(&file)?);
/// let kept: Vec<Reading> = trace.only::<Reading>().records().collect::<metatf::Result<_>>()?;
/// assert_eq!(kept, [Reading { time: 2, vfield: b"kept".to_vec() }]);
/// assert_eq!(trace.loss_report().and_then(|report| report.records_lost()), Some(1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    salvage: bool,
    by_name: bool,
    forced: Option<String>,
    given: Option<String>,
}

impl TraceOptions {
    /// Returns the default options: use the embedded DTD and stop at the first error.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether reading continues after corruption. [`Trace::loss_report`] describes the losses.
    #[must_use]
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    /// Also reads a trace with a different major or median version of the DTD (`tag.version`), matching fields by name
    /// as for a different minor version. Without this option, such a trace is rejected because its fields may have a
    /// different meaning.
    #[must_use]
    pub fn by_name(mut self, by_name: bool) -> Self {
        self.by_name = by_name;
        self
    }

    /// Sets the text of a DTD that overrides the trace's own DTD.
    #[must_use]
    pub fn force_dtd(mut self, text: impl Into<String>) -> Self {
        self.forced = Some(text.into());
        self
    }

    /// Sets the text of a DTD to use if the trace does not embed one.
    #[must_use]
    pub fn dtd(mut self, text: impl Into<String>) -> Self {
        self.given = Some(text.into());
        self
    }

    /// Opens a file or a pipe. A file is mapped; [`Reader::open`] describes the effect of changes to the file while it
    /// is open.
    ///
    /// # Errors
    /// Returns an error if the file is not a trace or its DTD does not match the reader's.
    pub fn open<P: Protocol>(self, path: impl AsRef<Path>) -> Result<Trace<'static, P>, OpenError> {
        self.file(Own::of::<P>(), path.as_ref()).map(Trace::of)
    }

    /// Reads a trace from a file that may change while it is open. The file is not mapped, so truncating it causes an
    /// error instead of a signal.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn read_file<P: Protocol>(self, path: impl AsRef<Path>) -> Result<Trace<'static, P>, OpenError> {
        self.changing_file(Own::of::<P>(), path.as_ref()).map(Trace::of)
    }

    /// Reads a trace in memory.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_slice<P: Protocol>(self, bytes: &[u8]) -> Result<Trace<'_, P>, OpenError> {
        let reader = if self.salvage { Reader::salvage_slice(bytes)? } else { Reader::from_slice(bytes)? };
        self.container(Own::of::<P>(), reader).map(Trace::of)
    }

    /// Reads a trace from a stream.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_read<'t, P: Protocol>(self, read: impl Read + Send + 't) -> Result<Trace<'t, P>, OpenError> {
        let reader = if self.salvage { Reader::salvage_read(read)? } else { Reader::from_read(read)? };
        self.container(Own::of::<P>(), reader).map(Trace::of)
    }

    /// Reads a trace from byte ranges, such as those of an object in an object store. [`Trace::seek`] fetches the index,
    /// and only the tables and the group that it needs.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    ///
    /// # Examples
    ///
    /// Reads the last record of a trace with a hundred groups, and counts the bytes fetched. The DTD declares the record
    /// `reading: (tag, time, vfield)`:
    ///
    /// ```
    /// #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
    /// mod readings {}
    /// use metatf::container::ByteRanges;
    /// use metatf::typed::TraceOptions;
    /// use readings::{Reading, Trace, Writer};
    /// use std::io;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// struct Object {
    ///     bytes: Vec<u8>,
    ///     fetched: AtomicUsize,
    /// }
    ///
    /// impl ByteRanges for &Object {
    ///     fn length(&self) -> io::Result<u64> {
    ///         Ok(self.bytes.len() as u64)
    ///     }
    ///
    ///     // An object store would send a request for this range.
    ///     fn read_at(&self, offset: u64, mut buffer: &mut [u8]) -> io::Result<usize> {
    ///         let rest = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)).unwrap_or_default();
    ///         let read = io::Write::write(&mut buffer, rest)?;
    ///         self.fetched.fetch_add(read, Ordering::Relaxed);
    ///         Ok(read)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut writer = Writer::new(Vec::new())?;
    /// let mut noise = 1_u64;
    /// for time in 0..100 {
    ///     let noise = std::iter::repeat_with(|| {
    ///         noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ///         noise.to_be_bytes()[0]
    ///     });
    ///     let noise: Vec<u8> = noise.take(5000).collect();
    ///     writer.reading(&Reading { time, vfield: &noise[..] })?;
    ///     writer.start_group()?;
    /// }
    /// let object = Object { bytes: writer.finish()?, fetched: AtomicUsize::new(0) };
    ///
    /// let mut trace = Trace::from_opened(TraceOptions::new().from_ranges(&object)?);
    /// trace.seek(99)?;
    /// assert_eq!(trace.only::<Reading>().next_record()?.map(|reading| reading.time), Some(99));
    /// assert!(object.fetched.load(Ordering::Relaxed) < object.bytes.len() / 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_ranges<'t, P: Protocol>(self, ranges: impl ByteRanges + 't) -> Result<Trace<'t, P>, OpenError> {
        self.container(Own::of::<P>(), Reader::from_ranges(ranges)?).map(Trace::of)
    }

    /// Opens a file without a header whose DTD describes, through field roles, how to read it (spec 5.4). The data
    /// around its records is returned as elements of stream sections. For other raw files, whose byte order the caller
    /// must know, use [`read`](Self::read).
    ///
    /// # Errors
    /// Returns an error if reading fails or the file does not begin as the DTD requires.
    pub fn open_raw<P: Protocol>(self, path: impl AsRef<Path>) -> Result<Trace<'static, P>, OpenError> {
        self.raw_file(Own::of::<P>(), path.as_ref()).map(Trace::of)
    }

    /// Opens a raw file in memory, as [`open_raw`](Self::open_raw) does.
    ///
    /// # Errors
    /// Returns an error if the file does not begin as the DTD requires.
    pub fn raw_from_slice<P: Protocol>(self, bytes: &[u8]) -> Result<Trace<'_, P>, OpenError> {
        self.raw(Own::of::<P>(), Reader::raw_from_slice(bytes, Class::Bits64, Order::Little, 0)?).map(Trace::of)
    }

    /// Reads a trace from an already opened container, such as that of a file without a header (spec 5.4).
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn read<P: Protocol>(self, reader: Reader<'_>) -> Result<Trace<'_, P>, OpenError> {
        self.container(Own::of::<P>(), reader).map(Trace::of)
    }
}

/// The functions that do not depend on the generated types, so that they are compiled once.
impl TraceOptions {
    fn file(self, own: Own, path: &Path) -> Result<Opened<'static>, OpenError> {
        let reader = if self.salvage { Reader::salvage(path) } else { Reader::open(path) };
        let reader = reader.map_err(OpenError::from);
        reader.and_then(|reader| self.container(own, reader)).map_err(|error| error.in_file(path))
    }

    fn changing_file(self, own: Own, path: &Path) -> Result<Opened<'static>, OpenError> {
        let reader = Reader::read(path).map_err(OpenError::from);
        reader.and_then(|reader| self.container(own, reader)).map_err(|error| error.in_file(path))
    }

    fn raw_file(self, own: Own, path: &Path) -> Result<Opened<'static>, OpenError> {
        let reader = Reader::open_raw(path, Class::Bits64, Order::Little, 0).map_err(OpenError::from);
        reader.and_then(|reader| self.raw(own, reader)).map_err(|error| error.in_file(path))
    }

    fn raw(self, own: Own, reader: Reader<'_>) -> Result<Opened<'_>, OpenError> {
        self.container(own, recognized(&FormatRef::Static(own.format), reader)?)
    }

    fn container(self, own: Own, reader: Reader<'_>) -> Result<Opened<'_>, OpenError> {
        let (text, trusted) = match (&self.forced, reader.dtd_text(), &self.given) {
            (Some(forced), _, _) => (Some(forced.as_bytes()), true),
            (None, Some(embedded), _) => (Some(embedded), false),
            (None, None, given) => (given.as_ref().map(String::as_bytes), true),
        };
        let Choice { format, map } = choose(own, text, (trusted, self.by_name), &reader.header().dtd_url)?;
        let mut reader = RecordReader::new(format, reader)?;
        reader.set_salvage(self.salvage);
        Ok((reader, map))
    }
}
