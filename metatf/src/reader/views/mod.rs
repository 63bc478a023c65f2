//! Views of records, for readers without record types. Records are read one at a time or in a loop.

mod ahead;
mod rows;
mod single;
mod view;

pub use ahead::RecordView;
pub(super) use ahead::Views;
pub use view::Item;

use super::{Event, Next, Pending, RecordReader};
use metatf_container::{Error, ErrorKind, Result};
use std::ops::ControlFlow;

impl RecordReader<'_> {
    /// Returns the next data record, or `None` at the end and after an error. Comments, metadata and other events are
    /// skipped.
    ///
    /// # Errors
    /// Returns the first error in the trace. After the error, the reader returns nothing more.
    #[inline(always)]
    pub fn next_record(&mut self) -> Result<Option<RecordView<'_>>> {
        let row = match self.views.step() {
            Some(row) => Some(row),
            None => self.go_on()?,
        };
        Ok(row.map(|row| self.view_of(row)))
    }

    /// Returns the next data record if no comment, metadata or other event precedes it.
    #[cfg(feature = "dynamic")]
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[doc(hidden)]
    pub fn plain_record(&mut self) -> Result<Option<RecordView<'_>>> {
        let row = match self.views.step() {
            Some(row) => Some(row),
            None => self.look_ahead(false)?,
        };
        Ok(row.map(|row| self.view_of(row)))
    }

    /// Calls `each` for every remaining data record, which is faster than reading records one by one.
    ///
    /// # Errors
    /// As for [`next_record`](Self::next_record).
    #[inline]
    pub fn for_each(&mut self, mut each: impl FnMut(RecordView<'_>)) -> Result<()> {
        self.try_for_each(|record| {
            each(record);
            Ok(())
        })
    }

    /// Calls `each` for every remaining data record, stopping if `each` returns an error. The records after the one
    /// that caused the error can still be read.
    ///
    /// # Errors
    /// As for [`next_record`](Self::next_record), and any error that `each` returns.
    #[inline]
    pub fn try_for_each<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(RecordView<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            self.run_views(&mut each)?;
            // Handle one event of any kind. After a metadata record, the fast loop may apply again.
            match self.next_event()? {
                Some(Event::Record(_)) => {
                    if let Some(row) = self.decode_announced()? {
                        each(self.view_of(row))?;
                    }
                }
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    /// Calls `each` with the upcoming data records until another event, an error or the end is reached; call
    /// [`next_event`](Self::next_event) to find out which. Metadata records in between are applied. A loop over this
    /// method is as fast as [`for_each`](Self::for_each) and also sees comments. If `each` returns an error, the
    /// records after the one that caused the error can still be read.
    ///
    /// # Errors
    /// As for [`next_record`](Self::next_record), and any error that `each` returns.
    #[inline]
    pub fn try_for_run<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(RecordView<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run_views(&mut each)
    }

    #[inline(always)]
    fn run_views<E: From<Error>>(&mut self, each: &mut impl FnMut(RecordView<'_>) -> Result<(), E>) -> Result<(), E> {
        self.commit();
        let mut views = std::mem::take(&mut self.views);
        let run = self.run(|_, run| views.run(run, each));
        self.views = views;
        match run {
            Some(ControlFlow::Break(error)) => Err(error),
            Some(ControlFlow::Continue(())) => Ok(self.stopped().map_or(Ok(()), Err)?),
            None => Ok(()),
        }
    }

    /// If more records were decoded ahead than returned, moves back to the end of the last returned record, so that
    /// reading can continue in any way.
    #[inline]
    pub(super) fn commit(&mut self) {
        match self.next {
            Next::Unknown | Next::Finished => {}
            Next::Plain => self.next = Next::Unknown,
            Next::Ahead => self.commit_ahead(),
        }
    }

    #[inline(never)]
    fn commit_ahead(&mut self) {
        self.next = Next::Unknown;
        if let Some((mut run, mut end, views)) = self.start_views() {
            views.commit(&mut run);
            end.tell(run.position, run.count, false);
        }
    }

    /// Discards the records decoded ahead.
    pub(super) fn forget_ahead(&mut self) {
        self.next = Next::Unknown;
        self.views.clear();
    }

    /// Returns the number of records decoded ahead that have been returned.
    pub(super) fn given_ahead(&self) -> u64 {
        if self.next == Next::Ahead { self.views.next as u64 } else { 0 }
    }

    /// Returns the end of the last returned record if more records were decoded ahead.
    pub(super) fn position_ahead(&self) -> Option<usize> {
        (self.next == Next::Ahead).then(|| self.views.position())
    }

    /// Decodes more records after all decoded records have been returned, and returns the row of the next data record.
    /// Skips metadata and other events.
    #[inline(never)]
    fn go_on(&mut self) -> Result<Option<u32>> {
        loop {
            if let Some(row) = self.look_ahead(true)? {
                return Ok(Some(row));
            }
            match self.next_event()? {
                Some(Event::Record(_)) => return self.decode_announced(),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// Returns the row of the next data record if it is the next item, or if only metadata precedes it and
    /// `over_metadata` is set.
    #[inline(never)]
    fn look_ahead(&mut self, over_metadata: bool) -> Result<Option<u32>> {
        self.commit();
        if !self.is_idle() {
            return Ok(None);
        }
        let Some((mut run, mut end, views)) = self.start_views() else { return Ok(None) };
        let mut is_filled = views.fill(&mut run);
        while !is_filled && over_metadata && !run.has_stopped() && run.apply_metadata().is_some() {
            while run.apply_metadata().is_some() {}
            is_filled = views.fill(&mut run);
        }
        // No record of this batch has been returned yet, so the position is the start of the batch.
        let position = if is_filled { views.start } else { run.position };
        end.tell(position, run.count, run.has_stopped());
        if is_filled {
            self.next = Next::Ahead;
            return Ok(self.views.step());
        }
        self.stopped().map_or(Ok(None), Err)
    }

    /// Decodes the announced record and returns its row.
    #[inline(never)]
    fn decode_announced(&mut self) -> Result<Option<u32>> {
        let none = Error::at(0, ErrorKind::Usage("no record is waiting to be decoded"));
        let Pending { section, record, .. } = self.pending.ok_or(none)?;
        let mut views = std::mem::take(&mut self.views);
        let decoded = self.decode(|row| Ok(views.read_announced(section, record, row)?));
        self.views = views;
        decoded.map(|()| self.views.step())
    }

    /// Returns the record in a row.
    #[inline(always)]
    fn view_of(&self, row: u32) -> RecordView<'_> {
        let current = self.current.as_ref();
        let data = current.map_or(&[][..], |current| self.container.bytes(&current.content));
        self.views.view(row, data, current.map_or(0, |current| current.base))
    }
}
