//! Prints a trace as lines, like a log.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::path::Path;

use crate::layer::NO_PARENT;
use crate::records::{CallsiteIs, FORMAT, Record, Trace, Tracing};

/// A callsite.
struct Callsite {
    level: &'static str,
    target: String,
    name: String,
    fields: Vec<String>,
}

/// A span.
struct Span {
    callsite: u64,
    parent: u64,
    values: String,
}

/// The span or event to which the values in a thread's next records belong.
enum Owner {
    Span(u64),
    /// An event: its time, callsite and parent.
    Event(u64, u64, u64),
}

/// The state of a thread.
#[derive(Default)]
struct Thread {
    /// The name.
    name: Option<String>,
    /// The spans that the thread is in, innermost last.
    inside: Vec<u64>,
    owner: Option<(Owner, String)>,
}

/// The state at a position in a trace.
#[derive(Default)]
struct Printer {
    callsites: HashMap<u64, Callsite>,
    spans: HashMap<u64, Span>,
    threads: HashMap<u64, Thread>,
}

/// Prints each event of a trace on one line, with the seconds since the start, the level, the thread, the enclosing
/// spans and their values, the target, and the values. Returns the number of events.
///
/// # Errors
/// Returns an error if the file is not a `tracing` trace or is corrupt, or if `out` cannot be written.
pub fn print(path: &Path, out: &mut dyn Write) -> io::Result<u64> {
    let about =
        |error: &dyn Display| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()));
    let damaged = |error| about(&metatf::explain(&FORMAT, &error));
    let mut trace = Trace::open(path).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    let (mut printer, mut printed) = (Printer::default(), 0);
    while let Some(Record::Tracing(record)) = trace.next().map_err(damaged)? {
        if let Some(line) = printer.take(&record) {
            writeln!(out, "{line}")?;
            printed += 1;
        }
    }
    for line in printer.rest() {
        writeln!(out, "{line}")?;
        printed += 1;
    }
    out.flush()?;
    Ok(printed)
}

impl Printer {
    /// Processes a record. Returns the line of the event that the record completes.
    fn take(&mut self, record: &Tracing<&[u8]>) -> Option<String> {
        match record {
            Tracing::CallsiteIs(record) => {
                self.callsites.insert(record.callsite, Callsite::new(record));
                None
            }
            Tracing::Span(record) => {
                let line = self.end(record.thread);
                let parent = match record.parent {
                    0 => self.thread(record.thread).inside.last().copied().unwrap_or(NO_PARENT),
                    parent => parent,
                };
                self.spans.insert(record.id, Span { callsite: record.callsite, parent, values: String::new() });
                self.begin(record.thread, Owner::Span(record.id));
                line
            }
            Tracing::More(record) => {
                let line = self.end(record.thread);
                self.begin(record.thread, Owner::Span(record.id));
                line
            }
            Tracing::Event(record) => {
                let line = self.end(record.thread);
                let parent = match record.parent {
                    0 => self.thread(record.thread).inside.last().copied().unwrap_or(NO_PARENT),
                    parent => parent,
                };
                self.begin(record.thread, Owner::Event(record.time, record.callsite, parent));
                line
            }
            Tracing::Enter(record) => {
                let line = self.end(record.thread);
                self.thread(record.thread).inside.push(record.id);
                line
            }
            Tracing::Exit(record) => {
                let line = self.end(record.thread);
                let inside = &mut self.thread(record.thread).inside;
                if let Some(at) = inside.iter().rposition(|id| *id == record.id) {
                    inside.remove(at);
                }
                line
            }
            Tracing::Close(record) => {
                let line = self.end(record.thread);
                self.spans.remove(&record.id);
                line
            }
            Tracing::Int(record) => self.value(record.thread, record.field, &record.signed.to_string()),
            Tracing::Uint(record) => self.value(record.thread, record.field, &record.number.to_string()),
            Tracing::Float(record) => self.value(record.thread, record.field, &record.real.to_string()),
            Tracing::Flag(record) => {
                self.value(record.thread, record.field, if record.truth == 0 { "false" } else { "true" })
            }
            Tracing::Text(record) => self.value(record.thread, record.field, &printable(record.words)),
            // After a loss, it is unknown to which span or event the next values belong.
            Tracing::Dropped(record) => {
                let line = self.end(record.thread);
                Some(
                    line.map_or_else(String::new, |line| line + "\n")
                        + &format!("{} records were dropped", record.count),
                )
            }
            Tracing::Follows(record) => self.end(record.thread),
            Tracing::ThreadIs(record) => {
                self.thread(record.thread).name = Some(printable(record.called));
                None
            }
            Tracing::ClockSync(_) => None,
        }
    }

    /// Returns the lines of the remaining events, which no record completed.
    fn rest(&mut self) -> Vec<String> {
        let mut threads: Vec<u64> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        threads.into_iter().filter_map(|thread| self.end(thread)).collect()
    }

    fn thread(&mut self, thread: u64) -> &mut Thread {
        self.threads.entry(thread).or_default()
    }

    fn begin(&mut self, thread: u64, owner: Owner) {
        self.thread(thread).owner = Some((owner, String::new()));
    }

    fn value(&mut self, thread: u64, field: u64, value: &str) -> Option<String> {
        let owner = self.threads.get_mut(&thread)?.owner.as_mut()?;
        let callsite = match owner.0 {
            Owner::Span(id) => self.spans.get(&id)?.callsite,
            Owner::Event(_, callsite, _) => callsite,
        };
        let name = usize::try_from(field).ok().and_then(|field| self.callsites.get(&callsite)?.fields.get(field));
        if !owner.1.is_empty() {
            owner.1.push(' ');
        }
        owner.1 += &match name.map(String::as_str) {
            Some("message") => value.to_owned(),
            Some(name) => format!("{name}={value}"),
            None => format!("{field}={value}"),
        };
        None
    }

    /// Completes the current item of a thread. Stores the values of a span, or returns the line of an event.
    fn end(&mut self, thread: u64) -> Option<String> {
        match self.threads.get_mut(&thread)?.owner.take()? {
            (Owner::Span(id), values) => {
                let span = self.spans.get_mut(&id)?;
                if !span.values.is_empty() && !values.is_empty() {
                    span.values.push(' ');
                }
                span.values += &values;
                None
            }
            (Owner::Event(time, callsite, parent), values) => {
                Some(self.line((time, thread), callsite, parent, &values))
            }
        }
    }

    fn line(&self, (time, thread): (u64, u64), callsite: u64, parent: u64, values: &str) -> String {
        let callsite = self.callsites.get(&callsite);
        let level = callsite.map_or("?", |callsite| callsite.level);
        let mut line = format!("{}.{:09} {level:5} {thread}", time / 1_000_000_000, time % 1_000_000_000);
        if let Some(name) = self.threads.get(&thread).and_then(|thread| thread.name.as_ref()) {
            let _ = write!(line, "/{name}");
        }
        let mut spans = Vec::new();
        let mut id = parent;
        // In a corrupt trace, a span may be its own parent.
        while let Some(span) = self.spans.get(&id).filter(|_| spans.len() < 64) {
            spans.push(span);
            id = span.parent;
        }
        for span in spans.into_iter().rev() {
            let name = self.callsites.get(&span.callsite).map_or("?", |callsite| &callsite.name);
            let _ = if span.values.is_empty() {
                write!(line, " {name}:")
            } else {
                write!(line, " {name}{{{}}}:", span.values)
            };
        }
        let target = callsite.map_or("?", |callsite| &callsite.target);
        let _ = write!(line, " {target}: {values}");
        line
    }
}

impl Callsite {
    fn new(record: &CallsiteIs<&[u8]>) -> Self {
        let level = match u64::from(record.level) {
            1 => "ERROR",
            2 => "WARN",
            3 => "INFO",
            4 => "DEBUG",
            5 => "TRACE",
            _ => "?",
        };
        let fields = printable(record.fields).split(',').map(str::to_owned).collect();
        Self { level, target: printable(record.target), name: printable(record.name), fields }
    }
}

/// Escapes control characters and characters that change the text direction, because the text was read from a file.
fn printable(bytes: &[u8]) -> String {
    let mut out = String::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        let is_bidi =
            matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || is_bidi {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
    }
    out
}
