//! Records of a trace, as examples.

use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, failed};
use crate::input;
use metatf::dynamic::Trace;
use metatf::reader::Event;
use metatf_parser::Dtd;
use std::collections::HashMap;
use std::path::Path;

/// Examples of each record.
const MOST_EXAMPLES: usize = 2;
/// Records that are read in search of them.
const MOST_RECORDS: u64 = 1_000_000;
/// Bytes of a field that are kept.
const MOST_BYTES: usize = 64;
/// Fields of a record that are kept: those of repeated items may be very many.
const MOST_FIELDS: usize = 300;

/// A field of an example.
pub(super) struct Field {
    pub(super) leaf: u8,
    /// Its first bytes, as they are stored; those of a byte array without the byte that ends it.
    pub(super) bytes: Vec<u8>,
    /// How many bytes it has.
    pub(super) length: usize,
    /// Its value if it is a number.
    pub(super) number: Option<u64>,
}

/// Which record of the trace it is, from 1, and its fields.
pub(super) struct Example {
    pub(super) number: u64,
    pub(super) fields: Vec<Field>,
}

/// The first examples of each record.
#[derive(Default)]
pub(super) struct Examples(HashMap<u16, Vec<Example>>);

impl Examples {
    pub(super) fn of_record(&self, record: u32) -> &[Example] {
        u16::try_from(record).ok().and_then(|record| self.0.get(&record)).map_or(&[], Vec::as_slice)
    }

    /// Reads a trace, until all records have examples or very many are read. Fails for the trace of another format.
    pub(super) fn of(path: &Path, dtd: &Dtd) -> Result<Self> {
        let reader = input::trace(path, false)?;
        let schema = dtd::find(&reader, &input::name(path), &DtdArgs::default(), false)?;
        let name = input::name(path);
        if schema.dtd.fingerprint() != dtd.fingerprint() {
            return failed(format!(
                "{name}: its DTD is another one: `metatfc compat` tells what differs, `metatfc doc {name}` documents it"
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
