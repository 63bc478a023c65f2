//! Byte arrays that contain the records of a section (spec 3.7), as generated types.

use super::map::{Map, RecordMap};
use super::mapped::MappedRow;
use super::trace::Trace;
use crate::decode::{ArrayReader, ContentRow};
use crate::encode::ArrayWriter;
use crate::format::FormatRef;
use crate::record::{DataRecord, Known, Protocol, Puts, WriteFields};
use metatf_container::{Error, ErrorKind, Order, Result};
use std::marker::PhantomData;
use std::sync::Arc;

/// A reader for byte arrays that contain the records of one section.
pub struct Nested<P> {
    /// The array reader, or `None` if the trace does not have the section.
    reader: Option<ArrayReader>,
    /// The section in the trace's format.
    section: usize,
    /// The mapping, if the trace's format differs from the reader's.
    map: Option<Arc<Map>>,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> Trace<'_, P> {
    /// Creates a reader for byte arrays with the property `section = number;`. The reader does not borrow from the
    /// trace.
    ///
    /// # Errors
    /// Returns an error if the format has no section with this number.
    pub fn nested(&self, number: u8) -> Result<Nested<P>> {
        let ours = find::<P>(number)?;
        let section = self.map.as_ref().map_or(Some(ours), |map| map.section(ours));
        let reader = |section| ArrayReader::new(self.reader.format().clone(), section, self.reader.order());
        let (reader, section) = (section.map(reader), section.unwrap_or(0));
        Ok(Nested { reader, section, map: self.map.clone(), protocol: PhantomData })
    }
}

fn find<P: Protocol>(number: u8) -> Result<usize> {
    P::FORMAT.section_index(number).ok_or(Error::at(0, ErrorKind::UnknownSection(number.into())))
}

impl<P: Protocol> Nested<P> {
    /// Calls `each` with every record of an array, including those before a truncated one.
    ///
    /// # Errors
    /// Returns an error if the bytes do not consist of complete records. The offsets in the error are relative to the
    /// array.
    pub fn for_each<'b>(&mut self, bytes: &'b [u8], mut each: impl FnMut(P::Record<&'b [u8]>)) -> Result<()> {
        let section = self.section;
        self.read(bytes, |map, record, row| {
            each(match map {
                Some(map) => P::record(map.section, map.record, &mut MappedRow::read(row, map)?)?,
                None => P::record(section, record, row)?,
            });
            Ok(())
        })
    }

    /// Calls `each` with every element of an array that belongs to a stream section.
    ///
    /// # Errors
    /// As for [`for_each`](Self::for_each).
    pub fn for_each_element<'b>(&mut self, bytes: &'b [u8], mut each: impl FnMut(P::Element<&'b [u8]>)) -> Result<()> {
        let section = self.section;
        self.read(bytes, |map, _, row| {
            each(match map {
                Some(map) => P::element(map.section, &mut MappedRow::read(row, map)?)?,
                None => P::element(section, row)?,
            });
            Ok(())
        })
    }

    fn read<'b>(
        &mut self,
        bytes: &'b [u8],
        mut each: impl FnMut(Option<&RecordMap>, u16, &mut ContentRow<'_, 'b>) -> Result<()>,
    ) -> Result<()> {
        let Self { reader: Some(reader), section, map, .. } = self else { return Ok(()) };
        reader.read(bytes, &mut |record, row| match map.as_deref().map(|map| map.record(*section, record)) {
            None => each(None, record, row),
            Some(Some(map)) => each(Some(map), record, row),
            Some(None) => Ok(row.walk(&mut ())?),
        })
    }
}

/// A writer that encodes records of one section as a byte array.
///
/// # Examples
///
/// The DTD declares section 1, `readings`, with the record `reading: (tag, time, vfield)`. The time is stored as a
/// difference from the previous time:
///
/// ```
/// #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
/// mod readings {}
/// use metatf::container::Order;
/// use metatf::typed::NestedWriter;
/// use readings::{Protocol, Reading, Readings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut array = NestedWriter::<Protocol>::new(1, Order::Little)?;
/// array.write(&Readings::Reading(Reading { time: 40, vfield: b"" }))?;
/// array.write(&Readings::Reading(Reading { time: 42, vfield: b"" }))?;
/// // Each record consists of the tag, four bytes of time, and the length of `vfield`.
/// assert_eq!(array.finish(), [4, 40, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0]);
/// # Ok(())
/// # }
/// ```
pub struct NestedWriter<P> {
    array: ArrayWriter,
    section: usize,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> NestedWriter<P> {
    /// Creates a writer for the section with this number, in a trace with this byte order.
    ///
    /// # Errors
    /// Returns an error if the format has no such section.
    pub fn new(number: u8, order: Order) -> Result<Self> {
        let section = find::<P>(number)?;
        let array = ArrayWriter::new(FormatRef::Static(P::FORMAT), section, order);
        Ok(Self { array, section, protocol: PhantomData })
    }

    /// Appends a record.
    ///
    /// # Errors
    /// Returns an error if the record belongs to another section or a value does not fit in its field.
    pub fn write(&mut self, record: &impl DataRecord) -> Result<()> {
        record.put(self)
    }

    /// Appends an element of a stream section.
    ///
    /// # Errors
    /// Returns an error if the struct is not the section's element or a value does not fit in its field.
    pub fn write_element(&mut self, element: &impl WriteFields) -> Result<()> {
        let section = P::FORMAT.sections.get(self.section).filter(|section| section.stream);
        let record = section.and_then(|section| section.records.first()).copied();
        let record = record.ok_or(Error::at(0, ErrorKind::Usage("the section is not a stream section")))?;
        self.array.write(record, |row| element.write_fields(row, 0))
    }

    /// Returns the encoded bytes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.array.finish()
    }
}

impl<P: Protocol> Puts for NestedWriter<P> {
    type Done = Result<()>;

    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, fields: &T) -> Result<()> {
        if K::SECTION != self.section {
            return Err(Error::at(0, ErrorKind::Usage("the record belongs to another section")));
        }
        self.array.write(K::RECORD, |row| fields.write_fields(row, 0))
    }
}
