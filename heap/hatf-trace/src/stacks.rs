//! The stacks of a trace, with frames resolved by the modules and symbols in the trace.
//!
//! Modules are loaded and unloaded, so the meaning of an address depends on the position in the trace. When a frame is
//! first read, it becomes a [`Location`], which is an address in one loaded module. Two stacks are equal if their
//! locations are equal.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::EventKind;
//! use hatf_trace::stacks::Stacks;
//!
//! let mut stacks = Stacks::default();
//! let name = b"0a1b /lib/libc.so.6";
//! stacks.note(&EventKind::ModuleLoad { bias: 0x1000, start: 0x1000, end: 0x2000, name });
//! stacks.note(&EventKind::Symbol { frame: 0x1010, line: 7, name: b"malloc" });
//! let number = stacks.number(&[0x1010, 0x1020, 0x9000]);
//! assert_eq!(stacks.name(number, 9).to_string(), "malloc <- libc.so.6+0x20 <- 0x9000");
//! assert_eq!(stacks.name(number, 1).with_lines().to_string(), "malloc:7 <- ..");
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::hash::BuildHasher as _;

use hashbrown::hash_table::{Entry, HashTable};
use hashbrown::{DefaultHashBuilder, HashMap};
use metatf_page::shown;

use crate::event::{EventKind, Stack, UNKNOWN_SIZE};
pub use crate::location::{Function, Location};

/// Start of the range of frames that denote positions in Python code; the range ends at twice this number. No program
/// has addresses in this range.
pub const PYTHON_FRAMES: u64 = 1 << 47;

/// Returns whether a frame denotes a position in Python code rather than a return address. The trace describes such
/// positions.
#[must_use]
pub fn is_python(frame: u64) -> bool {
    (PYTHON_FRAMES..2 * PYTHON_FRAMES).contains(&frame)
}

/// A loaded module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The number of the module, counted from 0 in load order.
    pub number: usize,
    /// The load bias: the number added to an address in the file to obtain the address in memory.
    pub bias: u64,
    /// The start address.
    pub start: u64,
    /// The end address (exclusive).
    pub end: u64,
    /// The build ID in hexadecimal digits, or empty if there is none.
    pub build_id: String,
    /// The path of the module.
    pub path: String,
    /// Whether the module is the program itself rather than a shared object.
    pub is_program: bool,
}

/// The modules loaded at a position in a trace.
///
/// # Examples
///
/// ```
/// use hatf_trace::EventKind;
/// use hatf_trace::stacks::Modules;
///
/// let mut modules = Modules::default();
/// let name = b"- /lib/libc.so.6";
/// modules.note(&EventKind::ModuleLoad { bias: 0x1000, start: 0x1000, end: 0x2000, name });
/// // The frame 0x2000 belongs to a call at the end of the module.
/// let is_libc = |frame| modules.find(frame).is_some_and(|module| module.path == "/lib/libc.so.6");
/// assert_eq!([0x1000, 0x1001, 0x2000, 0x2001].map(is_libc), [false, true, true, false]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Modules {
    loaded: BTreeMap<u64, Module>,
    count: usize,
    /// The path of the program, or empty if unknown.
    program: String,
}

impl Modules {
    /// Updates the modules for an event. Returns whether the meaning of addresses may have changed.
    pub fn note(&mut self, kind: &EventKind<'_>) -> bool {
        match *kind {
            EventKind::ModuleLoad { bias, start, end, name } => {
                let name = String::from_utf8_lossy(name);
                let (build_id, path) = name.split_once(' ').unwrap_or(("-", &name));
                let build_id = if build_id == "-" { String::new() } else { build_id.to_owned() };
                let is_program = !path.is_empty() && path == self.program;
                let known =
                    self.loaded.get(&start).map(|known| (known.bias, known.end, &*known.build_id, &*known.path));
                if known == Some((bias, end, &build_id, path)) {
                    // Two threads observed the module at the same time, and both recorded it.
                    return false;
                }
                let (number, path) = (self.count, path.to_owned());
                let module = Module { number, bias, start, end, build_id, path, is_program };
                self.loaded.insert(start, module);
                self.count += 1;
                true
            }
            EventKind::ModuleUnload { start } => self.loaded.remove(&start).is_some(),
            EventKind::Image { path, .. } => {
                self.loaded.clear();
                self.program = String::from_utf8_lossy(path).into_owned();
                true
            }
            _ => false,
        }
    }

    /// Returns the most recently loaded module.
    #[must_use]
    pub fn last(&self) -> Option<&Module> {
        self.loaded.values().max_by_key(|module| module.number)
    }

    /// Returns the module that contains a frame. A frame is a return address, so the call precedes it.
    #[must_use]
    pub fn find(&self, frame: u64) -> Option<&Module> {
        let call = frame.checked_sub(1)?;
        self.loaded.range(..=call).next_back().map(|(_, module)| module).filter(|module| call < module.end)
    }
}

/// The stacks of a trace, by number. Number 0 is the empty stack.
///
/// The [module's example](crate::stacks#examples) resolves a stack.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    modules: Modules,
    /// The process ID.
    process: u64,
    symbols: HashMap<u64, Vec<Function>>,
    /// The source file of the following symbols.
    source: String,
    /// The frame of the previous symbol, if another symbol for this frame may follow.
    open: Option<u64>,
    /// Stack numbers by frames, for stacks that the source does not number. Valid while addresses keep their meaning.
    numbers: HashMap<Vec<u64>, u64>,
    /// Stack numbers by the source's own numbers; 0 if the stack has not occurred yet.
    of_source: Vec<u64>,
    /// Location numbers by address. Valid while addresses keep their meaning.
    here: HashMap<u64, u32>,
    /// Location numbers by address and module number, the inverse of `locations`.
    known_locations: HashMap<(u64, Option<usize>), u32>,
    locations: Vec<Location>,
    /// Indices into `stacks`, hashed by the stack.
    known_stacks: HashTable<usize>,
    hasher: DefaultHashBuilder,
    stacks: Vec<Vec<u32>>,
    /// The sizes of the blocks that each stack allocated, indexed by stack number.
    sizes: Vec<Sizes>,
    resolved: bool,
}

/// The sizes of the blocks that a stack allocated.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// The first distinct sizes, followed by [`UNKNOWN_SIZE`].
    sizes: [u64; 4],
    /// Whether one of them occurred again.
    repeat: bool,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { sizes: [UNKNOWN_SIZE; 4], repeat: false }
    }
}

impl Stacks {
    /// Updates the modules and symbols for an event.
    pub fn note(&mut self, kind: &EventKind<'_>) {
        match *kind {
            EventKind::Source { path } => {
                self.source = String::from_utf8_lossy(path).into_owned();
                return;
            }
            EventKind::Symbol { frame, line, name } => {
                let name = String::from_utf8_lossy(name).into_owned();
                let functions = self.symbols.entry(frame).or_default();
                // A Python frame has no inlined functions. A completed trace may describe it twice, so the last symbol
                // counts.
                if self.open != Some(frame) || is_python(frame) {
                    functions.clear();
                }
                functions.push(Function { name, file: self.source.clone(), line });
                (self.open, self.resolved) = (Some(frame), true);
                return;
            }
            EventKind::ModuleUnload { start } => {
                if let Some(module) = self.modules.find(start.saturating_add(1)) {
                    let addresses = module.start..=module.end;
                    self.symbols.retain(|frame, _| !addresses.contains(frame));
                }
            }
            EventKind::Image { process, .. } => {
                self.process = process;
                self.symbols.clear();
                // Module numbers are unique, but addresses outside all modules belong to another image from now on.
                self.known_locations.retain(|(_, module), _| module.is_some());
            }
            _ => {}
        }
        self.open = None;
        if self.modules.note(kind) {
            self.numbers.clear();
            self.of_source.clear();
            self.here.clear();
        }
    }

    /// Returns the number of a stack.
    #[inline]
    pub fn number<'s>(&mut self, stack: impl Into<Stack<'s>>) -> u64 {
        let stack = stack.into();
        match self.of_source.get(stack.number() as usize) {
            Some(number) if *number > 0 => *number,
            _ => self.by_frames(stack),
        }
    }

    /// Returns the number of a stack that already has a number.
    #[must_use]
    pub fn find<'s>(&self, stack: impl Into<Stack<'s>>) -> Option<u64> {
        let stack = stack.into();
        match self.of_source.get(stack.number() as usize) {
            Some(number) if *number > 0 => Some(*number),
            _ if stack.number() == 0 => self.numbers.get(stack.frames()).copied(),
            _ => None,
        }
    }

    fn by_frames(&mut self, stack: Stack<'_>) -> u64 {
        if stack.is_empty() {
            return 0;
        }
        if stack.number() == 0 {
            return match self.numbers.get(stack.frames()) {
                Some(number) => *number,
                None => {
                    let number = self.add(stack.frames());
                    self.numbers.insert(stack.to_vec(), number);
                    number
                }
            };
        }
        let (number, index) = (self.add(stack.frames()), stack.number() as usize);
        self.of_source.resize(self.of_source.len().max(index + 1), 0);
        self.of_source.get_mut(index).into_iter().for_each(|of_source| *of_source = number);
        number
    }

    /// Returns the number of a stack. Stacks with equal locations have the same number.
    fn add(&mut self, stack: &[u64]) -> u64 {
        let mut locations = Vec::with_capacity(stack.len());
        for frame in stack {
            let known = self.here.get(frame).copied();
            locations.push(known.unwrap_or_else(|| {
                let location = self.location(*frame);
                self.here.insert(*frame, location);
                location
            }));
        }
        let Self { known_stacks, stacks, hasher, .. } = self;
        let frames = |place: &usize| stacks.get(*place).map_or(&[][..], Vec::as_slice);
        let hash = |locations: &[u32]| hasher.hash_one(locations);
        let index =
            match known_stacks.entry(hash(&locations), |known| frames(known) == locations, |known| hash(frames(known)))
            {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(place) => {
                    let index = stacks.len();
                    place.insert(index);
                    stacks.push(locations);
                    index
                }
            };
        index as u64 + 1
    }

    fn location(&mut self, frame: u64) -> u32 {
        let module = self.modules.find(frame);
        let locations = &mut self.locations;
        *self.known_locations.entry((frame, module.map(|module| module.number))).or_insert_with(|| {
            let functions = self.symbols.get(&frame).cloned().unwrap_or_default();
            let location = Location { address: frame, offset: frame, functions, ..Location::default() };
            locations.push(match module {
                Some(Module { bias, build_id, path, is_program, .. }) => Location {
                    module: path.clone(),
                    build_id: build_id.clone(),
                    is_program: *is_program,
                    offset: frame.wrapping_sub(*bias),
                    ..location
                },
                None => Location { process: self.process, ..location },
            });
            u32::try_from(locations.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Notes the size of a block that a stack allocated. Unknown sizes and stacks are ignored.
    #[inline]
    pub fn note_size(&mut self, number: u64, size: u64) {
        if number == 0 {
            return;
        }
        match self.sizes_of(number) {
            Some(Sizes { sizes: [first, .., last], repeat: true }) if *first == size || *last != UNKNOWN_SIZE => {}
            _ => self.add_size(number, size),
        }
    }

    fn add_size(&mut self, number: u64, size: u64) {
        let Some(index) = usize::try_from(number).ok().filter(|index| *index <= self.stacks.len()) else { return };
        if size == UNKNOWN_SIZE {
            return;
        }
        if index >= self.sizes.len() {
            self.sizes.resize(index + 1, Sizes::default());
        }
        let Some(Sizes { sizes, repeat }) = self.sizes.get_mut(index) else { return };
        if let Some(place) = sizes.iter_mut().find(|known| **known == size || **known == UNKNOWN_SIZE) {
            *repeat |= *place == size;
            *place = size;
        }
    }

    /// Returns up to four distinct sizes of the blocks that a stack allocated, in the order of their first occurrence.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut stacks = hatf_trace::stacks::Stacks::default();
    /// let stack = stacks.number(&[0x1010]);
    /// for size in [24, 100, 24] {
    ///     stacks.note_size(stack, size);
    /// }
    /// assert_eq!(stacks.sizes(stack).collect::<Vec<_>>(), [24, 100]);
    /// assert!(stacks.repeats_a_size(stack));
    /// ```
    pub fn sizes(&self, number: u64) -> impl Iterator<Item = u64> {
        let sizes = self.sizes_of(number).map(|sizes| sizes.sizes);
        sizes.into_iter().flatten().take_while(|size| *size != UNKNOWN_SIZE)
    }

    /// Returns whether a stack allocated several blocks of the same size. Only the first four distinct sizes of the
    /// stack are considered.
    #[must_use]
    pub fn repeats_a_size(&self, number: u64) -> bool {
        self.sizes_of(number).is_some_and(|sizes| sizes.repeat)
    }

    #[inline]
    fn sizes_of(&self, number: u64) -> Option<&Sizes> {
        usize::try_from(number).ok().and_then(|number| self.sizes.get(number))
    }

    /// Drops the data needed only while a trace is being read, which is most of the memory.
    #[must_use]
    pub fn finished(self) -> Self {
        let Self { locations, stacks, sizes, resolved, .. } = self;
        Self { locations, stacks, sizes, resolved, ..Self::default() }
    }

    /// Adds the locations and stacks that only `other` contains. This value must be [finished](Self::finished) and must
    /// be an earlier state of `other`. Function names that were added to this value are kept.
    pub fn catch_up(&mut self, other: &Self) {
        self.locations.extend_from_slice(other.locations.get(self.locations.len()..).unwrap_or_default());
        self.stacks.extend_from_slice(other.stacks.get(self.stacks.len()..).unwrap_or_default());
        self.sizes.clone_from(&other.sizes);
        self.resolved |= other.resolved;
    }

    /// Returns the number of stacks, including the empty one.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.stacks.len() as u64 + 1
    }

    /// Returns whether the trace has symbols.
    #[must_use]
    pub fn has_symbols(&self) -> bool {
        self.resolved
    }

    /// Returns whether any frame is in a known module or function. Otherwise, frames are mere numbers.
    #[must_use]
    pub fn have_places(&self) -> bool {
        self.locations.iter().any(|location| !location.module.is_empty() || !location.functions.is_empty())
    }

    /// Returns all distinct locations.
    #[must_use]
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// Adds functions to locations without functions, by index in [`locations`](Self::locations). The stacks and their
    /// numbers do not change.
    pub fn name_locations(&mut self, functions: impl IntoIterator<Item = (usize, Vec<Function>)>) {
        for (location, functions) in functions {
            if let Some(location) = self.locations.get_mut(location)
                && location.functions.is_empty()
                && !functions.is_empty()
            {
                (location.functions, self.resolved) = (functions, true);
            }
        }
    }

    /// Returns the frames of a stack as indices into [`locations`](Self::locations), innermost first.
    #[must_use]
    pub fn frames(&self, number: u64) -> &[u32] {
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.stacks.get(index)).map_or(&[][..], Vec::as_slice)
    }

    /// Returns the locations of the frames of a stack, innermost first.
    pub fn get(&self, number: u64) -> impl DoubleEndedIterator<Item = &Location> {
        self.frames(number).iter().filter_map(|location| self.locations.get(*location as usize))
    }

    /// Returns the name of a stack, which lists its innermost functions, at most `most` of them.
    #[must_use]
    pub fn name(&self, number: u64, most: usize) -> Name<'_> {
        Name { stacks: self, number, most, lines: false }
    }
}

/// A stack formatted as one line for people; see [`Stacks::name`].
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    stacks: &'a Stacks,
    number: u64,
    most: usize,
    lines: bool,
}

impl Name<'_> {
    /// Adds line numbers after function names if they are known. The line numbers distinguish two calls in the same
    /// function.
    #[must_use]
    pub fn with_lines(self) -> Self {
        Self { lines: true, ..self }
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |location: &'_ Location| -> Vec<String> {
            let with_line = |(number, name)| if self.lines { location.with_line(number, name) } else { name };
            location.short_names().enumerate().map(with_line).collect()
        };
        let mut names = self.stacks.get(self.number).flat_map(names).enumerate().peekable();
        if names.peek().is_none() {
            return f.write_str("not known");
        }
        for (number, name) in names {
            if number > 0 {
                f.write_str(" <- ")?;
            }
            if number >= self.most.max(1) {
                return f.write_str("..");
            }
            f.write_str(&shown(&name))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(stacks: &mut Stacks, start: u64, end: u64, name: &[u8]) {
        stacks.note(&EventKind::ModuleLoad { bias: start, start, end, name });
    }

    fn symbol(stacks: &mut Stacks, frame: u64, line: u64, name: &[u8]) {
        stacks.note(&EventKind::Symbol { frame, line, name });
    }

    #[test]
    fn frames_are_what_they_are_where_they_stand() {
        let mut stacks = Stacks::default();
        assert_eq!((stacks.number(&[]), stacks.count()), (0, 1));
        load(&mut stacks, 0x1000, 0x2000, b"0a1b /lib/a b.so");
        stacks.note(&EventKind::Source { path: b"a.c" });
        symbol(&mut stacks, 0x1010, 7, b"inner");
        stacks.note(&EventKind::Source { path: b"" });
        symbol(&mut stacks, 0x1010, 0, b"outer");
        let first = stacks.number(&[0x1010, 0x2000, 0x2001]);
        assert_eq!(stacks.number(&[0x1010, 0x2000, 0x2001]), first);
        // The same stack with a source number, whose meaning changes when modules change.
        let numbered = Stack::numbered(&[0x1010, 0x2000, 0x2001], 5);
        assert_eq!([(); 2].map(|()| stacks.number(numbered)), [first; 2]);
        assert_ne!(stacks.number(Stack::numbered(&[0x1010], 3)), first);
        // Another thread has recorded the same module, too.
        load(&mut stacks, 0x1000, 0x2000, b"0a1b /lib/a b.so");
        assert_eq!(stacks.number(&[0x1010, 0x2000, 0x2001]), first);
        assert_eq!(stacks.name(first, 9).to_string(), "inner <- outer <- a b.so+0x1000 <- 0x2001");
        assert_eq!(stacks.name(first, 2).to_string(), "inner <- outer <- ..");
        assert_eq!(stacks.name(first, 9).with_lines().to_string(), "inner:7 <- outer <- a b.so+0x1000 <- 0x2001");
        let lines: Vec<_> = stacks.get(first).flat_map(Location::lines).collect();
        assert_eq!(lines[..2], ["inner at a.c:7", "outer in a b.so"]);
        // A different module at the same address.
        stacks.note(&EventKind::ModuleUnload { start: 0x1000 });
        load(&mut stacks, 0x1000, 0x3000, b"- /lib/c.so");
        let second = stacks.number(numbered);
        assert_ne!(second, first);
        assert_eq!(stacks.name(second, 9).to_string(), "c.so+0x10 <- c.so+0x1000 <- c.so+0x1001");
        // The stack is unchanged, although a module was loaded in between.
        load(&mut stacks, 0x5000, 0x6000, b"- /lib/d.so");
        assert_eq!(stacks.number(&[0x1010, 0x2000, 0x2001]), second);
        assert_eq!((stacks.count(), stacks.has_symbols()), (4, true));
        // An invalid name and invalid addresses.
        load(&mut stacks, u64::MAX, 0, b"");
        let odd = stacks.number(&[0, u64::MAX]);
        assert_eq!(stacks.name(odd, 2).to_string(), "0x0 <- 0xffffffffffffffff");
        stacks.note(&EventKind::Image { process: 1, path: b"" });
        let third = stacks.number(&[0x1010]);
        assert_eq!(stacks.name(third, 2).to_string(), "0x1010");
        // The program is a module, too.
        stacks.note(&EventKind::Image { process: 1, path: b"/bin/p" });
        load(&mut stacks, 0x1000, 0x2000, b"77 /bin/p");
        load(&mut stacks, 0x3000, 0x4000, b"- /lib/c.so");
        let fourth = stacks.number(&[0x1010, 0x3010]);
        let modules: Vec<_> =
            stacks.get(fourth).map(|l| (l.module_name(), l.build_id.as_str(), l.is_program)).collect();
        assert_eq!(modules, [("p", "77", true), ("c.so", "", false)]);
    }
}
