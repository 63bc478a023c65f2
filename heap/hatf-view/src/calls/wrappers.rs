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
    let mut roles: Vec<Role> = functions.iter().map(|function| function.role).collect();
    let can_wrap: Vec<bool> = stacks.locations().iter().map(can_wrap).collect();
    // The candidates of all depths, which count as wrappers until all of them are known.
    let mut candidates: Vec<(u32, Seen, bool)> = Vec::new();
    for _ in 0..DEPTH {
        let seen = survey(&roles, stacks, &can_wrap, &frames);
        let before = candidates.len();
        for ((number, seen), function) in (0..).zip(seen).zip(functions) {
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
                candidates.push((number, seen, is_wrapper));
            }
        }
        let found = candidates.get(before..).unwrap_or_default();
        if found.is_empty() {
            break;
        }
        for (number, ..) in found {
            roles.get_mut(*number as usize).into_iter().for_each(|role| *role = Role::Allocator);
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
    !is_python(location.address) && !(location.module.is_empty() && location.functions.is_empty())
}

/// Collects the callers, sizes and places of each function.
fn survey<I: Iterator<Item = Frame>>(
    roles: &[Role],
    stacks: &Stacks,
    can_wrap: &[bool],
    frames: impl Fn(u64) -> I,
) -> Vec<Seen> {
    let mut seen = vec![Seen::default(); roles.len()];
    for stack in 1..stacks.count() {
        let mut is_direct = true;
        let mut inner: Option<Frame> = None;
        let mut callers = [None; 2];
        for frame in frames(stack) {
            match (roles.get(frame.function as usize), inner) {
                (Some(Role::Own), None) => inner = Some(frame),
                (Some(Role::Own), Some(_)) => {
                    match &mut callers {
                        [caller @ None, _] | [_, caller @ None] => *caller = Some(frame),
                        _ => {}
                    }
                    seen.get_mut(frame.function as usize).into_iter().for_each(|seen| seen.outer += 1);
                }
                (Some(Role::Folded), None) => is_direct = false,
                _ => {}
            }
        }
        let Some(inner) = inner else { continue };
        let Some(seen) = seen.get_mut(inner.function as usize) else { continue };
        seen.stacks += 1;
        seen.place.add(inner);
        // Without symbols, a call that is repeated on the stack is in a function that calls itself. The innermost
        // function, which this call leads to, is the same function.
        let calls_itself = matches!(callers, [Some(one), Some(other)] if one == other);
        seen.does_more |= !is_direct || calls_itself || can_wrap.get(inner.location as usize) != Some(&true);
        if let Some(caller) = callers[0] {
            insert(&mut seen.callers, caller.function);
            if stacks.repeats_a_size(stack) {
                insert(&mut seen.repeating, caller.function);
            }
        }
        stacks.sizes(stack).for_each(|size| insert(&mut seen.sizes, size));
    }
    seen
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
