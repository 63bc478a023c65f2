//! Printing by several threads: each prints groups, and what they print goes out in the order of the groups.

use super::text::{Gap, Widths};
use super::{Args, Printer, Select, printer};
use crate::failure::{Failure, Result};
use crate::output::Output;
use metatf::dynamic::Trace;
use metatf::parallel::Out;
use metatf::reader::Event;
use metatf_cli::Progress;

/// Bytes of a block of lines.
const BLOCK: usize = 1 << 18;

/// Bytes of text that may wait for that of the groups before: as CSV, a million records of `heap.dtd` are 42 MB.
const WAITING: usize = 64 << 20;

/// Lines, how many events they come from, and how many data records those are.
#[derive(Default)]
struct Block {
    text: Vec<u8>,
    gaps: Vec<Gap>,
    events: u64,
    records: u64,
}

/// Why printing ends early.
enum Stop {
    Trace(metatf::Error),
    Output(Failure),
}

impl From<metatf::Error> for Stop {
    fn from(error: metatf::Error) -> Self {
        Self::Trace(error)
    }
}

/// Returns whether groups are to be printed apart: what is printed does not depend on how many records came before, and groups
/// are large enough for it to be faster.
pub(super) fn can(args: &Args, trace: &Trace<'_>) -> bool {
    let counts = args.head.is_some() || args.tail.is_some() || args.skip > 0 || args.thread_column.is_some();
    let several = args.threads.number() > 1 && !counts && !args.salvage;
    several && trace.reader().container().split().is_some_and(|split| !split.has_small_groups())
}

/// Prints what is selected. An error of the trace is given back: what came before it was printed. Returns also how many data records were
/// read.
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
    // All groups that are being printed but the first wait.
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
    // What is wrong with the arguments was found before.
    let Ok(mut printer) = printer(args, group.schema(), &select) else { return Ok(()) };
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

/// Prints an event, if it is selected; `None` at the end.
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
