//! Example records taken from a trace.

use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, failed};
use crate::input;
use metatf::dynamic::Trace;
use metatf::reader::Event;
use metatf_parser::Dtd;
use std::collections::HashMap;
use std::path::Path;

/// Maximum number of examples per record type.
const MOST_EXAMPLES: usize = 2;
/// Maximum number of records to read to find examples.
const MOST_RECORDS: u64 = 1_000_000;
/// Maximum number of bytes kept per field.
const MOST_BYTES: usize = 64;
/// Maximum number of fields kept per record, because a record may repeat items many times.
const MOST_FIELDS: usize = 300;

/// A field of an example.
pub(super) struct Field {
    pub(super) leaf: u8,
    /// The first stored bytes. The terminator of a byte array is excluded.
    pub(super) bytes: Vec<u8>,
    /// The length of the field in bytes.
    pub(super) length: usize,
    /// The value, if it is a number.
    pub(super) number: Option<u64>,
}

/// A record of the trace, with its number, counted from 1, and its fields.
pub(super) struct Example {
    pub(super) number: u64,
    pub(super) fields: Vec<Field>,
}

/// The first examples of each record type.
#[derive(Default)]
pub(super) struct Examples(HashMap<u16, Vec<Example>>);

impl Examples {
    pub(super) fn of_record(&self, record: u32) -> &[Example] {
        u16::try_from(record).ok().and_then(|record| self.0.get(&record)).map_or(&[], Vec::as_slice)
    }

    /// Reads a trace until every record type has examples, or `MOST_RECORDS` records have been read. Fails if the DTD
    /// of the trace is different.
    pub(super) fn of(path: &Path, dtd: &Dtd) -> Result<Self> {
        let reader = input::trace(path, false)?;
        let schema = dtd::find(&reader, &input::name(path), &DtdArgs::default(), false)?;
        let name = input::name(path);
        if schema.dtd.fingerprint() != dtd.fingerprint() {
            return failed(format!(
                "{name}: the trace has a different DTD; to see the differences, use `metatfc diff --dtds`; to document the \
                 DTD of the trace, use `metatfc show --doc DIR {name}`"
            ));
        }
        let problem = |error: metatf::Error| Failure::Failed(format!("{name}: {error}"));
        let mut trace = Trace::new(schema, reader).map_err(problem)?;
        let mut found: HashMap<u16, Vec<Example>> = HashMap::new();
        let (mut number, mut missing) = (0, dtd.sections.iter().map(|s| s.records.len()).sum::<usize>());
        while missing > 0 && number < MOST_RECORDS {
            let Some(event) = trace.reader_mut().next_event().map_err(problem)? else { break };
            let (Event::Record(at) | Event::Element(at, _)) = event else { continue };
            number += 1;
            let examples = found.entry(at.record).or_default();
            if examples.len() == MOST_EXAMPLES {
                continue;
            }
            let mut fields = Vec::new();
            let decoded = trace.reader_mut().decode(|row| {
                row.walk_fields(&mut |leaf, bytes, number| {
                    if fields.len() < MOST_FIELDS {
                        let kept = bytes.get(..bytes.len().min(MOST_BYTES)).unwrap_or_default().to_vec();
                        fields.push(Field { leaf, bytes: kept, length: bytes.len(), number });
                    }
                })
            });
            decoded.map_err(problem)?;
            examples.push(Example { number, fields });
            missing -= usize::from(examples.len() == MOST_EXAMPLES);
        }
        Ok(Self(found))
    }
}
