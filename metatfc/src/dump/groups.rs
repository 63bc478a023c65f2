//! Prints groups in several threads, and writes the results in group order.

use super::text::{Gap, Widths};
use super::{Args, Printer, Select, printer};
use crate::failure::{Failure, Result};
use crate::output::Output;
use metatf::dynamic::Trace;
use metatf::parallel::Out;
use metatf::reader::Event;
use metatf_cli::Progress;

/// The size of a block of lines in bytes.
const BLOCK: usize = 1 << 18;

/// Maximum number of bytes that may wait for earlier groups.
const WAITING: usize = 64 << 20;

/// Lines, the number of events printed in them, and the number of data records among these events.
#[derive(Default)]
struct Block {
    text: Vec<u8>,
    gaps: Vec<Gap>,
    events: u64,
    records: u64,
}

/// The reason why printing ends early.
enum Stop {
    Trace(metatf::Error),
    Output(Failure),
}

impl From<metatf::Error> for Stop {
    fn from(error: metatf::Error) -> Self {
        Self::Trace(error)
    }
}

/// Returns whether to print groups in parallel. This requires that the output does not depend on the number of earlier
/// records, and that the groups are large enough for parallel printing to be faster.
pub(super) fn can(args: &Args, trace: &Trace<'_>) -> bool {
    let counts = args.head.is_some() || args.tail.is_some() || args.skip > 0;
    let several = args.threads.number() > 1 && !counts && !args.salvage;
    several && trace.reader().container().split().is_some_and(|split| !split.has_small_groups())
}

/// Prints the selected records. Returns the number of data records read and a trace error, if any, after printing the
/// records before the error.
pub(super) fn run(
    args: &Args,
    select: &Select,
    trace: &mut Trace<'_>,
    output: &mut Output,
) -> Result<(Option<metatf::Error>, u64)> {
    let mut records = 0;
    let mut widths = Widths::new(trace.schema());
    let mut progress = Progress::new("records").printing();
    let threads = args.threads.number();
    // While the first group is written, the results of all other groups being printed must wait in memory.
    let groups = trace.par_groups().threads(threads).ahead(WAITING / BLOCK / threads.saturating_sub(1).max(1));
    let printed = groups.streamed(
        |group, out| print(args, select, group, out),
        |block: Block| {
            widths.put(&block.text, &block.gaps, output.buffer());
            progress.add(block.events);
            records += block.records;
            output.spill().map_err(Stop::Output)
        },
    );
    drop(progress);
    match printed {
        Ok(()) => output.flush().map(|()| (None, records)),
        Err(Stop::Trace(error)) => output.flush().map(|()| (Some(error), records)),
        Err(Stop::Output(failure)) => Err(failure),
    }
}

/// Prints a group.
fn print(args: &Args, select: &Select, group: &mut Trace<'_>, out: &mut Out<'_, Block>) -> Result<(), Stop> {
    let mut select = select.clone();
    let mut printer = printer(args, group.schema());
    printer.leave_gaps();
    let mut block = Block::default();
    loop {
        let printed = event(&mut select, printer.as_mut(), group, &mut block.text);
        block.events += 1;
        block.records += u64::from(matches!(printed, Ok(Some(Event::Record(_)))));
        if block.text.len() < BLOCK && matches!(printed, Ok(Some(_))) {
            continue;
        }
        block.gaps = printer.gaps();
        if !out.send(std::mem::take(&mut block)) || printed?.is_none() {
            return Ok(());
        }
    }
}

/// Prints an event if it is selected. Returns `None` at the end.
fn event(
    select: &mut Select,
    printer: &mut dyn Printer,
    group: &mut Trace<'_>,
    out: &mut Vec<u8>,
) -> metatf::Result<Option<Event>> {
    let Some(event) = group.reader_mut().next_event()? else { return Ok(None) };
    printer.note(group, event);
    if select.wants(event) {
        printer.decode(group, event)?;
        if select.holds(event, printer.owned(group)) {
            printer.print(group, event, out)?;
        }
    }
    Ok(Some(event))
}
