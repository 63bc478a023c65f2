//! Binds and scans tables, converting Arrow batches to DuckDB chunks.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use metatf_arrow::{Batches, Conditions, Selection, Table};

use crate::api::{Bind, Chunk, Result};
use crate::types::logical;
use crate::vector::copy;

/// A table in a query, which may read it several times.
pub(crate) struct Bound {
    table: Arc<dyn Table>,
    schema: SchemaRef,
    conditions: Conditions,
}

impl Bound {
    /// Declares the columns of a table.
    pub(crate) fn new(table: Arc<dyn Table>, predicate: Option<&str>, bind: &Bind) -> Result<Self> {
        let schema = table.schema();
        for field in schema.fields() {
            let logical = logical(field.data_type())
                .map_err(|error| format!("column {} of {}: {error}", field.name(), table.name()))?;
            bind.add_column(field.name(), &logical);
        }
        let mut conditions = Conditions::default();
        if let Some(predicate) = predicate {
            conditions.add(&*table, predicate).map_err(|error| format!("predicate: {error}"))?;
        }
        Ok(Self { table, schema, conditions })
    }
}

/// A scan. Threads take batches from it in turn and copy them in parallel.
pub(crate) struct Running {
    batches: Mutex<Option<Batches>>,
    selection: Selection,
    /// For each column of a chunk, its index in the batches and its type, or `None` for columns that DuckDB does not
    /// use.
    columns: Vec<Option<(usize, DataType)>>,
}

/// The batch that a thread is copying.
#[derive(Default)]
pub(crate) struct Position {
    batch: Option<RecordBatch>,
    row: usize,
}

impl Running {
    /// Starts a scan of the columns with these numbers. DuckDB passes an out-of-range number if it only counts rows; no
    /// column is read for it.
    pub(crate) fn new(bound: &Bound, asked: &[u64]) -> Result<Self> {
        let fields = bound.schema.fields();
        let mut read: Vec<usize> = Vec::new();
        let mut place = |column: usize| {
            read.iter().position(|read| *read == column).unwrap_or_else(|| {
                read.push(column);
                read.len() - 1
            })
        };
        let mut columns = Vec::with_capacity(asked.len());
        for column in asked {
            let column = usize::try_from(*column).ok().and_then(|column| Some((column, fields.get(column)?)));
            columns.push(column.map(|(column, field)| (place(column), field.data_type().clone())));
        }
        let selection = bound.conditions.select(Some(&read));
        let batches = bound.table.scan(&selection.scan(None, 0)).map_err(|error| error.to_string())?;
        Ok(Self { batches: Mutex::new(Some(batches)), selection, columns })
    }

    /// Copies the next rows into a chunk.
    pub(crate) fn next(&self, position: &mut Position, chunk: &mut Chunk) -> Result<()> {
        let capacity = Chunk::capacity();
        loop {
            let Some(batch) = position.batch.as_ref() else {
                let Some(batch) = self.batch()? else { return Ok(()) };
                *position = Position { batch: Some(batch), row: 0 };
                continue;
            };
            let rows = capacity.min(batch.num_rows().saturating_sub(position.row));
            if rows == 0 {
                position.batch = None;
                continue;
            }
            for (i, column) in self.columns.iter().enumerate() {
                if let (Some((place, _)), Some(mut vector)) = (column, chunk.vector(i)) {
                    copy(batch.column(*place), position.row..position.row + rows, 0, &mut vector)?;
                }
            }
            position.row += rows;
            chunk.set_rows(rows);
            return Ok(());
        }
    }

    /// Returns the next batch with the rows that match the predicate. No batch follows an error.
    fn batch(&self) -> Result<Option<RecordBatch>> {
        let batch = {
            let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
            match batches.as_mut().and_then(Iterator::next) {
                Some(Ok(batch)) => batch,
                Some(Err(error)) => {
                    *batches = None;
                    return Err(metatf_arrow::message(&error));
                }
                None => {
                    *batches = None;
                    return Ok(None);
                }
            }
        };
        // Vectors have the declared types, so the columns must have the same types.
        for (place, declared) in self.columns.iter().flatten() {
            let found = batch.columns().get(*place).map(|column| column.data_type());
            if found != Some(declared) {
                return Err(format!("expected a column of type {declared} in a batch, found {found:?}"));
            }
        }
        self.selection.rows(batch).map(Some).map_err(|error| metatf_arrow::message(&error))
    }
}
