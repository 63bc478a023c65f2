//! The stacks of a trace, and what their frames are: by the modules and symbols in it.
//!
//! Modules come and go, so an address means something only at its place in the trace. Frames become [`Location`]s as they are
//! met: an address in one loaded module. Stacks are equal if their locations are.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::BuildHasher as _;

use hashbrown::hash_table::{Entry, HashTable};
use hashbrown::{DefaultHashBuilder, HashMap};
use metatf_page::shown;

use crate::event::{EventKind, Stack};
pub use crate::location::{Function, Location};

/// Frames from here to twice this stand for places in Python's code; no address of a program is there.
pub const PYTHON_FRAMES: u64 = 1 << 47;

/// Returns whether a frame is not a return address, but stands for a place in Python's code: the trace says which.
#[must_use]
pub fn is_python(frame: u64) -> bool {
    (PYTHON_FRAMES..2 * PYTHON_FRAMES).contains(&frame)
}

/// A module that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Counts modules as they were loaded, from 0.
    pub number: usize,
    /// What is added to the addresses of its file.
    pub bias: u64,
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Its build id in hexadecimal digits; empty: it has none.
    pub build_id: String,
    /// Its path.
    pub path: String,
    /// Whether it is the program itself, and no shared object.
    pub is_program: bool,
}

/// The modules that are loaded at a place in a trace.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    loaded: BTreeMap<u64, Module>,
    count: usize,
    /// The path of the program; empty: not known.
    program: String,
}

impl Modules {
    /// Learns from an event. Returns whether addresses may mean something else than before.
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
                    // Two threads that met it at once have both recorded it.
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

    /// Returns the module that was loaded last.
    #[must_use]
    pub fn last(&self) -> Option<&Module> {
        self.loaded.values().max_by_key(|module| module.number)
    }

    /// Returns the module that a frame is in. A frame is a return address: its call is before it.
    #[must_use]
    pub fn find(&self, frame: u64) -> Option<&Module> {
        let call = frame.checked_sub(1)?;
        self.loaded.range(..=call).next_back().map(|(_, module)| module).filter(|module| call < module.end)
    }
}

/// The stacks of a trace, by number. Number 0 is the empty stack.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    modules: Modules,
    /// The number of the process.
    process: u64,
    symbols: HashMap<u64, Vec<Function>>,
    /// The source file of the symbols that follow.
    source: String,
    /// The frame of the symbol before, where another for it may follow.
    open: Option<u64>,
    /// Numbers of stacks by their frames, as long as addresses mean the same: of stacks that the source does not number.
    numbers: HashMap<Vec<u64>, u64>,
    /// The same by the source's numbers of them; 0: not met.
    of_source: Vec<u64>,
    /// Numbers of locations by their addresses, as long as addresses mean the same.
    here: HashMap<u64, u32>,
    /// Numbers of locations by address and module; the other way in `locations`.
    known_locations: HashMap<(u64, Option<usize>), u32>,
    locations: Vec<Location>,
    /// The places of `stacks`, by what is there.
    known_stacks: HashTable<usize>,
    hasher: DefaultHashBuilder,
    stacks: Vec<Vec<u32>>,
    resolved: bool,
}

impl Stacks {
    /// Learns from an event which modules are loaded, and which functions are where.
    pub fn note(&mut self, kind: &EventKind<'_>) {
        match *kind {
            EventKind::Source { path } => {
                self.source = String::from_utf8_lossy(path).into_owned();
                return;
            }
            EventKind::Symbol { frame, line, name } => {
                let name = String::from_utf8_lossy(name).into_owned();
                let functions = self.symbols.entry(frame).or_default();
                // Nothing is inlined in Python, and a trace that was completed may say twice where it is.
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
                // Modules have numbers of their own; what is in none is another image's from here on.
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

    /// Returns the number of a stack by its locations.
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

    /// Drops what is needed only while a trace is read: most of the memory.
    #[must_use]
    pub fn finished(self) -> Self {
        let Self { locations, stacks, resolved, .. } = self;
        Self { locations, stacks, resolved, ..Self::default() }
    }

    /// Adds the locations and stacks that another has beyond those of this one, which is [finished](Self::finished), and was the same
    /// before. Names that this one was given stay.
    pub fn catch_up(&mut self, other: &Self) {
        self.locations.extend_from_slice(other.locations.get(self.locations.len()..).unwrap_or_default());
        self.stacks.extend_from_slice(other.stacks.get(self.stacks.len()..).unwrap_or_default());
        self.resolved |= other.resolved;
    }

    /// Returns how many stacks there are, the empty one among them.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.stacks.len() as u64 + 1
    }

    /// Returns whether the trace has symbols.
    #[must_use]
    pub fn has_symbols(&self) -> bool {
        self.resolved
    }

    /// Returns whether frames lie in modules that are known, or in functions: those of other frames are numbers and no more.
    #[must_use]
    pub fn have_places(&self) -> bool {
        self.locations.iter().any(|location| !location.module.is_empty() || !location.functions.is_empty())
    }

    /// Returns all locations, each once.
    #[must_use]
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// Gives functions to locations that have none, by their places in [`locations`](Self::locations). Stacks and their numbers stay.
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

    /// Returns the frames of a stack as places in [`locations`](Self::locations), innermost first.
    #[must_use]
    pub fn frames(&self, number: u64) -> &[u32] {
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.stacks.get(index)).map_or(&[][..], Vec::as_slice)
    }

    /// Returns where the frames of a stack are, innermost first.
    pub fn get(&self, number: u64) -> impl DoubleEndedIterator<Item = &Location> {
        self.frames(number).iter().filter_map(|location| self.locations.get(*location as usize))
    }

    /// Names a stack by its innermost functions, at most this many.
    #[must_use]
    pub fn name(&self, number: u64, most: usize) -> Name<'_> {
        Name { stacks: self, number, most, lines: false }
    }
}

/// A stack in one line, for people: see [`Stacks::name`].
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    stacks: &'a Stacks,
    number: u64,
    most: usize,
    lines: bool,
}

impl Name<'_> {
    /// Has lines stand behind functions, where they are known: two calls in one function have two names then.
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
        // The same with a number of its source, which means something else once modules do.
        let numbered = Stack::numbered(&[0x1010, 0x2000, 0x2001], 5);
        assert_eq!([(); 2].map(|()| stacks.number(numbered)), [first; 2]);
        assert_ne!(stacks.number(Stack::numbered(&[0x1010], 3)), first);
        // Another thread has recorded the module, too.
        load(&mut stacks, 0x1000, 0x2000, b"0a1b /lib/a b.so");
        assert_eq!(stacks.number(&[0x1010, 0x2000, 0x2001]), first);
        assert_eq!(stacks.name(first, 9).to_string(), "inner <- outer <- a b.so+0x1000 <- 0x2001");
        assert_eq!(stacks.name(first, 2).to_string(), "inner <- outer <- ..");
        assert_eq!(stacks.name(first, 9).with_lines().to_string(), "inner:7 <- outer <- a b.so+0x1000 <- 0x2001");
        let lines: Vec<_> = stacks.get(first).flat_map(Location::lines).collect();
        assert_eq!(lines[..2], ["inner at a.c:7", "outer in a b.so"]);
        // Another module at the same place.
        stacks.note(&EventKind::ModuleUnload { start: 0x1000 });
        load(&mut stacks, 0x1000, 0x3000, b"- /lib/c.so");
        let second = stacks.number(numbered);
        assert_ne!(second, first);
        assert_eq!(stacks.name(second, 9).to_string(), "c.so+0x10 <- c.so+0x1000 <- c.so+0x1001");
        // The same as before, though a module was loaded in between.
        load(&mut stacks, 0x5000, 0x6000, b"- /lib/d.so");
        assert_eq!(stacks.number(&[0x1010, 0x2000, 0x2001]), second);
        assert_eq!((stacks.count(), stacks.has_symbols()), (4, true));
        // A name that is none, addresses that are none.
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
