//! The values of fields.
//!
//! Values that need formatting are formatted before the record of their span or event is written. A `Debug`
//! implementation may emit events itself, and these events must not be written between a record and its values.

use std::cell::Cell;
use std::error::Error;
use std::fmt::{self, Arguments, Debug, Write as _};

use tracing_core::field::{Field, Visit};

use crate::records;

thread_local! {
    /// The memory for formatted values.
    static MEMORY: Cell<Texts> = const { Cell::new(Texts { text: String::new(), ends: Vec::new() }) };
}

/// Maximum number of bytes of this memory that a thread keeps.
const KEPT: usize = 4096;

/// The formatted values in order.
#[derive(Default)]
struct Texts {
    text: String,
    ends: Vec<usize>,
}

/// Calls `first`, which writes the record of a span or an event, and then writes a record for each of its values.
pub(crate) fn write(visit: impl Fn(&mut dyn Visit), first: impl FnOnce()) {
    let mut texts = MEMORY.try_with(Cell::take).unwrap_or_default();
    visit(&mut Format(&mut texts));
    first();
    visit(&mut Values { texts: &texts, next: 0 });
    if texts.text.capacity() <= KEPT {
        texts.text.clear();
        texts.ends.clear();
        let _ = MEMORY.try_with(|memory| memory.set(texts));
    }
}

/// A visitor that formats the values that need formatting.
struct Format<'t>(&'t mut Texts);

impl Format<'_> {
    fn put(&mut self, arguments: Arguments<'_>) {
        // A `Debug` implementation that fails may have written a part of its text.
        let _ = self.0.text.write_fmt(arguments);
        self.0.ends.push(self.0.text.len());
    }
}

impl Visit for Format<'_> {
    fn record_f64(&mut self, _: &Field, _: f64) {}

    fn record_i64(&mut self, _: &Field, _: i64) {}

    fn record_u64(&mut self, _: &Field, _: u64) {}

    fn record_i128(&mut self, _: &Field, value: i128) {
        self.put(format_args!("{value}"));
    }

    fn record_u128(&mut self, _: &Field, value: u128) {
        self.put(format_args!("{value}"));
    }

    fn record_bool(&mut self, _: &Field, _: bool) {}

    fn record_str(&mut self, _: &Field, _: &str) {}

    fn record_error(&mut self, _: &Field, value: &(dyn Error + 'static)) {
        self.put(format_args!("{}", Chain(value)));
    }

    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        self.put(format_args!("{value:?}"));
    }
}

/// An error followed by its sources in order: `no table: cannot open t: no such file`.
struct Chain<'e>(&'e (dyn Error + 'static));

/// Maximum number of sources to write, because a chain may be cyclic.
const SOURCES: usize = 16;

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let sources = std::iter::successors(self.0.source(), |&error| error.source());
        sources.take(SOURCES).try_for_each(|error| write!(f, ": {error}"))
    }
}

/// A visitor that writes the records of values.
struct Values<'t> {
    texts: &'t Texts,
    /// The index of the next formatted value.
    next: usize,
}

impl Values<'_> {
    fn formatted(&mut self, field: &Field) {
        let Texts { text, ends } = self.texts;
        let from = self.next.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
        let to = ends.get(self.next).copied().unwrap_or(from);
        self.next += 1;
        records::text(number(field), text.get(from..to).unwrap_or_default());
    }
}

/// Returns the number of a field. If a callsite has more than 255 fields, the remaining fields share the last number.
fn number(field: &Field) -> u8 {
    u8::try_from(field.index()).unwrap_or(u8::MAX)
}

impl Visit for Values<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        records::float(number(field), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        records::int(number(field), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        records::uint(number(field), value);
    }

    fn record_i128(&mut self, field: &Field, _: i128) {
        self.formatted(field);
    }

    fn record_u128(&mut self, field: &Field, _: u128) {
        self.formatted(field);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        records::flag(number(field), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        records::text(number(field), value);
    }

    fn record_error(&mut self, field: &Field, _: &(dyn Error + 'static)) {
        self.formatted(field);
    }

    fn record_debug(&mut self, field: &Field, _: &dyn Debug) {
        self.formatted(field);
    }
}
