//! Reports of `hatf fragmentation` on the blocks that keep pages from being free at certain points in a trace.

use hatf_lab::fragmentation::{Held, HeldReport, Moment, Names, PAGES, Settings, map};
use hatf_lab::history::{Kept, Point};
use hatf_lab::{Heap, HeapTracker, Totals, Until};
use metatf_page::units::{bytes, count, nanoseconds};
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

/// Options of the fragmentation report.
#[derive(Clone, Debug)]
pub struct FragmentationOptions {
    /// Points in time to inspect; the peak is the time with the most held pages. Several points at the same event are
    /// reported once.
    pub at: Vec<Point>,
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
        Self { at: vec![Point::Peak, Point::Worst, Point::End], page, pin: None, folding: Folding::default() }
    }
}

/// A function that passes all events of a trace to a sink. It is called once for each pass over the trace.
pub type ReadTrace<'r> = dyn FnMut(&mut dyn EventSink) -> Result<()> + 'r;

/// The blocks that keep pages from being freed in a trace.
///
/// # Examples
///
/// ```
/// use hatf_lab::history::Point;
/// use hatf_trace::Event;
/// use hatf_view::report::{Fragmentation, FragmentationOptions};
///
/// let options = FragmentationOptions { at: vec![Point::End], ..FragmentationOptions::default() };
/// let (report, heap) = Fragmentation::read(
///     "a trace".to_owned(),
///     &options,
///     &mut |sink| {
///         sink.event(&Event::malloc(0x1000, 4000))?;
///         sink.event(&Event::malloc(0x2000, 96))?;
///         sink.event(&Event::free(0x1000))
///     },
///     |_| Ok(()),
/// )?;
/// assert_eq!(heap.objects.live_bytes(), 96);
/// // The remaining block keeps a page of 4096 bytes.
/// assert_eq!(serde_json::to_value(&report)?["moments"][0]["pages"][0]["wasted"], 4000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// Reads a trace once for the curve, and again for each point in time except the end, or twice if the point is
    /// neither an extreme nor the end. `name` symbolizes the stacks.
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
        for point in &options.at {
            let tick = match held.tick_of(point, options.page) {
                Some(tick) => tick,
                None => event(&trace, read, point)?,
            };
            let title = heading(point, options.page);
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

/// Returns the heading of a point in time.
fn heading(point: &Point, page: u64) -> String {
    match point {
        Point::Start => "START".to_owned(),
        Point::Time(time) => format!("AT {}", nanoseconds(*time)),
        Point::Mark(name) => format!("AT mark:{name}"),
        Point::Tick(tick) => format!("EVENT {}", count(*tick)),
        Point::Peak => format!("PEAK: most {} pages held", bytes(page)),
        Point::Sparsest => format!("SPARSEST: most {} pages held per live byte", bytes(page)),
        Point::Worst => format!("WORST: most bytes wasted on {} pages", bytes(page)),
        Point::End => END.to_owned(),
    }
}

/// Reads the trace, whose name is `trace`, and returns the last event before a point.
fn event(trace: &str, read: &mut ReadTrace<'_>, point: &Point) -> Result<u64> {
    let mut calls = HeapTracker::new(Kept::new(Point::Start, point.clone()));
    read(&mut calls)?;
    let found = calls.observer().report().map_err(|error| Error::Usage(format!("{trace}: {error}")))?;
    Ok(found.to.tick)
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
    let mut moments: Vec<(String, Moment)> = Vec::new();
    let named = [("most pages held", Point::Peak), ("most bytes wasted", Point::Worst), ("end", Point::End)];
    for (name, point) in named {
        let tick = held.tick_of(&point, page).unwrap_or_default();
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
