//! What every table can do.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use metatf_parser::schema::Leaf;

use crate::Result;

/// The batches of one scan. After an error nothing more comes.
pub type Batches = Box<dyn RecordBatchReader + Send>;

/// Batches of several tables that are read at once, each with the place of its table among those asked for. After an error nothing more comes.
pub type Together = Box<dyn Iterator<Item = std::result::Result<(usize, RecordBatch), ArrowError>> + Send>;

/// A table of a trace, or of several.
pub trait Table: Send + Sync {
    /// Its name, as SQL and Python know it.
    fn name(&self) -> &str;

    /// All its columns. Docs and units are metadata of their fields, by the keys `doc` and `unit`.
    fn schema(&self) -> SchemaRef;

    /// The leaves of the DTD that columns contain, by column name; a field of a structure has the name `column.field`.
    ///
    /// Conditions take the names of values from them.
    fn leaves(&self) -> Vec<(String, Arc<Leaf>)> {
        Vec::new()
    }

    /// Reads it. Batches have the columns of [`Scan::columns`], in that order.
    ///
    /// # Errors
    /// The trace cannot be opened. What is wrong further on is an error of a batch.
    fn scan(&self, scan: &Scan) -> Result<Batches>;
}

/// What of a table is read.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Indices of columns in the [schema](Table::schema); `None`: all. What is not asked for is decoded only where
    /// records behind it depend on it.
    pub columns: Option<Vec<usize>>,
    /// At most this many rows are wanted; `None`: all. A hint: more may come.
    pub limit: Option<u64>,
    /// Threads that decode; 0: one for each processor.
    pub threads: usize,
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
