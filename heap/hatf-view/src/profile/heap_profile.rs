//! Heap profiles in memory, and functions that merge them.

use std::collections::{BTreeMap, HashMap, HashSet};

use hatf_lab::profile::{HeapInfo, Merged, TICK};

use super::collect::DURATION;
use hatf_trace::calendar;
use hatf_trace::event::UserMetadata;
use hatf_trace::stacks::{Function, Location, Module};
use hatf_trace::{Error, Result};

/// The property shared by all blocks of a context.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProfileContext {
    /// The stack that allocated the blocks, innermost frame first, as indices into [`HeapProfile::locations`].
    Stack(Vec<u32>),
    /// The thread that allocated the blocks, and their size rounded up to a power of two.
    Size {
        /// The exponent of the power of two.
        exponent: u64,
        /// The thread.
        thread: u64,
    },
}

/// A heap profile.
///
/// # Examples
///
/// ```
/// use hatf_lab::profile::HeapInfo;
/// use hatf_lab::sites::Amount;
/// use hatf_view::profile::{HeapProfile, ProfileContext, merge};
///
/// let run = |blocks, bytes| HeapProfile {
///     contexts: [(1, ProfileContext::Size { exponent: 6, thread: 1 })].into(),
///     infos: vec![HeapInfo::of_sums(1, Amount { blocks, bytes }, None)],
///     ..HeapProfile::default()
/// };
/// let merged = merge([run(2, 128), run(1, 40)])?;
/// assert_eq!(merged.name(1, 1), "up to 64 bytes, thread 1");
/// assert_eq!((merged.infos[0].alloc_count, merged.infos[0].size.total), (3, 168));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HeapProfile {
    /// The memory map.
    pub modules: Vec<Module>,
    /// The locations of frames.
    pub locations: Vec<Location>,
    /// Contexts by number.
    pub contexts: BTreeMap<u64, ProfileContext>,
    /// Heap info blocks in the order in which they were written.
    pub infos: Vec<HeapInfo>,
    /// Nanoseconds per tick.
    pub tick: u64,
    /// Information on the source of the profile, from the value of `trace` in the user metadata.
    pub about: UserMetadata,
}

impl Default for HeapProfile {
    /// Returns an empty profile with the RFC's tick length.
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
    /// Returns the start time of the recording in seconds since 1970, if the profile contains it.
    #[must_use]
    pub fn start(&self) -> Option<u64> {
        calendar::seconds(self.about.get("start")?.as_str()?)
    }

    /// Returns the duration of the recording in nanoseconds, if the profile contains it. For a merged profile, this is
    /// the sum of all durations.
    #[must_use]
    pub fn duration(&self) -> Option<u64> {
        self.about.get(DURATION)?.as_u64()
    }

    /// Sets [`start`](Self::start) and [`duration`](Self::duration) if they are known.
    pub(super) fn set_times(&mut self, start: Option<u64>, duration: Option<u64>) {
        let start = start.map(|start| ("start".to_owned(), calendar::utc(start).into()));
        self.about.extend(start.into_iter().chain(duration.map(|duration| (DURATION.to_owned(), duration.into()))));
    }

    /// Merges the heap info blocks of each context in the order in which they were written. The result is exact if the
    /// heap info blocks contain the `first_*` fields.
    #[must_use]
    pub fn merged(self) -> Self {
        let infos = self.infos.into_iter().collect::<Merged>().finish();
        Self { infos, ..self }
    }

    /// Returns whether each context has at most one heap info block.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        let mut seen = HashSet::new();
        self.infos.iter().all(|info| seen.insert(info.context))
    }

    /// Returns the frames of a context's stack as indices into [`locations`](Self::locations), innermost first.
    #[must_use]
    pub fn places(&self, context: u64) -> &[u32] {
        match self.contexts.get(&context) {
            Some(ProfileContext::Stack(frames)) => frames,
            _ => &[],
        }
    }

    /// Returns the locations of the frames in a context's stack, innermost first.
    pub fn stack(&self, context: u64) -> impl DoubleEndedIterator<Item = &Location> {
        self.places(context).iter().filter_map(|frame| self.locations.get(*frame as usize))
    }

    /// Returns the name of a context in one line, which consists of up to `most` innermost functions with line numbers.
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
            _ => format!("unknown context {context}"),
        }
    }
}

/// A frame in a form that is comparable between runs, in which modules may be loaded at different addresses.
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

/// Merges the profiles of several runs. Two contexts are the same if their stacks have the same modules, file addresses
/// and functions, or if their size class and thread are the same.
///
/// The last block of one run and the first block of the next are not compared, so the three counts that compare
/// neighbors are sums. Timestamps of last blocks are from the last run. The start is the start of the earliest run, and
/// the duration is the sum over all runs.
///
/// # Errors
/// The profiles have different tick lengths.
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
            let text = format!("cannot merge profiles with different tick lengths ({} ns and {tick} ns)", all.tick);
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
