//! `hatf dump`: prints the records of a trace.

use std::io::Write as _;
use std::path::PathBuf;

use hatf_trace::event::{EventKind, EventSource as _, UNKNOWN_SIZE};
use hatf_trace::forms::{self, Form};
use hatf_trace::{Item, Result};
use hatf_view::analyses::size;
use hatf_view::report::{EventPrinter, concerns};
use hatf_view::symbolize::Problem;
use metatf_cli::{Style, number, stdout};

use super::lab::warn_of_losses;
use super::symbols::{Symbols, print_problems};
use super::{about, print_message};

/// Print the records of a trace, each with its call stack.
///
/// Functions, source files and lines that the trace does not name are looked up in the programs and shared objects.
/// Record numbers are the same as in `hatf report`. To print the records exactly as they are stored, use `metatfc
/// dump`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf dump perl.mtf | less
  hatf dump perl.mtf --start 1234 --head 1        only record 1234
  hatf dump perl.mtf --address 0x55c7f16743c0     history of a block
  hatf dump perl.mtf --min-size 1000000           large blocks")]
pub(crate) struct Dump {
    /// Trace, in any format that `hatf convert` reads; `-` is standard input.
    trace: PathBuf,

    /// Format of the trace [default: detected from its first bytes or its name].
    #[arg(long, value_name = "FORMAT", value_parser = super::form())]
    from: Option<&'static Form>,

    /// Print only records about the block at this address.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    address: Option<u64>,

    /// Print only allocations of at least this many bytes, such as 4096 or 64KiB.
    #[arg(long, value_name = "BYTES", value_parser = size)]
    min_size: Option<u64>,

    /// Start at record N.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = number(1..=u64::MAX))]
    start: u64,

    /// Stop after printing N records.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number(0..=u64::MAX))]
    head: Option<u64>,

    /// Maximum number of lines per stack.
    #[arg(long, value_name = "N", default_value_t = 8)]
    depth: usize,

    #[command(flatten)]
    symbols: Symbols,
}

/// Initial number of events to symbolize in one batch, which is small so that output appears soon.
const BATCH: usize = 1 << 8;
/// Maximum number of events to symbolize in one batch.
const BATCH_MOST: usize = 1 << 16;

fn address(text: &str) -> std::result::Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "expected an address, such as 0x55c7f16743c0".to_owned())
}

impl Dump {
    fn wants(&self, event: &hatf_trace::Event<'_>) -> bool {
        let large = |least| match event.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) | EventKind::Failed(call) => {
                call.size >= least && call.size != UNKNOWN_SIZE
            }
            _ => false,
        };
        self.address.is_none_or(|block| concerns(&event.kind, block)) && self.min_size.is_none_or(large)
    }
}

pub(crate) fn run(options: &Dump) -> Result<u8> {
    let open = super::open_options(options.from, print_message);
    let mut trace = forms::open(&options.trace, &open)?;
    let mut printer = EventPrinter::new(options.depth);
    let mut out = stdout(Style::Text);
    let (mut number, mut left) = (0_u64, options.head.unwrap_or(u64::MAX));
    let (mut batch, mut asked, mut problems) = (BATCH, 0, Vec::new());
    let mut print = |printer: &mut EventPrinter| -> Result<()> {
        let (stacks, sites) = printer.stacks();
        let found = options.symbols.problems(stacks, asked, Some((sites, options.depth)))?;
        asked = stacks.locations().len();
        for problem in found {
            match problems
                .iter_mut()
                .find(|known: &&mut Problem| (&known.path, &known.why) == (&problem.path, &problem.why))
            {
                Some(known) => known.frames = known.frames.max(problem.frames),
                None => problems.push(problem),
            }
        }
        Ok(printer.print(&mut out)?)
    };
    let read = loop {
        if left == 0 {
            break Ok(());
        }
        let event = match trace.next() {
            Ok(Some(Item::Event(event))) => event,
            Ok(Some(_)) => continue,
            Ok(None) => break Ok(()),
            Err(error) => break Err(about(&options.trace, error)),
        };
        number += 1;
        printer.note(&event);
        if number >= options.start && options.wants(&event) && printer.add(number, &event) {
            left -= 1;
        }
        if printer.pending() >= batch {
            print(&mut printer)?;
            batch = (2 * batch).min(BATCH_MOST);
        }
    };
    print(&mut printer)?;
    out.flush()?;
    print_problems(&problems);
    read?;
    warn_of_losses(&format!("{}: an event", options.trace.display()), &trace.losses());
    Ok(0)
}
