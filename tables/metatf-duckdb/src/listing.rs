//! The tables of a trace as a table with one row per column.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use metatf_arrow::{Batches, Error, Result, Scan, Table};

/// The result of `metatf_tables('T.mtf')`.
pub(crate) struct Listing(RecordBatch);

impl Listing {
    /// Lists the columns of these tables with documentation and units. Their types are available through `describe`.
    pub(crate) fn new(tables: &[Arc<dyn Table>]) -> Result<Self, String> {
        let mut rows: Vec<(String, i64, Arc<Field>)> = Vec::new();
        for table in tables {
            rows.extend(
                (1..)
                    .zip(table.schema().fields())
                    .map(|(place, field)| (table.name().to_owned(), place, Arc::clone(field))),
            );
        }
        let text = |of: &dyn Fn(&Field) -> Option<String>| {
            Arc::new(rows.iter().map(|(.., field)| of(field)).collect::<StringArray>()) as ArrayRef
        };
        let batch = RecordBatch::try_new(
            schema(),
            vec![
                Arc::new(StringArray::from_iter_values(rows.iter().map(|(table, ..)| table))),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, place, _)| *place))),
                text(&|field| Some(field.name().clone())),
                text(&|field| field.metadata().get("unit").cloned()),
                text(&|field| field.metadata().get("doc").cloned()),
            ],
        );
        batch.map(Self).map_err(|error| error.to_string())
    }
}

fn schema() -> SchemaRef {
    let text = |name| Field::new(name, DataType::Utf8, true);
    Arc::new(Schema::new(vec![
        text("table"),
        Field::new("place", DataType::Int64, false),
        text("column"),
        text("unit"),
        text("doc"),
    ]))
}

impl Table for Listing {
    fn name(&self) -> &str {
        "tables"
    }

    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        let projected = match &scan.columns {
            Some(columns) => self.0.project(columns),
            None => Ok(self.0.clone()),
        };
        let batch = projected.map_err(|error: ArrowError| Error::new("", error))?;
        let schema = batch.schema();
        Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
    }
}
