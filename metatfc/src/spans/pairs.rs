//! Which ends belong to which beginnings, what lies in what, and whose values follow.
//!
//! It has over 400 lines: a record changes what is open, what lies in it and whose values follow at once.

use super::seen::{Does, Origin, Seen};
use super::tree::{Node, Tree};
use super::values::Values;
use std::collections::HashMap;
use std::rc::Rc;

/// The parent of what has none.
const NO_PARENT: u64 = u64::MAX;
/// Spans that are looked at from one outwards: a damaged trace may have a span that is its own parent.
const DEEPEST: usize = 64;

/// Spans that have begun, and the names that strings give them. Memory: that of the spans that are open.
#[derive(Default)]
pub(super) struct Pairs {
    /// By process and number, as those of spans.
    strings: HashMap<(u64, u64), Callsite>,
    numbered: HashMap<(u64, u64), Open>,
    /// By process and thread.
    threads: HashMap<(u64, u64), Thread>,
    /// Records of values follow those of spans and events.
    values_follow: bool,
    pub(super) tree: Tree,
    /// Number of the next flow.
    flows: u64,
    /// Ends of spans whose beginnings are not in the trace.
    pub(super) without_begin: u64,
    /// Spans whose number came again, or which lay in one that ended.
    pub(super) without_end: u64,
}

/// What a string's number stands for.
struct Callsite {
    name: String,
    origin: Option<Rc<Origin>>,
}

#[derive(Default)]
struct Thread {
    /// Spans without a number.
    stack: Vec<Open>,
    /// Numbers of those that it is in, the innermost last.
    inside: Vec<u64>,
    /// What the values that come belong to.
    owner: Option<Owner>,
}

enum Owner {
    Span(Key),
    Event(Box<Instant>),
}

/// An open span: by its number, or by its place in the stack of a thread.
#[derive(Clone, Copy)]
enum Key {
    Number(u64),
    Stack(u64, usize),
}

#[derive(Default)]
struct Open {
    name: String,
    origin: Option<Rc<Origin>>,
    begin: u64,
    thread: u64,
    parent: Option<Key>,
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

/// What came to an end, or what was at a moment.
pub(super) enum Found {
    Span(Done),
    /// A thread's time in a span that has a number.
    Part(Done),
    Event(Instant),
    /// One end of an arrow between two spans: its number, whether it is the first end, process, thread and time.
    Flow {
        number: u64,
        is_first: bool,
        process: u64,
        thread: u64,
        time: u64,
    },
    Thread {
        process: u64,
        thread: u64,
        name: String,
    },
}

/// A span that has ended.
pub(super) struct Done {
    pub(super) name: String,
    pub(super) origin: Option<Rc<Origin>>,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) process: u64,
    pub(super) thread: u64,
    pub(super) number: Option<u64>,
    /// The nanoseconds in which a thread was in it, if it was ever entered.
    pub(super) busy: Option<u64>,
    /// Those in which no span right below it was open.
    pub(super) own: u64,
    pub(super) node: Node,
    pub(super) values: Values,
    pub(super) around: Vec<Around>,
}

/// A record that is not a span.
pub(super) struct Instant {
    pub(super) name: String,
    pub(super) origin: Option<Rc<Origin>>,
    pub(super) time: u64,
    pub(super) process: u64,
    pub(super) thread: u64,
    pub(super) values: Values,
    /// It is of the kind that has values behind it.
    pub(super) is_event: bool,
    pub(super) around: Vec<Around>,
    parent: Option<Key>,
}

/// A span around something.
pub(super) struct Around {
    pub(super) name: String,
    pub(super) values: Values,
}

impl Done {
    pub(super) fn nanoseconds(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

impl Pairs {
    /// Values of spans and events are records of their own.
    pub(super) fn new(values_follow: bool) -> Self {
        Self { values_follow, ..Self::default() }
    }

    /// Takes what a record says; gives what is complete by that.
    pub(super) fn take(&mut self, mut seen: Seen<'_>, found: &mut Vec<Found>) {
        let (process, thread) = (seen.process, seen.thread);
        if let (Some(id), Some(string)) = (seen.string_id, seen.string.take()) {
            self.strings.insert((process, id), Callsite { name: string, origin: seen.place.clone() });
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
            (None | Some(Does::Event), _) => self.event(seen, found),
            (Some(Does::Begin), _) => self.begin(seen),
            (Some(Does::End), Some(number)) => self.end_numbered(&seen, number, found),
            (Some(Does::End), None) => self.end_of_thread(&seen, found),
            (Some(Does::Enter), Some(number)) => self.enter(&seen, number, found),
            (Some(Does::Leave), Some(number)) => self.leave(&seen, number, found),
            (Some(Does::More), Some(number)) => {
                if let Some(open) = self.numbered.get_mut(&(process, number)) {
                    open.values.extend(seen.values);
                    self.own(process, thread, Owner::Span(Key::Number(number)));
                }
            }
            (Some(Does::Follows), Some(number)) => self.follows(&seen, number, found),
            _ => {}
        }
    }

    /// Gives the events that no record has completed.
    pub(super) fn rest(&mut self, found: &mut Vec<Found>) {
        let mut threads: Vec<_> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        for (process, thread) in threads {
            self.complete(process, thread, found);
        }
    }

    /// Returns how many spans are open.
    pub(super) fn open(&self) -> u64 {
        (self.numbered.len() + self.threads.values().map(|thread| thread.stack.len()).sum::<usize>()) as u64
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
        if let Some(Owner::Event(mut event)) = owner {
            event.around = self.around(process, event.parent);
            found.push(Found::Event(*event));
        }
    }

    fn value(&mut self, seen: Seen<'_>) {
        let Some((field, value)) = seen.value else { return };
        let Some(mut owner) = self.thread(seen.process, seen.thread).owner.take() else { return };
        let name = |origin: &Option<Rc<Origin>>| {
            let field = usize::try_from(field).ok();
            let name = field.and_then(|field| origin.as_ref()?.fields.get(field).cloned());
            name.filter(|name| !name.is_empty()).unwrap_or_else(|| seen.name.to_owned())
        };
        match &mut owner {
            Owner::Event(event) => event.values.push(name(&event.origin), value),
            Owner::Span(key) => {
                if let Some(open) = self.get(seen.process, *key) {
                    open.values.push(name(&open.origin), value);
                }
            }
        }
        self.thread(seen.process, seen.thread).owner = Some(owner);
    }

    fn event(&mut self, seen: Seen<'_>, found: &mut Vec<Found>) {
        let (process, thread) = (seen.process, seen.thread);
        let (name, origin) = self.called(&seen);
        let parent = self.parent(&seen);
        let (time, is_event) = (seen.time.unwrap_or(0), seen.does == Some(Does::Event));
        let around = Vec::new();
        let mut event = Instant { name, origin, time, process, thread, values: seen.values, is_event, around, parent };
        if self.values_follow && is_event {
            self.own(process, thread, Owner::Event(Box::new(event)));
        } else {
            event.around = self.around(process, parent);
            found.push(Found::Event(event));
        }
    }

    fn begin(&mut self, seen: Seen<'_>) {
        let (process, thread, number, begin) = (seen.process, seen.thread, seen.span, seen.time.unwrap_or(0));
        let (name, origin) = self.called(&seen);
        let parent = self.parent(&seen);
        let mut above = None;
        if let Some(open) = parent.and_then(|parent| self.get(process, parent)) {
            if open.below == 0 {
                open.below_since = begin;
            }
            open.below += 1;
            above = Some(open.node);
        }
        let node = self.tree.node(above, &name);
        let open = Open { name, origin, begin, thread, parent, node, values: seen.values, ..Open::default() };
        let key = match number {
            Some(number) => {
                self.without_end += u64::from(self.numbered.insert((process, number), open).is_some());
                Key::Number(number)
            }
            None => {
                let stack = &mut self.thread(process, thread).stack;
                stack.push(open);
                Key::Stack(thread, stack.len() - 1)
            }
        };
        self.own(process, thread, Owner::Span(key));
    }

    fn end_numbered(&mut self, seen: &Seen<'_>, number: u64, found: &mut Vec<Found>) {
        let Some(open) = self.numbered.remove(&(seen.process, number)) else {
            self.without_begin += 1;
            return;
        };
        self.end(open, seen, Some(number), found);
    }

    fn end_of_thread(&mut self, seen: &Seen<'_>, found: &mut Vec<Found>) {
        let stack = &mut self.threads.entry((seen.process, seen.thread)).or_default().stack;
        let place = stack.iter().rposition(|open| !seen.is_named || open.name == seen.name);
        let Some(place) = place else {
            self.without_begin += 1;
            return;
        };
        self.without_end += (stack.len() - place - 1) as u64;
        stack.truncate(place + 1);
        if let Some(open) = stack.pop() {
            self.end(open, seen, None, found);
        }
    }

    fn end(&mut self, open: Open, seen: &Seen<'_>, number: Option<u64>, found: &mut Vec<Found>) {
        let (end, process) = (seen.time.unwrap_or(0), seen.process);
        if let Some(above) = open.parent.and_then(|parent| self.get(process, parent)) {
            above.below = above.below.saturating_sub(1);
            if above.below == 0 {
                above.covered = above.covered.saturating_add(end.saturating_sub(above.below_since));
            }
        }
        let around = self.around(process, open.parent);
        let still = if open.below > 0 { end.saturating_sub(open.below_since) } else { 0 };
        let Open { name, origin, begin, thread, busy, node, values, covered, flows, .. } = open;
        for number in flows {
            found.push(Found::Flow { number, is_first: false, process, thread, time: begin });
        }
        let own = end.saturating_sub(begin).saturating_sub(covered.saturating_add(still));
        found.push(Found::Span(Done {
            name,
            origin,
            begin,
            end,
            process,
            thread,
            number,
            busy,
            own,
            node,
            values,
            around,
        }));
    }

    fn enter(&mut self, seen: &Seen<'_>, number: u64, found: &mut Vec<Found>) {
        let (process, thread, time) = (seen.process, seen.thread, seen.time.unwrap_or(0));
        let Some(open) = self.numbered.get_mut(&(process, number)) else { return };
        if open.inside == 0 {
            (open.since, open.thread) = (time, thread);
        }
        open.inside += 1;
        for number in std::mem::take(&mut open.flows) {
            found.push(Found::Flow { number, is_first: false, process, thread, time });
        }
        let inside = &mut self.thread(process, thread).inside;
        if inside.len() < DEEPEST {
            inside.push(number);
        }
    }

    fn leave(&mut self, seen: &Seen<'_>, number: u64, found: &mut Vec<Found>) {
        let (process, end) = (seen.process, seen.time.unwrap_or(0));
        let inside = &mut self.thread(process, seen.thread).inside;
        if let Some(at) = inside.iter().rposition(|id| *id == number) {
            inside.remove(at);
        }
        let Some(open) = self.numbered.get_mut(&(process, number)).filter(|open| open.inside > 0) else { return };
        open.inside -= 1;
        if open.inside > 0 {
            return;
        }
        let busy = end.saturating_sub(open.since);
        open.busy = Some(open.busy.unwrap_or(0).saturating_add(busy));
        found.push(Found::Part(Done {
            name: open.name.clone(),
            origin: open.origin.clone(),
            begin: open.since,
            end,
            process,
            thread: open.thread,
            number: Some(number),
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
        let Some(other) = seen.parent.and_then(|other| self.numbered.get(&(process, other))) else { return };
        let (thread, time) =
            (other.thread, if other.busy.is_some() || other.inside > 0 { other.since } else { other.begin });
        let Some(open) = self.numbered.get_mut(&(process, number)).filter(|open| open.flows.len() < DEEPEST) else {
            return;
        };
        open.flows.push(self.flows);
        found.push(Found::Flow { number: self.flows, is_first: true, process, thread, time });
        self.flows += 1;
    }

    fn get(&mut self, process: u64, key: Key) -> Option<&mut Open> {
        match key {
            Key::Number(number) => self.numbered.get_mut(&(process, number)),
            Key::Stack(thread, place) => self.threads.get_mut(&(process, thread))?.stack.get_mut(place),
        }
    }

    /// Returns the span above what a record begins: the one that it names, or the one that its thread is in.
    fn parent(&self, seen: &Seen<'_>) -> Option<Key> {
        match seen.parent {
            Some(NO_PARENT) => None,
            Some(number) if number != 0 => Some(Key::Number(number)),
            _ => {
                let thread = self.threads.get(&(seen.process, seen.thread))?;
                match (thread.stack.len().checked_sub(1), thread.inside.last()) {
                    (Some(place), _) => Some(Key::Stack(seen.thread, place)),
                    (None, inside) => inside.map(|number| Key::Number(*number)),
                }
            }
        }
    }

    /// Returns the spans around something, the outermost first.
    fn around(&self, process: u64, mut parent: Option<Key>) -> Vec<Around> {
        let mut around = Vec::new();
        while let Some(key) = parent.filter(|_| around.len() < DEEPEST) {
            let open = match key {
                Key::Number(number) => self.numbered.get(&(process, number)),
                Key::Stack(thread, place) => self.threads.get(&(process, thread)).and_then(|t| t.stack.get(place)),
            };
            let Some(open) = open else { break };
            around.push(Around { name: open.name.clone(), values: open.values.clone() });
            parent = open.parent;
        }
        around.reverse();
        around
    }

    /// Returns what a record is called, the string that it names or what the DTD calls it, and where it is from.
    fn called(&self, seen: &Seen<'_>) -> (String, Option<Rc<Origin>>) {
        let callsite = seen.string_id.and_then(|id| self.strings.get(&(seen.process, id)));
        let name = callsite.filter(|_| !seen.is_named).map_or(seen.name, |callsite| &callsite.name);
        (name.to_owned(), seen.place.clone().or_else(|| callsite?.origin.clone()))
    }
}
