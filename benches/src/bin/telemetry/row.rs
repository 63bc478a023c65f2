//! A measurement as a line of text, which the programs in C and Tracy's print, too.

use std::fmt;

/// What one measurement found out about a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Name of the row.
    pub(crate) name: String,
    /// Nanoseconds an event, of the processor time of the thread that emits.
    pub(crate) thread: f64,
    /// The same, of all threads and processes that had to do with it, up to where all is in the file.
    pub(crate) all: Option<f64>,
    /// Bytes on disk of an event.
    pub(crate) bytes: Option<f64>,
    /// Events of a hundred that were lost.
    pub(crate) lost: Option<f64>,
}

impl Row {
    /// A row of an event that goes nowhere.
    pub(crate) fn new(name: &str, thread: f64) -> Self {
        Self { name: name.to_owned(), thread, ..Self::default() }
    }

    /// Takes a row apart that `Display` made.
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
