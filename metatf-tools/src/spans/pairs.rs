//! Matches ends to beginnings, determines the nesting of spans, and assigns values to spans and events.
//!
//! This file exceeds 400 lines because a record affects the open spans, their nesting and the owner of values at the
//! same time.

use super::found::{Above, Around, Found, Instant, Span};
use super::kinds::{Does, Kinds, Origin, Seen};
use super::tree::{Node, Tree};
use super::values::Values;
use std::collections::HashMap;
use std::sync::Arc;

/// The parent number that marks a span without a parent.
const NO_PARENT: u64 = u64::MAX;
/// Maximum number of enclosing spans to visit, because a span in a corrupt trace may be its own ancestor.
const DEEPEST: usize = 64;

/// Optional results, in addition to spans and events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The enclosing spans of each span and event, with their values.
    pub around: bool,
    /// The periods that threads spend in numbered spans.
    pub parts: bool,
    /// The nesting of the kinds of spans.
    pub tree: bool,
}

/// The open spans, and the names of strings. Memory use is proportional to the number of open spans. See the
/// [module](crate::spans) for an example.
#[derive(Debug, Default)]
pub struct Pairs {
    wanted: Wanted,
    /// The strings, keyed by process and ID.
    strings: HashMap<(u64, u64), Callsite>,
    /// The open spans with a number, keyed by process and number. Several open spans share a number if their kinds are
    /// numbered separately; the newest span is last.
    numbered: HashMap<(u64, u64), Vec<Open>>,
    /// The threads, keyed by process and thread ID.
    threads: HashMap<(u64, u64), Thread>,
    /// Whether the records of spans and events are followed by records with values.
    values_follow: bool,
    /// The nesting of spans, if requested.
    pub tree: Tree,
    /// The number of the next flow.
    flows: u64,
    /// The number of span ends without a beginning in the trace.
    pub without_begin: u64,
    /// The count of spans without an end, because their ID was reused or an enclosing span ended.
    pub without_end: u64,
}

/// The string with a given ID, and its origin.
#[derive(Debug)]
struct Callsite {
    name: Arc<str>,
    origin: Option<Arc<Origin>>,
}

#[derive(Debug, Default)]
struct Thread {
    /// The open spans without a number.
    stack: Vec<Open>,
    /// The spans that the thread is in, innermost last. Each entry consists of the span's number and the number of the
    /// record that began the span.
    inside: Vec<(u64, u64)>,
    /// The span or event to which the values in the thread's next records belong.
    owner: Option<Owner>,
}

#[derive(Debug)]
enum Owner {
    Span(Key),
    Event(Box<Instant>, Option<Key>),
}

/// The identity of a span. Later spans may reuse its number or its position in a thread's stack, so the key includes
/// the record that began it.
#[derive(Clone, Copy, Debug)]
struct Key {
    place: Place,
    /// The record that began the span; `None` if no span was open at this position.
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
    /// The number of the span's first record.
    record: u64,
    /// The kind of span, if each kind is numbered separately.
    kind: Option<Arc<str>>,
    parent: Option<Key>,
    above: Option<Above>,
    node: Node,
    values: Values,
    /// The number of times that the span was entered but not left yet, and the time at which it was first entered.
    inside: u64,
    since: u64,
    busy: Option<u64>,
    /// The number of open direct child spans, the time at which the first of them began, and the total time with open
    /// child spans before then.
    below: u64,
    below_since: u64,
    covered: u64,
    /// The numbers of the flows that lead to this span and have no end yet.
    flows: Vec<u64>,
}

impl Pairs {
    /// Creates an empty state.
    #[must_use]
    pub fn new(kinds: &Kinds, wanted: Wanted) -> Self {
        Self { wanted, values_follow: kinds.have(Does::Value), ..Self::default() }
    }

    /// Processes the record with this number, and adds the completed items to `found`.
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

    /// Adds the remaining events, which no later record completed, to `found`.
    pub fn rest(&mut self, found: &mut Vec<Found>) {
        let mut threads: Vec<_> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        for (process, thread) in threads {
            self.complete(process, thread, found);
        }
    }

    /// Adds the open spans to `found`, in the order in which they began.
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

    /// Returns the number of open spans.
    #[must_use]
    pub fn open(&self) -> u64 {
        let numbered: usize = self.numbered.values().map(Vec::len).sum();
        (numbered + self.threads.values().map(|thread| thread.stack.len()).sum::<usize>()) as u64
    }

    fn thread(&mut self, process: u64, thread: u64) -> &mut Thread {
        self.threads.entry((process, thread)).or_default()
    }

    /// Sets the span or event to which the values in the thread's next records belong.
    fn own(&mut self, process: u64, thread: u64, owner: Owner) {
        if self.values_follow {
            self.thread(process, thread).owner = Some(owner);
        }
    }

    /// Adds a thread's last event to `found`, because its values are complete.
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

    /// Closes a span whose number is reused by another span of the same kind. The first span must have ended before,
    /// although its end is missing from the trace.
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

    /// Removes an ended span from the open direct children of its parent.
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
        // The thread may have left an earlier span with this number, which ended before the number was reused.
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

    /// Adds the start of an arrow from the other span to this span. The arrow starts where the other span was last
    /// entered or, if it never was, where it began. The arrow ends where this span is next entered.
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

    /// Returns the newest open span with this number. If the kind is numbered separately, only spans of this kind are
    /// considered.
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

    /// Returns the parent of a record's span, which is the span that the record refers to or the span that its thread
    /// is in.
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

    /// Returns the open span with this key.
    fn look(&self, process: u64, key: Key) -> Option<&Open> {
        let is_it = |open: &&Open| Some(open.record) == key.record;
        match key.place {
            Place::Number(number) => self.numbered.get(&(process, number))?.iter().find(is_it),
            Place::Stack(thread, place) => self.threads.get(&(process, thread))?.stack.get(place).filter(is_it),
        }
    }

    /// Returns the information kept about an enclosing span.
    fn above(&self, process: u64, parent: Option<Key>) -> Option<Above> {
        parent.map(|key| Above {
            number: match key.place {
                Place::Number(number) => Some(number),
                Place::Stack(..) => None,
            },
            begun: self.look(process, key).map(|open| (open.record, Arc::clone(&open.name))),
        })
    }

    /// Returns the enclosing spans, outermost first, if requested.
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

    /// Returns the name and the origin of a record. The name is a string that the record refers to, or else the
    /// record's name in the DTD.
    fn called(&self, seen: &Seen<'_>) -> (Arc<str>, Option<Arc<Origin>>) {
        let callsite = seen.string_id.and_then(|id| self.strings.get(&(seen.process, id)));
        let name = callsite.filter(|_| !seen.is_named).map_or(seen.name, |callsite| &callsite.name);
        (Arc::clone(name), seen.place.clone().or_else(|| callsite?.origin.clone()))
    }
}

impl Open {
    /// Returns the span without an end.
    fn unended(self, process: u64, number: Option<u64>) -> Span {
        let Self { name, origin, begin, thread, record, kind, above, busy, node, values, .. } = self;
        let (end, own, around) = (begin, 0, Vec::new());
        Span { name, origin, begin, end, process, thread, number, kind, record, above, busy, own, node, values, around }
    }
}

/// Returns the index of the newest span. If the kind is numbered separately, only spans of this kind are considered.
fn newest(spans: &[Open], kind: Option<&Arc<str>>) -> Option<usize> {
    spans.iter().rposition(|open| kind.is_none() || open.kind.as_ref() == kind)
}
