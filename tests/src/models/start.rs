//! Events that precede the random events of a vector: as many as a rule needs to matter.

use super::search::{Event, Kind};
use crate::oracle::Rule;

/// Initial state and parameters of a search.
pub(super) struct Start {
    /// Elements that open the heap.
    pub(super) opening: Vec<u64>,
    pub(super) events: Vec<Event>,
    pub(super) threads: Vec<u64>,
    pub(super) sizes: Vec<u64>,
    /// Maximum number of live objects.
    pub(super) most_live: usize,
    /// Number of random events to try.
    pub(super) tries: usize,
    /// 5: objects are also used; 2: as many frees as allocations; 3: more frees.
    pub(super) kinds: u64,
}

/// Returns the start of the search for a rule.
pub(super) fn start(rule: Rule) -> Start {
    match rule {
        Rule::Forgets
        | Rule::ForgetsOverBound
        | Rule::ForgetsByLive
        | Rule::ForgetsByMostLive
        | Rule::ForgottenIsNoCandidate => many_frees(opening(0, 0, 3)),
        Rule::ForgottenNewer => {
            // The idle thread frees a fourth object and takes the second one again. The third, which is newer, is
            // forgotten, and not the fourth.
            let again = Event { kind: Kind::Allocate, thread: 1, size: 24, code: 14, elements: Vec::new() };
            forgotten(&[fresh(1, 0x10_0000), free(1, 0, &[]), again], &[])
        }
        Rule::ForgetsOlderHalf => {
            // About half the remembered number of frees ago, another thread freed some objects and has been idle since.
            let live = (0..8).map(|_| fresh(0, 32));
            let pairs = |thread, count| (0..count).flat_map(move |_| [fresh(thread, 64), free(thread, 0, &[])]);
            let events = live.chain(pairs(0, 2054)).chain(pairs(1, 30)).chain(pairs(0, 2006)).collect();
            Start { events, threads: vec![0, 0, 0, 0, 0, 0, 0, 1], ..many_frees(opening(0, 0, 3)) }
        }
        Rule::ForgottenIsRecent => {
            // The other thread frees the second object of the idle thread again. The third, freed after it, is
            // forgotten.
            let again = Event { kind: Kind::Allocate, thread: 1, size: 24, code: 39, elements: Vec::new() };
            forgotten(&[again, free(0, 49, &[1, 0])], &[])
        }
        Rule::ForgottenOlder => {
            // The second object of the idle thread is allocated again. The first, which is older, is forgotten; then it
            // is freed again.
            let again = Event { kind: Kind::Allocate, thread: 1, size: 24, code: 13, elements: Vec::new() };
            let last = 8 * 32 + (4090 + 120) * 64;
            forgotten(&[again], &[fresh(0, 0x10_0000 - last), free(0, 0, &[])])
        }
        Rule::EmptiedForgetsMost => {
            let mut start = many_contexts(4091, 2500);
            // With one more context, the heap is emptied.
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

/// Returns a size rule and consecutive objects of 24 bytes in one context.
fn opening(size_rule: u64, by: u64, objects: u64) -> Vec<u64> {
    let mut elements = vec![size_rule, 1, by, objects];
    elements.extend((0..objects).flat_map(|i| [if i == 0 { 0x200 } else { 0 }, 24]));
    elements
}

/// Returns the allocation of a new object some distance after the last one of its kind.
fn fresh(thread: u64, distance: u64) -> Event {
    Event { kind: Kind::Allocate, thread, size: 24, code: 36, elements: vec![2 * distance] }
}

fn free(thread: u64, code: u64, elements: &[u64]) -> Event {
    Event { kind: Kind::Free, thread, size: 0, code, elements: elements.to_vec() }
}

/// Returns a start that needs few more frees until addresses are forgotten. A thread that has been idle since freed
/// some of them.
fn many_frees(opening: Vec<u64>) -> Start {
    let idle = (0..3).flat_map(|_| [fresh(1, 0x10_0000), free(1, 0, &[])]);
    let live = (0..8).map(|_| fresh(0, 32));
    let pairs = (0..4090).flat_map(|_| [fresh(0, 64), free(0, 0, &[])]);
    let events = idle.chain(live).chain(pairs).collect();
    Start { opening, events, threads: vec![0, 1], sizes: vec![24], most_live: 11, tries: 2600, kinds: 3 }
}

/// Returns a start with `events`, then enough frees for some addresses to be forgotten, then `then`.
fn forgotten(events: &[Event], then: &[Event]) -> Start {
    let mut start = many_frees(opening(0, 0, 3));
    start.events.extend_from_slice(events);
    start.events.extend((0..120).flat_map(|_| [fresh(0, 64), free(0, 0, &[])]));
    start.events.extend_from_slice(then);
    start
}

/// Returns a start with many contexts that contain the same object, and several objects in the last context.
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

/// Returns a start with an order of 1020 slots, of which `used` are in use.
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

/// Returns a start with an order in which every eighth slot is in use, so that a window contains few live objects.
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
