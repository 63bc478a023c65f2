//! Prints records one by one, from the first to the last selected record.

use super::select::Select;
use super::{Args, Format, Printer};
use crate::failure::Result;
use crate::output::Output;
use metatf::dynamic::Trace;
use metatf::reader::Event;
use metatf_cli::Progress;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state of the loop over the trace.
pub(super) struct Work<'a> {
    args: &'a Args,
    select: Select,
    printer: Box<dyn Printer>,
    output: Output,
    /// With `--follow`, whether the reader is at the end of the file.
    at_end: Option<Arc<AtomicBool>>,
    /// Whether elements count as data records, because there are no data records.
    elements: bool,
    /// The number of selected data records, including skipped records.
    seen: u64,
    /// Whether anything was printed.
    printed: bool,
    /// With `--tail`, the lines that may be printed at the end, and whether each line is a data record.
    tail: VecDeque<(bool, Vec<u8>)>,
    /// The number of data records in `tail`.
    kept: usize,
    /// A reused line buffer.
    line: Vec<u8>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        args: &'a Args,
        select: Select,
        printer: Box<dyn Printer>,
        output: Output,
        at_end: Option<Arc<AtomicBool>>,
        elements: bool,
    ) -> Self {
        Self {
            args,
            select,
            printer,
            output,
            at_end,
            elements,
            seen: 0,
            printed: false,
            tail: VecDeque::new(),
            kept: 0,
            line: Vec::new(),
        }
    }

    /// Prints the selected records. Returns a trace error, if any, so that earlier output is printed first.
    pub(super) fn run(&mut self, trace: &mut Trace<'static>) -> Result<Option<metatf::Error>> {
        let head = self.args.head.unwrap_or(u64::MAX).saturating_add(self.args.skip);
        let mut progress = Progress::new("records").printing();
        if let Err(error) = self.seek(trace) {
            return Ok(Some(error));
        }
        while self.seen < head {
            match self.next(trace) {
                Ok(false) => break,
                Ok(true) if self.at_end.as_ref().is_some_and(|at_end| at_end.load(Ordering::Relaxed)) => {
                    self.output.flush()?;
                }
                Ok(true) => self.output.spill()?,
                Err(error) => return Ok(Some(error)),
            }
            progress.step();
        }
        Ok(None)
    }

    /// Skips records without reading them, if every data record is selected and the output does not depend on skipped
    /// records.
    fn seek(&mut self, trace: &mut Trace<'static>) -> metatf::Result<()> {
        let Args { skip, tail, all, salvage, .. } = *self.args;
        // Annotations depend on earlier metadata records.
        let past = all || self.elements || self.printer.carries();
        if past || salvage || !self.select.is_everything() || self.args.format == Format::Hex {
            return Ok(());
        }
        if skip > 0 {
            trace.reader_mut().seek(skip)?;
            self.seen = trace.reader().records_read().min(skip);
        } else if let Some(tail) = tail.filter(|_| self.args.head.is_none()) {
            trace.reader_mut().seek_last(tail as u64)?;
        }
        Ok(())
    }

    /// Handles one event of the trace. Returns false at the end.
    fn next(&mut self, trace: &mut Trace<'static>) -> metatf::Result<bool> {
        let Some(event) = trace.reader_mut().next_event()? else { return Ok(false) };
        self.printer.note(trace, event);
        let wanted = self.select.wants(event);
        if !wanted && !self.printer.needs(event) {
            return Ok(true);
        }
        self.printer.decode(trace, event)?;
        self.printer.take(trace, event);
        if !wanted || !self.select.holds(event, self.printer.owned(trace)) {
            return Ok(true);
        }
        let data = matches!(event, Event::Record(_)) || self.elements && matches!(event, Event::Element(..));
        self.seen += u64::from(data);
        if self.args.skip > 0 && self.seen <= self.args.skip {
            return Ok(true);
        }
        self.printed = true;
        match self.args.tail {
            None => self.printer.print(trace, event, self.output.buffer())?,
            Some(most) => {
                self.line.clear();
                self.printer.print(trace, event, &mut self.line)?;
                self.keep(most, data);
            }
        }
        Ok(true)
    }

    /// Buffers the current line for printing at the end. Retains only the last `most` data records and the lines
    /// between them.
    fn keep(&mut self, most: usize, data: bool) {
        self.tail.push_back((data, std::mem::take(&mut self.line)));
        self.kept += usize::from(data);
        while self.kept > most || self.tail.front().is_some_and(|first| !first.0) {
            let Some((data, line)) = self.tail.pop_front() else { return };
            self.kept -= usize::from(data);
            self.line = line;
        }
    }

    /// Prints the buffered lines. Returns whether anything has been printed, now or earlier.
    pub(super) fn finish(&mut self) -> Result<bool> {
        for (_, line) in std::mem::take(&mut self.tail) {
            self.output.buffer().extend_from_slice(&line);
            self.output.spill()?;
        }
        self.output.flush()?;
        Ok(self.printed)
    }
}
