//! The table of events, which maps an event in a ring to a record (`dev/internals/telemetry.md`).
//!
//! The generator writes the table as text. It is stored in the buffers file and is therefore untrusted.

use crate::error::Error;
use crate::layout::EVENTS_MOST;

/// The table of a DTD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// The names of the kinds, starting at bit 0.
    pub(crate) kinds: Vec<String>,
    /// The events, by number.
    pub(crate) events: Vec<EventRow>,
    /// The events that only a program with the header for C can emit. Their values are not in words.
    pub(crate) nested: Vec<EventRow>,
    /// The record that contains the number of dropped events.
    pub(crate) dropped: Option<EventRow>,
    /// The record that relates the clock to the wall-clock time.
    pub(crate) clock_sync: Option<EventRow>,
    /// The record that contains a string and its ID.
    pub(crate) intern: Option<EventRow>,
    /// Whether there are rare events, which have separate rings.
    pub(crate) has_rare: bool,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventRow {
    pub(crate) name: String,
    /// The number of the section.
    pub(crate) section: u8,
    pub(crate) tag: u32,
    /// The bit of the event's kind.
    pub(crate) kind: u8,
    /// The number of words before the tail.
    pub(crate) words: u16,
    /// The sources of the leaves in order, without the tag. In the text, each source is preceded by the name of the
    /// leaf and a colon.
    pub(crate) sources: Vec<Source>,
}

/// The source of a leaf's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Bits of a word.
    Bits { word: u16, shift: u8, machine: Machine },
    /// A word with a stamp. The leaf contains the nanoseconds since the start.
    Stamp { word: u16 },
    /// The thread ID.
    Thread,
    /// The process ID.
    Process,
    /// A constant in the DTD.
    Constant(u64),
    /// The length of the bytes in the leaf with this index.
    Length(u8),
    /// The next part of the tail, whose length is 16 bits of a word. Truncated text ends with a mark.
    Tail { word: u16, shift: u8, text: bool },
    /// The next part of the tail, with a fixed length.
    Array(u16),
}

/// A machine type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Unsigned(u8),
    Signed(u8),
    /// The bits of an `f32`, stored as those of an `f64`.
    F32,
    /// The bits of an `f32`, stored as such.
    Single,
    F64,
    Bool,
}

impl Machine {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "u8" => Self::Unsigned(8),
            "u16" => Self::Unsigned(16),
            "u32" => Self::Unsigned(32),
            "u64" => Self::Unsigned(64),
            "i8" => Self::Signed(8),
            "i16" => Self::Signed(16),
            "i32" => Self::Signed(32),
            "i64" => Self::Signed(64),
            "f32" => Self::F32,
            "single" => Self::Single,
            "f64" => Self::F64,
            "bool" => Self::Bool,
            _ => return None,
        })
    }

    /// Returns the value of a leaf from the bits of a word.
    #[allow(clippy::cast_possible_truncation, reason = "these are the low bits")]
    pub(crate) fn value(self, bits: u64) -> u64 {
        match self {
            Self::Unsigned(n) => bits & (u64::MAX >> (64 - u32::from(n))),
            Self::Signed(n) => {
                let up = 64 - u32::from(n);
                ((bits << up).cast_signed() >> up).cast_unsigned()
            }
            Self::F32 => f64::from(f32::from_bits(bits as u32)).to_bits(),
            Self::Single => bits & u64::from(u32::MAX),
            Self::F64 => bits,
            Self::Bool => bits & 1,
        }
    }

    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64", "bool"]
            .map(|t| Self::parse(t).unwrap())
            .into()
    }
}

impl Table {
    /// Parses a table.
    ///
    /// # Errors
    /// Returns an error for the first invalid line.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut table = Self::default();
        for (number, line) in text.lines().enumerate() {
            if table.line(line).is_none() {
                let number = number + 1;
                return Err(Error::Trace(format!("line {number} of the event table is corrupt: `{line}`")));
            }
        }
        Ok(table)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        match words.next() {
            None => {}
            Some("kinds") => self.kinds = words.map(str::to_owned).collect(),
            Some("event") if self.events.len() < EVENTS_MOST => self.events.push(EventRow::parse(words)?),
            Some("nested") if self.nested.len() < EVENTS_MOST => self.nested.push(EventRow::parse(words)?),
            Some("dropped") => self.dropped = Some(EventRow::parse(words)?),
            Some("clock_sync") => self.clock_sync = Some(EventRow::parse(words)?),
            Some("rare") => self.has_rare = true,
            Some("intern") => self.intern = Some(EventRow::parse(words)?),
            Some(_) => return None,
        }
        (self.kinds.len() <= 63).then_some(())
    }

    /// Returns the names of the kinds.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.kinds.iter().map(String::as_str).collect()
    }
}

impl EventRow {
    fn parse<'t>(mut words: impl Iterator<Item = &'t str>) -> Option<Self> {
        let name = words.next()?.to_owned();
        let section = words.next()?.parse().ok()?;
        let tag = words.next()?.parse().ok()?;
        let kind = words.next()?.parse().ok().filter(|kind| *kind < 64)?;
        let count = words.next()?.parse().ok()?;
        let sources: Vec<_> = words
            .map(|word| Source::parse(word.split_once(':').map_or(word, |(_, source)| source)))
            .collect::<Option<_>>()?;
        let leaves = sources.len();
        let fits = |source: &Source| match source {
            Source::Bits { word, .. } | Source::Stamp { word } | Source::Tail { word, .. } => *word < count,
            Source::Length(leaf) => usize::from(*leaf) < leaves,
            Source::Thread | Source::Process | Source::Constant(_) | Source::Array(_) => true,
        };
        let whole = leaves <= 255 && sources.iter().all(fits);
        whole.then_some(Self { name, section, tag, kind, words: count, sources })
    }
}

impl Source {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "thread" => return Some(Self::Thread),
            "process" => return Some(Self::Process),
            _ => {}
        }
        if let Some(value) = text.strip_prefix('=') {
            return value.parse().ok().map(Self::Constant);
        }
        if let Some(leaf) = text.strip_prefix('#') {
            return leaf.parse().ok().map(Self::Length);
        }
        if let Some(bytes) = text.strip_prefix('*') {
            return bytes.parse().ok().map(Self::Array);
        }
        let (what, place) = text.split_once('@')?;
        if what == "stamp" {
            return place.parse().ok().map(|word| Self::Stamp { word });
        }
        let (word, shift) = place.split_once('.')?;
        let word = word.parse().ok()?;
        let shift = shift.parse().ok().filter(|shift| *shift < 64)?;
        Some(match what {
            "text" => Self::Tail { word, shift, text: true },
            "bytes" => Self::Tail { word, shift, text: false },
            _ => Self::Bits { word, shift, machine: Machine::parse(what)? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read() {
        let text = "kinds Object Pool\nevent fault 1 4 0 2 time:stamp@0 thread:thread u16@1.0 always:=7 #4 text@1.16\nclock_sync sync 1 5 0 2 stamp@1 u64@0.0\n";
        let table = Table::parse(text).unwrap();
        assert_eq!(table.kinds(), ["Object", "Pool"]);
        let fault = &table.events[0];
        assert_eq!((fault.section, fault.tag, fault.kind, fault.words), (1, 4, 0, 2));
        assert_eq!(fault.sources[4], Source::Length(4));
        assert_eq!(fault.sources[5], Source::Tail { word: 1, shift: 16, text: true });
        assert_eq!(table.clock_sync.unwrap().sources[0], Source::Stamp { word: 1 });
    }

    #[test]
    fn damaged_tables_are_errors_with_their_line() {
        for line in [
            "evnt a 1 4 0 1",
            "event a 1 4 64 1",
            "event a 1 4 0 1 u16@1.0",
            "event a 1 4 0 1 u7@0.0",
            "event a 1 4 0 1 #0 #2",
        ] {
            let error = Table::parse(&format!("kinds A\n{line}")).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
        }
    }

    #[test]
    fn machine_types() {
        let values: Vec<u64> = Machine::all().into_iter().map(|machine| machine.value(u64::MAX - 1)).collect();
        let nan = f64::from(f32::from_bits(0xffff_fffe)).to_bits();
        let minus_two = u64::MAX - 1;
        let expected =
            [0xfe, 0xfffe, 0xffff_fffe, minus_two, minus_two, minus_two, minus_two, minus_two, nan, minus_two, 0];
        assert_eq!(values, expected);
        assert_eq!(Machine::F32.value(u64::from(1.5_f32.to_bits())), 1.5_f64.to_bits());
    }
}
