//! The stored form of a model, which is versioned JSON and is validated when it is read.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use super::clock::{Clock, Unfreed};
use super::histogram::Histogram;
use super::kind::{Kind, Part};
use super::moments::Moments;
use super::outline::Outline;
use super::row::Row;
use hatf_lab::{Error, Result};

/// The maximum number of buckets in a model.
pub const MOST_BUCKETS: u64 = 1 << 20;

const FORMAT: &str = "hatf model";
/// The format version, which changes whenever an older reader would misread a newer model.
const VERSION: u32 = 1;
/// The maximum file size in bytes. Larger files are rejected, because the decoded numbers occupy several times as much
/// memory.
const MOST_BYTES: u64 = 1 << 30;

/// A model fitted to a trace.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_research::model::{Choice, Fitter, Kind, Model, Settings};
/// use hatf_trace::{Event, EventSink};
///
/// let kind = Kind::same(Choice::Cdf);
/// let mut tracker = HeapTracker::new(Fitter::new(Settings::new(vec![kind]), None)?);
/// tracker.event(&Event::malloc(1, 30))?;
/// tracker.event(&Event::malloc(2, 10))?;
/// let (heap, fitter) = tracker.into_parts();
/// let model = fitter.finish(&heap.totals(), None)?.model(kind);
///
/// let mut json = Vec::new();
/// model.write(&mut json)?;
/// assert_eq!(Model::read(json.as_slice())?, model);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    format: String,
    version: u32,
    model: Kind,
    clock: Clock,
    unfreed: Unfreed,
    /// The end of the clock, T.
    end: u64,
    trace: Row,
    parts: Parts,
}

/// The data of a model. The moments are the fallback for parts without data to draw from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parts {
    pub(super) moments: Three<Moments>,
    #[serde(default, skip_serializing_if = "Three::is_empty")]
    pub(super) histograms: Histograms,
    #[serde(default, skip_serializing_if = "Three::is_empty")]
    pub(super) markers: Markers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) classes: Option<Vec<Class>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) buckets: Option<Vec<Bucket>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) transitions: Option<Transitions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outline: Option<Outline>,
}

/// One value each for sizes, interarrival times and holding times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Three<T> {
    pub(super) size: T,
    pub(super) iat: T,
    pub(super) ht: T,
}

pub(super) type Histograms = Three<Option<Histogram>>;
/// Equidistant quantiles.
pub(super) type Markers = Three<Option<Vec<f64>>>;

/// A size class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, Moments)", into = "(u64, u64, Moments)")]
pub(super) struct Class {
    pub(super) size: u64,
    pub(super) count: u64,
    pub(super) ht: Moments,
}

/// A time bucket, with the number of objects and their statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u64, Moments, Moments, Moments)", into = "(u64, Moments, Moments, Moments)")]
pub(super) struct Bucket {
    pub(super) count: u64,
    pub(super) size: Moments,
    pub(super) iat: Moments,
    pub(super) ht: Moments,
}

/// A pair of sizes that were allocated consecutively.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64, Moments, Moments)", into = "(u64, u64, u64, Moments, Moments)")]
pub(super) struct Cell {
    pub(super) before: u64,
    pub(super) size: u64,
    pub(super) count: u64,
    pub(super) iat: Moments,
    pub(super) ht: Moments,
}

/// The transition matrix, stored as a list of its non-empty cells by row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Transitions {
    /// The first size in the trace.
    pub(super) first: u64,
    pub(super) cells: Vec<Cell>,
}

impl<T> Three<T> {
    pub(super) fn of([size, iat, ht]: [T; 3]) -> Self {
        Self { size, iat, ht }
    }

    fn each(&self) -> [(&'static str, &T); 3] {
        [("size", &self.size), ("iat", &self.iat), ("ht", &self.ht)]
    }
}

impl<T: Clone> Three<Option<T>> {
    fn is_empty(&self) -> bool {
        self.each().iter().all(|(_, value)| value.is_none())
    }

    /// Copies only the quantities whose choice depends on the part.
    fn needed(&self, kind: Kind, part: Part) -> Self {
        let keep = |needed: bool, value: &Option<T>| value.clone().filter(|_| needed);
        let [size, iat, ht] = kind.choices().map(|choice| choice.part() == part);
        Self { size: keep(size, &self.size), iat: keep(iat, &self.iat), ht: keep(ht, &self.ht) }
    }
}

impl Class {
    pub(super) fn new(size: u64) -> Self {
        Self { size, count: 0, ht: Moments::default() }
    }
}

impl Cell {
    pub(super) fn new(before: u64, size: u64) -> Self {
        Self { before, size, count: 0, iat: Moments::default(), ht: Moments::default() }
    }
}

/// Serializes a struct as an array of its fields.
macro_rules! array {
    ($name:ident { $($field:ident: $type:ty),+ }) => {
        impl From<($($type,)+)> for $name {
            fn from(($($field,)+): ($($type,)+)) -> Self {
                Self { $($field),+ }
            }
        }

        impl From<$name> for ($($type,)+) {
            fn from($name { $($field),+ }: $name) -> Self {
                ($($field,)+)
            }
        }
    };
}

array!(Class { size: u64, count: u64, ht: Moments });
array!(Bucket { count: u64, size: Moments, iat: Moments, ht: Moments });
array!(Cell { before: u64, size: u64, count: u64, iat: Moments, ht: Moments });

impl Parts {
    /// Copies the parts on which a model depends.
    pub(super) fn of(&self, kind: Kind) -> Self {
        Self {
            moments: self.moments,
            histograms: self.histograms.needed(kind, Part::Histogram),
            markers: self.markers.needed(kind, Part::Markers),
            classes: self.classes.clone().filter(|_| kind.needs(Part::Classes)),
            buckets: self.buckets.clone().filter(|_| kind.needs(Part::Buckets)),
            transitions: self.transitions.clone().filter(|_| kind.needs(Part::Transitions)),
            outline: self.outline.clone().filter(|_| kind.needs(Part::Outline)),
        }
    }

    /// Checks that all parts required by a model exist and can be sampled.
    fn check(&self, kind: Kind) -> Result<()> {
        for (name, moments) in self.moments.each() {
            ensure(moments.is_sound(), || format!("the moments of {name} have a sum but no count"))?;
        }
        ensure(self.moments.size.count() > 0, || "it contains no objects".to_owned())?;
        let each = self.histograms.each().into_iter().zip(self.markers.each());
        for (((name, histogram), (_, markers)), choice) in each.zip(kind.choices()) {
            let histogram_fits = match histogram {
                Some(histogram) => histogram.is_sound(),
                None => choice.part() != Part::Histogram,
            };
            ensure(histogram_fits, || format!("the histogram of {name} is missing or not sorted"))?;
            let markers_fit = match markers {
                Some(markers) => {
                    markers.is_sorted() && markers.iter().all(|marker| marker.is_finite() && *marker >= 0.0)
                }
                None => choice.part() != Part::Markers,
            };
            ensure(markers_fit, || format!("the markers of {name} are missing or not sorted"))?;
        }
        if kind.needs(Part::Classes) {
            let classes = self.classes.as_deref().unwrap_or_default();
            let ascend = classes.is_sorted_by(|a, b| a.size < b.size);
            let sound = classes.iter().all(|class| class.count > 0 && class.ht.is_sound());
            ensure(!classes.is_empty() && ascend && sound, || "size classes are missing or not sorted".to_owned())?;
        }
        if kind.needs(Part::Buckets) {
            let buckets = self.buckets.as_deref().unwrap_or_default();
            let some = buckets.iter().any(|bucket| bucket.count > 0) && buckets.len() as u64 <= MOST_BUCKETS;
            let sound = buckets.iter().all(|bucket| {
                [bucket.size, bucket.iat, bucket.ht].iter().all(Moments::is_sound)
                    && bucket.size.count() == bucket.count
                    && bucket.count < 1 << 48
            });
            ensure(some && sound, || "time buckets are missing or inconsistent".to_owned())?;
        }
        if kind.needs(Part::Transitions) {
            let sound = self.transitions.as_ref().is_some_and(|transitions| {
                let cells = &transitions.cells;
                let total = cells.iter().try_fold(0_u64, |sum, cell| sum.checked_add(cell.count));
                cells.is_sorted_by(|a, b| (a.before, a.size) < (b.before, b.size))
                    && cells.iter().all(|cell| cell.count > 0 && cell.iat.count() > 0 && cell.ht.is_sound())
                    && total.is_some()
                    && cells.len() < u32::MAX as usize
            });
            ensure(sound, || "size transitions are missing or not sorted".to_owned())?;
        }
        if kind.needs(Part::Outline) {
            let sound = self.outline.as_ref().is_some_and(|outline| outline.unpack().is_some());
            ensure(sound, || "the outline is missing or inconsistent".to_owned())?;
        }
        Ok(())
    }
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Model(problem())) }
}

impl Model {
    pub(super) fn new(kind: Kind, clock: Clock, unfreed: Unfreed, end: u64, trace: Row, parts: Parts) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, model: kind, clock, unfreed, end, trace, parts }
    }

    /// Returns the kind of model.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.model
    }

    /// Returns the clock used for the model's times.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the end of the clock, T.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the row of Table 4 for the trace to which the model was fitted.
    #[must_use]
    pub fn row(&self) -> &Row {
        &self.trace
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(super) fn buckets(&self) -> usize {
        self.parts.buckets.as_ref().map_or(0, Vec::len)
    }

    pub(super) fn cells(&self) -> usize {
        self.parts.transitions.as_ref().map_or(0, |transitions| transitions.cells.len())
    }

    pub(super) fn outline_words(&self) -> usize {
        self.parts.outline.as_ref().map_or(0, Outline::words)
    }

    /// Writes the model as one line of JSON. Returns the number of bytes written.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> Result<u64> {
        let failed = |error: std::io::Error| Error::System("writing a model", error);
        let mut text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        out.write_all(&text).map_err(failed)?;
        Ok(text.len() as u64)
    }

    /// Reads a model from an untrusted source. For any accepted model, generation never panics, and it terminates or
    /// can be limited.
    ///
    /// # Errors
    /// Fails if the input cannot be read, is not a model, has a different version, or is inconsistent.
    pub fn read(input: impl Read) -> Result<Self> {
        /// The fields to read first, so that the error for a model of a different version names the version.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let mut text = Vec::new();
        let read = input.take(MOST_BYTES + 1).read_to_end(&mut text);
        read.map_err(|error| Error::System("reading a model", error))?;
        ensure(text.len() as u64 <= MOST_BYTES, || format!("it is larger than {MOST_BYTES} bytes"))?;
        let wrong = |error: serde_json::Error| Error::Model(format!("it is not a model: {error}"));
        let head: Head = serde_json::from_slice(&text).map_err(wrong)?;
        ensure(head.format == FORMAT, || format!("expected format `{FORMAT}`, found `{}`", short(&head.format)))?;
        ensure(head.version == VERSION, || format!("expected version {VERSION}, found version {}", head.version))?;
        let model: Self = serde_json::from_slice(&text).map_err(wrong)?;
        ensure(model.end > 0, || "its clock ends at 0".to_owned())?;
        model.parts.check(model.model)?;
        Ok(model)
    }
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}
