//! Which ends belong to which beginnings, what lies in what, and whose values follow.
//!
//! It has over 400 lines: a record changes what is open, what lies in it and whose values follow at once.

use super::found::{Above, Around, Found, Instant, Span};
use super::kinds::{Does, Kinds, Origin, Seen};
use super::tree::{Node, Tree};
use super::values::Values;
use std::collections::HashMap;
use std::sync::Arc;

/// The parent of what has none.
const NO_PARENT: u64 = u64::MAX;
/// Spans that are looked at from one outwards: a damaged trace may have a span that is its own parent.
const DEEPEST: usize = 64;

/// What is found besides spans and events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The spans around each, with their values.
    pub around: bool,
    /// The times of threads in spans that have a number.
    pub parts: bool,
    /// Which kinds of spans lie in which.
    pub tree: bool,
}

/// Spans that have begun, and the names that strings give them. Memory: that of the spans that are open.
#[derive(Debug, Default)]
pub struct Pairs {
    wanted: Wanted,
    /// By process and number, as those of spans.
    strings: HashMap<(u64, u64), Callsite>,
    /// Spans with one number are of separately numbered kinds; the newest is last.
    numbered: HashMap<(u64, u64), Vec<Open>>,
    /// By process and thread.
    threads: HashMap<(u64, u64), Thread>,
    /// Records of values follow those of spans and events.
    values_follow: bool,
    /// What lies in what, if it is wanted.
    pub tree: Tree,
    /// Number of the next flow.
    flows: u64,
    /// Ends of spans whose beginnings are not in the trace.
    pub without_begin: u64,
    /// Spans whose number came again, or which lay in one that ended.
    pub without_end: u64,
}

/// What a string's number stands for.
#[derive(Debug)]
struct Callsite {
    name: Arc<str>,
    origin: Option<Arc<Origin>>,
}

#[derive(Debug, Default)]
struct Thread {
    /// Spans without a number.
    stack: Vec<Open>,
    /// The spans that it is in, the innermost last: their numbers, and the records that began them.
    inside: Vec<(u64, u64)>,
    /// What the values that come belong to.
    owner: Option<Owner>,
}

#[derive(Debug)]
enum Owner {
    Span(Key),
    Event(Box<Instant>, Option<Key>),
}

/// A span: its number or its place in the stack of a thread, which later spans may have, too, and the record that began it, which is its own.
#[derive(Clone, Copy, Debug)]
struct Key {
    place: Place,
    /// `None` if no span was open at that place.
    record: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Number(u64),
    Stack(u64, usize),
}

#[derive(Debug, Default)]
struct Open {
    name: Arc<str>,
    origin: Option<Arc<Origin>>,
    begin: u64,
    thread: u64,
    /// The number of its first record.
    record: u64,
    /// The kind whose numbers its number is one of.
    kind: Option<Arc<str>>,
    parent: Option<Key>,
    above: Option<Above>,
    node: Node,
    values: Values,
    /// How often it is entered and not left, and since when.
    inside: u64,
    since: u64,
    busy: Option<u64>,
    /// How many spans are open right below it, since when there are some, and how long there were before.
    below: u64,
    below_since: u64,
    covered: u64,
    /// Numbers of flows that lead to it and have no end yet.
    flows: Vec<u64>,
}

impl Pairs {
    /// Nothing has begun.
    #[must_use]
    pub fn new(kinds: &Kinds, wanted: Wanted) -> Self {
        Self { wanted, values_follow: kinds.have(Does::Value), ..Self::default() }
    }

    /// Takes what the record of this number says; gives what is complete by that.
    pub fn take(&mut self, record: u64, mut seen: Seen<'_>, found: &mut Vec<Found>) {
        let (process, thread) = (seen.process, seen.thread);
        if let (Some(id), Some(string)) = (seen.string_id, seen.string.take()) {
            self.strings.insert((process, id), Callsite { name: string.into(), origin: seen.place.clone() });
        }
        if let Some(name) = seen.thread_name.take() {
            found.push(Found::Thread { process, thread, name });
        }
        if seen.does == Some(Does::Value) {
            return self.value(seen);
        }
        self.complete(process, thread, found);
        match (seen.does, seen.span) {
            (None, _) if seen.time.is_none() => {}
            (None | Some(Does::Event), _) => self.event(record, seen, found),
            (Some(Does::Begin), _) => self.begin(record, seen, found),
            (Some(Does::End), Some(number)) => self.end_numbered(seen, number, found),
            (Some(Does::End), None) => self.end_of_thread(seen, found),
            (Some(Does::Enter), Some(number)) => self.enter(&seen, number, found),
            (Some(Does::Leave), Some(number)) => self.leave(&seen, number, found),
            (Some(Does::More), Some(number)) => {
                if let Some(open) = self.numbered(process, number, seen.kind) {
                    open.values.extend(seen.values);
                    let key = Key { place: Place::Number(number), record: Some(open.record) };
                    self.own(process, thread, Owner::Span(key));
                }
            }
            (Some(Does::Follows), Some(number)) => self.follows(&seen, number, found),
            _ => {}
        }
    }

    /// Gives the events that no record has completed.
    pub fn rest(&mut self, found: &mut Vec<Found>) {
        let mut threads: Vec<_> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        for (process, thread) in threads {
            self.complete(process, thread, found);
        }
    }

    /// Gives the spans that are open, in the order in which they began.
    pub fn unended(&mut self, found: &mut Vec<Found>) {
        let numbered = self.numbered.drain().flat_map(|((process, number), spans)| {
            spans.into_iter().map(move |open| open.unended(process, Some(number)))
        });
        let threads = self.threads.iter_mut();
        let stacks =
            threads.flat_map(|((process, _), thread)| thread.stack.drain(..).map(|open| open.unended(*process, None)));
        let mut spans: Vec<_> = numbered.chain(stacks).collect();
        spans.sort_by_key(|span| span.record);
        found.extend(spans.into_iter().map(Found::Open));
    }

    /// Returns how many spans are open.
    #[must_use]
    pub fn open(&self) -> u64 {
        let numbered: usize = self.numbered.values().map(Vec::len).sum();
        (numbered + self.threads.values().map(|thread| thread.stack.len()).sum::<usize>()) as u64
    }

    fn thread(&mut self, process: u64, thread: u64) -> &mut Thread {
        self.threads.entry((process, thread)).or_default()
    }

    /// The values that the thread writes next belong to this.
    fn own(&mut self, process: u64, thread: u64, owner: Owner) {
        if self.values_follow {
            self.thread(process, thread).owner = Some(owner);
        }
    }

    /// Gives the event of a thread, whose values have all come.
    fn complete(&mut self, process: u64, thread: u64, found: &mut Vec<Found>) {
        let owner = self.threads.get_mut(&(process, thread)).and_then(|thread| thread.owner.take());
        if let Some(Owner::Event(mut event, parent)) = owner {
            event.around = self.around(process, parent);
            found.push(Found::Event(*event));
        }
    }

    fn value(&mut self, seen: Seen<'_>) {
        let Some((field, value)) = seen.value else { return };
        let Some(mut owner) = self.thread(seen.process, seen.thread).owner.take() else { return };
        let name = |origin: &Option<Arc<Origin>>| {
            let field = usize::try_from(field).ok();
            let name = field.and_then(|field| origin.as_ref()?.fields.get(field).cloned());
            name.filter(|name| !name.is_empty()).unwrap_or_else(|| Arc::clone(seen.name))
        };
        match &mut owner {
            Owner::Event(event, _) => event.values.push(name(&event.origin), value),
            Owner::Span(key) => {
                if let Some(open) = self.get(seen.process, *key) {
                    open.values.push(name(&open.origin), value);
                }
            }
        }
        self.thread(seen.process, seen.thread).owner = Some(owner);
    }

    fn event(&mut self, record: u64, seen: Seen<'_>, found: &mut Vec<Found>) {
        let (process, thread) = (seen.process, seen.thread);
        let (name, origin) = self.called(&seen);
        let parent = self.parent(&seen);
        let above = self.above(process, parent);
        let (time, is_event, values) = (seen.time.unwrap_or(0), seen.does == Some(Does::Event), seen.values);
        let around = Vec::new();
        let mut event = Instant { name, origin, time, process, thread, record, above, values, is_event, around };
        if self.values_follow && is_event {
            self.own(process, thread, Owner::Event(Box::new(event), parent));
        } else {
            event.around = self.around(process, parent);
            found.push(Found::Event(event));
        }
    }

    fn begin(&mut self, record: u64, seen: Seen<'_>, found: &mut Vec<Found>) {
        let (process, thread, number, begin) = (seen.process, seen.thread, seen.span, seen.time.unwrap_or(0));
        let (name, origin) = self.called(&seen);
        let parent = self.parent(&seen);
        let (above, mut line) = (self.above(process, parent), None);
        if let Some(open) = parent.and_then(|parent| self.get(process, parent)) {
            if open.below == 0 {
                open.below_since = begin;
            }
            open.below += 1;
            line = Some(open.node);
        }
        let node = if self.wanted.tree { self.tree.node(line, &name) } else { Node::default() };
        let (values, kind) = (seen.values, seen.kind.cloned());
        let open = Open { name, origin, begin, thread, record, kind, parent, above, node, values, ..Open::default() };
        let place = match number {
            Some(number) => {
                self.number_again(process, number, &open, found);
                self.numbered.entry((process, number)).or_default().push(open);
                Place::Number(number)
            }
            None => {
                let stack = &mut self.thread(process, thread).stack;
                stack.push(open);
                Place::Stack(thread, stack.len() - 1)
            }
        };
        self.own(process, thread, Owner::Span(Key { place, record: Some(record) }));
    }

    /// Gives up the span whose number another one of its kind now has: it has ended by then, although its end is not in the trace.
    fn number_again(&mut self, process: u64, number: u64, next: &Open, found: &mut Vec<Found>) {
        let Some(spans) = self.numbered.get_mut(&(process, number)) else { return };
        let Some(at) = spans.iter().position(|open| open.kind == next.kind) else { return };
        let before = spans.remove(at);
        self.uncover(process, before.parent, next.begin);
        self.without_end += 1;
        found.push(Found::Open(before.unended(process, Some(number))));
    }

    fn end_numbered(&mut self, seen: Seen<'_>, number: u64, found: &mut Vec<Found>) {
        let key = (seen.process, number);
        let spans = self.numbered.get_mut(&key);
        let Some((at, spans)) = spans.and_then(|spans| Some((newest(spans, seen.kind)?, spans))) else {
            self.without_begin += 1;
            return;
        };
        let open = spans.remove(at);
        if spans.is_empty() {
            self.numbered.remove(&key);
        }
        self.end(open, seen, Some(number), found);
    }

    fn end_of_thread(&mut self, seen: Seen<'_>, found: &mut Vec<Found>) {
        let (process, end) = (seen.process, seen.time.unwrap_or(0));
        let stack = &mut self.threads.entry((process, seen.thread)).or_default().stack;
        let place = stack.iter().rposition(|open| !seen.is_named || open.name == *seen.name);
        let Some(place) = place else {
            self.without_begin += 1;
            return;
        };
        let within: Vec<_> = stack.drain(place + 1..).collect();
        let open = stack.pop();
        for open in within {
            self.without_end += 1;
            self.uncover(process, open.parent, end);
            found.push(Found::Open(open.unended(process, None)));
        }
        if let Some(open) = open {
            self.end(open, seen, None, found);
        }
    }

    /// Takes a span that is no longer open from those that are open right below another one.
    fn uncover(&mut self, process: u64, parent: Option<Key>, end: u64) {
        if let Some(above) = parent.and_then(|parent| self.get(process, parent)) {
            above.below = above.below.saturating_sub(1);
            if above.below == 0 {
                above.covered = above.covered.saturating_add(end.saturating_sub(above.below_since));
            }
        }
    }

    fn end(&mut self, mut open: Open, seen: Seen<'_>, number: Option<u64>, found: &mut Vec<Found>) {
        let (end, process) = (seen.time.unwrap_or(0), seen.process);
        open.values.extend(seen.values);
        self.uncover(process, open.parent, end);
        let around = self.around(process, open.parent);
        let still = if open.below > 0 { end.saturating_sub(open.below_since) } else { 0 };
        let Open { name, origin, begin, thread, record, kind, above, busy, node, values, covered, flows, .. } = open;
        for number in flows {
            found.push(Found::Flow { number, is_first: false, process, thread, time: begin });
        }
        let own = end.saturating_sub(begin).saturating_sub(covered.saturating_add(still));
        found.push(Found::Span(Span {
            name,
            origin,
            begin,
            end,
            process,
            thread,
            number,
            kind,
            record,
            above,
            busy,
            own,
            node,
            values,
            around,
        }));
    }

    fn enter(&mut self, seen: &Seen<'_>, number: u64, found: &mut Vec<Found>) {
        let (process, thread, time) = (seen.process, seen.thread, seen.time.unwrap_or(0));
        let Some(open) = self.numbered(process, number, seen.kind) else { return };
        let record = open.record;
        if open.inside == 0 {
            (open.since, open.thread) = (time, thread);
        }
        open.inside += 1;
        for number in std::mem::take(&mut open.flows) {
            found.push(Found::Flow { number, is_first: false, process, thread, time });
        }
        let inside = &mut self.thread(process, thread).inside;
        if inside.len() < DEEPEST {
            inside.push((number, record));
        }
    }

    fn leave(&mut self, seen: &Seen<'_>, number: u64, found: &mut Vec<Found>) {
        let (process, end, parts) = (seen.process, seen.time.unwrap_or(0), self.wanted.parts);
        let open = self.numbered(process, number, seen.kind).map(|open| open.record);
        let inside = &mut self.thread(process, seen.thread).inside;
        let is_open = |span: &(u64, u64)| *span == (number, open.unwrap_or(span.1));
        let at = inside.iter().rposition(is_open).or_else(|| inside.iter().rposition(|span| span.0 == number));
        let left = at.map(|at| inside.remove(at).1);
        // It may have left one that ended before its number came again.
        if left.is_some_and(|left| open.is_some_and(|open| open != left)) {
            return;
        }
        let Some(open) = self.numbered(process, number, seen.kind).filter(|open| open.inside > 0) else { return };
        open.inside -= 1;
        if open.inside > 0 {
            return;
        }
        let busy = end.saturating_sub(open.since);
        open.busy = Some(open.busy.unwrap_or(0).saturating_add(busy));
        if !parts {
            return;
        }
        found.push(Found::Part(Span {
            name: open.name.clone(),
            origin: open.origin.clone(),
            begin: open.since,
            end,
            process,
            thread: open.thread,
            number: Some(number),
            kind: open.kind.clone(),
            record: open.record,
            above: None,
            busy: Some(busy),
            own: busy,
            node: open.node,
            values: open.values.clone(),
            around: Vec::new(),
        }));
    }

    /// An arrow leads from where the other span is, or was last, to where this one is entered next.
    fn follows(&mut self, seen: &Seen<'_>, number: u64, found: &mut Vec<Found>) {
        let process = seen.process;
        let Some(other) = seen.parent.and_then(|other| self.numbered(process, other, None)) else { return };
        let (thread, time) =
            (other.thread, if other.busy.is_some() || other.inside > 0 { other.since } else { other.begin });
        let flow = self.flows;
        let open = self.numbered(process, number, seen.kind).filter(|open| open.flows.len() < DEEPEST);
        let Some(open) = open else { return };
        open.flows.push(flow);
        found.push(Found::Flow { number: flow, is_first: true, process, thread, time });
        self.flows += 1;
    }

    /// Returns the newest open span of a number, of one kind if that kind is numbered separately.
    fn numbered(&mut self, process: u64, number: u64, kind: Option<&Arc<str>>) -> Option<&mut Open> {
        let spans = self.numbered.get_mut(&(process, number))?;
        let at = newest(spans, kind)?;
        spans.get_mut(at)
    }

    fn get(&mut self, process: u64, key: Key) -> Option<&mut Open> {
        let is_it = |open: &&mut Open| Some(open.record) == key.record;
        match key.place {
            Place::Number(number) => self.numbered.get_mut(&(process, number))?.iter_mut().find(is_it),
            Place::Stack(thread, place) => self.threads.get_mut(&(process, thread))?.stack.get_mut(place).filter(is_it),
        }
    }

    /// Returns the span above what a record begins: the one that it names, or the one that its thread is in.
    fn parent(&self, seen: &Seen<'_>) -> Option<Key> {
        match seen.parent {
            Some(NO_PARENT) => None,
            Some(number) if number != 0 => {
                let record = self.numbered.get(&(seen.process, number)).and_then(|spans| Some(spans.last()?.record));
                Some(Key { place: Place::Number(number), record })
            }
            _ => {
                let thread = self.threads.get(&(seen.process, seen.thread))?;
                match (thread.stack.last(), thread.inside.last()) {
                    (Some(open), _) => {
                        let place = Place::Stack(seen.thread, thread.stack.len() - 1);
                        Some(Key { place, record: Some(open.record) })
                    }
                    (None, inside) => {
                        inside.map(|(number, record)| Key { place: Place::Number(*number), record: Some(*record) })
                    }
                }
            }
        }
    }

    /// Returns the span of a key, if it is open.
    fn look(&self, process: u64, key: Key) -> Option<&Open> {
        let is_it = |open: &&Open| Some(open.record) == key.record;
        match key.place {
            Place::Number(number) => self.numbered.get(&(process, number))?.iter().find(is_it),
            Place::Stack(thread, place) => self.threads.get(&(process, thread))?.stack.get(place).filter(is_it),
        }
    }

    /// Returns what is remembered of the span above something.
    fn above(&self, process: u64, parent: Option<Key>) -> Option<Above> {
        parent.map(|key| Above {
            number: match key.place {
                Place::Number(number) => Some(number),
                Place::Stack(..) => None,
            },
            begun: self.look(process, key).map(|open| (open.record, Arc::clone(&open.name))),
        })
    }

    /// Returns the spans around something, the outermost first, if they are wanted.
    fn around(&self, process: u64, parent: Option<Key>) -> Vec<Around> {
        let (mut around, mut parent) = (Vec::new(), parent.filter(|_| self.wanted.around));
        while let Some(key) = parent.filter(|_| around.len() < DEEPEST) {
            let Some(open) = self.look(process, key) else { break };
            around.push(Around { name: open.name.clone(), values: open.values.clone() });
            parent = open.parent;
        }
        around.reverse();
        around
    }

    /// Returns what a record is called, the string that it names or what the DTD calls it, and where it is from.
    fn called(&self, seen: &Seen<'_>) -> (Arc<str>, Option<Arc<Origin>>) {
        let callsite = seen.string_id.and_then(|id| self.strings.get(&(seen.process, id)));
        let name = callsite.filter(|_| !seen.is_named).map_or(seen.name, |callsite| &callsite.name);
        (Arc::clone(name), seen.place.clone().or_else(|| callsite?.origin.clone()))
    }
}

impl Open {
    /// Returns it as a span that has no end.
    fn unended(self, process: u64, number: Option<u64>) -> Span {
        let Self { name, origin, begin, thread, record, kind, above, busy, node, values, .. } = self;
        let (end, own, around) = (begin, 0, Vec::new());
        Span { name, origin, begin, end, process, thread, number, kind, record, above, busy, own, node, values, around }
    }
}

/// Returns the place of the newest of some spans, of one kind if that kind is numbered separately.
fn newest(spans: &[Open], kind: Option<&Arc<str>>) -> Option<usize> {
    spans.iter().rposition(|open| kind.is_none() || open.kind.as_ref() == kind)
}
