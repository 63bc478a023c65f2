//! Several traces as one table.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchIterator, RecordBatchOptions, StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use metatf_parser::schema::Leaf;

use crate::{Batches, Error, OpenOptions, Result, Scan, Table, open};

/// The tables of one name in several traces, read one after the other, with an additional first column for the file
/// name.
///
/// Each trace is opened when the scan reaches it.
///
/// # Examples
///
/// ```
/// use metatf_arrow::{OpenOptions, Scan, Table as _, Union, find, open};
/// use std::path::PathBuf;
/// use std::sync::Arc;
///
/// # use metatf::container::WriteOptions;
/// # use metatf::dynamic::{OwnedRecord, Schema, Writer};
/// # let dtd = b"section s 1 { malloc: (tag, size) { tag.value = 4; size.width = 4; size.interpretation = none; } }";
/// # let schema = Schema::parse("heap.dtd", dtd)?;
/// # let mut files = Vec::new();
/// # for size in [16, 48] {
/// #     let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
/// #     let mut owned = OwnedRecord::default();
/// #     owned.push_number(size);
/// #     writer.record(1, 3, &owned)?;
/// #     let file = tempfile::NamedTempFile::new()?;
/// #     std::fs::write(file.path(), writer.finish()?)?;
/// #     files.push(file);
/// # }
/// // Each of the two traces contains one record `malloc`.
/// let paths: Arc<[PathBuf]> = files.iter().map(|file| file.path().to_owned()).collect();
/// let first = find(&open(&paths[0], &OpenOptions::default())?, "malloc")?;
/// let union = Union::new(&*first, "file", Arc::clone(&paths), OpenOptions::default());
/// assert_eq!(union.schema().field(0).name(), "file");
/// let mut rows = 0;
/// for batch in union.scan(&Scan::default())? {
///     rows += batch?.num_rows();
/// }
/// assert_eq!(rows, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Union {
    name: String,
    /// The schema, including the column of the file name.
    schema: SchemaRef,
    leaves: Vec<(String, Arc<Leaf>)>,
    paths: Arc<[PathBuf]>,
    options: OpenOptions,
}

/// Finds a table by name.
///
/// # Errors
/// Returns an error that lists the available tables if there is no such table.
pub fn find(tables: &[Arc<dyn Table>], name: &str) -> Result<Arc<dyn Table>, String> {
    tables.iter().find(|table| table.name() == name).map(Arc::clone).ok_or_else(|| {
        let names: Vec<&str> = tables.iter().map(|table| table.name()).collect();
        format!("there is no table {name}; available tables: {}", names.join(", "))
    })
}

impl Union {
    /// Creates a union of tables like `first`, which is the table of the first trace. `column` is the name of the
    /// column with the file name.
    ///
    /// The columns of the other tables must have the same names and types; otherwise, the scan fails.
    #[must_use]
    pub fn new(first: &dyn Table, column: &str, paths: Arc<[PathBuf]>, options: OpenOptions) -> Self {
        let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let file = Arc::new(Field::new(column, kind, false));
        let fields: Vec<_> = std::iter::once(file).chain(first.schema().fields().iter().cloned()).collect();
        Self {
            name: first.name().to_owned(),
            schema: Arc::new(Schema::new(fields)),
            leaves: first.leaves(),
            paths,
            options,
        }
    }

    /// Starts the scan of a trace.
    fn open(&self, path: &Path, scan: &Scan) -> Result<Batches> {
        let table = find(&open(path, &self.options)?, &self.name).map_err(|problem| Error::new(path, problem))?;
        let (found, wanted) = (table.schema(), self.schema.fields().iter().skip(1));
        let columns = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
        if !found.fields().iter().map(columns).eq(wanted.map(columns)) {
            let message = format!("the columns of table {} differ from the columns in the first trace", self.name);
            return Err(Error::new(path, message));
        }
        table.scan(scan)
    }
}

impl Table for Union {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn leaves(&self) -> Vec<(String, Arc<Leaf>)> {
        self.leaves.clone()
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        let columns = scan.columns.clone().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let schema = self.schema.project(&columns).map_err(|problem| Error::new(self.name.as_str(), problem))?;
        let schema = Arc::new(schema);
        // The tables have no file-name column.
        let inner =
            Scan { columns: Some(columns.iter().filter_map(|column| column.checked_sub(1)).collect()), ..scan.clone() };
        let (union, out, mut place) = (self.clone(), Arc::clone(&schema), 0);
        let mut current: Option<(String, Batches)> = None;
        let mut next = move || -> Result<Option<RecordBatch>, ArrowError> {
            loop {
                if let Some((file, batches)) = &mut current
                    && let Some(batch) = batches.next()
                {
                    return with_file(&batch?, file, &columns, &out).map(Some);
                }
                let Some(path) = union.paths.get(place) else { return Ok(None) };
                place += 1;
                let batches = union.open(path, &inner).map_err(|problem| ArrowError::ExternalError(problem.into()))?;
                current = Some((path.display().to_string(), batches));
            }
        };
        // The iterator ends after an error.
        let mut ended = false;
        let batches = std::iter::from_fn(move || {
            let batch = if ended { None } else { next().transpose() };
            ended = !matches!(batch, Some(Ok(_)));
            batch
        });
        Ok(Box::new(RecordBatchIterator::new(batches, schema)))
    }
}

/// Adds the file name to a batch if the file name is requested.
fn with_file(
    batch: &RecordBatch,
    file: &str,
    columns: &[usize],
    schema: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let (rows, mut values) = (batch.num_rows(), batch.columns().iter());
    let mut out: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for column in columns {
        if *column == 0 {
            let (keys, names) = (Int32Array::from(vec![0; rows]), StringArray::from_iter_values([file]));
            out.push(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(names))?));
        } else {
            out.extend(values.next().cloned());
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), out, &options)
}
