//! Prints events as log lines.

use crate::fields;
use metatf_tools::spans::{Found, Instant, Value, Values, plain};
use std::collections::HashMap;
use std::fmt::Write as _;

/// A printer of events. A line consists of the seconds, the level, the thread, the enclosing spans with their values,
/// the target, the message and the values.
pub(super) struct Lines {
    /// The names of threads, by process and number.
    threads: HashMap<(u64, u64), String>,
    /// Whether the DTD defines events. If so, other records are not events, except for records that report losses.
    have_events: bool,
}

impl Lines {
    pub(super) fn new(have_events: bool) -> Self {
        Self { threads: HashMap::new(), have_events }
    }

    pub(super) fn put(&mut self, found: Found, out: &mut Vec<u8>) {
        match found {
            Found::Thread { process, thread, name } => drop(self.threads.insert((process, thread), name)),
            Found::Event(event) => {
                out.extend_from_slice(self.line(event).as_bytes());
                out.push(b'\n');
            }
            Found::Span(_) | Found::Open(_) | Found::Part(_) | Found::Flow { .. } => {}
        }
    }

    fn line(&self, mut event: Instant) -> String {
        let mut line = format!("{}.{:09}", event.time / 1_000_000_000, event.time % 1_000_000_000);
        let origin = event.origin.as_deref();
        if self.have_events {
            let level = origin.and_then(|origin| origin.level.as_ref());
            line.push(' ');
            let from = line.len();
            if let Some(level) = level {
                line.push_str(&metatf_cli::shown(&level.name.to_uppercase()));
            }
            let filled = (from + 5).saturating_sub(line.len());
            line.extend(std::iter::repeat_n(' ', filled));
        }
        let _ = write!(line, " {}", event.thread);
        if let Some(name) = self.threads.get(&(event.process, event.thread)) {
            line.push('/');
            line.push_str(&metatf_cli::shown(name));
        }
        for span in &event.around {
            line.push(' ');
            line.push_str(&metatf_cli::shown(&span.name));
            if !span.values.is_empty() {
                line.push('{');
                write_values(&mut line, &span.values);
                line.push('}');
            }
            line.push(':');
        }
        line.push(' ');
        // An event of a program has a target, and its name is its source location.
        let name = origin.and_then(|origin| origin.target.as_deref()).filter(|_| event.is_event).unwrap_or(&event.name);
        line.push_str(&metatf_cli::shown(name));
        line.push(':');
        if let Some(message) = event.values.take_message() {
            line.push(' ');
            line.push_str(&metatf_cli::shown(&message));
        }
        if !event.values.is_empty() {
            line.push(' ');
            write_values(&mut line, &event.values);
        }
        line
    }
}

/// Appends `name=value` pairs, separated by spaces.
fn write_values(out: &mut String, values: &Values) {
    for (i, (name, value)) in values.iter().enumerate() {
        out.push_str(if i > 0 { " " } else { "" });
        out.push_str(&metatf_cli::shown(name));
        out.push('=');
        match value {
            Value::String(text) if text.is_empty() || text.contains([' ', '"', '=', '{', '}']) => {
                fields::quoted(out, text);
            }
            _ => out.push_str(&metatf_cli::shown(&plain(value))),
        }
    }
    if values.left_out() > 0 {
        // Writing to a string cannot fail.
        let _ = write!(out, " and {} more", values.left_out());
    }
}
