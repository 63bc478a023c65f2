//! Comparison of two heap traces by totals and by the allocations of each stack, size class and thread.
//!
//! [`Counting`] summarizes one trace as a [`Summary`]; a [`Comparison`] pairs the rows of two summaries.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_lab::sites::{Measure, ranked_pairs};
//! use hatf_trace::{Event, EventKind, EventSink};
//! use hatf_view::compare::{Comparison, Counting, Summary};
//!
//! let trace = |frame: u64, size: u64| -> hatf_trace::Result<Summary> {
//!     let mut tracker = HeapTracker::new(Counting::new());
//!     tracker.event(&Event::new(EventKind::Symbol { frame, line: 1, name: b"parse" }))?;
//!     tracker.event(&Event { stack: (&[frame]).into(), ..Event::malloc(0x1000, size) })?;
//!     let (heap, counting) = tracker.into_parts();
//!     Ok(counting.finish(heap))
//! };
//! // In the second build, the function is at another address.
//! let (before, after) = (trace(0x4010, 100)?, trace(0x8020, 120)?);
//! let comparison = Comparison::new(&before, &after);
//! let changes = ranked_pairs(&comparison.sites, Measure::Allocated, false);
//! let (site, change) = changes[0];
//! assert_eq!(after.stacks.name(site.key.after.unwrap_or(0), 1).to_string(), "parse");
//! assert_eq!(change.bytes, 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::{HashMap, HashSet};

use hatf_lab::sites::{Counts, Pair, Tables, pairs};
use hatf_lab::{Heap, ObjectEvent, Observer, Totals};

use crate::analysis::{EndObserver, Ending};
use hatf_trace::Event;
use hatf_trace::event::UserMetadata;
use hatf_trace::stacks::{Location, Stacks};

/// An [`Observer`] that builds a [`Summary`]. The [module documentation](self) contains an example.
#[derive(Debug, Default)]
pub struct Counting {
    tables: Tables,
    /// Threads in the order of their first events.
    threads: Vec<u64>,
    known: HashSet<u64>,
    current: Option<u64>,
    end: EndObserver,
    /// The latest time so far.
    time: u64,
}

/// The figures of one trace to compare with another.
#[derive(Debug)]
pub struct Summary {
    /// The way in which the program ended.
    pub ending: Ending,
    /// The last time in the trace.
    pub duration: u64,
    /// Totals of the trace.
    pub totals: Totals,
    /// Stacks of the trace.
    pub stacks: Stacks,
    /// Allocations in total.
    pub all: Counts,
    /// Allocations of each stack, indexed by stack number.
    pub sites: Vec<Counts>,
    /// Allocations in each [size class](hatf_lab::statistics::class_of).
    pub classes: Vec<Counts>,
    /// Thread numbers and the allocations of each thread, in the order of the threads' first events.
    pub threads: Vec<(u64, Counts)>,
}

impl Counting {
    /// Creates an empty counter.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the summary of a heap.
    #[must_use]
    pub fn finish(self, heap: Heap) -> Summary {
        let (totals, stacks, counted) = (heap.totals(), heap.stacks.finished(), self.tables.report());
        let mut all = Counts::default();
        counted.classes.iter().for_each(|class| all.add(class));
        let of = |thread: &u64| (*thread, counted.threads.get(thread).copied().unwrap_or_default());
        // Omit thread 0 unless it has events.
        let is_one = |thread: &&u64| **thread != 0 || counted.threads.contains_key(thread);
        let threads = self.threads.iter().filter(is_one).map(of).collect();
        let (ending, duration) = (self.end.ending(), self.time);
        Summary { ending, duration, totals, stacks, all, sites: counted.sites, classes: counted.classes, threads }
    }
}

impl Observer for Counting {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        self.tables.event(event)
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        self.time = self.time.max(record.time);
        self.end.record(record, heap)?;
        if self.current != Some(record.thread) {
            self.current = Some(record.thread);
            if self.known.insert(record.thread) {
                self.threads.push(record.thread);
            }
        }
        Ok(())
    }

    fn sampled(&mut self, mean: u64) {
        self.tables.sampled(mean);
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.end.user_metadata(user_metadata);
    }
}

impl Summary {
    /// Returns whether stacks can be compared, because some of them contain more than addresses or because nothing was
    /// allocated.
    #[must_use]
    pub fn has_sites(&self) -> bool {
        self.stacks.have_places() || self.totals.objects == 0
    }
}

/// Method of matching the stacks of two traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Match functions and modules. Frames without a function are matched by offset.
    Functions,
    /// Match build IDs and offsets within modules, because one of the traces has no symbols.
    Offsets,
    /// No matching, because one of the traces has no stacks or its stacks consist only of addresses.
    Nothing,
}

/// The stacks of a pair of sites. Each is the first matching stack of its trace, if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteStacks {
    /// Stack number in the first trace.
    pub before: Option<u64>,
    /// Stack number in the second trace.
    pub after: Option<u64>,
}

/// A row-by-row comparison of two traces. The [module documentation](self) contains an example.
#[derive(Debug)]
pub struct Comparison<'s> {
    /// The first trace.
    pub before: &'s Summary,
    /// The second trace.
    pub after: &'s Summary,
    /// Method of matching sites.
    pub matching: Matching,
    /// Allocations in total.
    pub all: Pair<()>,
    /// Stacks in both traces and stacks in only one of them.
    pub sites: Vec<Pair<SiteStacks>>,
    /// Allocations by size class number.
    pub classes: Vec<Pair<usize>>,
    /// Threads, numbered from 0 in the order of their first events.
    pub threads: Vec<Pair<usize>>,
}

impl<'s> Comparison<'s> {
    /// Compares two traces.
    #[must_use]
    pub fn new(before: &'s Summary, after: &'s Summary) -> Self {
        let matching = match (before, after) {
            _ if !before.has_sites() || !after.has_sites() => Matching::Nothing,
            _ if [before, after].iter().all(|side| side.stacks.has_symbols() || side.totals.objects == 0) => {
                Matching::Functions
            }
            _ => Matching::Offsets,
        };
        let sites = if matching == Matching::Nothing { Vec::new() } else { sites(before, after, matching) };
        let counts = |(_, counts): &(u64, Counts)| *counts;
        Self {
            before,
            after,
            matching,
            all: Pair { key: (), before: before.all, after: after.all },
            sites,
            classes: pairs(before.classes.iter().copied().enumerate(), after.classes.iter().copied().enumerate()),
            threads: pairs(before.threads.iter().map(counts).enumerate(), after.threads.iter().map(counts).enumerate()),
        }
    }
}

/// Pairs the sites of two traces.
fn sites(before: &Summary, after: &Summary, matching: Matching) -> Vec<Pair<SiteStacks>> {
    let modules = ModuleKeys::new([&before.stacks, &after.stacks]);
    let mut keys = StackKeys::default();
    let [old, new] = [before, after].map(|side| keys.of(&side.stacks, &modules, matching));
    let mut stacks = vec![SiteStacks::default(); keys.stacks.len()];
    let mut first = |keys: &[u32], place: fn(&mut SiteStacks) -> &mut Option<u64>| {
        for (number, key) in (0..).zip(keys) {
            if let Some(stacks) = stacks.get_mut(*key as usize) {
                place(stacks).get_or_insert(number);
            }
        }
    };
    first(&old, |stacks| &mut stacks.before);
    first(&new, |stacks| &mut stacks.after);
    let rows = |keys: Vec<u32>, side: &Summary| keys.into_iter().zip(side.sites.clone());
    let paired = pairs(rows(old, before), rows(new, after));
    let shown = |pair: Pair<u32>| Pair {
        key: stacks.get(pair.key as usize).copied().unwrap_or_default(),
        before: pair.before,
        after: pair.after,
    };
    paired.into_iter().map(shown).collect()
}

/// The key by which a module is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ModuleKey<'l> {
    /// The only program of each trace.
    Program,
    /// The file name without versions.
    Name(&'l str),
    /// The path.
    Path(&'l str),
}

/// Keys by which modules are matched.
///
/// The key of a module is its file name without versions, because different builds are in different directories. If a
/// trace contains two modules with the same key, their keys are their paths. The programs of the traces always match,
/// even if their names differ, unless a trace contains several programs (exec).
pub(crate) struct ModuleKeys<'s> {
    one_program: bool,
    /// File names shared by several modules of a trace.
    ambiguous: HashSet<&'s str>,
}

impl<'s> ModuleKeys<'s> {
    pub(crate) fn new(traces: impl IntoIterator<Item = &'s Stacks>) -> Self {
        let (mut one_program, mut ambiguous) = (true, HashSet::new());
        for stacks in traces {
            let (mut paths, mut program) = (HashMap::new(), None);
            for location in stacks.locations() {
                if location.is_program {
                    one_program &= *program.get_or_insert(&location.module) == &location.module;
                }
                let name = unversioned(location.module_name());
                if *paths.entry(name).or_insert(&location.module) != &location.module {
                    ambiguous.insert(name);
                }
            }
        }
        Self { one_program, ambiguous }
    }

    /// Returns the key of a location's module.
    pub(crate) fn key<'l>(&self, location: &'l Location) -> ModuleKey<'l> {
        match unversioned(location.module_name()) {
            _ if location.is_program && self.one_program => ModuleKey::Program,
            name if self.ambiguous.contains(name) => ModuleKey::Path(&location.module),
            name => ModuleKey::Name(name),
        }
    }
}

/// Returns the file name of a module without the version of a shared object and without Cargo's hash:
/// `libssl.so.3` is `libssl`, and `tool-0123456789abcdef` is `tool`.
fn unversioned(name: &str) -> &str {
    let name = match name.split_once(".so") {
        Some((stem, version)) if version.is_empty() || version.starts_with('.') => stem,
        _ => name,
    };
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.rsplit_once('-').filter(|(_, hash)| is_hash(hash)).map_or(name, |(stem, _)| stem)
}

/// Keys of stacks. Matching stacks have equal keys.
#[derive(Default)]
struct StackKeys {
    names: HashMap<String, u32>,
    stacks: HashMap<Vec<u32>, u32>,
}

impl StackKeys {
    /// Returns the key of each stack, indexed by stack number.
    fn of(&mut self, stacks: &Stacks, modules: &ModuleKeys<'_>, matching: Matching) -> Vec<u32> {
        let locations: Vec<Vec<u32>> =
            stacks.locations().iter().map(|location| self.location(location, modules, matching)).collect();
        let key = |number| {
            let frames = stacks.frames(number).iter().filter_map(|frame| locations.get(*frame as usize));
            let names: Vec<u32> = frames.flatten().copied().collect();
            let next = number_of(self.stacks.len());
            *self.stacks.entry(names).or_insert(next)
        };
        (0..stacks.count()).map(key).collect()
    }

    /// Returns the key of a frame. Keys never contain addresses, because addresses differ from run to run.
    fn location(&mut self, location: &Location, modules: &ModuleKeys<'_>, matching: Matching) -> Vec<u32> {
        let mut number = |name: String| {
            let next = number_of(self.names.len());
            *self.names.entry(name).or_insert(next)
        };
        let module = match modules.key(location) {
            ModuleKey::Program => "P".to_owned(),
            ModuleKey::Name(name) => format!("N{name}"),
            ModuleKey::Path(path) => format!("M{path}"),
        };
        if matching == Matching::Functions && !location.functions.is_empty() {
            let functions = location.functions.iter();
            return functions.map(|function| number(format!("F{module}\0{}", function.name))).collect();
        }
        vec![number(match (location.build_id.as_str(), location.offset) {
            _ if location.module.is_empty() => "U".to_owned(),
            ("", offset) => format!("O{module}\0{offset}"),
            (build_id, offset) => format!("B{build_id}\0{offset}"),
        })]
    }
}

fn number_of(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
