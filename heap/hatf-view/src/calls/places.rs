//! The distinct frames of all stacks. A frame is a function and a line.

use hashbrown::HashMap;

use super::passing::{Folding, is_allocator, may_wrap};
use super::place::{GroupBy, Place};
use super::wrappers::{self, Frame, Function, Role, wrappers_sentence};
use hatf_trace::stacks::{Location, Stacks, is_python};
use metatf_page::Note;

/// The numbered frames of a trace, and the numbered groups to which they belong. The [module documentation](super)
/// contains an example.
#[derive(Debug)]
pub struct Places<'s> {
    stacks: &'s Stacks,
    places: Vec<Place>,
    /// The frames at each location of the stacks, innermost first.
    of_location: Vec<Vec<u32>>,
    /// Whether each location is in Python code; empty if no location is. Native frames around Python frames count as
    /// wrappers.
    is_python: Vec<bool>,
    /// Whether each frame is a wrapper.
    passes: Vec<bool>,
    /// The application frames of all stacks.
    own: Vec<u32>,
    /// The end index of each stack's frames.
    ends: Vec<usize>,
    /// The group of each frame.
    group: Vec<u32>,
    /// The fields that identify each group.
    keys: Vec<Place>,
    /// The functions that were found to be wrappers, those on the most stacks first.
    wrappers: Vec<Place>,
}

impl<'s> Places<'s> {
    /// Collects the frames of stacks.
    #[must_use]
    pub fn new(stacks: &'s Stacks, folding: &Folding, by: GroupBy) -> Self {
        let mut places = Numbers::default();
        let of = |location: &Location| -> Vec<u32> { Place::of(location).map(|place| places.number(place)).collect() };
        let of_location: Vec<_> = stacks.locations().iter().map(of).collect();
        // All lines of a function are treated alike.
        let (functions, function_of) = groups(&places.list, GroupBy::Function);
        let (keys, group) = match by {
            GroupBy::Function => (functions.clone(), function_of.clone()),
            _ => groups(&places.list, by),
        };
        let passing: Vec<bool> = functions.iter().map(|function| folding.passes(function)).collect();
        let passes = function_of.iter().map(|function| passing.get(*function as usize) == Some(&true)).collect();
        let mut is_python: Vec<bool> = stacks.locations().iter().map(|location| is_python(location.address)).collect();
        if !folding.is_by_default() || !is_python.contains(&true) {
            is_python.clear();
        }
        let mut this = Self {
            stacks,
            places: places.list,
            of_location,
            is_python,
            passes,
            own: Vec::new(),
            ends: Vec::new(),
            group,
            keys,
            wrappers: Vec::new(),
        };
        if folding.is_by_default() {
            this.fold_wrappers(&functions, &function_of, &passing);
        }
        this.find_own();
        this
    }

    /// Returns the stacks.
    #[must_use]
    pub fn stacks(&self) -> &'s Stacks {
        self.stacks
    }

    /// Returns a frame by its number.
    #[must_use]
    pub fn place(&self, number: u32) -> Option<&Place> {
        self.places.get(number as usize)
    }

    /// Returns all frames, by number.
    #[must_use]
    pub fn all_places(&self) -> &[Place] {
        &self.places
    }

    /// Returns the number of the group that a frame belongs to.
    #[must_use]
    pub fn group(&self, place: u32) -> u32 {
        self.group.get(place as usize).copied().unwrap_or(u32::MAX)
    }

    /// Returns the identifying fields of the groups, indexed by group number.
    #[must_use]
    pub fn keys(&self) -> &[Place] {
        &self.keys
    }

    /// Returns a location of each group, indexed by group number.
    pub(super) fn locations(&self) -> Vec<Option<&Location>> {
        let mut found = vec![None; self.keys.len()];
        for (location, places) in self.stacks.locations().iter().zip(&self.of_location) {
            for place in places {
                found.get_mut(self.group(*place) as usize).into_iter().for_each(|found| *found = Some(location));
            }
        }
        found
    }

    /// Returns the application frames of a stack, innermost first. If all frames are wrappers, returns only the
    /// innermost one.
    pub fn own(&self, stack: u64) -> impl DoubleEndedIterator<Item = u32> {
        self.own_places(stack).iter().copied()
    }

    fn own_places(&self, stack: u64) -> &[u32] {
        let index = usize::try_from(stack).ok().and_then(|stack| stack.checked_sub(1));
        let range = index.and_then(|index| Some(*self.ends.get(index)?..*self.ends.get(index + 1)?));
        range.and_then(|range| self.own.get(range)).unwrap_or_default()
    }

    /// Returns the own function of each stack, indexed by stack number. This is the innermost frame of
    /// [`own`](Self::own), or an empty string if unknown.
    #[must_use]
    pub fn own_functions(stacks: &Stacks, folding: &Folding) -> Vec<String> {
        let places = Places::new(stacks, folding, GroupBy::Function);
        let name =
            |stack| places.own(stack).next().and_then(|place| places.place(place)).map(|place| place.name.clone());
        (0..stacks.count()).map(|stack| name(stack).unwrap_or_default()).collect()
    }

    /// Returns the functions that were found to be wrappers, those on the most stacks first. This list excludes known
    /// functions such as `malloc`.
    #[must_use]
    pub fn wrappers(&self) -> &[Place] {
        &self.wrappers
    }

    /// Returns a sentence that names the [wrappers](Self::wrappers), if there are any.
    #[must_use]
    pub fn wrappers_sentence(&self) -> Option<Note> {
        wrappers_sentence(&self.wrappers)
    }

    /// Folds more functions, given for each function whether it is a wrapper.
    pub(super) fn fold_also(&mut self, is_wrapper: &[bool]) {
        let before = self.wrappers.len();
        for (key, _) in self.keys.iter().zip(is_wrapper).filter(|(_, is)| **is) {
            if !self.wrappers.contains(key) {
                self.wrappers.push(key.clone());
            }
        }
        if self.wrappers.len() > before {
            for (passes, function) in self.passes.iter_mut().zip(&self.group) {
                *passes |= is_wrapper.get(*function as usize) == Some(&true);
            }
            self.find_own();
        }
    }

    /// Returns the candidates for application frames of a stack and their locations, innermost first. If the stack
    /// contains Python code, only Python frames are candidates.
    fn all(&self, stack: u64) -> impl Iterator<Item = (u32, u32)> {
        let is_python = |location: &u32| self.is_python.get(*location as usize) == Some(&true);
        let locations = self.stacks.frames(stack);
        let of_python = !self.is_python.is_empty() && locations.iter().any(is_python);
        let locations = locations.iter().filter(move |location| !of_python || is_python(location));
        let places = |location: &u32| {
            let places = self.of_location.get(*location as usize).map_or(&[][..], Vec::as_slice);
            std::iter::repeat(*location).zip(places.iter().copied())
        };
        locations.flat_map(places)
    }

    /// Collects the frames of stacks that are not wrappers.
    fn find_own(&mut self) {
        let (mut own, mut ends) = (Vec::new(), vec![0]);
        for stack in 1..self.stacks.count() {
            let start = own.len();
            own.extend(self.all(stack).map(|(_, place)| place).filter(|place| !self.is_passing(*place)));
            if own.len() == start {
                own.extend(self.all(stack).next().map(|(_, place)| place));
            }
            ends.push(own.len());
        }
        (self.own, self.ends) = (own, ends);
    }

    fn is_passing(&self, place: u32) -> bool {
        self.passes.get(place as usize).copied().unwrap_or(false)
    }

    /// Folds the [wrappers](super::wrappers) in the trace. `passing` contains whether each function is folded already.
    fn fold_wrappers(&mut self, functions: &[Place], function_of: &[u32], passing: &[bool]) {
        let function = |(place, passes): (_, &bool)| Function {
            role: match passes {
                false => Role::Own,
                true if is_allocator(place) => Role::Allocator,
                true => Role::Folded,
            },
            is_named: may_wrap(place),
        };
        let all: Vec<Function> = functions.iter().zip(passing).map(function).collect();
        let frame = |(location, place): (u32, u32)| Frame {
            function: function_of.get(place as usize).copied().unwrap_or(u32::MAX),
            location,
            place,
            has_line: self.place(place).is_some_and(|place| place.line > 0),
        };
        let found = wrappers::find(&all, self.stacks, |stack| self.all(stack).map(frame));
        let mut is_wrapper = vec![false; functions.len()];
        for number in found {
            is_wrapper.get_mut(number as usize).into_iter().for_each(|is| *is = true);
            self.wrappers.extend(functions.get(number as usize).cloned());
        }
        for (passes, function) in self.passes.iter_mut().zip(function_of) {
            *passes |= is_wrapper.get(*function as usize) == Some(&true);
        }
    }
}

/// Returns the keys of the groups, and the group of each frame.
fn groups(places: &[Place], by: GroupBy) -> (Vec<Place>, Vec<u32>) {
    let mut keys = Numbers::default();
    let group = places.iter().map(|place| keys.number(place.key(by))).collect();
    (keys.list, group)
}

/// A numbering of distinct frames.
#[derive(Debug, Default)]
struct Numbers {
    known: HashMap<Place, u32>,
    list: Vec<Place>,
}

impl Numbers {
    fn number(&mut self, place: Place) -> u32 {
        if let Some(number) = self.known.get(&place) {
            return *number;
        }
        let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(place.clone());
        self.known.insert(place, number);
        number
    }
}
