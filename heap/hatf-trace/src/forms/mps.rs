//! Telemetry logs of the Memory Pool System, read as heap traces of the allocations and frees in its pools.
//!
//! A log is not in chronological order, so its events are sorted first, which takes 40 bytes of memory per event.

use std::collections::{BTreeMap, HashMap, VecDeque};

use metatf::container::{Class, Order, Reader};
use metatf::dynamic::{Schema, Trace};
use serde_json::json;

use super::{Form, Input, TraceReader, failed};
use crate::event::{Call, Event, EventKind, EventSource, Function, Item, UserMetadata};
use crate::trace::dtd_has;
use crate::{Error, Result};

/// The DTD of these logs. Traces made from a log embed this DTD.
const DTD: &str = include_str!("../../dtds/mps.dtd");

/// The format of logs from a 64-bit little-endian machine. The input can also be a trace that `metatfc sort` or
/// `metatfc convert` made from a log.
pub(super) static FORM: Form = Form {
    name: "mps",
    about: "Telemetry logs of the Memory Pool System, event version 2.0.0",
    suffixes: &["mpsio.log", "mps.log", ".mps"],
    sniff: |head| {
        head.trace.is_some_and(|trace| ["PoolAlloc", "PoolFree", "PoolFinish"].iter().all(|word| dtd_has(trace, word)))
    },
    open: Some(|input, note| {
        let mut log = Log::default();
        log.read(open(input)?)?;
        let objects = Objects::new(log);
        objects.notes().iter().for_each(|line| note(line));
        Ok(TraceReader::new(objects))
    }),
    create: None,
    lost: "",
};

/// A relevant event of the log.
#[derive(Clone, Copy)]
struct Kept {
    clock: u64,
    kind: Kind,
    address: u64,
    size: u64,
    pool: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Alloc,
    Free,
    Finish,
}

#[derive(Default)]
struct Log {
    events: Vec<Kept>,
    /// Ticks of the system clock per second, or 0 if unknown.
    clocks_per_second: u64,
    /// The first and the last reading of both clocks, ordered by the log's clock.
    moments: Option<(Moment, Moment)>,
}

/// A simultaneous reading of the log's clock and the system clock (`EventClockSync`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    log: u64,
    system: u64,
}

/// The default number of system clock ticks per second, for logs without `EventInit`; POSIX fixes this value.
const CLOCKS_PER_SECOND: u64 = 1_000_000;

/// The conversion from ticks of the log's clock to nanoseconds: `ticks * nanoseconds / per`.
struct Rate {
    nanoseconds: u128,
    per: u128,
}

impl Rate {
    /// Computes the rate from the two readings that are furthest apart. Returns `None` unless both clocks advanced
    /// between them.
    fn new((first, last): (Moment, Moment), clocks_per_second: u64) -> Option<Self> {
        let (mut steps, mut clocks) = (last.log - first.log, last.system.checked_sub(first.system)?);
        // Reducing each difference to 32 bits is precise enough, and then no product exceeds 128 bits.
        while steps.max(clocks) > u64::from(u32::MAX) {
            (steps, clocks) = (steps >> 1, clocks >> 1);
        }
        let per = u128::from(steps) * u128::from(clocks_per_second);
        (per > 0 && clocks > 0).then(|| Self { nanoseconds: u128::from(clocks) * 1_000_000_000, per })
    }

    fn nanoseconds(&self, steps: u64) -> u64 {
        u64::try_from(u128::from(steps) * self.nanoseconds / self.per).unwrap_or(u64::MAX)
    }

    fn steps_per_second(&self) -> u64 {
        u64::try_from(self.per * 1_000_000_000 / self.nanoseconds).unwrap_or(u64::MAX)
    }
}

impl Log {
    fn read(&mut self, mut trace: Trace<'static>) -> Result<()> {
        let schema = trace.schema().clone();
        // The records below have no repeated fields, so the index of a leaf is also its position in a decoded record.
        let place = |record: &str, field: &str| {
            let number = schema.dtd.records.iter().position(|found| found.name == record)?;
            let place = schema.dtd.records.get(number)?.leaves.iter().position(|leaf| leaf.key == field)?;
            Some((u16::try_from(number).ok()?, place))
        };
        let need = |record: &str, field: &str| {
            place(record, field).ok_or_else(|| {
                failed(format!("not a log of the Memory Pool System: its DTD does not define `{record}.{field}`"))
            })
        };
        let kinds = [
            (Kind::Alloc, "PoolAlloc", Some(("pReturn", "size"))),
            (Kind::Free, "PoolFree", Some(("old", "size"))),
            (Kind::Finish, "PoolFinish", None),
        ];
        let mut fields = BTreeMap::new();
        for (kind, record, object) in kinds {
            let (number, clock) = need(record, "clock")?;
            let pool = need(record, "pool")?.1;
            let object =
                object.map(|(address, size)| Ok::<_, Error>((need(record, address)?.1, need(record, size)?.1)));
            fields.insert(number, (kind, clock, pool, object.transpose()?));
        }
        let speed = place("EventInit", "clocksPerSec");
        // This record has two fields called `clock`: the time of the event, and the system clock.
        let sync = place("EventClockSync", "clock").zip(place("EventClockSync", "clock_2"));
        let read = trace.for_each(|record| {
            let number = |place: usize| record.numbers().get(place).copied().unwrap_or_default();
            if let Some((kind, clock, pool, object)) = fields.get(&record.record()) {
                let (address, size) = object.map_or((0, 0), |(address, size)| (number(address), number(size)));
                self.events.push(Kept { clock: number(*clock), kind: *kind, address, size, pool: number(*pool) });
            } else if let Some((_, place)) = speed.filter(|(init, _)| *init == record.record()) {
                self.clocks_per_second = number(place);
            } else if let Some(((_, log), (_, system))) = sync.filter(|((sync, _), _)| *sync == record.record()) {
                let moment = Moment { log: number(log), system: number(system) };
                let (first, last) = self.moments.unwrap_or((moment, moment));
                self.moments = Some((first.min(moment), last.max(moment)));
            }
        });
        read.map_err(|error| failed(metatf::explain(&schema.format, &error)))
    }

    /// Returns the ends of objects whose allocation is not in the log. Each end is paired with the number of events up
    /// to the previous end at the same address, before which the object cannot have been allocated. Also returns the
    /// number of objects that ended with their pool.
    fn unseen(&self) -> (Vec<(usize, Kept)>, u64) {
        let (mut live, mut ended, mut unseen) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut with_pool = 0;
        for (at, event) in self.events.iter().enumerate() {
            match event.kind {
                Kind::Alloc => drop(live.insert(event.address, Some(event.pool))),
                Kind::Free => {
                    if live.remove(&event.address).is_none() {
                        unseen.push((ended.get(&event.address).copied().unwrap_or(0), *event));
                    }
                    ended.insert(event.address, at + 1);
                }
                Kind::Finish => {
                    for address in of_pool(&live, event.pool) {
                        live.remove(&address);
                        ended.insert(address, at + 1);
                        with_pool += 1;
                    }
                }
            }
        }
        unseen.sort_by_key(|(behind, free)| (*behind, free.address));
        (unseen, with_pool)
    }
}

/// A source of the objects of a log, in the order of the log's clock.
struct Objects {
    events: Vec<Kept>,
    start: u64,
    rate: Option<Rate>,
    /// Ends of objects whose allocation is not in the log, each with the number of events after which the object
    /// begins.
    unseen: Vec<(usize, Kept)>,
    with_pool: u64,
    /// The numbers of elements of `events` and `unseen` consumed so far.
    taken: (usize, usize),
    live: HashMap<u64, Option<u64>>,
    /// Events to return before the next event of the log is consumed.
    ready: VecDeque<(u64, EventKind<'static>)>,
}

impl Objects {
    fn new(mut log: Log) -> Self {
        log.events.sort_by_key(|event| event.clock);
        let clocks = if log.clocks_per_second > 0 { log.clocks_per_second } else { CLOCKS_PER_SECOND };
        let rate = log.moments.and_then(|moments| Rate::new(moments, clocks));
        let (unseen, with_pool) = log.unseen();
        let start = log.events.first().map_or(0, |event| event.clock);
        let (taken, live, ready) = ((0, 0), HashMap::new(), VecDeque::new());
        Self { events: log.events, start, rate, unseen, with_pool, taken, live, ready }
    }

    /// Returns notes about the contents of the log.
    fn notes(&self) -> Vec<String> {
        let count = |kind| self.events.iter().filter(|event| event.kind == kind).count();
        let (allocations, frees, with_pool) = (count(Kind::Alloc), count(Kind::Free), self.with_pool);
        let mut notes = vec![format!(
            "{allocations} PoolAlloc and {frees} PoolFree events; {with_pool} objects ended with their pool"
        )];
        if !self.unseen.is_empty() {
            let before = self.unseen.iter().filter(|(behind, _)| *behind == 0).count();
            notes.push(format!(
                "{} objects have no PoolAlloc event: {before} are treated as live from the start of the log, and {} as \
                 allocated when another object at their address ended",
                self.unseen.len(),
                self.unseen.len() - before
            ));
        }
        notes.push(match &self.rate {
            #[allow(clippy::cast_precision_loss, reason = "only a few digits are printed")]
            Some(rate) => {
                format!("the log's clock ticks {} times per microsecond", rate.steps_per_second() as f64 / 1e6)
            }
            None => "the log lacks the two EventClockSync events that determine its clock rate, so times are in ticks \
                     of the log's clock"
                .to_owned(),
        });
        notes
    }

    fn time(&self, clock: u64) -> u64 {
        let steps = clock.saturating_sub(self.start);
        self.rate.as_ref().map_or(steps, |rate| rate.nanoseconds(steps))
    }

    /// Consumes the next event of the log and makes the resulting events ready, after the allocations that are missing
    /// from the log at this position. Returns false at the end.
    fn advance(&mut self) -> bool {
        let allocated = |address, size| EventKind::Call(Call { address, size, ..Call::new(Function::Malloc) });
        let (at, mut begun) = self.taken;
        let behind = at.checked_sub(1).and_then(|at| self.events.get(at)).map_or(0, |event| self.time(event.clock));
        while let Some(&(_, free)) = self.unseen.get(begun).filter(|(behind, _)| *behind == at) {
            begun += 1;
            // The pool of this object is unknown, so only its own free ends the object.
            self.live.insert(free.address, None);
            self.ready.push_back((behind, allocated(free.address, free.size)));
        }
        self.taken = (at + 1, begun);
        let Some(&Kept { clock, kind, address, size, pool }) = self.events.get(at) else {
            return !self.ready.is_empty();
        };
        let time = self.time(clock);
        match kind {
            Kind::Alloc => {
                self.live.insert(address, Some(pool));
                self.ready.push_back((time, allocated(address, size)));
            }
            Kind::Free => {
                self.live.remove(&address);
                self.ready.push_back((time, EventKind::Free { address }));
            }
            Kind::Finish => {
                for address in of_pool(&self.live, pool) {
                    self.live.remove(&address);
                    self.ready.push_back((time, EventKind::Free { address }));
                }
            }
        }
        true
    }
}

impl EventSource for Objects {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        while self.ready.is_empty() {
            if !self.advance() {
                return Ok(None);
            }
        }
        let next = self.ready.pop_front();
        Ok(next.map(|(time, kind)| Item::Event(Event { time, ..Event::new(kind) })))
    }

    fn user_metadata(&self) -> UserMetadata {
        let about = ("converted".to_owned(), json!({"from": "telemetry of the Memory Pool System"}));
        UserMetadata::from_iter([about])
    }
}

/// Returns the live objects of a pool in address order.
fn of_pool(live: &HashMap<u64, Option<u64>>, pool: u64) -> Vec<u64> {
    let mut addresses: Vec<u64> =
        live.iter().filter(|(_, of)| **of == Some(pool)).map(|(address, _)| *address).collect();
    addresses.sort_unstable();
    addresses
}

/// Opens a log, or a trace made from one.
fn open(mut input: Input) -> Result<Trace<'static>> {
    if input.is_metatf()? {
        let reader = input.into_container()?;
        if let Some(error) = reader.opening_error() {
            return Err(failed(error));
        }
        let text = reader.dtd_text().unwrap_or(DTD.as_bytes()).to_vec();
        let schema = Schema::parse("its embedded DTD", &text).map_err(failed)?;
        return Trace::new(schema, reader).map_err(failed);
    }
    let schema = Schema::parse("mps.dtd", DTD.as_bytes()).map_err(failed)?;
    let number = schema.dtd.sections.iter().find(|section| section.number != 0).map_or(0, |section| section.number);
    let reader = Reader::raw_from_read(input.into_read(), Class::Bits64, Order::Little, number).map_err(failed)?;
    Trace::new(schema, reader).map_err(failed)
}
