//! Which ends belong to which beginnings.

use super::seen::{Does, Seen};
use std::collections::HashMap;

/// Spans that have begun, and the names that strings give them. Memory: that of the spans that are open.
#[derive(Default)]
pub(super) struct Pairs {
    /// By process and number, as those of spans.
    strings: HashMap<(u64, u64), String>,
    numbered: HashMap<(u64, u64), Open>,
    /// By process and thread, of spans without a number.
    stacks: HashMap<(u64, u64), Vec<Open>>,
    /// Ends of spans whose beginnings are not in the trace.
    pub(super) without_begin: u64,
    /// Spans whose number came again, or which lay in one that ended.
    pub(super) without_end: u64,
}

struct Open {
    name: String,
    begin: u64,
    process: u64,
    thread: u64,
    /// How often it is entered and not left, and since when.
    inside: u64,
    since: u64,
    busy: Option<u64>,
}

/// What came to an end.
pub(super) struct Done {
    pub(super) name: String,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) process: u64,
    pub(super) thread: u64,
    pub(super) number: Option<u64>,
    pub(super) what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A span; the nanoseconds in which a thread was in it, if it was ever entered.
    Span { busy: Option<u64> },
    /// A thread's time in it.
    Part,
}

impl Done {
    pub(super) fn nanoseconds(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

impl Pairs {
    /// Takes what a record says; returns what has ended with it.
    pub(super) fn take(&mut self, seen: &Seen<'_>) -> Option<Done> {
        if let (Some(id), Some(string)) = (seen.string_id, &seen.string) {
            self.strings.insert((seen.process, id), string.clone());
        }
        let (does, time, process) = (seen.does?, seen.time.unwrap_or(0), seen.process);
        match (does, seen.span) {
            (Does::Begin, number) => {
                let name = self.name(seen).to_owned();
                let open = Open { name, begin: time, process, thread: seen.thread, inside: 0, since: 0, busy: None };
                match number {
                    Some(number) => {
                        self.without_end += u64::from(self.numbered.insert((process, number), open).is_some());
                    }
                    None => self.stacks.entry((process, seen.thread)).or_default().push(open),
                }
                None
            }
            (Does::End, Some(number)) => {
                let open = self.numbered.remove(&(process, number));
                self.without_begin += u64::from(open.is_none());
                Some(open?.done(time, Some(number)))
            }
            (Does::End, None) => {
                let stack = self.stacks.entry((process, seen.thread)).or_default();
                let place = stack.iter().rposition(|open| !seen.is_named || open.name == seen.name);
                let Some(place) = place else {
                    self.without_begin += 1;
                    return None;
                };
                self.without_end += (stack.len() - place - 1) as u64;
                stack.truncate(place + 1);
                Some(stack.pop()?.done(time, None))
            }
            (Does::Enter, number) => {
                let open = self.numbered.get_mut(&(process, number?))?;
                if open.inside == 0 {
                    (open.since, open.thread) = (time, seen.thread);
                }
                open.inside += 1;
                None
            }
            (Does::Leave, number) => {
                let open = self.numbered.get_mut(&(process, number?))?;
                open.inside = open.inside.checked_sub(1)?;
                if open.inside > 0 {
                    return None;
                }
                let busy = time.saturating_sub(open.since);
                open.busy = Some(open.busy.unwrap_or(0).saturating_add(busy));
                let Open { name, since, thread, .. } = open;
                Some(Done {
                    name: name.clone(),
                    begin: *since,
                    end: time,
                    process,
                    thread: *thread,
                    number,
                    what: What::Part,
                })
            }
        }
    }

    /// Returns what a record is called: the string that it names, or what the DTD calls it.
    pub(super) fn name<'a>(&'a self, seen: &'a Seen<'_>) -> &'a str {
        let string = seen.string_id.filter(|_| !seen.is_named).and_then(|id| self.strings.get(&(seen.process, id)));
        string.map_or(seen.name, String::as_str)
    }

    /// Returns how many spans are open.
    pub(super) fn open(&self) -> u64 {
        (self.numbered.len() + self.stacks.values().map(Vec::len).sum::<usize>()) as u64
    }
}

impl Open {
    fn done(self, time: u64, number: Option<u64>) -> Done {
        let Self { name, begin, process, thread, busy, .. } = self;
        Done { name, begin, end: time, process, thread, number, what: What::Span { busy } }
    }
}
