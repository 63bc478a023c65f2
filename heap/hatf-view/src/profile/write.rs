//! Writer for heap profiles.

use std::collections::HashMap;

use hatf_lab::profile::{HeapInfo, InfoSink, Spread};
use metatf::container::{FlushEvery, Sink, WriteOptions};
use serde_json::{Value, json};

use super::heap_profile::{HeapProfile, ProfileContext};
use super::read::is_heap_profile;
use super::{ProfileForm, format, read_profile};
use hatf_trace::event::UserMetadata;
use hatf_trace::stacks::{Function, Location, Module};
use hatf_trace::{Error, Result};

pub(super) static FORM: ProfileForm = ProfileForm {
    name: "heapprof",
    about: "This project's own format: heapprof.dtd",
    ending: "prof.mtf",
    sniff: |head| head.trace.is_some_and(is_heap_profile),
    open: Some(|input, step| Ok(vec![read_profile(input.into_container()?, step)?])),
    create: Some(|profile, _, _, output| write_profile(profile, output).map(|()| profile.infos.len())),
};

/// Writes a profile record by record.
///
/// # Examples
///
/// ```
/// use hatf_lab::profile::HeapInfo;
/// use hatf_lab::sites::Amount;
/// use hatf_view::profile::{ProfileContext, ProfileWriter, read_profile};
/// use metatf::container::Reader;
///
/// let mut file = Vec::new();
/// let mut writer = ProfileWriter::new(&mut file, 1000)?;
/// writer.context(1, &ProfileContext::Size { exponent: 6, thread: 1 }, &[])?;
/// let info = HeapInfo::of_sums(1, Amount { blocks: 2, bytes: 128 }, None);
/// writer.heap_info(&info)?;
/// writer.finish()?;
///
/// let profile = read_profile(Reader::from_slice(&file)?, || ())?;
/// assert_eq!((profile.tick, profile.infos), (1000, vec![info]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ProfileWriter<'w> {
    writer: format::Writer<&'w mut dyn Sink>,
    /// Offsets of the locations written so far, by index in the list of locations that all stacks refer to.
    locations: HashMap<u32, u64>,
    /// The error that stopped the writer as an [`InfoSink`].
    error: Option<Error>,
}

impl<'w> ProfileWriter<'w> {
    /// Begins a profile with this many nanoseconds per tick.
    ///
    /// # Errors
    /// The sink failed.
    pub fn new(sink: &'w mut dyn Sink, tick: u64) -> Result<Self> {
        let options = WriteOptions::default().flush_every(FlushEvery::NEVER);
        let mut writer = format::Writer::with_options(sink, &options).map_err(failed)?;
        writer.user_metadata(&json!({"tick_ns": tick}).to_string()).map_err(failed)?;
        Ok(Self { writer, locations: HashMap::new(), error: None })
    }

    /// Writes the metadata of the profile.
    ///
    /// # Errors
    /// The sink failed.
    pub fn about(&mut self, about: &UserMetadata, merged: bool) -> Result<()> {
        let about = json!({"trace": Value::Object(about.clone()), "merged": merged});
        self.writer.user_metadata(&about.to_string()).map_err(failed)
    }

    /// Writes a module of the memory map.
    ///
    /// # Errors
    /// The sink failed.
    pub fn module(&mut self, module: &Module) -> Result<()> {
        let Module { start, end, bias, ref build_id, ref path, .. } = *module;
        let (build_id, path) = (self.string(build_id)?, self.string(path)?);
        self.writer.module(&format::Module { start, end, bias, build_id, path }).map_err(failed).map(drop)
    }

    /// Writes the description of a context. `locations` is the list that all stacks refer to.
    ///
    /// # Errors
    /// The sink failed, or a frame has no location.
    pub fn context(&mut self, number: u64, context: &ProfileContext, locations: &[Location]) -> Result<()> {
        match context {
            ProfileContext::Size { exponent, thread } => {
                let (exponent, thread) = (*exponent, *thread);
                let record = format::SizeContext { context: number, exponent, thread };
                self.writer.size_context(&record).map_err(failed).map(drop)
            }
            ProfileContext::Stack(frames) => {
                let frame = frames.iter().map(|frame| self.location(*frame, locations)).collect::<Result<_>>()?;
                let stack = self.writer.stacks().intern(format::Stack { frame }).map_err(failed)?;
                let record = format::StackContext { context: number, stack };
                self.writer.stack_context(&record).map_err(failed).map(drop)
            }
        }
    }

    /// Writes a heap info block.
    ///
    /// # Errors
    /// The sink failed.
    pub fn heap_info(&mut self, info: &HeapInfo) -> Result<()> {
        let one = |spread: Option<Spread>| spread.map(|Spread { total, min, max, .. }| (total, min, max));
        let HeapInfo { context, alloc_count, size: Spread { total, min, max, .. }, .. } = *info;
        let times = info.lifetimes.as_ref();
        let cpus = info.cpus.as_ref();
        let record = format::HeapInfo {
            context,
            alloc_count,
            total_size: total,
            min_size: min,
            max_size: max,
            times: group(times.map(|times| format::Times {
                total_lifetime: times.lifetime.total,
                min_lifetime: times.lifetime.min,
                max_lifetime: times.lifetime.max,
                alloc_timestamp: times.alloc_timestamp,
                dealloc_timestamp: times.dealloc_timestamp,
                num_lifetime_overlaps: times.num_lifetime_overlaps,
            })),
            first_times: group(
                times
                    .and_then(|times| times.first_alloc_timestamp)
                    .map(|first_alloc_timestamp| format::FirstTimes { first_alloc_timestamp }),
            ),
            accesses: group(one(info.access_count).map(|(total, min, max)| format::Accesses {
                total_access_count: total,
                min_access_count: min,
                max_access_count: max,
            })),
            utilization: group(one(info.percent_utilized).map(|(total, min, max)| format::Utilization {
                total_percent_utilized: total,
                min_percent_utilized: min,
                max_percent_utilized: max,
            })),
            cpus: group(cpus.map(|cpus| format::Cpus {
                alloc_cpu_id: cpus.alloc_cpu_id,
                dealloc_cpu_id: cpus.dealloc_cpu_id,
                num_migrated_cpu: cpus.num_migrated_cpu,
                num_same_alloc_cpu: cpus.num_same_alloc_cpu,
                num_same_dealloc_cpu: cpus.num_same_dealloc_cpu,
            })),
            first_cpus: group(cpus.and_then(|cpus| cpus.first).map(|first| format::FirstCpus {
                first_alloc_cpu_id: first.first_alloc_cpu_id,
                first_dealloc_cpu_id: first.first_dealloc_cpu_id,
            })),
            data_type: group(info.data_type_id.map(|data_type_id| format::DataType { data_type_id })),
            density: group(one(info.access_density).map(|(total, min, max)| format::Density {
                total_access_density: total,
                min_access_density: min,
                max_access_density: max,
            })),
            lifetime_density: group(one(info.lifetime_access_density).map(|(total, min, max)| {
                format::LifetimeDensity {
                    total_lifetime_access_density: total,
                    min_lifetime_access_density: min,
                    max_lifetime_access_density: max,
                }
            })),
            histogram: group(
                info.access_histogram.as_ref().map(|histogram| format::Histogram { accesses_there: histogram.clone() }),
            ),
            loads: group(info.loads.map(|loads| format::Loads {
                total_load_count: loads.total_load_count,
                total_store_count: loads.total_store_count,
                unread_count: loads.unread_count,
                unknown_count: loads.unknown_count,
                reached_count: loads.reached_count,
            })),
            live: group(info.live.map(|live| format::Live {
                peak_count: live.peak.blocks,
                peak_size: live.peak.bytes,
                end_count: live.end.blocks,
                end_size: live.end.bytes,
            })),
        };
        self.writer.heap_info(&record).map_err(failed).map(drop)
    }

    /// Returns the error that stopped the writer as an [`InfoSink`].
    pub fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// Ends the profile.
    ///
    /// # Errors
    /// The sink failed.
    pub fn finish(self) -> Result<()> {
        self.writer.finish().map_err(failed).map(drop)
    }

    /// Abandons the profile. The sink contains an incomplete profile.
    pub fn abandon(self) {
        self.writer.abandon();
    }

    fn string(&mut self, text: &str) -> Result<u64> {
        self.writer.strings().intern(text.as_bytes()).map_err(failed)
    }

    fn location(&mut self, place: u32, locations: &[Location]) -> Result<u64> {
        if let Some(offset) = self.locations.get(&place) {
            return Ok(*offset);
        }
        let location = locations.get(place as usize).ok_or_else(|| Error::Trace("a frame has no location".into()))?;
        let mut functions_items = Vec::with_capacity(location.functions.len());
        for Function { name, file, line } in &location.functions {
            let (function, file) = (self.string(name)?, self.string(file)?);
            functions_items.push(format::LocationFunctionsItem { function, file, line: *line });
        }
        let location = format::Location {
            address: location.address,
            module_path: self.string(&location.module)?,
            module_build_id: self.string(&location.build_id)?,
            is_program: location.is_program.into(),
            offset: location.offset,
            functions_items,
        };
        let offset = self.writer.locations().push(location).map_err(failed)?;
        self.locations.insert(place, offset);
        Ok(offset)
    }
}

impl InfoSink for ProfileWriter<'_> {
    fn info(&mut self, info: HeapInfo) -> hatf_lab::Result<()> {
        self.heap_info(&info).map_err(|error| {
            self.error = Some(error);
            hatf_lab::Error::Stopped
        })
    }
}

/// Writes a profile from memory.
///
/// # Errors
/// The sink failed, or the profile refers to data that it does not contain.
pub fn write_profile(profile: &HeapProfile, sink: &mut dyn Sink) -> Result<()> {
    let mut writer = ProfileWriter::new(sink, profile.tick)?;
    let mut write = || {
        writer.about(&profile.about, profile.is_merged())?;
        profile.modules.iter().try_for_each(|module| writer.module(module))?;
        let locations = &profile.locations;
        profile.contexts.iter().try_for_each(|(number, context)| writer.context(*number, context, locations))?;
        profile.infos.iter().try_for_each(|info| writer.heap_info(info))
    };
    match write() {
        Ok(()) => writer.finish(),
        Err(error) => {
            writer.abandon();
            Err(error)
        }
    }
}

/// Converts an optional group of fields to a list.
fn group<T>(fields: Option<T>) -> Vec<T> {
    fields.into_iter().collect()
}

fn failed(error: metatf::Error) -> Error {
    Error::Trace(error.to_string().into())
}
