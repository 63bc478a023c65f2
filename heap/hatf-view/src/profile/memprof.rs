//! Profiles in the YAML format of LLVM's memory profiles, which `llvm-profdata merge` reads from LLVM 21 on.
//!
//! LLVM keeps a record for each function. A record contains the allocations in the function with their call stacks, and
//! the calls in the function that lead to allocations. Missing fields count as 0.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};

use hatf_lab::profile::{HeapInfo, Spread};
use metatf_page::units::count;

use super::heap_profile::{HeapProfile, ProfileContext};
use super::{ProfileForm, ProfileOptions};
use crate::symbolize::{Answer, Files, Frame, Image, Missing, Problem, Symbolizer};
use hatf_trace::Error;
use hatf_trace::stacks::Location;

pub(super) static FORM: ProfileForm = ProfileForm {
    name: "memprof-yaml",
    about: "LLVM's memory profile as YAML",
    ending: "memprof.yaml",
    sniff: |_| false,
    open: None,
    create: Some(|profile, options, note, output| {
        let ProfileOptions { ref files, unknown_is_unused, shared_objects } = *options;
        let frames = CompilerFrames::find(profile, shared_objects, files);
        frames.problems.iter().for_each(|problem| note(&problem.to_string()));
        let memprof = Memprof::new(profile, &frames, unknown_is_unused);
        if memprof.contexts() == 0 {
            let why = "no context has a frame with debug information: compile the program with -g and record it with --stacks";
            return Err(Error::Trace(why.into()));
        }
        let mut out = BufWriter::new(output);
        memprof.yaml(&mut out)?;
        out.flush()?;
        if !frames.without.is_empty() {
            let names: Vec<_> = frames.without.iter().map(|path| path.rsplit('/').next().unwrap_or_default()).collect();
            note(&format!("modules without debug information, whose frames are omitted: {}", names.join(", ")));
        }
        if memprof.unplaced > 0 {
            let contexts = count(memprof.unplaced as u64);
            note(&format!("contexts omitted because no frame has debug information: {contexts}"));
        }
        if memprof.unknown > 0 {
            let taken = if unknown_is_unused {
                "count as never accessed"
            } else {
                "are written without lifetimes, so LLVM treats them as neither hot nor cold"
            };
            note(&format!("contexts with partly unknown accesses, which {taken}: {}", count(memprof.unknown as u64)));
        }
        Ok(memprof.contexts())
    }),
};

/// A call in the source of a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompilerFrame {
    /// The mangled name of the function.
    pub function: String,
    /// The line of the call, relative to the first line of the function.
    pub line_offset: u32,
    /// The column of the call, from 1, or 0 if unknown.
    pub column: u32,
    /// Whether the function was inlined into the function of the next frame.
    pub inlined: bool,
}

impl CompilerFrame {
    /// Converts a frame. Returns `None` if its function or its line is unknown.
    fn new(frame: Frame) -> Option<Self> {
        let Frame { symbol: function, line, first_line, column, inlined, .. } = frame;
        // For a line in another file, for example from a macro, the subtraction wraps as in LLVM. LLVM uses 0 for an
        // unknown first line.
        let line_offset = line.wrapping_sub(first_line);
        (!function.is_empty() && line > 0).then_some(Self { function, line_offset, column, inlined })
    }
}

/// A stack, innermost call first.
type Stack = Vec<CompilerFrame>;

/// The frames of a profile in LLVM's terms.
#[derive(Clone, Debug, Default)]
pub struct CompilerFrames {
    /// The frames of each location in [`HeapProfile::locations`]; empty if unknown.
    pub by_location: Vec<Stack>,
    /// Modules without known frames, because they contain no debug information.
    pub without: Vec<String>,
    /// Modules whose file could not be used.
    pub problems: Vec<Problem>,
}

impl CompilerFrames {
    /// Symbolizes the frames of a profile with the files of their modules. As in LLVM's own profiles, only frames in
    /// the program are symbolized unless `shared_objects` is set. If the profile does not identify the program, all
    /// modules are symbolized.
    #[must_use]
    pub fn find(profile: &HeapProfile, shared_objects: bool, files: &Files) -> Self {
        let mut found = Self { by_location: vec![Stack::new(); profile.locations.len()], ..Self::default() };
        let mut modules = BTreeMap::<(&str, &str), Vec<(usize, &Location)>>::new();
        let of_program = !shared_objects && profile.locations.iter().any(|location| location.is_program);
        let wanted = |location: &Location| !location.module.is_empty() && (location.is_program || !of_program);
        for (place, location) in profile.locations.iter().enumerate().filter(|(_, location)| wanted(location)) {
            modules.entry((&location.module, &location.build_id)).or_default().push((place, location));
        }
        let mut symbolizer = Symbolizer::new(files.clone());
        for ((path, build_id), locations) in modules {
            let (path, build_id) = (path.to_owned(), build_id.to_owned());
            let offsets: Vec<u64> = locations.iter().map(|(_, location)| location.offset).collect();
            let image = Image { path, build_id };
            let Answer { frames, missing } = symbolizer.symbolize(&image, &offsets);
            // An address is used only if the functions and lines of all its frames are known.
            let frames =
                frames.into_iter().map(|frames| frames.into_iter().map(CompilerFrame::new).collect::<Option<Stack>>());
            let frames: Vec<Stack> = frames.map(Option::unwrap_or_default).collect();
            let nameless = frames.iter().filter(|frames| frames.is_empty()).count();
            match missing {
                None | Some(Missing::DebugInformation) if nameless == frames.len() => found.without.push(image.path),
                None | Some(Missing::DebugInformation) => {}
                Some(missing) => {
                    found.problems.push(Problem {
                        path: image.path,
                        frames: nameless,
                        why: missing.to_string(),
                        is_map: false,
                        is_failure: matches!(missing, Missing::Image(_)),
                        needs_debug_information: false,
                    });
                }
            }
            for ((place, location), frames) in locations.into_iter().zip(frames) {
                let known = frames.iter().all(|frame| can_be_written(&frame.function))
                    && (location.is_program || !frames.iter().any(|frame| is_operator_new(&frame.function)));
                if let Some(of_place) = found.by_location.get_mut(place).filter(|_| known) {
                    *of_place = frames;
                }
            }
        }
        found
    }
}

/// Returns whether LLVM accepts a string as a name. LLVM interprets numbers as hashes of names.
fn can_be_written(name: &str) -> bool {
    let is_number = name.starts_with("0x") || name.starts_with("0X") || name.bytes().all(|byte| byte.is_ascii_digit());
    !is_number && !name.contains(char::is_control)
}

/// Returns whether a function is C++'s `operator new`. If so, LLVM considers the call of `operator new` as the
/// allocation, unless the program defines the operator itself.
fn is_operator_new(name: &str) -> bool {
    name.starts_with("_Znw") || name.starts_with("_Zna")
}

/// The record that LLVM keeps for a function.
#[derive(Clone, Debug, Default)]
struct Record<'p> {
    allocations: Vec<(&'p Stack, &'p HeapInfo)>,
    calls: BTreeSet<&'p [CompilerFrame]>,
}

/// A profile whose contexts are stacks of LLVM frames.
///
/// # Examples
///
/// ```
/// use hatf_lab::profile::HeapInfo;
/// use hatf_lab::sites::Amount;
/// use hatf_view::profile::{CompilerFrame, CompilerFrames, HeapProfile, Memprof, ProfileContext};
///
/// let frame = CompilerFrame { function: "_Z5parsev".to_owned(), line_offset: 2, column: 5, inlined: false };
/// let frames = CompilerFrames { by_location: vec![vec![frame]], ..CompilerFrames::default() };
/// let infos = vec![HeapInfo::of_sums(1, Amount { blocks: 2, bytes: 128 }, None)];
/// let contexts = [(1, ProfileContext::Stack(vec![0]))].into();
/// let profile = HeapProfile { contexts, infos, ..HeapProfile::default() };
///
/// let mut yaml = Vec::new();
/// Memprof::new(&profile, &frames, false).yaml(&mut yaml)?;
/// let yaml = String::from_utf8(yaml)?;
/// assert!(yaml.contains("- GUID: _Z5parsev\n") && yaml.contains("AllocCount: 2\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Memprof {
    contexts: BTreeMap<Stack, HeapInfo>,
    /// Nanoseconds per tick.
    tick: u64,
    /// The number of contexts without any frame that LLVM can identify.
    pub unplaced: usize,
    /// The number of contexts whose accesses are partly or entirely unknown.
    pub unknown: usize,
}

impl Memprof {
    /// Converts a merged profile. Unknown frames are omitted, and contexts that become equal are merged.
    ///
    /// A context with unknown accesses is written without lifetimes, so LLVM considers it neither hot nor cold. If
    /// `unknown_is_unused` is set, unknown accesses count as no accesses, so long-lived contexts are cold.
    #[must_use]
    pub fn new(profile: &HeapProfile, frames: &CompilerFrames, unknown_is_unused: bool) -> Self {
        let mut memprof = Self { contexts: BTreeMap::new(), tick: profile.tick, unplaced: 0, unknown: 0 };
        for info in &profile.infos {
            let stack: Stack = match profile.contexts.get(&info.context) {
                Some(ProfileContext::Stack(places)) => {
                    let known = places.iter().filter_map(|place| frames.by_location.get(*place as usize));
                    known.flatten().cloned().collect()
                }
                _ => Stack::new(),
            };
            if stack.is_empty() {
                memprof.unplaced += 1;
                continue;
            }
            let mut info = info.clone();
            if info.lifetime_access_density.is_none() || info.loads.is_some_and(|loads| loads.reached_count > 0) {
                memprof.unknown += 1;
                if !unknown_is_unused {
                    info.lifetimes = None;
                }
            }
            match memprof.contexts.get_mut(&stack) {
                Some(earlier) => earlier.merge_with(info, false),
                None => drop(memprof.contexts.insert(stack, info)),
            }
        }
        memprof
    }

    /// Returns the number of contexts.
    #[must_use]
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    fn records(&self) -> BTreeMap<&str, Record<'_>> {
        let mut records = BTreeMap::<&str, Record<'_>>::new();
        for (stack, info) in &self.contexts {
            // Functions inlined into the allocating function contain the allocation, too.
            for frame in stack.chunk_by(|frame, _| frame.inlined).next().unwrap_or_default() {
                let allocations = &mut records.entry(&frame.function).or_default().allocations;
                // A function may be inlined into itself.
                if allocations.last().is_none_or(|(last, _)| *last != stack) {
                    allocations.push((stack, info));
                }
            }
            // Record each chain of inlined calls in every function of the chain. The first frame of the first chain is
            // the allocation, which is not recorded as a call.
            for (number, call) in stack.chunk_by(|frame, _| frame.inlined).enumerate() {
                for frame in call.iter().skip(usize::from(number == 0)) {
                    records.entry(&frame.function).or_default().calls.insert(call);
                }
            }
        }
        records
    }

    /// Writes the profile as YAML, with functions sorted by name.
    ///
    /// # Errors
    /// The output failed.
    pub fn yaml(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "---\nHeapProfileRecords:")?;
        for (function, record) in self.records() {
            writeln!(out, "  - GUID: {}", scalar(function))?;
            writeln!(out, "    AllocSites:{}", if record.allocations.is_empty() { " []" } else { "" })?;
            for (stack, info) in record.allocations {
                writeln!(out, "      - Callstack:")?;
                stack.iter().try_for_each(|frame| frame_line(frame, out))?;
                writeln!(out, "        MemInfoBlock:")?;
                for (name, value) in fields(info, self.tick) {
                    writeln!(out, "          {name}: {value}")?;
                }
            }
            writeln!(out, "    CallSites:{}", if record.calls.is_empty() { " []" } else { "" })?;
            for call in record.calls {
                writeln!(out, "      - Frames:")?;
                call.iter().try_for_each(|frame| frame_line(frame, out))?;
            }
        }
        writeln!(out, "...")
    }
}

fn frame_line(frame: &CompilerFrame, out: &mut dyn Write) -> io::Result<()> {
    let CompilerFrame { function, line_offset, column, inlined } = frame;
    let function = scalar(function);
    writeln!(
        out,
        "          - {{ Function: {function}, LineOffset: {line_offset}, Column: {column}, IsInlineFrame: {inlined} }}"
    )
}

/// Returns a name as a YAML scalar.
fn scalar(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte));
    if plain && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', "''"))
}

/// Returns the known fields of a heap info block with their LLVM names. Times are in milliseconds, and 32-bit numbers
/// saturate.
fn fields(info: &HeapInfo, tick: u64) -> Vec<(&'static str, u64)> {
    let small = |value: u64| value.min(u32::MAX.into());
    let milliseconds = |ticks: u64| u64::try_from(u128::from(ticks) * u128::from(tick) / 1_000_000).unwrap_or(u64::MAX);
    let mut fields = vec![("AllocCount", small(info.alloc_count))];
    let mut spread = |names: [&'static str; 3], spread: Option<Spread>, small: &dyn Fn(u64) -> u64| {
        if let Some(Spread { total, min, max, .. }) = spread {
            fields.extend(names.into_iter().zip([total, small(min), small(max)]));
        }
    };
    spread(["TotalAccessCount", "MinAccessCount", "MaxAccessCount"], info.access_count, &|value| value);
    spread(["TotalSize", "MinSize", "MaxSize"], Some(info.size), &small);
    let lifetime = info.lifetimes.map(|times| times.lifetime);
    let lifetime = lifetime.map(|Spread { total, min, max, .. }| Spread {
        total: milliseconds(total),
        min: milliseconds(min),
        max: milliseconds(max),
    });
    spread(["TotalLifetime", "MinLifetime", "MaxLifetime"], lifetime, &small);
    spread(["TotalAccessDensity", "MinAccessDensity", "MaxAccessDensity"], info.access_density, &small);
    let over_time = info.lifetime_access_density;
    spread(["TotalLifetimeAccessDensity", "MinLifetimeAccessDensity", "MaxLifetimeAccessDensity"], over_time, &small);
    if let Some(times) = &info.lifetimes {
        fields.push(("AllocTimestamp", small(milliseconds(times.alloc_timestamp))));
        fields.push(("DeallocTimestamp", small(milliseconds(times.dealloc_timestamp))));
        fields.push(("NumLifetimeOverlaps", small(times.num_lifetime_overlaps)));
    }
    if let Some(cpus) = &info.cpus {
        fields.push(("AllocCpuId", small(cpus.alloc_cpu_id)));
        fields.push(("DeallocCpuId", small(cpus.dealloc_cpu_id)));
        fields.push(("NumMigratedCpu", small(cpus.num_migrated_cpu)));
        fields.push(("NumSameAllocCpu", small(cpus.num_same_alloc_cpu)));
        fields.push(("NumSameDeallocCpu", small(cpus.num_same_dealloc_cpu)));
    }
    fields.extend(info.data_type_id.map(|id| ("DataTypeId", id)));
    fields
}
