//! Traces in Meta-TF of other DTDs, whose records are known by their names.

use super::{Form, TraceReader};
use crate::named::NamedReader;

pub(super) static FORM: Form = Form {
    name: "named",
    about: "Meta-TF of another DTD, by the names of its records",
    suffixes: &[],
    // Those before it in the table are not such a trace.
    sniff: |head| head.trace.is_some(),
    open: Some(|input, note| {
        let reader = NamedReader::of(input.into_container_of(&FORM)?)?;
        note(&reader.reading());
        Ok(TraceReader::new(reader))
    }),
    create: None,
    lost: "",
};
