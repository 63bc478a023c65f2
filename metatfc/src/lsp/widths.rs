//! The field widths in a trace, for hovers.

use crate::dtd::{self, DtdArgs};
use crate::input;
use metatf::dynamic::Trace;
use metatf::reader::Event;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Maximum number of records to read, which takes a few seconds. The output mentions this limit.
const MOST_RECORDS: u64 = 5_000_000;

/// Maximum number of different lengths to count per field.
const MOST_LENGTHS: usize = 16;
/// The key under which all further lengths are counted.
const OTHER: usize = usize::MAX;

/// The number of values of each length, by record name and field path.
type Counts = BTreeMap<String, BTreeMap<Vec<String>, BTreeMap<usize, u64>>>;

/// The counts of a trace.
struct Read {
    counts: Counts,
    /// Whether the counts cover the entire trace.
    whole: bool,
}

/// The field widths of a trace, counted by a background thread.
pub(super) struct Widths {
    path: PathBuf,
    read: Arc<OnceLock<Result<Read, String>>>,
}

impl Widths {
    pub(super) fn of(path: &Path) -> Self {
        let read = Arc::new(OnceLock::new());
        let (result, place) = (Arc::clone(&read), path.to_owned());
        // The process does not wait for this thread.
        std::thread::spawn(move || result.set(count(&place)));
        Self { path: path.to_owned(), read }
    }

    /// Returns a line for each field with values in the trace, or else the reason why the trace cannot be read.
    pub(super) fn lines(&self, fields: &[(String, Vec<String>)]) -> String {
        let name = self.path.display();
        let read = match self.read.get() {
            _ if fields.is_empty() => return String::new(),
            None => return format!("still reading `{name}`"),
            Some(Err(message)) => return message.clone(),
            Some(Ok(read)) => read,
        };
        let part = if read.whole { String::new() } else { format!(", in its first {MOST_RECORDS} records") };
        let lines = fields.iter().filter_map(|(record, path)| {
            let widths = read.counts.get(record)?.get(path)?;
            let total: u64 = widths.values().sum();
            let share = |(bytes, count): (&usize, &u64)| match *bytes {
                OTHER => format!("{count} of other lengths"),
                1 => format!("{count} of 1 byte"),
                bytes => format!("{count} of {bytes} bytes"),
            };
            let shares: Vec<String> = widths.iter().map(share).collect();
            Some(format!("`{record}` has {total} values in `{name}`{part}: {}", shares.join(", ")))
        });
        lines.collect::<Vec<_>>().join("\n\n")
    }
}

fn count(path: &Path) -> Result<Read, String> {
    let name = path.display();
    let problem = |failure: crate::failure::Failure| match failure {
        crate::failure::Failure::Failed(message) | crate::failure::Failure::Usage(message) => message,
        _ => format!("{name} cannot be read"),
    };
    let reader = input::trace(path, false).map_err(problem)?;
    let schema = dtd::find(&reader, &input::name(path), &DtdArgs::default(), false).map_err(problem)?;
    let mut trace = Trace::new(schema.clone(), reader).map_err(|error| format!("{name}: {error}"))?;
    // The counts, by record and leaf.
    let mut widths: BTreeMap<(u16, u8), BTreeMap<usize, u64>> = BTreeMap::new();
    let mut records = 0;
    let whole = loop {
        let event = match trace.reader_mut().next_event() {
            Ok(Some(event)) => event,
            Ok(None) => break true,
            Err(error) => return Err(format!("{name}: {error}")),
        };
        let (Event::Record(at) | Event::Element(at, _)) = event else { continue };
        if records == MOST_RECORDS {
            break false;
        }
        records += 1;
        let counted = trace.reader_mut().decode(|row| {
            row.walk_fields(&mut |leaf, bytes, _| {
                let lengths = widths.entry((at.record, leaf)).or_default();
                // Further lengths are counted together.
                let length = Some(bytes.len()).filter(|n| lengths.len() < MOST_LENGTHS || lengths.contains_key(n));
                *lengths.entry(length.unwrap_or(OTHER)).or_default() += 1;
            })
        });
        counted.map_err(|error| format!("{name}: {error}"))?;
    };
    let mut counts = Counts::new();
    for ((record, leaf), widths) in widths {
        let Some(record) = schema.record(record) else { continue };
        if let Some(leaf) = record.leaves.get(usize::from(leaf)) {
            counts.entry(record.name.clone()).or_default().insert(leaf.path.clone(), widths);
        }
    }
    Ok(Read { counts, whole })
}
