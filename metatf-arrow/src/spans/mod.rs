//! The spans of a trace as a table, and what is not a span as another.
//!
//! Which records are spans the DTD says by annotations; [`metatf_tools::spans`] pairs them. Rows come in the order in which spans end: one is
//! complete when its end is read, and memory is that of the spans that are open.

mod column;
mod pass;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use metatf_parser::schema::Format;
use metatf_tools::roles::{self, Role};
use metatf_tools::spans::{Does, Kinds};

use crate::record_table::RecordTable;
use crate::scan::{BatchReader, chosen};
use crate::source::Source;
use crate::{Batches, Error, Result, Scan, Table, Together};
use column::{Column, Time};
pub(crate) use pass::SpanPass;

/// What a table has rows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Spans,
    Events,
}

/// The spans of a trace, or its events.
#[derive(Clone, Debug)]
pub(crate) struct SpanTable {
    source: Arc<Source>,
    name: String,
    schema: SchemaRef,
    pub(crate) what: What,
    columns: Arc<[Column]>,
    time: Time,
}

/// The tables of a trace's spans, if its DTD has spans or events. A record that has the name of one keeps it: the table then gets a number.
pub(crate) fn span_tables(source: &Arc<Source>, records: &[Arc<RecordTable>], stored: bool) -> Vec<SpanTable> {
    let schema = &source.schema;
    let kinds = Kinds::new(schema, false);
    let taken: HashSet<&str> = records.iter().map(|table| table.name.as_str()).collect();
    let time = match stored {
        true => Time::Stored,
        false if are_dates(source) => Time::Date,
        false => Time::Count,
    };
    let is_there = |what| match what {
        What::Spans => kinds.have_spans(),
        What::Events => kinds.have_spans() || kinds.have(Does::Event),
    };
    let tables = [(What::Spans, "spans"), (What::Events, "events")].into_iter().filter(|(what, _)| is_there(*what));
    let tables = tables.map(|(what, name)| {
        let numbered = std::iter::once(name.to_owned()).chain((2_u64..).map(|number| format!("{name}_{number}")));
        let name = numbered.into_iter().find(|name| !taken.contains(name.as_str())).unwrap_or_default();
        let columns = Column::all(what);
        let fields: Vec<_> = columns.iter().map(|column| column.field(what, time)).collect();
        let doc = match what {
            What::Spans => "Spans: what lies between two records. One without an end has none in the trace",
            What::Events => "Records that have a time and are not parts of spans",
        };
        let schema = ArrowSchema::new_with_metadata(fields, [("doc".to_owned(), doc.to_owned())].into());
        SpanTable { source: Arc::clone(source), name, schema: Arc::new(schema), what, columns, time }
    });
    tables.collect()
}

/// Whether all times of records are dates.
fn are_dates(source: &Source) -> bool {
    let times = source.schema.dtd.records.iter().filter_map(|record| record.leaf(roles::first(record, Role::Time)?));
    let mut times = times
        .map(|leaf| matches!(leaf.format, Format::DateS | Format::DateMs | Format::DateUs | Format::DateNs))
        .peekable();
    times.peek().is_some() && times.all(|is_date| is_date)
}

impl SpanTable {
    /// The columns that are wanted, all if none is named.
    pub(crate) fn wanted(&self, columns: Option<&[usize]>) -> Result<Arc<[usize]>> {
        chosen(self, &self.source, columns)
    }

    /// Reads columns of the rows. They are all in the range with the first byte, as a span may reach over the whole trace.
    pub(crate) fn scan_range(
        &self,
        columns: Option<&[usize]>,
        bytes: Option<Range<u64>>,
        limit: Option<u64>,
    ) -> Result<Batches> {
        let wanted = self.wanted(columns)?;
        let schema = Arc::new(self.schema.project(&wanted).map_err(|e| Error::new(&self.source.path, e))?);
        let batches: Together = match bytes.is_none_or(|bytes| bytes.contains(&0)) {
            true => Box::new(SpanPass::new(vec![(Arc::new(self.clone()), wanted)])?),
            false => Box::new(std::iter::empty()),
        };
        Ok(Box::new(BatchReader { schema, batches, limit: limit.unwrap_or(u64::MAX) }))
    }
}

impl Table for SpanTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        self.scan_range(scan.columns.as_deref(), None, scan.limit)
    }
}
