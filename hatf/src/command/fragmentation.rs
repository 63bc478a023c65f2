//! `hatf fragmentation`

use std::path::PathBuf;
use std::str::FromStr;

use hatf::lab::Calls;
use hatf::stacks::Stacks;
use hatf::{Error, Result};
use hatf_lab::fragmentation::{Held, HeldReport, Moment, PAGES, Settings, map, text};
use hatf_lab::objects::Until;
use hatf_lab::units::{bytes, count};
use hatf_lab::{Objects, Totals, chart};
use serde::Serialize;

use super::Format;
use super::lab::{Shown, Source, draw, readable_twice};
use crate::command::output::print;

/// Find out which blocks keep pages of memory from being free.
///
/// A page is held while a live block has a byte on it. Bytes of held pages that no live block asked for are wasted; each
/// page's are shared equally among its blocks, so that the shares of sites, threads and sizes sum to the total exactly.
/// The addresses are those in the trace. It is read once for the curve, and once more for each moment but the end.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf fragmentation perl.mtf
  hatf fragmentation perl.mtf --at end --page 2m --pin 4096
  hatf fragmentation perl.mtf --svg held.svg --map map.svg")]
pub(crate) struct Fragmentation {
    #[command(flatten)]
    source: Source,

    /// Moments to look at: peak (most pages held), end, or the number of an event.
    #[arg(long, value_name = "WHEN", value_delimiter = ',', default_value = "peak,end")]
    at: Vec<When>,

    /// The pages whose waste is attributed.
    #[arg(long, value_enum, default_value_t = Page::Small)]
    page: Page,

    /// A page with at most so many live bytes counts as pinned [default: a sixteenth of a page].
    #[arg(long, value_name = "BYTES")]
    pin: Option<u64>,

    /// How to print the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Also draw live bytes and bytes of held pages over events into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Also draw the pages of the first moment into this file, as a map of the address space.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
}

/// Functions of a stack that are shown.
const FRAMES: usize = 4;

/// A moment to look at.
#[derive(Clone, Copy)]
enum When {
    Peak,
    End,
    Event(u64),
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "peak" => Ok(Self::Peak),
            "end" => Ok(Self::End),
            _ => text.parse().map(Self::Event).map_err(|_| "expected peak, end or the number of an event".to_owned()),
        }
    }
}

/// Sizes of pages.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Page {
    /// 4 KiB
    #[value(name = "4k")]
    Small,
    /// 64 KiB
    #[value(name = "64k")]
    Middle,
    /// 2 MiB
    #[value(name = "2m")]
    Huge,
}

#[derive(Serialize)]
struct Report<'r> {
    trace: Totals,
    held: &'r HeldReport,
    moments: &'r [Titled],
}

#[derive(Serialize)]
struct Titled {
    title: String,
    #[serde(flatten)]
    moment: Moment,
}

pub(crate) fn run(options: &Fragmentation) -> Result<u8> {
    let path = &options.source.trace;
    readable_twice(path, "the trace is read more than once")?;
    let mut calls = Calls::new(Shown::new(Held::new()));
    options.source.observe(&mut calls)?;
    let totals = calls.totals();
    let (objects, stacks, held) = calls.into_parts();
    let held = held.into_inner().finish();
    let end = (objects, stacks);
    let moments = options.at.iter().map(|when| look(options, *when, &held, &end)).collect::<Result<Vec<_>>>()?;

    let name = path.display();
    if let Some(path) = &options.svg {
        draw(path, |out| chart::lines(&format!("{name}: live bytes, and the pages they hold"), &held.curves, out))?;
    }
    if let (Some(path), Some(Titled { title, moment })) = (&options.map, moments.first()) {
        draw(path, |out| map(&format!("{name}: {title}, event {}", count(moment.tick)), moment, out))?;
    }
    print(
        options.format,
        |out| {
            writeln!(out, "{name}")?;
            totals.text(out)?;
            moments.iter().try_for_each(|Titled { title, moment }| text(title, moment, out))
        },
        || Report { trace: totals, held: &held, moments: &moments },
    )?;
    Ok(0)
}

/// Looks at one moment; `end` is what was live after the last event.
fn look(options: &Fragmentation, when: When, held: &HeldReport, end: &(Objects, Stacks)) -> Result<Titled> {
    let [small, middle, huge] = PAGES;
    let page = match options.page {
        Page::Small => small,
        Page::Middle => middle,
        Page::Huge => huge,
    };
    let (title, tick) = match when {
        When::End => ("END".to_owned(), held.tick),
        When::Event(tick) => (format!("EVENT {}", count(tick)), tick),
        When::Peak => {
            let tick = held.peaks.iter().find(|peak| peak.page == page).map_or(0, |peak| peak.tick);
            (format!("PEAK of {} pages held", bytes(page)), tick)
        }
    };
    if tick > held.tick {
        return Err(Error::Usage(format!("the trace has {} events, and {} is none of them", count(held.tick), tick)));
    }
    let settings = Settings { page, pin: options.pin };
    let moment = |(objects, stacks): &(Objects, Stacks)| {
        Moment::new(objects.live().copied().collect(), tick, settings, &|site| {
            stacks.name(site, FRAMES).with_lines().to_string()
        })
    };
    let moment = if tick == held.tick { moment(end) } else { moment(&until(options, tick)?) };
    Ok(Titled { title, moment })
}

/// Reads the trace up to an event.
fn until(options: &Fragmentation, tick: u64) -> Result<(Objects, Stacks)> {
    let mut calls = Calls::new(Shown::new(Until::new(tick)));
    let read = options.source.observe(&mut calls);
    let (objects, stacks, until) = calls.into_parts();
    // Stopping is an error to those who read.
    if until.into_inner().reached() { Ok((objects, stacks)) } else { read.map(|()| (objects, stacks)) }
}
