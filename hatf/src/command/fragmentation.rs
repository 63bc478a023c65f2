//! `hatf fragmentation`

use std::path::PathBuf;
use std::str::FromStr;

use hatf::calls::{GroupBy, Places, title};
use hatf::{Error, Result};
use hatf_lab::fragmentation::{Held, HeldReport, Moment, Names, PAGES, Peak, Settings, map};
use hatf_lab::observer::Until;
use hatf_lab::{Heap, HeapTracker, Totals};
use metatf_cli::OutputArgs;
use metatf_page::units::{bytes, count};
use metatf_page::{AddressMap, Chart, Unit};
use serde::Serialize;

use super::lab::{Source, draw};
use super::sites::Folded;
use super::symbols::{Symbols, print_problems};
use crate::command::output::show;

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

    /// Moments to look at: peak (most pages held), worst (most bytes of them wasted), sparsest (most pages for each live byte, while at
    /// least half of the most are held, or more exactly a power of two of them), end, or the number of an event. What comes to the same
    /// event is printed once.
    #[arg(long, value_name = "WHEN", value_delimiter = ',', default_value = "peak,worst,end")]
    at: Vec<When>,

    /// The pages whose waste is attributed.
    #[arg(long, value_enum, default_value_t = Page::Small)]
    page: Page,

    /// A page with at most this many live bytes counts as pinned [default: a sixteenth of a page].
    #[arg(long, value_name = "BYTES")]
    pin: Option<u64>,

    #[command(flatten)]
    folded: Folded,

    #[command(flatten)]
    symbols: Symbols,

    #[command(flatten)]
    output: OutputArgs,

    /// Also draw live bytes and bytes of held pages over events into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Also draw the pages of the first moment into this file, as a map of the address space.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
}

/// Functions of a stack that are shown.
const FRAMES: usize = 4;

/// The title of the last moment.
const END: &str = "END";

/// A moment to look at.
#[derive(Clone, Copy)]
enum When {
    Peak,
    Worst,
    Sparsest,
    End,
    Event(u64),
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "peak" => Ok(Self::Peak),
            "worst" => Ok(Self::Worst),
            "sparsest" => Ok(Self::Sparsest),
            "end" => Ok(Self::End),
            _ => text
                .parse()
                .map(Self::Event)
                .map_err(|_| "expected peak, worst, sparsest, end or the number of an event".to_owned()),
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
pub(super) struct Report {
    #[serde(skip)]
    name: String,
    trace: Totals,
    held: HeldReport,
    moments: Vec<Titled>,
}

impl metatf_page::Report for Report {
    fn page(&self) -> metatf_page::Page {
        let mut page = metatf_page::Page::new(self.name.clone());
        self.trace.note(&mut page);
        self.describe(&mut page);
        page
    }
}

impl Report {
    /// Reports on the end of a trace alone: what was live before is known no more.
    pub(super) fn at_end(name: String, heap: &Heap, held: &Held) -> Self {
        let held = held.report();
        let settings = Settings { page: Page::Small.bytes(), pin: None };
        let moments = vec![Titled {
            title: END.to_owned(),
            moment: look(heap, &places(heap, &Folded::default()), (held.tick, held.time), settings),
        }];
        Self { name, trace: heap.totals(), held, moments }
    }

    /// Adds what is found, without the totals.
    pub(super) fn describe(&self, page: &mut metatf_page::Page) {
        self.moments.iter().for_each(|Titled { title, moment }| moment.describe(title, page));
        page.figure(self.curves());
        page.figures.extend(self.map().map(Into::into));
    }

    fn curves(&self) -> Chart {
        self.held.curves.chart(format!("{}: live bytes, and the pages they hold", self.name), Unit::Bytes)
    }

    /// The pages of the first moment.
    fn map(&self) -> Option<AddressMap> {
        let Titled { title, moment } = self.moments.first()?;
        Some(map(format!("{}: {title}, event {}", self.name, count(moment.tick)), moment))
    }
}

#[derive(Serialize)]
struct Titled {
    title: String,
    #[serde(flatten)]
    moment: Moment,
}

pub(crate) fn run(options: &Fragmentation) -> Result<u8> {
    let path = &options.source.trace;
    options.source.reread()?;
    let mut calls = HeapTracker::new(Held::new());
    options.source.observe(&mut calls)?;
    let (mut end, held) = calls.into_parts();
    // All stacks of the trace are known here: those of a moment are among them, with the same numbers.
    options.symbols.problems(&mut end.stacks, 0, None).map(|problems| print_problems(&problems))?;
    let (totals, held, places) = (end.totals(), held.report(), places(&end, &options.folded));
    let settings = Settings { page: options.page.bytes(), pin: options.pin };
    let mut moments: Vec<Titled> = Vec::new();
    for when in &options.at {
        let (title, tick) = moment(options, *when, &held)?;
        match moments.iter_mut().find(|moment| moment.moment.tick == tick) {
            Some(same) => same.title = format!("{}, and {title}", same.title),
            None => {
                let moment = if tick == held.tick {
                    look(&end, &places, (tick, held.time), settings)
                } else {
                    let (then, time) = until(&options.source, tick)?;
                    look(&then, &places, (tick, time), settings)
                };
                moments.push(Titled { title, moment });
            }
        }
    }

    let report = Report { name: path.display().to_string(), trace: totals, held, moments };
    if let Some(path) = &options.svg {
        draw(path, report.curves())?;
    }
    if let (Some(path), Some(map)) = (&options.map, report.map()) {
        draw(path, map)?;
    }
    show(&report, &options.output)?;
    Ok(0)
}

impl Page {
    fn bytes(self) -> u64 {
        let [small, middle, huge] = PAGES;
        match self {
            Self::Small => small,
            Self::Middle => middle,
            Self::Huge => huge,
        }
    }
}

/// Returns the title of a moment, and the number of its event.
fn moment(options: &Fragmentation, when: When, held: &HeldReport) -> Result<(String, u64)> {
    let page = options.page.bytes();
    let of = |peaks: &[Peak]| peaks.iter().find(|peak| peak.page == page).map_or(0, |peak| peak.tick);
    let (title, tick) = match when {
        When::End => (END.to_owned(), held.tick),
        When::Event(tick) => (format!("EVENT {}", count(tick)), tick),
        When::Peak => (format!("PEAK of {} pages held", bytes(page)), of(&held.peaks)),
        When::Sparsest => (format!("SPARSEST: most {} pages held for each live byte", bytes(page)), of(&held.sparsest)),
        When::Worst => (format!("WORST: most bytes of {} pages wasted", bytes(page)), of(&held.worst)),
    };
    if tick > held.tick {
        return Err(Error::Usage(format!("the trace has {} events, and {} is none of them", count(held.tick), tick)));
    }
    Ok((title, tick))
}

/// Looks at what is live at a moment.
fn look(heap: &Heap, places: &Places<'_>, when: (u64, u64), settings: Settings) -> Moment {
    let site = &|site| places.stacks().name(site, FRAMES).with_lines().to_string();
    let function = &|site| {
        let group = places.own(site).next().map(|place| places.group(place));
        let key = group.and_then(|group| places.keys().get(group as usize));
        key.map_or_else(|| "stack not known".to_owned(), |key| title(key, &[]))
    };
    Moment::new(heap.objects.live().collect(), when, settings, Names { site, function })
}

/// Finds the program's own functions.
fn places<'h>(heap: &'h Heap, folded: &Folded) -> Places<'h> {
    Places::new(&heap.stacks, &folded.folding(), GroupBy::Function)
}

/// Looks at the moments that this command shows by default, and names them; what is not the end needs the trace again.
pub(super) fn moments(source: &Source, end: &Heap, places: &Places<'_>, held: &Held) -> Result<Vec<(String, Moment)>> {
    let (held, settings) = (held.report(), Settings { page: Page::Small.bytes(), pin: None });
    let tick = |peaks: &[Peak]| peaks.iter().find(|peak| peak.page == settings.page).map_or(0, |peak| peak.tick);
    let mut moments: Vec<(String, Moment)> = Vec::new();
    let named = [("most pages held", tick(&held.peaks)), ("most bytes wasted", tick(&held.worst)), ("end", held.tick)];
    for (name, tick) in named {
        if let Some((same, _)) = moments.iter_mut().find(|(_, moment)| moment.tick == tick) {
            *same = format!("{same}, {name}");
        } else if tick == held.tick {
            moments.push((name.to_owned(), look(end, places, (tick, held.time), settings)));
        } else {
            let (then, time) = until(source, tick)?;
            moments.push((name.to_owned(), look(&then, places, (tick, time), settings)));
        }
    }
    Ok(moments)
}

/// Reads the trace up to an event; returns its time, too.
fn until(source: &Source, tick: u64) -> Result<(Heap, u64)> {
    let mut calls = HeapTracker::new(Until::new(tick));
    let read = source.observe(&mut calls);
    let (heap, until) = calls.into_parts();
    // Stopping is an error to those who read.
    if !until.reached() {
        read?;
    }
    Ok((heap, until.time()))
}
