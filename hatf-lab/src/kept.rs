//! What each site had at a moment that somebody chose, or allocated in a range and had at its end.
//!
//! Every event counts, so the amounts are exact, where those of [`moments`](crate::moments) are of the moments that are kept.

use hatf_trace::{Event, EventKind};
use metatf_page::units::nanoseconds;
use serde::Serialize;

use crate::heap::Heap;
use crate::objects::{Change, ObjectEvent};
use crate::observer::Observer;
use crate::sites::{Amount, Weight};
use crate::{Error, Result};

/// Names of marks that an error lists.
const LISTED: usize = 20;

/// A place in a trace, as people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before the first event.
    Start,
    /// Behind the events up to this many nanoseconds.
    Time(u64),
    /// A mark of this name, a phase that begins, or `end of` a phase. The end of a range is the first one in it.
    Mark(String),
    /// The most bytes are live, for the first time. A pass over the trace finds the event: see [`Highest`].
    Peak,
    /// Behind an event.
    Tick(u64),
    /// Behind the last event.
    End,
}

impl Point {
    /// Says which event the peak is at.
    #[must_use]
    pub fn with_peak(self, tick: u64) -> Self {
        if self == Self::Peak { Self::Tick(tick) } else { self }
    }

    /// Returns whether an event is behind it.
    #[inline]
    fn is_before(&self, event: &ObjectEvent) -> bool {
        match self {
            Self::Start => true,
            Self::Time(time) => event.time > *time,
            Self::Tick(tick) => event.tick > *tick,
            Self::Mark(_) | Self::Peak | Self::End => false,
        }
    }

    fn is_mark(&self, name: &str) -> bool {
        matches!(self, Self::Mark(mark) if mark == name)
    }
}

/// A place in a trace: the event before it, the latest time up to that, and the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The event.
    pub tick: u64,
    /// Nanoseconds since the start of the recording.
    pub time: u64,
    /// How many records of the trace are before it.
    #[serde(skip)]
    pub record: u64,
}

/// Counts what was allocated between two points, and is live at the second, by site.
#[derive(Clone, Debug)]
pub struct Kept {
    from: Point,
    to: Point,
    begun: Option<Place>,
    ended: Option<Place>,
    /// The last event so far, and the latest time of a record.
    last: Place,
    latest: u64,
    marks: Vec<String>,
    more_marks: bool,
    sites: Vec<Amount>,
    weight: Weight,
}

/// What [`Kept`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Where the range begins.
    pub from: Place,
    /// Where it ends.
    pub to: Place,
    /// By the number of the site.
    pub sites: Vec<Amount>,
}

impl Kept {
    /// Starts with nothing.
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

    /// Returns what was found.
    ///
    /// # Errors
    /// The trace has no such place, or the range ends before it begins.
    pub fn report(&self) -> Result<Found> {
        let from = self.begun.map_or_else(|| self.behind(&self.from), Ok)?;
        let to = match self.ended {
            Some(to) => to,
            None => self.behind(&self.to)?,
        };
        if to.tick < from.tick {
            return Err(Error::Usage("the range ends before it begins".to_owned()));
        }
        let sites = self.sites.iter().map(|amount| self.weight.whole(*amount)).collect();
        Ok(Found { from, to, sites })
    }

    /// Returns the end of the trace for a point that no event is behind, if it is not behind the end itself.
    fn behind(&self, point: &Point) -> Result<Place> {
        let wrong = match point {
            Point::Time(_) if self.latest == 0 => "the trace has no times".to_owned(),
            Point::Time(time) if *time > self.latest => {
                format!("{} is behind the end of the trace, at {}", nanoseconds(*time), nanoseconds(self.latest))
            }
            Point::Mark(name) if self.marks.is_empty() => format!("mark:{name}: the trace has no marks"),
            Point::Mark(name) => {
                let more = if self.more_marks { ", and more" } else { "" };
                let place = if self.marks.contains(name) { "not in the range" } else { "not in the trace" };
                format!("mark:{name} is {place}; its marks are {}{more}", self.marks.join(", "))
            }
            _ => return Ok(self.last),
        };
        Err(Error::Usage(wrong))
    }

    #[inline]
    fn site(&mut self, number: u64) -> Result<&mut Amount> {
        let number = usize::try_from(number).map_err(|_| Error::Limit("sites"))?;
        if number >= self.sites.len() {
            self.sites.resize(number.checked_add(1).ok_or(Error::Limit("sites"))?, Amount::default());
        }
        self.sites.get_mut(number).ok_or(Error::Limit("sites"))
    }

    /// Notes a mark, behind the last event. A range has the records of its marks, at its beginning and at its end.
    fn mark(&mut self, name: &str, before: Place) {
        // The first mark of a name is the point; of a range from a mark to another of the same name, the second is its end.
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
        // Of a record without an event, too, the time counts.
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

/// Finds the event at which the most bytes are live, for the first time.
#[derive(Clone, Debug, Default)]
pub struct Highest {
    live: u64,
    most: u64,
    tick: u64,
    weight: Weight,
}

impl Highest {
    /// Starts with nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the event; 0: nothing was ever live.
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
