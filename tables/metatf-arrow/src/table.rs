//! The table interface.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use metatf::container::TimeRange;
use metatf_parser::schema::Leaf;

use crate::Result;

/// The batches of one scan. The iterator ends after an error.
pub type Batches = Box<dyn RecordBatchReader + Send>;

/// The batches of several tables that are read at once, each with the index of its table in the request. The iterator
/// ends after an error.
pub type Together = Box<dyn Iterator<Item = std::result::Result<(usize, RecordBatch), ArrowError>> + Send>;

/// A table of a trace, or of several.
///
/// # Examples
///
/// ```
/// use arrow_array::{RecordBatch, RecordBatchIterator, record_batch};
/// use metatf_arrow::{Batches, Error, Result, Scan, Table};
///
/// struct Blocks(RecordBatch);
/// impl Table for Blocks {
///     fn name(&self) -> &str { "blocks" }
///     fn schema(&self) -> arrow_schema::SchemaRef { self.0.schema() }
///     fn scan(&self, scan: &Scan) -> Result<Batches> {
///         let all: Vec<usize> = (0..self.0.num_columns()).collect();
///         let batch = self.0.project(scan.columns.as_ref().unwrap_or(&all));
///         let batch = batch.map_err(|error| Error::new("blocks", error))?;
///         Ok(Box::new(RecordBatchIterator::new([Ok(batch.clone())], batch.schema())))
///     }
/// }
/// let table = Blocks(record_batch!(("address", Int64, [4096]), ("size", Int64, [16]))?);
/// let batches = table.scan(&Scan { columns: Some(vec![1]), ..Scan::default() })?;
/// assert_eq!(batches.schema().field(0).name(), "size");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Table: Send + Sync {
    /// Returns the name used in SQL and Python.
    fn name(&self) -> &str;

    /// Returns the schema with all columns. Field metadata contains documentation under `doc` and the unit under
    /// `unit`.
    fn schema(&self) -> SchemaRef;

    /// Returns the DTD leaves that columns contain, by column name; a field of a structure has the name `column.field`.
    ///
    /// Conditions obtain the names of values from these leaves.
    fn leaves(&self) -> Vec<(String, Arc<Leaf>)> {
        Vec::new()
    }

    /// Reads the table. Batches have the columns of [`Scan::columns`], in that order.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be opened. Later errors are returned in place of a batch.
    fn scan(&self, scan: &Scan) -> Result<Batches>;
}

/// The part of a table to read. See the [crate] documentation for an example.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Column indices in the [schema](Table::schema), or `None` for all. Other columns are decoded only if later
    /// records depend on them.
    pub columns: Option<Vec<usize>>,
    /// Maximum number of rows that the caller needs, or `None` for all. This is a hint: a scan may return more rows.
    pub limit: Option<u64>,
    /// Number of decoding threads; 0 uses one per processor.
    pub threads: usize,
    /// A leaf and the range of its values in the rows that the caller needs, or `None` for all rows. This is a hint: a
    /// scan may also return other rows.
    pub times: Option<(Arc<Leaf>, TimeRange)>,
}

impl<T: Table + ?Sized> Table for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn schema(&self) -> SchemaRef {
        (**self).schema()
    }

    fn leaves(&self) -> Vec<(String, Arc<Leaf>)> {
        (**self).leaves()
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        (**self).scan(scan)
    }
}
