//! Reading only the groups that may contain records of certain times (spec 5.2).

use super::{Event, RecordReader};
use crate::record::Visit;
use metatf_container::{ChunkInfo, GroupTimes, Result, TimeLeaf, TimeRange};

impl RecordReader<'_> {
    /// Returns the times of the trace's groups, or `None` if the trace does not contain them, is not on disk or in memory,
    /// or is read with another DTD than the embedded one.
    ///
    /// # Errors
    /// Returns an error if the chunk with the times is invalid.
    pub fn group_times(&mut self) -> Result<Option<GroupTimes>> {
        let is_own = self.container.dtd_text() == Some(self.format.dtd.as_bytes());
        if !is_own || self.salvage || self.container.chunks().is_err() {
            return Ok(None);
        }
        self.container.group_times()
    }

    /// Returns all chunks of a version 1 file, on disk or in memory; see [`metatf_container::Reader::chunks`].
    ///
    /// # Errors
    /// As for [`metatf_container::Reader::chunks`].
    pub fn chunks(&mut self) -> Result<&[ChunkInfo]> {
        self.container.chunks()
    }

    /// Skips the groups in which no record has a time in this range. Reading must not have begun. The trace states the
    /// times of its groups, and a group with unknown times is not skipped. Skipped groups are neither read nor checked,
    /// and their records count as [read](Self::records_read). Returns the number of skipped groups.
    ///
    /// # Errors
    /// As for [`group_times`](Self::group_times).
    ///
    /// # Examples
    ///
    #[cfg_attr(feature = "dynamic", doc = "```")]
    #[cfg_attr(not(feature = "dynamic"), doc = "```ignore")]
    /// use metatf::container::{TimeRange, WriteOptions};
    /// use metatf::dynamic::{Item, Line, OwnedRecord, Schema, Trace, Writer};
    ///
    /// let dtd = br#"section s 1 { tick: (tag, at) { tag.value = 4; at.width = 2; at.interpretation = none; at.role = "time"; } }"#;
    /// let mut writer = Writer::new(Vec::new(), &Schema::parse("ticks.dtd", dtd)?, &WriteOptions::default())?;
    /// let mut record = OwnedRecord::default();
    /// for time in [10, 20, 30] {
    ///     writer.write(&Line::Group, &record)?;
    ///     record.clear();
    ///     record.push_number(time);
    ///     writer.record(1, 3, &record)?;
    /// }
    /// let file = writer.finish()?;
    ///
    /// let mut trace = Trace::from_slice(&file)?;
    /// assert_eq!(trace.reader_mut().only_times(TimeRange { lowest: 15, highest: 25 })?, 2);
    /// assert_eq!(trace.next_entry()?.and_then(|entry| entry.record.get(0)), Some(Item::Number(20)));
    /// assert!(trace.next_entry()?.is_none());
    /// assert_eq!(trace.reader().records_read(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn only_times(&mut self, wanted: TimeRange) -> Result<usize> {
        let Some(times) = self.group_times()? else { return Ok(0) };
        let chunks = self.container.chunks()?.to_vec();
        let mut groups = times.groups.iter();
        let (mut skips, mut count) = (false, 0);
        let skip = chunks.iter().map(|chunk| {
            if chunk.is_group_start() {
                skips = groups.next().is_some_and(|times| !times.overlaps(wanted));
                count += usize::from(skips);
            }
            let records = if self.holds_records(chunk) { chunk.nrecords } else { 0 };
            (skips && chunk.is_data() && !chunk.is_shared()).then_some(records)
        });
        let skip = skip.collect();
        if count > 0 {
            self.container.skip_chunks(skip);
            self.skips = true;
        }
        Ok(count)
    }

    /// Reads the rest of the trace and returns the times in these leaves.
    ///
    /// # Errors
    /// Returns the first error in the trace.
    #[doc(hidden)]
    pub fn find_times(&mut self, leaves: &[TimeLeaf]) -> Result<TimeRange> {
        let mut times = TimeRange::EMPTY;
        while let Some(event) = self.next_event()? {
            let Event::Record(at) = event else { continue };
            let number = self.format.sections.get(at.section).map_or(0, |section| section.number);
            let tag = self.format.tag(at.record);
            let is_here = |leaf: &&TimeLeaf| (leaf.section, leaf.tag) == (number, tag);
            for TimeLeaf { leaf, .. } in leaves.iter().filter(is_here).take(1) {
                let mut found = Times { leaf: *leaf, times };
                self.decode(|row| Ok(row.walk(&mut found)?))?;
                times = found.times;
            }
        }
        Ok(times)
    }
}

/// Collects the values of a leaf.
struct Times {
    leaf: u8,
    times: TimeRange,
}

impl Visit<'_> for Times {
    fn number(&mut self, leaf: u8, value: u64) {
        if leaf == self.leaf {
            self.times.add(value);
        }
    }

    fn bytes(&mut self, _: u8, _: &[u8]) {}
}
