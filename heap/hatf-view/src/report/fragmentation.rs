//! Reports of `hatf fragmentation` on the blocks that keep pages from being free at certain points in a trace.

use std::str::FromStr;

use hatf_lab::fragmentation::{Held, HeldReport, Moment, Names, PAGES, Peak, Settings, map};
use hatf_lab::observer::Until;
use hatf_lab::{Heap, HeapTracker, Totals};
use metatf_page::units::{bytes, count};
use metatf_page::{AddressMap, Chart, Page, Report, Unit};
use serde::Serialize;

use crate::calls::{Folding, GroupBy, Places, title};
use hatf_trace::event::EventSink;
use hatf_trace::stacks::Stacks;
use hatf_trace::{Error, Result};

/// Maximum number of functions shown per stack.
const FRAMES: usize = 4;

/// Title for the end of the trace.
const END: &str = "END";

/// A point in time to inspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The time with the most held pages.
    Peak,
    /// The time with the most wasted bytes on held pages.
    Worst,
    /// The time with the most held pages per live byte.
    Sparsest,
    /// The end of the trace.
    End,
    /// The event with this number.
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

/// Options of the fragmentation report.
#[derive(Clone, Debug)]
pub struct FragmentationOptions {
    /// Points in time to inspect. Several points at the same event are reported once.
    pub at: Vec<When>,
    /// Page size in bytes for which waste is attributed, one of [`PAGES`].
    pub page: u64,
    /// Maximum number of live bytes on a pinned page, or `None` for a sixteenth of a page.
    pub pin: Option<u64>,
    /// Rules for folding frames of stacks.
    pub folding: Folding,
}

impl Default for FragmentationOptions {
    fn default() -> Self {
        let [page, ..] = PAGES;
        Self { at: vec![When::Peak, When::Worst, When::End], page, pin: None, folding: Folding::default() }
    }
}

/// A function that passes all events of a trace to a sink. It is called once for each pass over the trace.
pub type ReadTrace<'r> = dyn FnMut(&mut dyn EventSink) -> Result<()> + 'r;

/// The blocks that keep pages from being freed in a trace.
#[derive(Serialize)]
pub struct Fragmentation {
    #[serde(skip)]
    name: String,
    trace: Totals,
    held: HeldReport,
    moments: Vec<Titled>,
}

impl Report for Fragmentation {
    fn page(&self) -> Page {
        let mut page = Page::new(self.name.clone());
        self.trace.note(&mut page);
        self.describe(&mut page);
        page
    }
}

impl Fragmentation {
    /// Reads a trace once for the curve, and again for each point in time except the end. `name` symbolizes the stacks.
    /// Also returns the heap at the end.
    ///
    /// # Errors
    /// Returns errors of `read` and `name`. Fails if an event in `options` does not exist.
    pub fn read(
        trace: String,
        options: &FragmentationOptions,
        read: &mut ReadTrace<'_>,
        name: impl FnOnce(&mut Stacks) -> Result<()>,
    ) -> Result<(Self, Heap)> {
        let mut calls = HeapTracker::new(Held::new());
        read(&mut calls)?;
        let (mut end, held) = calls.into_parts();
        // The heap at the end contains all stacks. Those of an earlier point have the same numbers.
        name(&mut end.stacks)?;
        let (totals, held) = (end.totals(), held.report());
        let places = Places::new(&end.stacks, &options.folding, GroupBy::Function);
        let settings = Settings { page: options.page, pin: options.pin };
        let mut moments: Vec<Titled> = Vec::new();
        for when in &options.at {
            let (title, tick) = when.moment(options.page, &held)?;
            match moments.iter_mut().find(|moment| moment.moment.tick == tick) {
                Some(same) => same.title = format!("{}, and {title}", same.title),
                None => {
                    let moment = if tick == held.tick {
                        look(&end, &places, (tick, held.time), settings)
                    } else {
                        let (then, time) = until(read, tick)?;
                        look(&then, &places, (tick, time), settings)
                    };
                    moments.push(Titled { title, moment });
                }
            }
        }
        Ok((Self { name: trace, trace: totals, held, moments }, end))
    }

    /// Reports only on the end of a trace, because the heap at earlier points is not available.
    #[must_use]
    pub fn at_end(name: String, heap: &Heap, held: &Held) -> Self {
        let held = held.report();
        let [page, ..] = PAGES;
        let settings = Settings { page, pin: None };
        let places = Places::new(&heap.stacks, &Folding::default(), GroupBy::Function);
        let moments =
            vec![Titled { title: END.to_owned(), moment: look(heap, &places, (held.tick, held.time), settings) }];
        Self { name, trace: heap.totals(), held, moments }
    }

    /// Adds the findings, without the totals.
    pub fn describe(&self, page: &mut Page) {
        self.moments.iter().for_each(|Titled { title, moment }| moment.describe(title, page));
        page.figure(self.curves());
        page.figures.extend(self.map().map(Into::into));
    }

    /// Draws live bytes and bytes of held pages over events.
    #[must_use]
    pub fn curves(&self) -> Chart {
        self.held.curves.chart(format!("{}: live bytes and the pages they hold", self.name), Unit::Bytes)
    }

    /// Draws the pages at the first point in time.
    #[must_use]
    pub fn map(&self) -> Option<AddressMap> {
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

impl When {
    /// Returns the title of a point in time and its event number.
    fn moment(self, page: u64, held: &HeldReport) -> Result<(String, u64)> {
        let of = |peaks: &[Peak]| peaks.iter().find(|peak| peak.page == page).map_or(0, |peak| peak.tick);
        let (title, tick) = match self {
            Self::End => (END.to_owned(), held.tick),
            Self::Event(tick) => (format!("EVENT {}", count(tick)), tick),
            Self::Peak => (format!("PEAK: most {} pages held", bytes(page)), of(&held.peaks)),
            Self::Sparsest => (format!("SPARSEST: most {} pages held per live byte", bytes(page)), of(&held.sparsest)),
            Self::Worst => (format!("WORST: most bytes wasted on {} pages", bytes(page)), of(&held.worst)),
        };
        if tick > held.tick {
            let message = format!("there is no event {tick}: the trace has only {} events", count(held.tick));
            return Err(Error::Usage(message));
        }
        Ok((title, tick))
    }
}

/// Analyzes the live blocks at a point in time.
fn look(heap: &Heap, places: &Places<'_>, when: (u64, u64), settings: Settings) -> Moment {
    let site = &|site| places.stacks().name(site, FRAMES).with_lines().to_string();
    let function = &|site| {
        let group = places.own(site).next().map(|place| places.group(place));
        let key = group.and_then(|group| places.keys().get(group as usize));
        key.map_or_else(|| "unknown stack".to_owned(), |key| title(key, &[]))
    };
    Moment::new(heap.objects.live().collect(), when, settings, Names { site, function })
}

/// Analyzes the points in time shown in an HTML report, and names them. Every point except the end requires another
/// pass over the trace.
///
/// # Errors
/// Returns an error of `read`.
pub fn default_moments(
    read: &mut ReadTrace<'_>,
    end: &Heap,
    places: &Places<'_>,
    held: &Held,
) -> Result<Vec<(String, Moment)>> {
    let [page, ..] = PAGES;
    let (held, settings) = (held.report(), Settings { page, pin: None });
    let tick = |peaks: &[Peak]| peaks.iter().find(|peak| peak.page == settings.page).map_or(0, |peak| peak.tick);
    let mut moments: Vec<(String, Moment)> = Vec::new();
    let named = [("most pages held", tick(&held.peaks)), ("most bytes wasted", tick(&held.worst)), ("end", held.tick)];
    for (name, tick) in named {
        if let Some((same, _)) = moments.iter_mut().find(|(_, moment)| moment.tick == tick) {
            *same = format!("{same}, {name}");
        } else if tick == held.tick {
            moments.push((name.to_owned(), look(end, places, (tick, held.time), settings)));
        } else {
            let (then, time) = until(read, tick)?;
            moments.push((name.to_owned(), look(&then, places, (tick, time), settings)));
        }
    }
    Ok(moments)
}

/// Reads the trace up to an event. Returns the heap and the time of the event.
fn until(read: &mut ReadTrace<'_>, tick: u64) -> Result<(Heap, u64)> {
    let mut calls = HeapTracker::new(Until::new(tick));
    let read = read(&mut calls);
    let (heap, until) = calls.into_parts();
    // Ignore the error by which the reader reports an early stop.
    if !until.reached() {
        read?;
    }
    Ok((heap, until.time()))
}
