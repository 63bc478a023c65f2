//! The JSON trace format of Chrome, which Perfetto and the Firefox Profiler also read.
//!
//! A thread's spans without numbers are nested, so they become slices (`X`). Spans with numbers may overlap, so they
//! become asynchronous events (`b` and `e`); the time that a thread spends in a numbered span becomes a slice of the
//! thread. If a span follows from another span, an arrow (`s` and `f`) connects them.

use metatf_tools::spans::{Found, Instant, Origin, Span, Values};
use serde_json::{Map, Value, json};

pub(super) struct Chrome {
    is_first: bool,
    /// The process ID to use if the DTD has no field for process IDs.
    process: u64,
}

impl Chrome {
    /// Starts the output. `process` is the ID and the name of the trace's process.
    pub(super) fn begin(process: Option<(u64, String)>, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        let mut chrome = Self { is_first: true, process: process.as_ref().map_or(1, |(number, _)| *number) };
        if let Some((number, name)) = process {
            chrome.put(&json!({"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}}), out);
        }
        chrome
    }

    pub(super) fn found(&mut self, found: &Found, out: &mut Vec<u8>) {
        match found {
            Found::Span(span) => self.span(span, out),
            Found::Part(span) => self.slice(span, out),
            Found::Open(_) => {}
            Found::Event(event) => self.event(event, out),
            Found::Flow { number, is_first, process, thread, time } => {
                let phase = if *is_first { "s" } else { "f" };
                let mut end = self.head("follows from", "follows", phase, *process, *thread, *time);
                end["id"] = (*number).into();
                if !is_first {
                    // Bind the arrow to the enclosing slice instead of the next slice.
                    end["bp"] = "e".into();
                }
                self.put(&end, out);
            }
            Found::Thread { process, thread, name } => {
                let process = self.process_of(*process);
                let named =
                    json!({"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}});
                self.put(&named, out);
            }
        }
    }

    fn span(&mut self, span: &Span, out: &mut Vec<u8>) {
        let Some(number) = span.number else { return self.slice(span, out) };
        for (phase, time) in [("b", span.begin), ("e", span.end)] {
            let mut half =
                self.head(&span.name, category(span.origin.as_deref(), "span"), phase, span.process, span.thread, time);
            half["id"] = format!("0x{number:x}").into();
            if let Some(kind) = &span.kind {
                // Each kind is numbered separately. Without a scope, a viewer would confuse spans with equal numbers.
                half["scope"] = (**kind).into();
            }
            if phase == "b" {
                set_arguments(&mut half, span.origin.as_deref(), &span.values);
            }
            self.put(&half, out);
        }
    }

    fn slice(&mut self, span: &Span, out: &mut Vec<u8>) {
        let category = category(span.origin.as_deref(), "span");
        let mut slice = self.head(&span.name, category, "X", span.process, span.thread, span.begin);
        slice["dur"] = microseconds(span.nanoseconds());
        set_arguments(&mut slice, span.origin.as_deref(), &span.values);
        self.put(&slice, out);
    }

    fn event(&mut self, event: &Instant, out: &mut Vec<u8>) {
        let origin = event.origin.as_deref();
        let mut values = event.values.clone();
        // The name of an event in a program is its source location, which is added below.
        let message = values.take_message().filter(|message| !message.is_empty());
        let target = origin.and_then(|origin| origin.target.clone()).filter(|_| event.is_event);
        let name = message.or(target).unwrap_or_else(|| event.name.to_string());
        let mut instant = self.head(&name, category(origin, "event"), "i", event.process, event.thread, event.time);
        instant["s"] = "t".into();
        set_arguments(&mut instant, origin, &values);
        self.put(&instant, out);
    }

    pub(super) fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\n]}\n");
    }

    fn head(&self, name: &str, category: &str, phase: &str, process: u64, thread: u64, time: u64) -> Value {
        let process = self.process_of(process);
        json!({"name": name, "cat": category, "ph": phase, "ts": microseconds(time), "pid": process, "tid": thread})
    }

    fn process_of(&self, process: u64) -> u64 {
        if process == 1 { self.process } else { process }
    }

    fn put(&mut self, event: &Value, out: &mut Vec<u8>) {
        out.extend_from_slice(if std::mem::take(&mut self.is_first) { b"\n" } else { b",\n" });
        out.extend_from_slice(event.to_string().as_bytes());
    }
}

/// Returns the category of an event, which is the part of the program that emitted it. Viewers can filter by category.
fn category<'o>(origin: Option<&'o Origin>, otherwise: &'o str) -> &'o str {
    origin.and_then(|origin| origin.target.as_deref()).unwrap_or(otherwise)
}

/// Sets the details that a viewer shows for a selected event, which are its values and its origin.
fn set_arguments(event: &mut Value, origin: Option<&Origin>, values: &Values) {
    let mut arguments = Map::new();
    if let Some(origin) = origin {
        arguments.extend(origin.level.as_ref().map(|level| ("@level".to_owned(), level.name.clone().into())));
        arguments.extend(origin.target.clone().map(|target| ("@target".to_owned(), target.into())));
        let place = |file: &String| match origin.line.filter(|line| *line > 0) {
            Some(line) => format!("{file}:{line}"),
            None => file.clone(),
        };
        arguments.extend(origin.file.as_ref().map(|file| ("@file".to_owned(), place(file).into())));
    }
    // If several values have the same name, the last value is used.
    arguments.extend(values.iter().map(|(name, value)| (name.to_owned(), value.clone())));
    if values.left_out() > 0 {
        arguments.insert("@left_out".to_owned(), values.left_out().into());
    }
    if !arguments.is_empty() {
        event["args"] = arguments.into();
    }
}

/// Converts nanoseconds to microseconds with a fraction.
#[allow(clippy::cast_precision_loss, reason = "nanoseconds of a hundred days are exact")]
fn microseconds(nanoseconds: u64) -> Value {
    (nanoseconds as f64 / 1e3).into()
}
