//! Searches for heap events that expose a broken rule.

use super::Case;
use super::start::{Start, start};
use crate::oracle::heap::Heap;
use crate::oracle::{Rule, Rules};

/// A record, with the stream section elements that its code consumes.
#[derive(Clone)]
pub(super) struct Event {
    pub(super) kind: Kind,
    pub(super) thread: u64,
    pub(super) size: u64,
    pub(super) code: u64,
    pub(super) elements: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Allocate,
    Free,
    Use,
}

const DTD: &str = "\
address.previous = shared;
section m 2 { item: (v) { v.width = 8; v.interpretation = none; } }
section s 1 {
    thread.width = 2; thread.interpretation = none; size.width = 8; size.interpretation = none;
    alloc: (tag, thread, size, address) { tag.value = 4; address.interpretation = predicted 1 heap allocated size by thread 2; }
    free: (tag, thread, address) { tag.value = 5; address.interpretation = predicted 1 heap freed by thread 2; }
    use: (tag, thread, address) { tag.value = 6; address.interpretation = predicted 1 heap used by thread 2; }
}
";

/// Random number generator.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % n
    }

    pub(super) fn of(&mut self, from: &[u64]) -> u64 {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Applies an event. Returns `None` if the event is an error.
pub(super) fn apply(heap: &mut Heap, event: &Event) -> Option<u64> {
    let mut elements = event.elements.iter();
    let mut element = || elements.next().copied().ok_or_else(|| "no element".to_owned());
    let (by, code) = (event.thread, event.code);
    match event.kind {
        Kind::Allocate => heap.allocated(by, event.size, code, &mut element),
        Kind::Free => heap.ended(by, code, true, &mut element),
        Kind::Use => heap.ended(by, code, false, &mut element),
    }
    .ok()
}

/// Two heaps with the same start, one intact and one with a rule broken.
#[derive(Clone)]
struct Pair {
    whole: Heap,
    broken: Heap,
}

impl Pair {
    fn new(start: &Start, rule: Rule) -> Self {
        let open = |broken| {
            let mut elements = start.opening.iter().copied();
            Heap::open(Rules(broken), &mut || elements.next().ok_or_else(|| "no element".to_owned())).expect("it opens")
        };
        let mut pair = Self { whole: open(None), broken: open(Some(rule)) };
        for event in &start.events {
            let (whole, broken) = (apply(&mut pair.whole, event), apply(&mut pair.broken, event));
            assert!(whole.is_some() && whole == broken, "the start shows {rule:?}, or is wrong");
        }
        pair
    }

    /// Returns an event of a thread that distinguishes the heaps without changing the intact one. Objects have this
    /// size.
    fn probe(&mut self, thread: u64, size: u64) -> Option<Event> {
        let event = |kind, code| Event { kind, thread, size, code, elements: Vec::new() };
        let mut used = (0..48).map(|code| event(Kind::Use, code));
        used.find(|event| apply(&mut self.whole, event) != apply(&mut self.broken, event)).or_else(|| {
            let mut allocated = (0..36).chain(38..166);
            let other = |code: &u64| self.whole.peek(thread, size, *code) != self.broken.peek(thread, size, *code);
            allocated.find(other).map(|code| event(Kind::Allocate, code))
        })
    }

    /// Returns whether the heaps agree on all events but the last.
    fn differs(mut self, events: &[Event]) -> bool {
        let Some((last, before)) = events.split_last() else { return false };
        for event in before {
            let whole = apply(&mut self.whole, event);
            if whole.is_none() || whole != apply(&mut self.broken, event) {
                return false;
            }
        }
        apply(&mut self.whole, last) != apply(&mut self.broken, last)
    }
}

/// Returns an event that may be an error. Most events use few positions, so that lists and windows are reused.
fn random_event(random: &mut Random, start: &Start) -> Event {
    let thread = random.of(&start.threads);
    let kind = [Kind::Allocate, Kind::Free, Kind::Free, Kind::Allocate, Kind::Use][random.below(start.kinds) as usize];
    let size = random.of(&start.sizes);
    let near = |random: &mut Random| random.below(6);
    let (code, elements) = if kind == Kind::Allocate {
        match random.below(10) {
            0 => (0, Vec::new()),
            1 => (1 + near(random) % 2, Vec::new()),
            2 => (3, Vec::new()),
            3 => (4 + random.below(8), Vec::new()),
            4 => (12 + random.below(8), Vec::new()),
            5 => (12 + random.below(24), Vec::new()),
            6 | 7 => (38 + random.below(12), Vec::new()),
            _ => (36, vec![random.of(&[0, 64, 63, 0x200, 0x1000, 0x1001]) + 32 * near(random)]),
        }
    } else {
        match random.below(8) {
            0..=2 => (random.below(32), Vec::new()),
            3 => (32 + random.below(8), Vec::new()),
            4 => (40 + random.below(8), Vec::new()),
            5 | 6 => (48, vec![random.below(80)]),
            _ => (49, vec![random.below(4), random.below(20)]),
        }
    };
    let (code, elements) =
        if kind != Kind::Allocate && random.below(40) == 0 { (50, vec![64]) } else { (code, elements) };
    Event { kind, thread, size, code, elements }
}

/// Returns the shortest trace found that exposes the rule.
///
/// # Panics
/// Panics if there is none.
#[must_use]
pub fn search(rule: Rule) -> Case {
    let start = start(rule);
    let pair = Pair::new(&start, rule);
    let found = (1..600).find_map(|seed| attempt(&start, &pair, seed));
    let mut events = found.unwrap_or_else(|| panic!("nothing shows {rule:?}"));
    let mut step = events.len();
    while step > 0 {
        let mut at = 0;
        while at + step < events.len() {
            let mut fewer = events.clone();
            fewer.drain(at..at + step);
            if pair.clone().differs(&fewer) {
                events = fewer;
            } else {
                at += step;
            }
        }
        step /= 2;
    }
    case(&start, &events)
}

/// Returns random events up to one that exposes the rule.
fn attempt(start: &Start, pair: &Pair, seed: u64) -> Option<Vec<Event>> {
    let (mut pair, mut random, mut events) = (pair.clone(), Random(seed), Vec::new());
    for _ in 0..start.tries {
        let event = random_event(&mut random, start);
        if event.kind == Kind::Allocate && pair.whole.live() >= start.most_live {
            continue;
        }
        // An erroneous event does not change the intact heap and is omitted.
        let Some(whole) = apply(&mut pair.whole, &event) else { continue };
        let broken = apply(&mut pair.broken, &event);
        events.push(event);
        if broken != Some(whole) {
            return Some(events);
        }
        if let Some(last) = pair.probe(random.of(&start.threads), random.of(&start.sizes)) {
            events.push(last);
            return Some(events);
        }
    }
    None
}

fn case(start: &Start, events: &[Event]) -> Case {
    let all = || start.events.iter().chain(events);
    let mut content = Vec::new();
    for event in all() {
        content.push(4 + event.kind as u8);
        content.extend_from_slice(&event.thread.to_le_bytes()[..2]);
        if event.kind == Kind::Allocate {
            content.extend_from_slice(&event.size.to_le_bytes());
        }
        content.push(event.code as u8);
    }
    let elements = [start.opening.clone(), all().flat_map(|event| event.elements.clone()).collect()];
    Case {
        dtd: DTD.to_owned(),
        elements: elements.into_iter().filter(|elements| !elements.is_empty()).collect(),
        content,
        records: all().count() as u32,
    }
}
