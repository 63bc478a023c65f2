//! Collects the information needed before the first record is written: the clock of a trace, and whether its records
//! are sorted.

use super::clock::{Points, Times};
use super::key::Keys;
use crate::failure::{Failure, Result, failed};
use metatf::dynamic::{Schema, Trace};
use metatf::reader::Event;
use metatf_cli::Progress;
use serde_json::{Map, Value};

/// Information collected from a trace.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) points: Points,
    /// The time, in nanoseconds since 1970, at which the program's clock was 0.
    pub(super) start: Option<u64>,
    /// The time of the first record with a time, as a key and in nanoseconds.
    pub(super) first: u64,
    pub(super) first_time: i128,
    pub(super) is_sorted: bool,
    pub(super) records: u64,
    /// User metadata, as JSON objects.
    pub(super) user: Vec<String>,
}

impl Survey {
    /// Reads the entire trace. If `salvage` is set, an error is treated as the end.
    pub(super) fn new(
        (name, salvage): (&str, bool),
        trace: &mut Trace<'_>,
        (keys, times): (&Keys, Option<&Times>),
        progress: &mut Progress,
    ) -> Result<Self> {
        let schema: Schema = trace.schema().clone();
        let mut survey = Self { is_sorted: true, ..Self::default() };
        let mut last = None;
        loop {
            let entry = match trace.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(_) if salvage => break,
                Err(error) => {
                    let error = metatf::explain(&schema.format, &error);
                    return failed(format!("{name}: {error}; to sort the intact records, use --salvage"));
                }
            };
            let Event::Record(at) = entry.event else { continue };
            progress.step();
            survey.records += 1;
            let Some(key) = keys.of(at.record, entry.record) else { continue };
            if last.is_none() {
                survey.first = key;
                survey.first_time = times.and_then(|times| times.time(at.record, entry.record)).unwrap_or(0);
            }
            survey.is_sorted &= last.is_none_or(|last| last <= key);
            last = Some(key);
            if let Some(point) = times.and_then(|times| times.point(at.record, entry.record)) {
                survey.points.add(point);
            }
        }
        let user = trace.reader().container().user_metadata();
        let text = |json: &Vec<u8>| String::from_utf8(json.clone());
        survey.user = user
            .iter()
            .map(text)
            .collect::<std::result::Result<_, _>>()
            .map_err(|_| Failure::Failed(format!("{name}: its user metadata is not valid UTF-8")))?;
        let metadata = survey.metadata();
        let start = |object| metadata.get(object)?.get("start_wall_ns")?.as_u64();
        survey.start = start("telemetry").or_else(|| start("telemetry_recovered"));
        Ok(survey)
    }

    /// Returns the user metadata as one object. Later members are added to earlier members or override them (spec 5.2).
    pub(super) fn metadata(&self) -> Map<String, Value> {
        let objects = self.user.iter().filter_map(|json| serde_json::from_str::<Map<String, Value>>(json).ok());
        let mut all = Map::new();
        objects.for_each(|object| all.extend(object));
        all
    }
}
