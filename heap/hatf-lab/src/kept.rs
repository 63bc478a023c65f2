//! Memory by site that is live at a chosen point, or that was allocated in a range and is still live at the end of the
//! range.
//!
//! The amounts are exact for any event, whereas those of [`moments`](crate::moments) exist only for the stored
//! snapshots.

use std::str::FromStr;

use hatf_trace::{Event, EventKind};
use metatf_page::units::{count, nanoseconds, parse_nanoseconds};
use serde::Serialize;

use crate::heap::Heap;
use crate::objects::{Change, ObjectEvent};
use crate::observer::Observer;
use crate::site_counts::{Amount, Weight};
use crate::{Error, Result};

/// The maximum number of marks listed in an error.
const LISTED: usize = 20;

/// A user-specified position in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before the first event.
    Start,
    /// After the last event up to this time in nanoseconds.
    Time(u64),
    /// The first mark with this name, which can also be the start of a phase or `end of` a phase. For the end of a
    /// range, the first such mark after the start.
    Mark(String),
    /// The point at which the number of live bytes first reaches its maximum. A separate pass over the trace finds the
    /// event: see [`Highest`].
    Peak,
    /// The point with the most wasted bytes on held pages.
    Worst,
    /// The point with the most held pages per live byte.
    Sparsest,
    /// After the event with this number.
    Tick(u64),
    /// After the last event.
    End,
}

/// Parses a point such as `30s`, `mark:ready`, `1000` (an event) or `peak`.
impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let point = match text {
            "peak" => Some(Self::Peak),
            "worst" => Some(Self::Worst),
            "sparsest" => Some(Self::Sparsest),
            "end" => Some(Self::End),
            _ => match text.strip_prefix("mark:") {
                Some(name) => (!name.is_empty()).then(|| Self::Mark(name.to_owned())),
                None => parse_nanoseconds(text).map(Self::Time).or_else(|| text.parse().ok().map(Self::Tick)),
            },
        };
        point.ok_or_else(|| {
            "expected a time, such as 3.7s or 500ms, mark:NAME, the number of an event, peak, worst, sparsest or end"
                .to_owned()
        })
    }
}

impl Point {
    /// Returns whether the point is before an event.
    #[inline]
    fn is_before(&self, event: &ObjectEvent) -> bool {
        match self {
            Self::Start => true,
            Self::Time(time) => event.time > *time,
            Self::Tick(tick) => event.tick > *tick,
            Self::Mark(_) | Self::Peak | Self::Worst | Self::Sparsest | Self::End => false,
        }
    }

    fn is_mark(&self, name: &str) -> bool {
        matches!(self, Self::Mark(mark) if mark == name)
    }
}

/// A position in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The number of events before the position.
    pub tick: u64,
    /// Nanoseconds since the start of the recording.
    pub time: u64,
    /// The number of records before the position.
    #[serde(skip)]
    pub record: u64,
}

/// An observer that counts the memory allocated between two points and live at the second point, by site.
///
/// # Examples
///
/// The range begins at a mark and ends with the trace:
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::history::{Kept, Point};
/// use hatf_trace::{Event, EventKind, EventSink};
///
/// let from: Point = "mark:ready".parse()?;
/// let mut tracker = HeapTracker::new(Kept::new(from, Point::End));
/// tracker.event(&Event::malloc(0x1000, 100))?;
/// tracker.event(&Event::new(EventKind::Mark { name: b"ready" }))?;
/// tracker.event(&Event::malloc(0x2000, 20))?;
/// tracker.event(&Event::malloc(0x3000, 7))?;
/// tracker.event(&Event::free(0x3000))?;
/// let found = tracker.observer().report()?;
/// assert_eq!((found.from.tick, found.sites[0].bytes), (1, 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Kept {
    from: Point,
    to: Point,
    begun: Option<Place>,
    ended: Option<Place>,
    /// The last event so far.
    last: Place,
    /// The latest timestamp of a record.
    latest: u64,
    marks: Vec<String>,
    more_marks: bool,
    sites: Vec<Amount>,
    weight: Weight,
}

/// The result of [`Kept`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The start of the range.
    pub from: Place,
    /// The end of the range.
    pub to: Place,
    /// Amounts by site number.
    pub sites: Vec<Amount>,
}

impl Kept {
    /// Creates an observer without counts.
    #[must_use]
    pub fn new(from: Point, to: Point) -> Self {
        let begun = (from == Point::Start).then(Place::default);
        Self {
            from,
            to,
            begun,
            ended: None,
            last: Place::default(),
            latest: 0,
            marks: Vec::new(),
            more_marks: false,
            sites: Vec::new(),
            weight: Weight::default(),
        }
    }

    /// Returns the result.
    ///
    /// # Errors
    /// Fails if the trace does not contain the positions, or if the range ends before it starts.
    pub fn report(&self) -> Result<Found> {
        let from = self.begun.map_or_else(|| self.behind(&self.from), Ok)?;
        let to = match self.ended {
            Some(to) => to,
            None => self.behind(&self.to)?,
        };
        if to.tick < from.tick {
            return Err(Error::Usage("the range ends before it starts".to_owned()));
        }
        let sites = self.sites.iter().map(|amount| self.weight.whole(*amount)).collect();
        Ok(Found { from, to, sites })
    }

    /// Returns the end of the trace as the position of a point that no event or mark has reached. Fails if the point is
    /// a mark or a time that the trace does not contain.
    fn behind(&self, point: &Point) -> Result<Place> {
        let wrong = match point {
            Point::Time(_) if self.latest == 0 => "the trace has no timestamps: use mark:NAME, peak or end".to_owned(),
            // The user may have copied the end of the trace from a report, which rounds it.
            Point::Time(time) if *time > self.latest && nanoseconds(*time) != nanoseconds(self.latest) => {
                format!("{} is after the end of the trace at {}", nanoseconds(*time), nanoseconds(self.latest))
            }
            Point::Tick(tick) if *tick > self.last.tick => {
                let events = count(self.last.tick);
                format!("there is no event {tick}: the trace has only {events} events")
            }
            Point::Mark(name) if self.marks.is_empty() => format!("mark:{name}: the trace has no marks"),
            Point::Mark(name) => {
                let more = if self.more_marks { ", and more" } else { "" };
                let place = if self.marks.contains(name) { "not in the range" } else { "not in the trace" };
                format!("mark:{name} is {place}; available marks: {}{more}", self.marks.join(", "))
            }
            _ => return Ok(self.last),
        };
        Err(Error::Usage(wrong))
    }

    #[inline]
    fn site(&mut self, number: u64) -> Result<&mut Amount> {
        let number = usize::try_from(number).map_err(|_| Error::Limit("number of sites"))?;
        if number >= self.sites.len() {
            self.sites.resize(number.checked_add(1).ok_or(Error::Limit("number of sites"))?, Amount::default());
        }
        self.sites.get_mut(number).ok_or(Error::Limit("number of sites"))
    }

    /// Handles a mark. A range includes the records of the marks at its start and end.
    fn mark(&mut self, name: &str, before: Place) {
        // The first mark with the name is the point. In a range between two marks of the same name, the second one is
        // the end.
        if self.begun.is_none() {
            self.begun = self.from.is_mark(name).then_some(before);
        } else if self.ended.is_none() {
            self.ended = self.to.is_mark(name).then_some(self.last);
        }
        if !self.marks.iter().any(|mark| mark == name) {
            self.more_marks = self.marks.len() == LISTED;
            if !self.more_marks {
                self.marks.push(name.to_owned());
            }
        }
    }
}

impl Observer for Kept {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        if self.begun.is_none() && self.from.is_before(event) {
            self.begun = Some(self.last);
        }
        if self.ended.is_none() && self.to.is_before(event) {
            self.ended = Some(self.last);
        }
        self.last = Place { tick: event.tick, time: self.last.time.max(event.time), ..self.last };
        let (Some(begun), None) = (self.begun, self.ended) else { return Ok(()) };
        if event.object.tick > begun.tick {
            let amount = self.weight.amount(event.object.size);
            let site = self.site(event.object.site)?;
            match event.change {
                Change::Allocated => site.sum(amount),
                Change::Freed => site.remove(amount),
            }
        }
        Ok(())
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> Result<()> {
        self.latest = self.latest.max(record.time);
        let before = self.last;
        // The timestamp of a record counts even if the record has no event.
        let is_past = |point: &Point| matches!(point, Point::Time(time) if record.time > *time);
        if self.begun.is_none() && is_past(&self.from) {
            self.begun = Some(before);
        }
        if self.ended.is_none() && is_past(&self.to) {
            self.ended = Some(before);
        }
        self.last.record += 1;
        match record.kind {
            EventKind::Mark { name } | EventKind::PhaseBegin { name } => {
                self.mark(&String::from_utf8_lossy(name), before);
            }
            EventKind::PhaseEnd { name } => {
                self.mark(&format!("end of {}", String::from_utf8_lossy(name)), before);
            }
            _ => {}
        }
        Ok(())
    }

    fn sampled(&mut self, mean: u64) {
        self.weight = Weight::sampled(mean);
    }
}

/// An observer that finds the event at which the number of live bytes first reaches its maximum.
///
/// The [module's example](crate::history#examples) finds a peak.
#[derive(Clone, Debug, Default)]
pub struct Highest {
    live: u64,
    most: u64,
    tick: u64,
    weight: Weight,
}

impl Highest {
    /// Creates an observer without events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of the event, or 0 if no block was ever live.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.tick
    }
}

impl Observer for Highest {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let bytes = self.weight.amount(event.object.size).bytes;
        match event.change {
            Change::Allocated => self.live = self.live.saturating_add(bytes),
            Change::Freed => self.live = self.live.saturating_sub(bytes),
        }
        if self.live > self.most {
            (self.most, self.tick) = (self.live, event.tick);
        }
        Ok(())
    }

    fn sampled(&mut self, mean: u64) {
        self.weight = Weight::sampled(mean);
    }
}
