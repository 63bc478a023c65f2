//! What comes before the random events of a vector: as much as a rule needs to show.

use super::search::{Event, Kind};
use crate::oracle::Rule;

/// How a search begins, and among what it searches.
pub(super) struct Start {
    /// The elements that the heap begins with.
    pub(super) opening: Vec<u64>,
    pub(super) events: Vec<Event>,
    pub(super) threads: Vec<u64>,
    pub(super) sizes: Vec<u64>,
    /// Objects that are live at most.
    pub(super) most_live: usize,
    /// Random events to try.
    pub(super) tries: usize,
    /// 5: objects are used, too; 2: as many are freed as are allocated; 3: more.
    pub(super) kinds: u64,
}

/// How the search for a rule begins.
pub(super) fn start(rule: Rule) -> Start {
    match rule {
        Rule::Forgets
        | Rule::ForgetsOverBound
        | Rule::ForgetsByLive
        | Rule::ForgetsByMostLive
        | Rule::ForgottenIsNoCandidate => many_frees(opening(0, 0, 3)),
        Rule::ForgottenNewer => {
            // The thread that rests frees a fourth object, and takes the second again. The third, which is newer, is forgotten, and not the fourth.
            let again = Event { kind: Kind::Allocate, thread: 1, size: 24, code: 14, elements: Vec::new() };
            forgotten(&[fresh(1, 0x10_0000), free(1, 0, &[]), again], &[])
        }
        Rule::ForgetsOlderHalf => {
            // About half as many frees ago as are remembered, another thread had some, which rests since.
            let live = (0..8).map(|_| fresh(0, 32));
            let pairs = |thread, count| (0..count).flat_map(move |_| [fresh(thread, 64), free(thread, 0, &[])]);
            let events = live.chain(pairs(0, 2054)).chain(pairs(1, 30)).chain(pairs(0, 2006)).collect();
            Start { events, threads: vec![0, 0, 0, 0, 0, 0, 0, 1], ..many_frees(opening(0, 0, 3)) }
        }
        Rule::ForgottenIsRecent => {
            // The second object of the thread that rests is freed again by the other one. The third, freed after it, is forgotten.
            let again = Event { kind: Kind::Allocate, thread: 1, size: 24, code: 39, elements: Vec::new() };
            forgotten(&[again, free(0, 49, &[1, 0])], &[])
        }
        Rule::ForgottenOlder => {
            // Of the thread that rests the second object is allocated again. The first, which is older, is forgotten; then it is freed again.
            let again = Event { kind: Kind::Allocate, thread: 1, size: 24, code: 13, elements: Vec::new() };
            let last = 8 * 32 + (4090 + 120) * 64;
            forgotten(&[again], &[fresh(0, 0x10_0000 - last), free(0, 0, &[])])
        }
        Rule::EmptiedForgetsMost => {
            let mut start = many_contexts(4091, 2500);
            // One context more, and the heap is empty.
            start.events.extend((0..61).map(|_| fresh(0, 0x10_0000)));
            let frees = many_frees(Vec::new());
            Start { opening: start.opening, events: [start.events, frees.events].concat(), ..frees }
        }
        Rule::EmptiedByContexts | Rule::EmptiedByAddresses | Rule::EmptiedKeepsRule => many_contexts(4090, 3050),
        Rule::ClosesUp | Rule::ClosesUpMark | Rule::ClosesUpLength => sparse(480),
        Rule::ClosesUpShare => sparse(515),
        Rule::WindowOfNewest | Rule::WindowAfterMark | Rule::WindowBeforeMark | Rule::MarkPastEnd => gaps(),
        Rule::RecentLength => Start {
            opening: opening(0, 0, 3),
            events: Vec::new(),
            threads: vec![0],
            sizes: vec![24],
            most_live: 40,
            tries: 1500,
            kinds: 2,
        },
        _ => {
            let size_rule = u64::from(rule == Rule::SizeCutOfRule1);
            let sizes = vec![24, 8, 40, 100, if size_rule == 1 { 1 << 63 | 1 } else { 30 }, u64::MAX];
            Start {
                opening: opening(size_rule, 0, 3),
                events: Vec::new(),
                threads: vec![0, 1, 7],
                sizes,
                most_live: 200,
                tries: 600,
                kinds: 5,
            }
        }
    }
}

/// A size rule, and objects of 24 bytes one behind the other in one context.
fn opening(size_rule: u64, by: u64, objects: u64) -> Vec<u64> {
    let mut elements = vec![size_rule, 1, by, objects];
    elements.extend((0..objects).flat_map(|i| [if i == 0 { 0x200 } else { 0 }, 24]));
    elements
}

/// A new object somewhat behind the last one of its kind.
fn fresh(thread: u64, distance: u64) -> Event {
    Event { kind: Kind::Allocate, thread, size: 24, code: 36, elements: vec![2 * distance] }
}

fn free(thread: u64, code: u64, elements: &[u64]) -> Event {
    Event { kind: Kind::Free, thread, size: 0, code, elements: elements.to_vec() }
}

/// Not many more frees, and addresses are forgotten. Some were freed by a thread that rests since.
fn many_frees(opening: Vec<u64>) -> Start {
    let idle = (0..3).flat_map(|_| [fresh(1, 0x10_0000), free(1, 0, &[])]);
    let live = (0..8).map(|_| fresh(0, 32));
    let pairs = (0..4090).flat_map(|_| [fresh(0, 64), free(0, 0, &[])]);
    let events = idle.chain(live).chain(pairs).collect();
    Start { opening, events, threads: vec![0, 1], sizes: vec![24], most_live: 11, tries: 2600, kinds: 3 }
}

/// These events, then enough frees for some to be forgotten, then those.
fn forgotten(events: &[Event], then: &[Event]) -> Start {
    let mut start = many_frees(opening(0, 0, 3));
    start.events.extend_from_slice(events);
    start.events.extend((0..120).flat_map(|_| [fresh(0, 64), free(0, 0, &[])]));
    start.events.extend_from_slice(then);
    start
}

/// Many contexts with the same object, and then some with an object each, in the last one.
fn many_contexts(contexts: u64, objects: u64) -> Start {
    let mut opening = vec![1, contexts];
    opening.extend((1..contexts).flat_map(|by| [by, 1, 0x200, 40]));
    opening.extend([0, objects]);
    opening.extend((0..objects).flat_map(|i| [if i == 0 { 0x200 } else { 0 }, 40]));
    Start {
        opening,
        events: Vec::new(),
        threads: vec![0, 1, 5000, 5001, 5002, 5003, 5004, 5005, 5006, 5007],
        sizes: vec![40, 130],
        most_live: 10_000,
        tries: 300,
        kinds: 2,
    }
}

/// An order of 1020 slots, of which this many are in use.
fn sparse(used: u64) -> Start {
    let freed = 1020 - used;
    let events = (0..freed).map(|_| free(0, 48, &[2])).collect();
    Start {
        opening: opening(0, 0, 1020),
        events,
        threads: vec![0],
        sizes: vec![24],
        most_live: 2000,
        tries: 60,
        kinds: 2,
    }
}

/// An order in which every eighth slot is in use, so that few live objects are in a window.
fn gaps() -> Start {
    let (mut mark, mut events) = (0, Vec::new());
    for slot in (1..139).filter(|slot| slot % 8 != 0) {
        events.push(free(0, 48, &[2 * (slot - mark)]));
        mark = slot;
    }
    Start {
        opening: opening(0, 0, 140),
        events,
        threads: vec![0],
        sizes: vec![24],
        most_live: 200,
        tries: 300,
        kinds: 5,
    }
}
