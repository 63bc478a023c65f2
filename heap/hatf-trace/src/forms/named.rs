//! Meta-TF traces of foreign DTDs, whose records are recognized by name.

use super::{Form, TraceReader};
use crate::named::NamedReader;

pub(super) static FORM: Form = Form {
    name: "named",
    about: "Meta-TF traces with other DTDs, interpreted by record names",
    suffixes: &[],
    // The formats that precede this one in the table have already rejected the trace.
    sniff: |head| head.trace.is_some(),
    open: Some(|input, note| {
        let reader = NamedReader::of(input.into_container_of(&FORM)?)?;
        note(&reader.reading());
        Ok(TraceReader::new(reader))
    }),
    create: None,
    lost: "",
};
