//! The distinct frames of all stacks. A frame is a function and a line.

use hashbrown::HashMap;

use super::passing::{Folding, may_wrap};
use super::place::{GroupBy, Place};
use hatf_trace::stacks::{Location, Stacks, is_python};

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
        };
        (this.own, this.ends) = this.not_passing(|stack| this.all(stack));
        if folding.is_by_default() && this.fold_wrappers(&functions, &function_of) {
            (this.own, this.ends) = this.not_passing(|stack| this.own(stack));
        }
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

    /// Returns a build ID for each group, indexed by group number. If the name of the group is only an offset, the
    /// build ID is the build ID of the module; for any other name, the build ID is empty.
    pub(super) fn builds_of_nameless(&self) -> Vec<&str> {
        let mut builds = vec![""; self.keys.len()];
        let locations = self.stacks.locations().iter().zip(&self.of_location);
        for (location, places) in locations.filter(|(location, _)| location.functions.is_empty()) {
            for place in places {
                builds.get_mut(self.group(*place) as usize).into_iter().for_each(|build| *build = &location.build_id);
            }
        }
        builds
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

    /// Returns the candidates for application frames of a stack, innermost first. If the stack contains Python code,
    /// only Python frames are candidates.
    fn all(&self, stack: u64) -> impl Iterator<Item = u32> {
        let is_python = |location: &u32| self.is_python.get(*location as usize) == Some(&true);
        let locations = self.stacks.frames(stack);
        let of_python = !self.is_python.is_empty() && locations.iter().any(is_python);
        let locations = locations.iter().filter(move |location| !of_python || is_python(location));
        locations.filter_map(|location| self.of_location.get(*location as usize)).flatten().copied()
    }

    /// Returns the frames of stacks that are not wrappers, and the end index of each stack's frames.
    fn not_passing<I: Iterator<Item = u32>>(&self, of: impl Fn(u64) -> I) -> (Vec<u32>, Vec<usize>) {
        let (mut own, mut ends) = (Vec::new(), vec![0]);
        for stack in 1..self.stacks.count() {
            let start = own.len();
            own.extend(of(stack).filter(|place| !self.is_passing(*place)));
            if own.len() == start {
                own.extend(self.all(stack).next());
            }
            ends.push(own.len());
        }
        (own, ends)
    }

    fn is_passing(&self, place: u32) -> bool {
        self.passes.get(place as usize).copied().unwrap_or(false)
    }

    /// Folds functions such as `xmalloc`, which only allocate on behalf of several callers, and functions that wrap
    /// these functions in turn. Returns whether any function was folded.
    fn fold_wrappers(&mut self, functions: &[Place], function_of: &[u32]) -> bool {
        let mut folded = false;
        let may: Vec<bool> = functions.iter().map(may_wrap).collect();
        let function = |place: u32| function_of.get(place as usize).copied().unwrap_or(0) as usize;
        // In practice, wrappers are nested at most three deep.
        for _ in 0..3 {
            let mut seen = vec![Seen::default(); functions.len()];
            for stack in 1..self.stacks.count() {
                let (mut innermost, mut caller) = (None, None);
                for place in self.own_places(stack) {
                    if self.is_passing(*place) {
                        continue;
                    }
                    let function = function(*place);
                    let innermost = *innermost.get_or_insert(function);
                    if function != innermost {
                        caller = caller.or(Some(function));
                        seen.get_mut(function).into_iter().for_each(|seen| seen.does_more = true);
                    }
                }
                let seen = innermost.and_then(|innermost| seen.get_mut(innermost));
                seen.into_iter().for_each(|seen| seen.called_by(caller));
            }
            let wraps = |number: usize| {
                may.get(number) == Some(&true)
                    && seen.get(number).is_some_and(|seen| seen.callers == Callers::Several && !seen.does_more)
            };
            let mut found = false;
            for (passes, number) in self.passes.iter_mut().zip(function_of) {
                if !*passes && wraps(*number as usize) {
                    (*passes, found) = (true, true);
                }
            }
            if !found {
                break;
            }
            folded = true;
        }
        folded
    }
}

/// Returns the keys of the groups, and the group of each frame.
fn groups(places: &[Place], by: GroupBy) -> (Vec<Place>, Vec<u32>) {
    let mut keys = Numbers::default();
    let group = places.iter().map(|place| keys.number(place.key(by))).collect();
    (keys.list, group)
}

/// The observed callers and callees of a function.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    callers: Callers,
    /// Whether the function calls a function that allocates but is not an allocation function itself.
    does_more: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Callers {
    #[default]
    Nobody,
    One(usize),
    Several,
}

impl Seen {
    fn called_by(&mut self, caller: Option<usize>) {
        let Some(caller) = caller else { return };
        self.callers = match self.callers {
            Callers::Nobody => Callers::One(caller),
            Callers::One(other) if other == caller => Callers::One(other),
            _ => Callers::Several,
        };
    }
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
