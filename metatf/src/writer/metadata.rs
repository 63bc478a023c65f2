//! Writes metadata records that the caller supplies, that change a leaf, or that repeat changes after a reset.

use super::RecordCore;
use crate::format::{Interpretation, METADATA};
use crate::formula::bytes_for;
use crate::state::Change;
use crate::state::Metadata;
use metatf_container::{Error, ErrorKind, MetadataRule, Result, Sink};

impl RecordCore<dyn Sink + '_> {
    pub(super) fn metadata(&mut self, section: usize, metadata: &Metadata) -> Result<()> {
        self.stop_grouping();
        self.close_full(section)?;
        self.put_metadata(section, metadata)
    }

    /// Changes the encoding of a leaf or, if `all` is set, of all leaves with the same field name. The change is repeated
    /// in every later group.
    pub(super) fn set_lasting(
        &mut self,
        section: usize,
        record: u16,
        leaf: u8,
        all: bool,
        change: Change,
    ) -> Result<()> {
        self.position(section, record)?;
        self.close_full(section)?;
        self.put_sticky(section)?;
        self.put_change(section, record, leaf, all, change)?;
        if let Some(writer) = self.sections.get_mut(section) {
            writer.sticky.push((record, leaf, all, change));
        }
        Ok(())
    }

    pub(super) fn put_change(
        &mut self,
        section: usize,
        record: u16,
        leaf: u8,
        all: bool,
        change: Change,
    ) -> Result<()> {
        let tag = self.format.records.get(usize::from(record)).map_or(0, |r| r.tag);
        let metadata = Metadata::new(tag, leaf, change);
        self.put_metadata(section, &if all { metadata.for_all() } else { metadata })
    }

    fn put_metadata(&mut self, section: usize, metadata: &Metadata) -> Result<()> {
        if self.raw {
            if self.take_header(section, metadata) {
                return Ok(());
            }
            return Err(Error::at(
                0,
                ErrorKind::Usage(
                    "a raw stream cannot contain metadata records, so its values must fit in the DTD's widths",
                ),
            ));
        }
        let at = |kind| Error::at(0, kind);
        let change = metadata.change().map_err(at)?;
        let int_size = self.int_size;
        let Some(writer) = self.sections.get_mut(section) else { return Ok(()) };
        let unknown = ErrorKind::Metadata(MetadataRule::UnknownTag);
        let position = writer.state.encoding.position(metadata.record).ok_or(at(unknown))?;
        let width = match metadata.property >> 4 {
            0 => int_size,
            n @ 1..=8 => usize::from(n),
            _ => return Err(at(ErrorKind::Metadata(MetadataRule::ValueWidth))),
        };
        for (i, &value) in metadata.values.iter().take(usize::from(metadata.count)).enumerate() {
            if usize::from(bytes_for(value, i == 1)) > width {
                return Err(at(ErrorKind::Metadata(MetadataRule::ValueOverflow)));
            }
        }
        writer.divide(&self.format, self.order);
        writer.state.apply(&self.format, position, metadata.field, metadata.all(), change).map_err(at)?;
        let tag_width = usize::from(self.format.tag_width);
        let mut bytes = Vec::with_capacity(26);
        self.order.write(self.format.tag(METADATA).into(), tag_width, &mut bytes);
        self.order.write(metadata.record.into(), tag_width, &mut bytes);
        bytes.extend_from_slice(&[metadata.field, metadata.property]);
        for &value in metadata.values.iter().take(usize::from(metadata.count)) {
            self.order.write(value, width, &mut bytes);
        }
        writer.out.append(&bytes);
        writer.note_end();
        Ok(())
    }

    /// Sets the value that a leaf takes from the header of a file without a metadata record, if this is all that the
    /// metadata does. Returns whether it is.
    fn take_header(&mut self, section: usize, metadata: &Metadata) -> bool {
        let Ok(Change::Interpretation(Interpretation::Default(value))) = metadata.change() else { return false };
        let format = self.format.clone();
        let Some(writer) = self.sections.get_mut(section).filter(|_| !metadata.all()) else { return false };
        let Some(position) = writer.state.encoding.position(metadata.record) else { return false };
        writer.state.take_header(&format, position, metadata.field, value)
    }

    /// Writes the changes made with [`set`](Self::set) again after a reset.
    pub(super) fn put_sticky(&mut self, section: usize) -> Result<()> {
        let Some(writer) = self.sections.get_mut(section).filter(|s| s.fresh) else { return Ok(()) };
        writer.fresh = false;
        let sticky = writer.sticky.clone();
        for (record, leaf, all, change) in sticky {
            self.put_change(section, record, leaf, all, change)?;
        }
        Ok(())
    }
}

impl Metadata {
    /// Returns the metadata record for all leaves with the field's name (bit 3 of the property).
    #[must_use]
    pub fn for_all(self) -> Self {
        Self { property: self.property | 8, ..self }
    }

    /// Returns the metadata record. If it sets an interpretation, its values have at least this many bytes.
    #[cfg(feature = "dynamic")]
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn with_arguments(self, bytes: u8) -> Self {
        let sets_width = self.property & 7 == 0;
        let width = if sets_width || self.count == 0 { self.property >> 4 } else { bytes.clamp(self.property >> 4, 8) };
        Self { property: width << 4 | self.property & 15, ..self }
    }

    /// Creates the metadata record for a change, with values as short as possible.
    #[must_use]
    #[inline]
    pub fn new(record: u32, field: u8, change: Change) -> Self {
        let (code, values, count) = match change {
            Change::Width(width) => (0, [width.into(), 0], 1),
            Change::Interpretation(interpretation) => match interpretation {
                Interpretation::None | Interpretation::BaseOffsetOf(..) | Interpretation::Predicted(_) => {
                    (1, [0, 0], 0)
                }
                Interpretation::BaseOffset(base) => (2, [base, 0], 1),
                Interpretation::Delta(initial) => (3, [initial, 0], 1),
                Interpretation::Default(value) => (4, [value, 0], 1),
                Interpretation::SectionOffset(n) => (5, [n.into(), 0], 1),
                Interpretation::Stride(initial, stride) => (6, [initial, stride], 2),
                Interpretation::SectionStride(n, stride) => (7, [n.into(), stride], 2),
            },
        };
        let [first, second] = values;
        let width = bytes_for(first, false).max(if count == 2 { bytes_for(second, true) } else { 1 });
        let nibble = if count == 0 { 0 } else { width << 4 };
        Self { record, field, property: nibble | code, values, count }
    }
}
