//! Reader for heap profiles.

use std::collections::HashMap;

use hatf_lab::profile::{Cpus, FirstCpus, HeapInfo, Lifetimes, Live, Loads, Spread};
use hatf_lab::sites::Amount;
use metatf::container::Reader;
use metatf::typed::{Elements, TraceOptions};
use serde_json::Value;

use super::format::{self, Profile, Protocol, Record, Trace};
use super::heap_profile::{HeapProfile, ProfileContext};
use hatf_trace::stacks::{Function, Location, Module};
use hatf_trace::{Error, Result};

/// Returns whether a trace is a heap profile, according to the name or the text of its DTD.
pub(super) fn is_heap_profile(container: &Reader<'_>) -> bool {
    let text = container.dtd_text().unwrap_or_default();
    let word = b"heap_info";
    container.header().dtd_url.ends_with("heapprof.dtd") || text.windows(word.len()).any(|window| window == word)
}

/// Reads a profile. Calls `step` for each record. Memory use is bounded by the file size.
///
/// # Errors
/// The file is corrupt or not a profile. The error contains the offset.
pub fn read_profile(container: Reader<'_>, mut step: impl FnMut()) -> Result<HeapProfile> {
    if !is_heap_profile(&container) {
        return Err(Error::Trace("not a heap profile: its DTD is not heapprof.dtd".into()));
    }
    let mut trace = Trace::from_opened(TraceOptions::new().read::<Protocol>(container).map_err(failed)?);
    let mut profile = HeapProfile::default();
    let mut tables = Tables {
        strings: trace.strings(),
        locations: trace.locations(),
        stacks: trace.stacks(),
        known: HashMap::new(),
        read: Vec::new(),
    };
    while let Some(record) = trace.next().map_err(failed)? {
        let Record::Profile(record) = record;
        match record {
            Profile::Module(module) => {
                let format::Module { start, end, bias, build_id, path } = module;
                let (build_id, path) = (tables.string(build_id)?, tables.string(path)?);
                let number = profile.modules.len();
                profile.modules.push(Module { number, bias, start, end, build_id, path, is_program: false });
            }
            Profile::StackContext(format::StackContext { context, stack }) => {
                let stack = tables.stack(stack)?;
                describe(&mut profile, context, ProfileContext::Stack(stack))?;
            }
            Profile::SizeContext(format::SizeContext { context, exponent, thread }) => {
                describe(&mut profile, context, ProfileContext::Size { exponent, thread })?;
            }
            Profile::HeapInfo(info) => profile.infos.push(heap_info(info)?),
        }
        step();
    }
    for text in trace.user_metadata() {
        let Ok(Value::Object(mut object)) = serde_json::from_slice(text) else { continue };
        if let Some(tick) = object.get("tick_ns") {
            let tick = tick.as_u64().filter(|tick| *tick > 0);
            profile.tick = tick.ok_or_else(|| Error::Trace("`tick_ns` must be a positive integer".into()))?;
        }
        if let Some(Value::Object(about)) = object.remove("trace") {
            profile.about.extend(about);
        }
    }
    profile.locations = tables.read;
    Ok(profile)
}

fn describe(profile: &mut HeapProfile, number: u64, context: ProfileContext) -> Result<()> {
    match profile.contexts.insert(number, context) {
        Some(_) => Err(Error::Trace(format!("context {number} is described twice").into())),
        None => Ok(()),
    }
}

/// The tables of a profile. Each location is read only once.
struct Tables<'t> {
    strings: Elements<'t, Protocol, format::String>,
    locations: Elements<'t, Protocol, format::Location>,
    stacks: Elements<'t, Protocol, format::Stack>,
    /// Indices into `read`, by offset.
    known: HashMap<u64, u32>,
    read: Vec<Location>,
}

impl Tables<'_> {
    fn string(&self, offset: u64) -> Result<String> {
        let string = self.strings.get(offset).map_err(failed)?;
        Ok(String::from_utf8_lossy(&string.vfield).into_owned())
    }

    fn stack(&mut self, offset: u64) -> Result<Vec<u32>> {
        let frames = self.stacks.get(offset).map_err(failed)?.frame;
        frames.into_iter().map(|frame| self.location(frame)).collect()
    }

    fn location(&mut self, offset: u64) -> Result<u32> {
        if let Some(place) = self.known.get(&offset) {
            return Ok(*place);
        }
        let location = self.locations.get(offset).map_err(failed)?;
        let function = |item: &format::LocationFunctionsItem| -> Result<Function> {
            Ok(Function { name: self.string(item.function)?, file: self.string(item.file)?, line: item.line })
        };
        let place = u32::try_from(self.read.len()).map_err(|_| Error::Trace("too many locations".into()))?;
        self.read.push(Location {
            address: location.address,
            module: self.string(location.module_path)?,
            build_id: self.string(location.module_build_id)?,
            is_program: location.is_program != 0,
            offset: location.offset,
            process: 0,
            functions: location.functions_items.iter().map(function).collect::<Result<_>>()?,
        });
        self.known.insert(offset, place);
        Ok(place)
    }
}

/// Returns the only element of `groups`, or `None` if a record does not contain the group. Fails if there are several.
fn only<T>(name: &str, context: u64, groups: Vec<T>) -> Result<Option<T>> {
    let mut groups = groups.into_iter();
    let first = groups.next();
    match groups.next() {
        Some(_) => Err(Error::Trace(
            format!("a heap info block of context {context} contains more than one `{name}` group").into(),
        )),
        None => Ok(first),
    }
}

fn heap_info(record: format::HeapInfo) -> Result<HeapInfo> {
    let context = record.context;
    let spread = |(total, min, max)| Spread { total, min, max };
    let times = only("times", context, record.times)?;
    let first = only("first_times", context, record.first_times)?;
    let lifetimes = times.map(|times| Lifetimes {
        lifetime: spread((times.total_lifetime, times.min_lifetime, times.max_lifetime)),
        alloc_timestamp: times.alloc_timestamp,
        dealloc_timestamp: times.dealloc_timestamp,
        num_lifetime_overlaps: times.num_lifetime_overlaps,
        first_alloc_timestamp: first.map(|first| first.first_alloc_timestamp),
    });
    let cpus = only("cpus", context, record.cpus)?;
    let first = only("first_cpus", context, record.first_cpus)?;
    let cpus = cpus.map(|cpus| Cpus {
        alloc_cpu_id: cpus.alloc_cpu_id,
        dealloc_cpu_id: cpus.dealloc_cpu_id,
        num_migrated_cpu: cpus.num_migrated_cpu,
        num_same_alloc_cpu: cpus.num_same_alloc_cpu,
        num_same_dealloc_cpu: cpus.num_same_dealloc_cpu,
        first: first.map(|first| FirstCpus {
            first_alloc_cpu_id: first.first_alloc_cpu_id,
            first_dealloc_cpu_id: first.first_dealloc_cpu_id,
        }),
    });
    let accesses = only("accesses", context, record.accesses)?;
    let utilization = only("utilization", context, record.utilization)?;
    let density = only("density", context, record.density)?;
    let over_time = only("lifetime_density", context, record.lifetime_density)?;
    let data_type = only("data_type", context, record.data_type)?;
    let histogram = only("histogram", context, record.histogram)?;
    let loads = only("loads", context, record.loads)?;
    let live = only("live", context, record.live)?;
    Ok(HeapInfo {
        context,
        alloc_count: record.alloc_count,
        size: spread((record.total_size, record.min_size, record.max_size)),
        lifetimes,
        access_count: accesses.map(|it| spread((it.total_access_count, it.min_access_count, it.max_access_count))),
        percent_utilized: utilization
            .map(|it| spread((it.total_percent_utilized, it.min_percent_utilized, it.max_percent_utilized))),
        cpus,
        data_type_id: data_type.map(|it| it.data_type_id),
        access_density: density
            .map(|it| spread((it.total_access_density, it.min_access_density, it.max_access_density))),
        lifetime_access_density: over_time.map(|it| {
            spread((it.total_lifetime_access_density, it.min_lifetime_access_density, it.max_lifetime_access_density))
        }),
        access_histogram: histogram.map(|it| it.accesses_there),
        loads: loads.map(|it| Loads {
            total_load_count: it.total_load_count,
            total_store_count: it.total_store_count,
            unread_count: it.unread_count,
            unknown_count: it.unknown_count,
            reached_count: it.reached_count,
        }),
        live: live.map(|it| Live {
            peak: Amount { blocks: it.peak_count, bytes: it.peak_size },
            end: Amount { blocks: it.end_count, bytes: it.end_size },
        }),
    })
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Trace(error.to_string().into())
}
