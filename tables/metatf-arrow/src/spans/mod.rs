//! Tables of the spans and events of a trace.
//!
//! Annotations in the DTD mark the records that form spans, and [`metatf_tools::spans`] pairs them. Rows are ordered by
//! the end of the span, because a span is complete when its end is read. Only open spans are kept in memory.

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

/// The kind of rows in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Spans,
    Events,
}

/// The table of the spans or the events of a trace.
#[derive(Clone, Debug)]
pub(crate) struct SpanTable {
    source: Arc<Source>,
    name: String,
    schema: SchemaRef,
    pub(crate) what: What,
    columns: Arc<[Column]>,
    time: Time,
}

/// Returns the tables of spans and events, if the DTD defines spans. If a record already has the name of such a table,
/// a number is appended to the table name.
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
            What::Spans => "Spans between two records. A span without an end has no end record in the trace",
            What::Events => "Records with a time that do not belong to spans",
        };
        let schema = ArrowSchema::new_with_metadata(fields, [("doc".to_owned(), doc.to_owned())].into());
        SpanTable { source: Arc::clone(source), name, schema: Arc::new(schema), what, columns, time }
    });
    tables.collect()
}

/// Returns whether all times of records are dates.
fn are_dates(source: &Source) -> bool {
    let times = source.schema.dtd.records.iter().filter_map(|record| record.leaf(roles::first(record, Role::Time)?));
    let mut times = times
        .map(|leaf| matches!(leaf.format, Format::DateS | Format::DateMs | Format::DateUs | Format::DateNs))
        .peekable();
    times.peek().is_some() && times.all(|is_date| is_date)
}

impl SpanTable {
    /// Returns the requested columns, or all if `columns` is `None`.
    pub(crate) fn wanted(&self, columns: Option<&[usize]>) -> Result<Arc<[usize]>> {
        chosen(self, &self.source, columns)
    }

    /// Reads columns. All rows belong to the range that contains the first byte, because a span may cover the whole
    /// trace.
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
