//! A heap profile in memory, and how several become one.

use std::collections::{BTreeMap, HashMap, HashSet};

use hatf_lab::profile::{HeapInfo, Merged, TICK};

use super::collect::DURATION;
use crate::calendar;
use crate::event::UserMetadata;
use crate::stacks::{Function, Location, Module};
use crate::{Error, Result};

/// What blocks of one context have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProfileContext {
    /// The stack that allocated them, innermost frame first: places in [`HeapProfile::locations`].
    Stack(Vec<u32>),
    /// The thread that allocated them, and the power of two that their size rounds up to, by its exponent.
    Size {
        /// The exponent.
        exponent: u64,
        /// The thread.
        thread: u64,
    },
}

/// A heap profile.
#[derive(Clone, Debug)]
pub struct HeapProfile {
    /// The memory map.
    pub modules: Vec<Module>,
    /// Where frames are.
    pub locations: Vec<Location>,
    /// By number.
    pub contexts: BTreeMap<u64, ProfileContext>,
    /// In the order in which they were written.
    pub infos: Vec<HeapInfo>,
    /// Nanoseconds of a tick.
    pub tick: u64,
    /// What the profile was made of: the value of `trace` in its user metadata.
    pub about: UserMetadata,
}

impl Default for HeapProfile {
    /// Has nothing, and the document's ticks.
    fn default() -> Self {
        Self {
            modules: Vec::new(),
            locations: Vec::new(),
            contexts: BTreeMap::new(),
            infos: Vec::new(),
            tick: TICK,
            about: UserMetadata::new(),
        }
    }
}

impl HeapProfile {
    /// Returns when the recording started, in seconds since 1970, if the profile says so.
    #[must_use]
    pub fn start(&self) -> Option<u64> {
        calendar::seconds(self.about.get("start")?.as_str()?)
    }

    /// Returns the nanoseconds that the recording took, if the profile says so. For merged profiles this is a sum.
    #[must_use]
    pub fn duration(&self) -> Option<u64> {
        self.about.get(DURATION)?.as_u64()
    }

    /// Sets [`start`](Self::start) and [`duration`](Self::duration), where they are known.
    pub(super) fn set_times(&mut self, start: Option<u64>, duration: Option<u64>) {
        let start = start.map(|start| ("start".to_owned(), calendar::utc(start).into()));
        self.about.extend(start.into_iter().chain(duration.map(|duration| (DURATION.to_owned(), duration.into()))));
    }

    /// Merges heap info blocks of one context in the order in which they were written: exact where they have their first stamps.
    #[must_use]
    pub fn merged(self) -> Self {
        let infos = self.infos.into_iter().collect::<Merged>().finish();
        Self { infos, ..self }
    }

    /// Returns whether a context has more than one heap info block.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        let mut seen = HashSet::new();
        self.infos.iter().all(|info| seen.insert(info.context))
    }

    /// Returns the frames of a context's stack as places in [`locations`](Self::locations), innermost first.
    #[must_use]
    pub fn places(&self, context: u64) -> &[u32] {
        match self.contexts.get(&context) {
            Some(ProfileContext::Stack(frames)) => frames,
            _ => &[],
        }
    }

    /// Returns where the frames of a context's stack are, innermost first.
    pub fn stack(&self, context: u64) -> impl DoubleEndedIterator<Item = &Location> {
        self.places(context).iter().filter_map(|frame| self.locations.get(*frame as usize))
    }

    /// Names a context in one line, by its innermost functions with the lines of the calls, at most this many.
    #[must_use]
    pub fn name(&self, context: u64, most: usize) -> String {
        match self.contexts.get(&context) {
            Some(ProfileContext::Size { exponent, thread }) => {
                let class = match exponent {
                    0..=63 => metatf_page::units::count(1 << exponent),
                    _ => format!("2^{exponent}"),
                };
                format!("up to {class} bytes, thread {thread}")
            }
            Some(ProfileContext::Stack(frames)) if !frames.is_empty() => {
                let names = self.stack(context).flat_map(Location::names_with_lines);
                let mut names: Vec<String> = names.take(most + 1).collect();
                if names.len() > most {
                    names.truncate(most);
                    names.push("..".to_owned());
                }
                names.join(" <- ")
            }
            _ => format!("context {context}, not known"),
        }
    }
}

/// A frame of one run, in the words of all: addresses differ from run to run where modules are loaded elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    module: String,
    build_id: String,
    offset: u64,
    functions: Vec<Function>,
}

impl Frame {
    fn new(location: &Location) -> Self {
        let Location { address, module, build_id, offset, functions, .. } = location;
        let placed = !module.is_empty() || !build_id.is_empty();
        Self {
            module: module.clone(),
            build_id: build_id.clone(),
            offset: if placed { *offset } else { *address },
            functions: functions.clone(),
        }
    }
}

/// Merges profiles of several runs. Contexts are the same if their stacks are, by module, address in the module's file and
/// functions, or their size class and thread.
///
/// The last block of one run and the first of the next are not compared: the three counts that compare neighbours are sums.
/// Time stamps are those of the last run. The start is that of the earliest run, and the duration is the sum over all runs.
///
/// # Errors
/// Their ticks have different lengths.
pub fn merge(profiles: impl IntoIterator<Item = HeapProfile>) -> Result<HeapProfile> {
    let mut all: Option<HeapProfile> = None;
    let mut loaded = HashSet::new();
    let mut frames: HashMap<Frame, u32> = HashMap::new();
    let mut numbers: HashMap<ProfileContext, u64> = HashMap::new();
    let mut merged = Merged::new();
    let (mut start, mut duration): (Option<u64>, Option<u64>) = (None, None);
    for profile in profiles {
        start = start.into_iter().chain(profile.start()).min();
        duration = duration.into_iter().chain(profile.duration()).reduce(u64::saturating_add);
        let HeapProfile { modules, locations, contexts, infos, tick, about } = profile.merged();
        let all = all.get_or_insert_with(|| HeapProfile { tick, about, ..HeapProfile::default() });
        if all.tick != tick {
            let text = format!("ticks of {} ns and of {tick} ns cannot be merged", all.tick);
            return Err(Error::Trace(text.into()));
        }
        for module in modules {
            let number = all.modules.len();
            if loaded.insert((module.start, module.end, module.bias, module.build_id.clone(), module.path.clone())) {
                all.modules.push(Module { number, ..module });
            }
        }
        let mut places = Vec::with_capacity(locations.len());
        for location in locations {
            let next = u32::try_from(all.locations.len()).map_err(|_| Error::Trace("too many locations".into()))?;
            let place = *frames.entry(Frame::new(&location)).or_insert_with(|| {
                all.locations.push(location);
                next
            });
            places.push(place);
        }
        let mut renumbered = HashMap::new();
        for (number, context) in contexts {
            let context = match context {
                ProfileContext::Stack(stack) => {
                    let stack = stack.iter().filter_map(|frame| places.get(*frame as usize).copied());
                    ProfileContext::Stack(stack.collect())
                }
                size => size,
            };
            let next = numbers.len() as u64 + 1;
            let new = *numbers.entry(context).or_insert_with_key(|context| {
                all.contexts.insert(next, context.clone());
                next
            });
            renumbered.insert(number, new);
        }
        for mut info in infos {
            let unknown = || Error::Trace(format!("context {} is not described", info.context).into());
            info.context = *renumbered.get(&info.context).ok_or_else(unknown)?;
            merged.add(info, false);
        }
    }
    let mut all = all.unwrap_or_default();
    all.set_times(start, duration);
    Ok(HeapProfile { infos: merged.finish(), ..all })
}
