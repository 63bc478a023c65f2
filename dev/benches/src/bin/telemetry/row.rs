//! A measurement as a line of text, which the programs in C and for Tracy print as well.

use std::fmt;

/// The results of one measurement of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// The name of the row.
    pub(crate) name: String,
    /// CPU time of the emitting thread in nanoseconds per event.
    pub(crate) thread: f64,
    /// CPU time of all involved threads and processes until all data is in the file, in nanoseconds per event.
    pub(crate) all: Option<f64>,
    /// Bytes on disk per event.
    pub(crate) bytes: Option<f64>,
    /// The percentage of lost events.
    pub(crate) lost: Option<f64>,
}

impl Row {
    /// Creates a row for an event that is not written.
    pub(crate) fn new(name: &str, thread: f64) -> Self {
        Self { name: name.to_owned(), thread, ..Self::default() }
    }

    /// Parses a row printed by `Display`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut cells = line.split('|');
        let name = cells.next()?.to_owned();
        let mut number = || match cells.next()? {
            "-" => Some(None),
            text => text.parse().ok().map(Some),
        };
        let (thread, all, bytes, lost) = (number()??, number()?, number()?, number()?);
        Some(Self { name, thread, all, bytes, lost })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let Self { name, thread, all, bytes, lost } = self;
        write!(f, "{name}|{thread}|{}|{}|{}", cell(*all), cell(*bytes), cell(*lost))
    }
}
