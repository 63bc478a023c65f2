//! Fits models to the events of a trace in one pass.

use std::collections::HashMap;

use super::clock::{Clock, Running, Unfreed};
use super::file::{Bucket, Cell, Class, Histograms, MOST_BUCKETS, Markers, Model, Parts, Three, Transitions};
use super::histogram::Histogram;
use super::kind::{Kind, Part};
use super::moments::Moments;
use super::outline_fit::Collector;
use super::p2::P2;
use super::row::Row;
use hatf_lab::{AddressMap, Change, Error, ObjectEvent, Observer, Result, Totals};

/// The models to fit, and the settings for measuring times.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The models to fit. Data that several models share is collected once.
    pub kinds: Vec<Kind>,
    /// The clock.
    pub clock: Clock,
    /// The treatment of objects that are never freed.
    pub unfreed: Unfreed,
    /// The number of time buckets, which is the paper's M.
    pub buckets: u64,
}

/// The number of time buckets in the paper, M.
pub const BUCKETS: u64 = 10_000;

impl Settings {
    /// Returns the default settings for these models.
    #[must_use]
    pub fn new(kinds: Vec<Kind>) -> Self {
        Self { kinds, clock: Clock::default(), unfreed: Unfreed::default(), buckets: BUCKETS }
    }

    /// Returns whether the end of the trace must be known before fitting begins. An earlier pass with [`Running`]
    /// determines the end.
    #[must_use]
    pub fn needs_end(&self) -> bool {
        self.needs(Part::Buckets) || self.needs(Part::Outline)
    }

    fn needs(&self, part: Part) -> bool {
        self.kinds.iter().any(|kind| kind.needs(part))
    }
}

/// The observations of one quantity.
#[derive(Debug, Default)]
struct Observed {
    counts: AddressMap<u64>,
    moments: Moments,
    markers: Option<P2>,
}

impl Observed {
    fn new(markers: bool) -> Self {
        Self { markers: markers.then(P2::default), ..Self::default() }
    }

    #[inline]
    fn note(&mut self, value: u64) {
        *self.counts.entry(value).or_default() += 1;
        self.moments.note(value);
        if let Some(markers) = &mut self.markers {
            markers.note(super::law::wide(value));
        }
    }
}

/// The stored data of a live object.
#[derive(Clone, Copy, Debug)]
struct Birth {
    number: u64,
    time: u64,
    size: u64,
    cell: Option<u32>,
}

/// Time buckets being filled.
#[derive(Debug)]
struct Buckets {
    end: u64,
    buckets: Vec<Bucket>,
}

impl Buckets {
    /// Returns the bucket of a time, `b T/M < time <= (b + 1) T/M`.
    fn of(&mut self, time: u64) -> Option<&mut Bucket> {
        let scaled = u128::from(time) * self.buckets.len() as u128;
        let bucket = scaled.div_ceil(u128::from(self.end.max(1))).saturating_sub(1);
        let last = self.buckets.len().checked_sub(1)?;
        self.buckets.get_mut(usize::try_from(bucket).map_or(last, |bucket| bucket.min(last)))
    }
}

/// A collector of the data for models. Memory is bounded by the live objects and the distinct sizes, times and size
/// pairs.
#[derive(Debug)]
pub struct Fitter {
    settings: Settings,
    clock: Running,
    /// Live objects by slot.
    births: Vec<Option<Birth>>,
    /// The time and size of the last allocation.
    last: Option<(u64, u64)>,
    first_size: u64,
    sizes: Observed,
    iats: Observed,
    hts: Observed,
    classes: Option<AddressMap<Class>>,
    buckets: Option<Buckets>,
    /// Indices of size pairs in `cells`.
    pairs: Option<HashMap<(u64, u64), u32>>,
    cells: Vec<Cell>,
    outline: Option<Collector>,
}

/// The fitted data for all models in the settings.
#[derive(Debug)]
pub struct Fitted {
    settings: Settings,
    end: u64,
    row: Row,
    parts: Parts,
}

impl Fitter {
    /// Creates a collector. `end` is the last time in the trace. It is required if [`Settings::needs_end`] returns
    /// `true`.
    ///
    /// # Errors
    /// Fails if `end` is missing or the number of buckets is out of range.
    pub fn new(settings: Settings, end: Option<u64>) -> Result<Self> {
        let markers = settings.needs(Part::Markers);
        let buckets = match (settings.needs_end(), end) {
            (false, _) => None,
            (true, None) => return Err(Error::Usage("this model requires `end`, the trace's last time".to_owned())),
            (true, Some(_)) if !settings.needs(Part::Buckets) => None,
            (true, Some(end)) => {
                let count = usize::try_from(settings.buckets).ok().filter(|_| settings.buckets <= MOST_BUCKETS);
                let wrong = || Error::Usage(format!("the number of buckets must be from 1 to {MOST_BUCKETS}"));
                let count = count.filter(|count| *count > 0).ok_or_else(wrong)?;
                Some(Buckets { end, buckets: vec![Bucket::default(); count] })
            }
        };
        if settings.needs(Part::Outline) && settings.clock != Clock::Events {
            return Err(Error::Usage("model `outline` requires --clock events".to_owned()));
        }
        let outline = settings.needs(Part::Outline).then(|| Collector::new(end.unwrap_or(0)));
        Ok(Self {
            outline,
            clock: Running::new(settings.clock),
            births: Vec::new(),
            last: None,
            first_size: 0,
            sizes: Observed::new(markers),
            iats: Observed::new(markers),
            hts: Observed::new(markers),
            classes: settings.needs(Part::Classes).then(AddressMap::default),
            buckets,
            pairs: settings.needs(Part::Transitions).then(HashMap::new),
            cells: Vec::new(),
            settings,
        })
    }

    fn allocated(&mut self, time: u64, event: &ObjectEvent) -> Result<()> {
        let size = event.object.size;
        self.sizes.note(size);
        let before = self.last.replace((time, size));
        let iat = before.map(|(before, _)| time - before);
        match iat {
            Some(iat) => self.iats.note(iat),
            None => self.first_size = size,
        }
        if let Some(classes) = &mut self.classes {
            classes.entry(size).or_insert_with(|| Class::new(size)).count += 1;
        }
        if let Some(bucket) = self.buckets.as_mut().and_then(|buckets| buckets.of(time)) {
            bucket.count += 1;
            bucket.size.note(size);
            if let Some(iat) = iat {
                bucket.iat.note(iat);
            }
        }
        let mut cell = None;
        if let (Some(pairs), Some((_, before)), Some(iat)) = (&mut self.pairs, before, iat) {
            let next = u32::try_from(self.cells.len()).map_err(|_| Error::Limit("2^32 pairs of sizes"))?;
            let place = *pairs.entry((before, size)).or_insert(next);
            if place == next {
                self.cells.push(Cell::new(before, size));
            }
            if let Some(cell) = self.cells.get_mut(place as usize) {
                cell.count += 1;
                cell.iat.note(iat);
            }
            cell = Some(place);
        }
        let birth = Some(Birth { number: event.object.number, time, size, cell });
        match self.births.get_mut(event.object.slot as usize) {
            Some(place) => *place = birth,
            // New slots have consecutive numbers.
            None => self.births.push(birth),
        }
        Ok(())
    }

    fn ended(&mut self, time: u64, birth: &Birth) {
        let ht = time - birth.time;
        self.hts.note(ht);
        if let Some(class) = self.classes.as_mut().and_then(|classes| classes.get_mut(&birth.size)) {
            class.ht.note(ht);
        }
        if let Some(bucket) = self.buckets.as_mut().and_then(|buckets| buckets.of(birth.time)) {
            bucket.ht.note(ht);
        }
        if let Some(cell) = birth.cell.and_then(|cell| self.cells.get_mut(cell as usize)) {
            cell.ht.note(ht);
        }
    }

    /// Returns the fitted data. `totals` must cover the same events; `trace_bytes` is the size of the trace file, if
    /// known.
    ///
    /// # Errors
    /// Fails if the trace has no objects or if the clock did not advance.
    pub fn finish(mut self, totals: &Totals, trace_bytes: Option<u64>) -> Result<Fitted> {
        let end = self.clock.end()?;
        if totals.objects == 0 {
            return Err(Error::Trace("the trace has no objects".to_owned()));
        }
        if self.settings.unfreed == Unfreed::End {
            let mut live: Vec<Birth> = self.births.iter().copied().flatten().collect();
            live.sort_unstable_by_key(|birth| birth.number);
            live.iter().for_each(|birth| self.ended(end, birth));
        }
        let births = self.births.iter().flatten().map(|birth| (birth.size, birth.time));
        let outline = self.outline.map(|outline| outline.finish(births, totals.max_bytes));
        let mut classes: Vec<Class> = self.classes.into_iter().flatten().map(|(_, class)| class).collect();
        classes.sort_unstable_by_key(|class| class.size);
        self.cells.sort_unstable_by_key(|cell| (cell.before, cell.size));
        let three = [&self.sizes, &self.iats, &self.hts];
        let [sizes, iats, hts] = three.map(|observed| observed.counts.len() as u64);
        let markers = three.map(|observed| observed.markers.iter().flat_map(P2::markers).copied().collect());
        let parts = Parts {
            moments: Three::of(three.map(|observed| observed.moments)),
            histograms: Histograms::of(three.map(|observed| Some(Histogram::new(&observed.counts)))),
            markers: Markers::of(markers.map(Some)),
            classes: self.settings.needs(Part::Classes).then_some(classes),
            buckets: self.buckets.map(|buckets| buckets.buckets),
            transitions: self.pairs.map(|_| Transitions { first: self.first_size, cells: self.cells }),
            outline,
        };
        let row = Row {
            objects: totals.objects,
            max_objects: totals.max_objects,
            bytes: totals.bytes,
            max_bytes: totals.max_bytes,
            size_classes: sizes,
            interarrival_classes: iats,
            holding_classes: hts,
            end,
            trace_bytes,
            never_freed: totals.never_freed,
        };
        Ok(Fitted { settings: self.settings, end, row, parts })
    }
}

impl Observer for Fitter {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let time = self.clock.at(event);
        if let Some(outline) = &mut self.outline {
            outline.event(event);
        }
        match event.change {
            Change::Allocated => self.allocated(time, event),
            Change::Freed => {
                let birth = self.births.get_mut(event.object.slot as usize).and_then(Option::take);
                birth.iter().for_each(|birth| self.ended(time, birth));
                Ok(())
            }
        }
    }
}

impl Fitted {
    /// Returns the row of the paper's Table 4 for the trace.
    #[must_use]
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// Returns one of the models.
    #[must_use]
    pub fn model(&self, kind: Kind) -> Model {
        let Settings { clock, unfreed, .. } = self.settings;
        Model::new(kind, clock, unfreed, self.end, self.row, self.parts.of(kind))
    }

    /// Returns all models in the order of the settings.
    #[must_use]
    pub fn models(&self) -> Vec<Model> {
        self.settings.kinds.iter().map(|kind| self.model(*kind)).collect()
    }
}
