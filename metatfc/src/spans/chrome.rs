//! The JSON trace format of Chrome, which Perfetto and the Firefox Profiler read, too.
//!
//! A thread's spans without a number lie one in another: they are slices (`X`). Those with a number may overlap, so they are asynchronous
//! ones (`b` and `e`); the time in which a thread is in one is a slice of that thread.

use super::pairs::{Done, What};
use super::seen::Seen;
use serde_json::{Value, json};

pub(super) struct Chrome {
    is_first: bool,
}

impl Chrome {
    pub(super) fn begin(out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        Self { is_first: true }
    }

    pub(super) fn done(&mut self, done: &Done, out: &mut Vec<u8>) {
        let event = |phase: &str, time: u64| json!({"name": done.name, "cat": "span", "ph": phase, "ts": microseconds(time), "pid": done.process, "tid": done.thread});
        let slice = || {
            let mut slice = event("X", done.begin);
            slice["dur"] = microseconds(done.nanoseconds());
            slice
        };
        match (done.what, done.number) {
            (What::Part, _) | (What::Span { .. }, None) => self.put(&slice(), out),
            (What::Span { .. }, Some(number)) => {
                for (phase, time) in [("b", done.begin), ("e", done.end)] {
                    let mut half = event(phase, time);
                    half["id"] = format!("0x{number:x}").into();
                    self.put(&half, out);
                }
            }
        }
    }

    pub(super) fn instant(&mut self, name: &str, seen: &Seen<'_>, out: &mut Vec<u8>) {
        let Some(time) = seen.time else { return };
        let event = json!({"name": name, "cat": "event", "ph": "i", "s": "t", "ts": microseconds(time), "pid": seen.process, "tid": seen.thread});
        self.put(&event, out);
    }

    pub(super) fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\n]}\n");
    }

    fn put(&mut self, event: &Value, out: &mut Vec<u8>) {
        out.extend_from_slice(if std::mem::take(&mut self.is_first) { b"\n" } else { b",\n" });
        out.extend_from_slice(event.to_string().as_bytes());
    }
}

/// Microseconds with what is behind the point.
#[allow(clippy::cast_precision_loss, reason = "nanoseconds of a hundred days are exact")]
fn microseconds(nanoseconds: u64) -> Value {
    (nanoseconds as f64 / 1e3).into()
}
