//! Telemetry logs of the Memory Pool System as heap traces: what its pools give out and take back.
//!
//! A log is not in the order of time, so its events are sorted first: 40 bytes of memory each.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use metatf::container::{Class, Order, Sink};
use metatf::dynamic::{Schema, Trace};
use serde_json::json;

use crate::event::{Call, Event, EventKind, EventSink, Function, UserMetadata};
use crate::heap::{HeapOptions, HeapWriter};
use crate::{Error, Result, trace};

/// The format of such logs, which a trace of one embeds.
const DTD: &str = include_str!("../dtds/mps.dtd");
const MAGIC: &[u8] = b"\x7fMTF";

/// What was found in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Objects that pools gave out.
    pub allocations: u64,
    /// Objects that pools took back.
    pub frees: u64,
    /// Of these, objects whose `PoolAlloc` is not in the log: they lived before it began.
    pub before: u64,
    /// Others whose `PoolAlloc` is not in the log, as another ended at their place: they begin when that has ended.
    pub between: u64,
    /// Objects that ended with their pool.
    pub with_pool: u64,
    /// Steps of the log's clock in a second; `None`: the log does not tell, and times are steps.
    pub steps_per_second: Option<u64>,
}

/// An event of the log that counts.
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

/// Gives the objects of a log to a sink. `path` is a log of a 64-bit little-endian machine, or a trace that `metatfc sort` or `recode` made
/// of one.
///
/// # Errors
/// There is none, or it is damaged; the sink's.
pub fn import(path: &Path, sink: &mut dyn EventSink) -> Result<Imported> {
    let mut log = Log::default();
    log.read(path)?;
    log.give(sink)
}

/// As [`import`], into a trace of `dtds/heap.dtd`.
///
/// # Errors
/// As for [`import`], and the output's.
pub fn convert(path: &Path, options: &HeapOptions, output: &mut dyn Sink) -> Result<Imported> {
    let mut writer = HeapWriter::new(output, options)?;
    match import(path, &mut writer) {
        Ok(imported) => writer.finish().map(|_| imported),
        Err(error) => {
            writer.abandon();
            Err(error)
        }
    }
}

#[derive(Default)]
struct Log {
    events: Vec<Kept>,
    /// Steps of the system's clock in a second; 0: not known.
    clocks_per_second: u64,
    /// The first and the last moment at which both clocks were read, by the log's.
    moments: Option<(Moment, Moment)>,
}

/// What the log's clock and the system's showed at a moment (`EventClockSync`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    log: u64,
    system: u64,
}

/// The usual steps of the system's clock in a second, for logs without `EventInit`: POSIX fixes them.
const CLOCKS_PER_SECOND: u64 = 1_000_000;

/// How nanoseconds follow from steps of the log's clock: `steps * nanoseconds / per`.
struct Rate {
    nanoseconds: u128,
    per: u128,
}

impl Rate {
    /// Takes the rate from the moments that lie farthest from each other; `None` unless both clocks ran between them.
    fn new((first, last): (Moment, Moment), clocks_per_second: u64) -> Option<Self> {
        let (mut steps, mut clocks) = (last.log - first.log, last.system.checked_sub(first.system)?);
        // No product exceeds 128 bits: 32 bits of each difference are exact enough.
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
    fn read(&mut self, path: &Path) -> Result<()> {
        let problem = |error: &dyn std::fmt::Display| Error::Trace(format!("{}: {error}", path.display()).into());
        let mut trace = open(path).map_err(|error| match error {
            Error::Trace(error) if !error.to_string().starts_with(&path.display().to_string()) => problem(&error),
            other => other,
        })?;
        let schema = trace.schema().clone();
        // In these records nothing repeats: the place of a field is its number.
        let place = |record: &str, field: &str| {
            let number = schema.dtd.records.iter().position(|found| found.name == record)?;
            let place = schema.dtd.records.get(number)?.leaves.iter().position(|leaf| leaf.key == field)?;
            Some((u16::try_from(number).ok()?, place))
        };
        let need = |record: &str, field: &str| {
            place(record, field)
                .ok_or_else(|| problem(&format!("no log of the Memory Pool System: its DTD has no {record}.{field}")))
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
        // Two fields of this record are called `clock`: the event's own, and the system's.
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
        read.map_err(|error| problem(&metatf::explain(&schema.format, &error)))
    }

    fn give(mut self, sink: &mut dyn EventSink) -> Result<Imported> {
        self.events.sort_by_key(|event| event.clock);
        let start = self.events.first().map_or(0, |event| event.clock);
        let clocks = if self.clocks_per_second > 0 { self.clocks_per_second } else { CLOCKS_PER_SECOND };
        let rate = self.moments.and_then(|moments| Rate::new(moments, clocks));
        let time = |clock: u64| {
            let steps = clock.saturating_sub(start);
            rate.as_ref().map_or(steps, |rate| rate.nanoseconds(steps))
        };
        let steps_per_second = rate.as_ref().map(Rate::steps_per_second);
        let mut imported = Imported { steps_per_second, ..Imported::default() };
        let mut user_metadata = UserMetadata::new();
        user_metadata.insert("converted".to_owned(), json!({"from": "telemetry of the Memory Pool System"}));
        sink.user_metadata(&user_metadata)?;
        let mut put = |time, kind| sink.event(&Event { time, ..Event::new(kind) });
        let allocated = |address, size| EventKind::Call(Call { address, size, ..Call::new(Function::Malloc) });
        let mut unseen = self.unseen().into_iter().peekable();
        let mut live = HashMap::new();
        for at in 0..=self.events.len() {
            // Those that begin behind the event before this one, or before all.
            while let Some((_, free)) = unseen.next_if(|(behind, _)| *behind == at) {
                let begins = if at == 0 { &mut imported.before } else { &mut imported.between };
                *begins += 1;
                // Nothing else than its own end ends it.
                live.insert(free.address, None);
                put(
                    at.checked_sub(1).and_then(|at| self.events.get(at)).map_or(0, |event| time(event.clock)),
                    allocated(free.address, free.size),
                )?;
            }
            let Some(event) = self.events.get(at) else { break };
            let time = time(event.clock);
            match event.kind {
                Kind::Alloc => {
                    imported.allocations += 1;
                    live.insert(event.address, Some(event.pool));
                    put(time, allocated(event.address, event.size))?;
                }
                Kind::Free => {
                    imported.frees += 1;
                    live.remove(&event.address);
                    put(time, EventKind::Free { address: event.address })?;
                }
                Kind::Finish => {
                    for address in of_pool(&live, event.pool) {
                        live.remove(&address);
                        imported.with_pool += 1;
                        put(time, EventKind::Free { address })?;
                    }
                }
            }
        }
        Ok(imported)
    }

    /// Returns the ends of objects whose beginning is not in the log, and behind how many events each begins: as early as it can have
    /// been.
    fn unseen(&self) -> Vec<(usize, Kept)> {
        let (mut live, mut ended, mut unseen) = (HashMap::new(), HashMap::new(), Vec::new());
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
                    }
                }
            }
        }
        unseen.sort_by_key(|(behind, free)| (*behind, free.address));
        unseen
    }
}

/// Returns the live objects of a pool, in the order of their addresses.
fn of_pool(live: &HashMap<u64, Option<u64>>, pool: u64) -> Vec<u64> {
    let mut addresses: Vec<u64> =
        live.iter().filter(|(_, of)| **of == Some(pool)).map(|(address, _)| *address).collect();
    addresses.sort_unstable();
    addresses
}

/// Opens a log, or a trace of one.
fn open(path: &Path) -> Result<Trace<'static>> {
    let failed = |error: &dyn std::fmt::Display| Error::Trace(error.to_string().into());
    let mut head = [0; MAGIC.len()];
    let file = std::fs::File::open(path).map_err(Error::system(path.display().to_string()))?;
    if std::io::Read::read_exact(&mut &file, &mut head).is_ok() && head == MAGIC {
        let reader = trace::open(path)?;
        if let Some(error) = reader.opening_error() {
            return Err(failed(&error));
        }
        let text = reader.dtd_text().unwrap_or(DTD.as_bytes()).to_vec();
        let schema = Schema::parse("its embedded DTD", &text).map_err(|error| failed(&error))?;
        return Trace::new(schema, reader).map_err(|error| failed(&error));
    }
    let schema = Schema::parse("mps.dtd", DTD.as_bytes()).map_err(|error| failed(&error))?;
    let number = schema.dtd.sections.iter().find(|section| section.number != 0).map_or(0, |section| section.number);
    let reader =
        metatf_cli::open_raw_trace(path, Class::Bits64, Order::Little, number).map_err(|error| failed(&error))?;
    Trace::new(schema, reader).map_err(|error| failed(&error))
}
