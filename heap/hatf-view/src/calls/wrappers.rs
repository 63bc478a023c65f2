//! Detection of the wrappers in a trace, from its stacks and the sizes of its blocks.
//!
//! A *wrapper* is a function that allocates only to pass the memory to its caller, which chooses the size. The
//! following rule finds wrappers with and without symbols. Without a symbol, each call is a function.
//!
//! A function is a *candidate* if all of the following is true:
//!
//! - Whenever it is on a stack, it is the innermost function apart from allocators and other wrappers.
//! - It calls an allocator or another wrapper directly, and not through a container or another library function.
//! - All these calls are at one place: one source line or, if lines are unknown, one call instruction.
//! - It does not call itself, and it is not written in Python.
//!
//! A candidate is a wrapper if it has several callers and its size changes with them:
//!
//! - if its name suggests an allocation function, 2 callers and 2 sizes suffice. It may call from several places, and on
//!   one of [`OTHERS`] stacks it may call another function, such as one that sets up the allocator;
//! - otherwise it needs [`CALLERS`] callers for each of which it allocated several blocks of the same size, because the
//!   sizes of a growing table are not chosen by callers. It also needs three sizes for each four callers, but at least
//!   5 sizes and at most 12. A function that allocates a few types of nodes has more callers than sizes.
//!
//! A candidate with fewer callers is a wrapper if one of the callers is a wrapper: `do_xmalloc` called by `xmalloc`.

use std::ops::RangeInclusive;

use hatf_trace::short_name::short_name;
use hatf_trace::stacks::{Location, Stacks, is_python};
use metatf_page::{Note, Value, shown};

use super::place::Place;

/// The number of callers that a wrapper needs.
const CALLERS: usize = 4;
/// The number of distinct sizes that a wrapper needs, depending on its number of callers.
const SIZES: RangeInclusive<usize> = 5..=12;
/// The number of callers and of sizes that a wrapper needs if its name suggests an allocation function.
const NAMED: usize = 2;
/// The number of stacks for each of which a function with such a name may call another function that allocates.
const OTHERS: usize = 16;
/// The maximum number of callers and of sizes to store for each function, enough to decide.
const STORED: usize = 16;
/// The maximum depth of nested wrappers.
const DEPTH: usize = 8;

/// The role of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A function of the program.
    Own,
    /// A function that only allocates, such as `malloc`.
    Allocator,
    /// Another function that is folded into its callers, such as a container.
    Folded,
}

/// A function of the trace.
pub(super) struct Function {
    pub(super) role: Role,
    /// Whether the name suggests an allocation function.
    pub(super) is_named: bool,
}

/// A frame of a stack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// The number of the function.
    pub(super) function: u32,
    /// The number of the location.
    pub(super) location: u32,
    /// The number of the place, which is a line of the function.
    pub(super) place: u32,
    /// Whether the line is known.
    pub(super) has_line: bool,
}

/// Returns the numbers of the wrappers by the [rule](self), those on the most stacks first.
pub(super) fn find<I: Iterator<Item = Frame>>(
    functions: &[Function],
    stacks: &Stacks,
    frames: impl Fn(u64) -> I,
) -> Vec<u32> {
    let has_sizes = (0..stacks.count()).any(|stack| stacks.sizes(stack).next().is_some());
    let mut survey = Survey {
        stacks,
        can_wrap: stacks.locations().iter().map(can_wrap).collect(),
        roles: functions.iter().map(|function| function.role).collect(),
        seen: vec![Seen::default(); functions.len()],
        inner: vec![None; usize::try_from(stacks.count()).unwrap_or(0)],
    };
    // The candidates of all depths, which count as wrappers until all of them are known.
    let mut candidates: Vec<(u32, Seen, bool)> = Vec::new();
    for _ in 0..DEPTH {
        survey.advance(&frames);
        let before = candidates.len();
        for ((number, seen), function) in (0..).zip(&mut survey.seen).zip(functions) {
            let enough_sizes = |needed| seen.sizes.len() >= needed || !has_sizes && function.is_named;
            let has_one_place = function.is_named || seen.place.is_one();
            let calls_others = seen.outer > if function.is_named { seen.stacks / OTHERS } else { 0 };
            if seen.does_more || calls_others || seen.callers.is_empty() || !has_one_place || !enough_sizes(NAMED) {
                continue;
            }
            let is_wrapper = if function.is_named {
                seen.callers.len() >= NAMED
            } else {
                let sizes = (seen.callers.len() * 3 / 4).clamp(*SIZES.start(), *SIZES.end());
                seen.repeating.len() >= CALLERS && enough_sizes(sizes)
            };
            if is_wrapper || seen.callers.len() < CALLERS {
                candidates.push((number, std::mem::take(seen), is_wrapper));
            }
        }
        let found = candidates.get(before..).unwrap_or_default();
        if found.is_empty() {
            break;
        }
        for (number, ..) in found {
            survey.roles.get_mut(*number as usize).into_iter().for_each(|role| *role = Role::Allocator);
        }
    }
    // The callers of a candidate are among the later candidates.
    let mut is_wrapper = vec![false; functions.len()];
    for (number, seen, is) in candidates.iter().rev() {
        let calls_for = |caller: &u32| is_wrapper.get(*caller as usize) == Some(&true);
        let is = *is || seen.callers.iter().any(calls_for);
        is_wrapper.get_mut(*number as usize).into_iter().for_each(|wrapper| *wrapper = is);
    }
    candidates.retain(|(number, ..)| is_wrapper.get(*number as usize) == Some(&true));
    candidates.sort_by_key(|(number, seen, _)| (std::cmp::Reverse(seen.stacks), *number));
    candidates.into_iter().map(|(number, ..)| number).collect()
}

/// Returns a sentence that names the wrappers, if there are any.
pub(super) fn wrappers_sentence(wrappers: &[Place]) -> Option<Note> {
    let name = |place: &Place| shown(&short_name(&place.name)).into_owned();
    let names: Vec<String> = wrappers.iter().take(3).map(name).collect();
    let names = match (names.as_slice(), wrappers.len()) {
        ([], _) => return None,
        ([one], _) => one.clone(),
        ([one, two], _) => format!("{one} and {two}"),
        ([one, two, three], 3) => format!("{one}, {two} and {three}"),
        ([one, two, ..], count) => format!("{one}, {two} and {} more", count - 2),
    };
    Some(Note::new("Folded as wrappers: {}; --whole shows them.").with([Value::text(names)]))
}

/// Returns whether the function at a location can be a wrapper. Python functions and code outside all modules cannot.
fn can_wrap(location: &Location) -> bool {
    let is_nowhere = location.module.is_empty() && location.functions.is_empty();
    !is_python(location.address) && !is_nowhere
}

/// The callers, sizes and places of each function, collected in one pass for each depth of wrappers.
struct Survey<'s> {
    stacks: &'s Stacks,
    /// Whether the function at each location can be a wrapper.
    can_wrap: Vec<bool>,
    /// The role of each function. Candidates become allocators.
    roles: Vec<Role>,
    seen: Vec<Seen>,
    /// The innermost function of each stack apart from allocators, and the number of frames up to and including it.
    inner: Vec<Option<(u32, usize)>>,
}

impl Survey<'_> {
    /// Finds the innermost function of each stack whose innermost function has become an allocator or is not known yet.
    fn advance<I: Iterator<Item = Frame>>(&mut self, frames: impl Fn(u64) -> I) {
        let Self { stacks, can_wrap, roles, seen, inner } = self;
        for (stack, inner) in (0..).zip(inner) {
            let first = inner.is_none();
            let from = match *inner {
                None => 0,
                Some((function, from)) if roles.get(function as usize) == Some(&Role::Allocator) => from,
                Some(_) => continue,
            };
            let (mut is_direct, mut own, mut callers) = (true, None, [None; 2]);
            for (position, frame) in frames(stack).enumerate().skip(from) {
                let Some((role, of)) = roles.get(frame.function as usize).zip(seen.get_mut(frame.function as usize))
                else {
                    continue;
                };
                match (role, own) {
                    (Role::Own, None) => {
                        (own, *inner) = (Some(frame), Some((frame.function, position + 1)));
                        // The function no longer calls another function on this stack.
                        of.outer = of.outer.saturating_sub(usize::from(!first));
                    }
                    (Role::Own, Some(_)) => {
                        of.outer += usize::from(first);
                        match &mut callers {
                            [caller @ None, _] | [_, caller @ None] => *caller = Some(frame),
                            _ if first => {}
                            _ => break,
                        }
                    }
                    (Role::Folded, None) => is_direct = false,
                    _ => {}
                }
            }
            let Some((own, seen)) = own.and_then(|own| Some((own, seen.get_mut(own.function as usize)?))) else {
                // Only allocators are on the stack.
                *inner = Some((u32::MAX, 0));
                continue;
            };
            seen.stacks += 1;
            seen.place.add(own);
            // Without symbols, a call that is repeated on the stack is in a function that calls itself. The innermost
            // function, which this call leads to, is the same function.
            let calls_itself = matches!(callers, [Some(one), Some(other)] if one == other);
            seen.does_more |= !is_direct || calls_itself || can_wrap.get(own.location as usize) != Some(&true);
            if let [Some(caller), _] = callers {
                insert(&mut seen.callers, caller.function);
                if stacks.repeats_a_size(stack) {
                    insert(&mut seen.repeating, caller.function);
                }
            }
            stacks.sizes(stack).for_each(|size| insert(&mut seen.sizes, size));
        }
    }
}

/// The observed calls of a function and by a function.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// The number of stacks of which the function is the innermost one.
    stacks: usize,
    /// The number of stacks on which the function calls another function that allocates.
    outer: usize,
    /// Up to [`STORED`] callers.
    callers: Vec<u32>,
    /// Up to [`STORED`] callers for which the function allocated several blocks of the same size.
    repeating: Vec<u32>,
    /// Up to [`STORED`] sizes of blocks.
    sizes: Vec<u64>,
    /// The place of the calls to allocators.
    place: CallPlace,
    /// Whether the function calls itself or a library function that allocates, or cannot be a wrapper.
    does_more: bool,
}

/// The place at which a function calls allocators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CallPlace {
    #[default]
    Nowhere,
    Line(u32),
    Location(u32),
    Several,
}

impl CallPlace {
    fn add(&mut self, frame: Frame) {
        let place = if frame.has_line { Self::Line(frame.place) } else { Self::Location(frame.location) };
        *self = if *self == Self::Nowhere || *self == place { place } else { Self::Several };
    }

    fn is_one(self) -> bool {
        matches!(self, Self::Line(_) | Self::Location(_))
    }
}

fn insert<T: PartialEq>(set: &mut Vec<T>, item: T) {
    if set.len() < STORED && !set.contains(&item) {
        set.push(item);
    }
}

#[cfg(test)]
mod tests {
    use hatf_trace::event::EventKind;

    use super::super::{Folding, GroupBy, Places};
    use super::*;

    /// Returns the wrappers of stacks that allocated blocks of these sizes. `f@2` is the second call in `f`.
    fn wrappers(calls: &[(String, Vec<u64>)]) -> Vec<String> {
        let (mut stacks, mut known) = (Stacks::default(), Vec::new());
        for (stack, sizes) in calls {
            let mut frames = Vec::new();
            for frame in stack.split(" <- ") {
                let place = known.iter().position(|known| known == frame).unwrap_or(known.len());
                known.resize(known.len().max(place + 1), frame.to_owned());
                let (address, name) = (0x1000 + place as u64, frame.split('@').next().unwrap_or(frame));
                stacks.note(&EventKind::Symbol { frame: address, line: 0, name: name.as_bytes() });
                frames.push(address);
            }
            let number = stacks.number(frames.as_slice());
            sizes.iter().for_each(|size| stacks.note_size(number, *size));
        }
        let places = Places::new(&stacks, &Folding::default(), GroupBy::Function);
        places.wrappers().iter().map(|place| place.name.clone()).collect()
    }

    /// Returns stacks that lead through `functions` from six callers.
    fn six(functions: &str, sizes: impl Fn(u64) -> Vec<u64>) -> Vec<(String, Vec<u64>)> {
        (0..6).map(|n| (format!("{functions} <- caller{n} <- main"), sizes(n))).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn callers_choose_the_sizes() {
        assert_eq!(wrappers(&six("get", |n| vec![16 + n, 16 + n])), ["get"]);
        // Each size of a table that grows occurs once.
        assert_eq!(wrappers(&six("get", |n| vec![16 << n])), NONE);
        // Three types of nodes.
        assert_eq!(wrappers(&six("get", |n| vec![16 + n % 3, 16 + n % 3])), NONE);
        assert_eq!(wrappers(&six("xalloc", |_| vec![16, 16])), NONE);
        assert_eq!(wrappers(&six("xalloc", |n| vec![16 + n % 2])), ["xalloc"]);
    }

    #[test]
    fn wrappers_only_call_an_allocator() {
        let sizes = |n| vec![16 + n, 16 + n];
        assert_eq!(wrappers(&six("malloc <- get", sizes)), ["get"]);
        assert_eq!(wrappers(&six("std::string::append <- get", sizes)), NONE);
        assert_eq!(wrappers(&[six("get@1", sizes), six("get@2", sizes)].concat()), NONE);
        assert_eq!(wrappers(&[six("get", sizes), six("node <- get@2", |_| vec![48])].concat()), NONE);
        assert_eq!(wrappers(&[six("get", sizes), six("get <- get@2", sizes)].concat()), NONE);
        assert_eq!(wrappers(&[six("get", sizes), six("get <- again <- again", sizes)].concat()), NONE);
    }

    #[test]
    fn wrappers_are_nested() {
        let sizes = |n| vec![16 + n, 16 + n];
        let mut found = wrappers(&six("inner <- middle <- outer", sizes));
        found.sort();
        assert_eq!(found, ["inner", "middle", "outer"]);
        // A single caller is not enough if nothing else shows that the sizes are passed on.
        assert_eq!(wrappers(&six("inner <- parse <- run", |n| vec![16 + n % 2])), NONE);
        // An allocation function sets up the allocator once.
        let calls = (0..20).map(|n| (format!("os_malloc <- caller{n}"), vec![16 + n]));
        let set_up = ("create_table <- os_malloc@2 <- caller1".to_owned(), vec![4096]);
        assert_eq!(wrappers(&calls.chain([set_up]).collect::<Vec<_>>()), ["os_malloc"]);
    }
}
