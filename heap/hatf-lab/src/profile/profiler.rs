//! Builds heap info blocks from object events.

use hashbrown::HashMap;

use super::info::{Ended, HeapInfo, Live};
use super::merge::Merged;
use super::sizes::Sizes;
use super::table::{InfoTable, Lookups, TableSettings};
use hatf_trace::event::Accesses;
use hatf_trace::{Event, EventKind};

use crate::site_counts::{Amount, Counts, Sites};
use crate::{Change, Error, Heap, Object, ObjectEvent, Observer, Result};

/// Nanoseconds per tick. As in the RFC, a tick is one millisecond.
pub const TICK: u64 = 1_000_000;

/// The common property of the blocks in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContextKey {
    /// The number of the allocating stack.
    Stack(u64),
    /// The allocating thread and the size rounded up to a power of two, used if the stack is unknown. Sizes above 2^63
    /// belong to the class of 2^64.
    Size {
        /// The exponent of the power of two.
        class: u32,
        /// The thread.
        thread: u64,
    },
}

impl ContextKey {
    /// Returns the context of a block.
    #[must_use]
    pub fn new(site: u64, size: u64, thread: u64) -> Self {
        match site {
            0 => Self::Size { class: size.checked_sub(1).map_or(0, |last| u64::BITS - last.leading_zeros()), thread },
            site => Self::Stack(site),
        }
    }
}

/// A receiver of heap info blocks as they are written.
pub trait InfoSink {
    /// Receives a heap info block that was evicted or that remained at the end.
    ///
    /// # Errors
    /// After an error, no more heap info blocks should be delivered.
    fn info(&mut self, info: HeapInfo) -> Result<()>;
}

impl<S: InfoSink + ?Sized> InfoSink for &mut S {
    fn info(&mut self, info: HeapInfo) -> Result<()> {
        (**self).info(info)
    }
}

/// Merges heap info blocks as they arrive.
impl InfoSink for Merged {
    fn info(&mut self, info: HeapInfo) -> Result<()> {
        self.add(info, true);
        Ok(())
    }
}

impl InfoSink for Vec<HeapInfo> {
    fn info(&mut self, info: HeapInfo) -> Result<()> {
        self.push(info);
        Ok(())
    }
}

/// Settings of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilerSettings {
    /// The settings of the table.
    pub table: TableSettings,
    /// Nanoseconds per tick, which must be at least 1.
    pub tick: u64,
}

impl Default for ProfilerSettings {
    fn default() -> Self {
        Self { table: TableSettings::default(), tick: TICK }
    }
}

/// The number of heap info blocks without timestamps after which a trace is considered to have no timestamps.
const UNTIMED: usize = 1 << 16;

/// Whether the trace has timestamps. This is unknown until the first nonzero timestamp, so heap info blocks are held
/// back until then.
#[derive(Debug)]
enum Times {
    Unknown(Vec<HeapInfo>),
    Known,
    None,
}

/// An [`Observer`] that passes heap info blocks to a sink when the table evicts them, and passes the remaining ones at
/// the end.
///
/// Contexts are numbered from 1 in the order of their first allocation. Memory is bounded by the live objects, the
/// contexts and the table.
///
/// The [module's example](crate::profile#examples) profiles a trace.
#[derive(Debug)]
pub struct Profiler<S> {
    settings: ProfilerSettings,
    table: InfoTable<HeapInfo>,
    sizes: Sizes,
    numbers: HashMap<ContextKey, u64>,
    keys: Vec<ContextKey>,
    /// The contexts of live objects, by slot.
    contexts: Vec<u64>,
    /// The current CPU of each thread, if the trace contains it.
    processors: HashMap<u64, u64>,
    /// The CPUs on which live objects were allocated, by slot.
    allocated_on: Vec<Option<u64>>,
    /// The counted accesses to live objects, by slot.
    accesses: Vec<Option<Accesses>>,
    /// The live amounts by context.
    live: Sites,
    /// The time of the first event.
    base: Option<u64>,
    /// The time of the last event.
    last: u64,
    times: Times,
    sink: S,
}

impl<S: InfoSink> Profiler<S> {
    /// Creates a profiler with an empty table. Also counts lookups in tables of other sizes.
    ///
    /// # Errors
    /// Fails if the settings are out of range.
    pub fn new(settings: ProfilerSettings, sizes: Sizes, sink: S) -> Result<Self> {
        if settings.tick == 0 {
            return Err(Error::Usage("a tick must be at least one nanosecond".to_owned()));
        }
        Ok(Self {
            settings,
            table: InfoTable::new(settings.table)?,
            sizes,
            numbers: HashMap::new(),
            keys: Vec::new(),
            contexts: Vec::new(),
            processors: HashMap::new(),
            allocated_on: Vec::new(),
            accesses: Vec::new(),
            live: Sites::new(),
            base: None,
            last: 0,
            times: Times::Unknown(Vec::new()),
            sink,
        })
    }

    /// Ends the profile. Objects that are still live end with the last event, in allocation order.
    ///
    /// # Errors
    /// Returns the errors of the sink.
    pub fn finish(mut self, live: impl Iterator<Item = Object>) -> Result<Profiled<S>> {
        let mut live: Vec<Object> = live.collect();
        live.sort_unstable_by_key(|object| object.number);
        let last = self.last;
        live.into_iter().try_for_each(|object| self.ended(&object, last, object.thread))?;
        let (lookups, settings) = (self.table.lookups(), self.table.settings());
        let table = std::mem::replace(&mut self.table, InfoTable::new(TableSettings { sets: 1, ..settings })?);
        let mut live: Vec<Option<Live>> = self.live.report().iter().map(live_of).collect();
        for mut info in table.finish() {
            let of_context = usize::try_from(info.context).ok().and_then(|context| live.get_mut(context));
            info.live = of_context.and_then(Option::take);
            self.write(info)?;
        }
        // All blocks of these contexts have already been evicted.
        for (context, live) in (0..).zip(live) {
            if live.is_some() && context > 0 {
                self.write(HeapInfo::of_sums(context, Amount::default(), live))?;
            }
        }
        if let Times::Unknown(waiting) = std::mem::replace(&mut self.times, Times::None) {
            waiting.into_iter().try_for_each(|info| self.write(info))?;
        }
        Ok(Profiled { contexts: self.keys, lookups, sizes: self.sizes, sink: self.sink })
    }

    fn context(&mut self, key: ContextKey) -> u64 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.keys.len() as u64
        })
    }

    /// Processes an object ended by a thread.
    fn ended(&mut self, object: &Object, time: u64, thread: u64) -> Result<()> {
        let context = self.contexts.get(object.slot as usize).copied().unwrap_or(0);
        let base = self.base.unwrap_or(0);
        let tick = |time: u64| time.saturating_sub(base) / self.settings.tick;
        let timestamps = Some((tick(object.time), tick(time)));
        let accesses = self.accesses.get_mut(object.slot as usize).and_then(Option::take);
        let allocated_on = self.allocated_on.get(object.slot as usize).copied().flatten();
        let cpus = allocated_on.zip(self.processors.get(&thread).copied());
        let ended = Ended { context, size: object.size, timestamps, cpus, accesses, ..Ended::default() };
        self.sizes.ended(context);
        match self.table.insert(HeapInfo::new(&ended, self.settings.tick)) {
            Some(evicted) => self.write(evicted),
            None => Ok(()),
        }
    }

    fn write(&mut self, info: HeapInfo) -> Result<()> {
        match &mut self.times {
            Times::Known => self.sink.info(info),
            Times::None => self.sink.info(info.without_times()),
            Times::Unknown(waiting) => {
                waiting.push(info);
                if waiting.len() < UNTIMED { Ok(()) } else { self.decide(Times::None) }
            }
        }
    }

    /// Writes the heap info blocks held back so far.
    fn decide(&mut self, times: Times) -> Result<()> {
        match std::mem::replace(&mut self.times, times) {
            Times::Unknown(waiting) => waiting.into_iter().try_for_each(|info| self.write(info)),
            decided => {
                self.times = decided;
                Ok(())
            }
        }
    }
}

impl<S: InfoSink> Observer for Profiler<S> {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let object = &event.object;
        if event.time != 0 && matches!(self.times, Times::Unknown(_)) {
            self.decide(Times::Known)?;
        }
        self.base.get_or_insert(event.time);
        self.last = event.time;
        match event.change {
            Change::Allocated => {
                let context = self.context(ContextKey::new(object.site, object.size, object.thread));
                self.live.count(context, event)?;
                match self.contexts.get_mut(object.slot as usize) {
                    Some(place) => *place = context,
                    None => self.contexts.push(context),
                }
                if !self.processors.is_empty() {
                    let slot = object.slot as usize;
                    self.allocated_on.resize(self.allocated_on.len().max(slot + 1), None);
                    if let Some(place) = self.allocated_on.get_mut(slot) {
                        *place = self.processors.get(&event.thread).copied();
                    }
                }
                Ok(())
            }
            Change::Freed => {
                let context = self.contexts.get(object.slot as usize).copied().unwrap_or(0);
                self.live.count(context, event)?;
                self.ended(object, event.time, event.thread)
            }
        }
    }

    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
        match record.kind {
            EventKind::Processor { cpu } => drop(self.processors.insert(record.thread, cpu)),
            EventKind::Accesses(accesses) => {
                let Some(slot) = heap.objects.slot(accesses.address) else { return Ok(()) };
                let slot = slot as usize;
                if self.accesses.len() <= slot {
                    self.accesses.resize(slot + 1, None);
                }
                if let Some(place) = self.accesses.get_mut(slot) {
                    *place = Some(accesses);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn live_of(counts: &Counts) -> Option<Live> {
    Some(Live { peak: counts.peak, end: counts.leaked })
}

/// The result of a [`Profiler`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Profiled<S> {
    /// The contexts in order of their numbers, starting with context 1.
    pub contexts: Vec<ContextKey>,
    /// The lookups in the table.
    pub lookups: Lookups,
    /// The lookups in tables of other sizes.
    pub sizes: Sizes,
    /// The sink.
    pub sink: S,
}
