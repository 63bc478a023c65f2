//! Conditions on the rows of tables.
//!
//! Except for the times of groups (spec 5.2), a trace does not state the values of its records without their content. Only
//! conditions on the time of the records therefore skip a part of the trace.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types as arrow;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_select::filter::filter_record_batch;
use metatf::container::TimeRange;
use metatf_parser::schema::{Format, Leaf, Names};
use metatf_tools::condition::{Condition, ConditionError, Fields, Kinds, Row, Value, leaf_number, names_field};

use crate::{Scan, Table};

/// A list of conditions, all of which a row must satisfy.
///
/// # Examples
///
/// ```
/// use metatf_arrow::{Conditions, OpenOptions, find, open};
///
/// # use metatf::container::WriteOptions;
/// # use metatf::dynamic::{OwnedRecord, Schema, Writer};
/// # let dtd = b"section s 1 { malloc: (tag, size) { tag.value = 4; size.width = 4; size.interpretation = none; } }";
/// # let schema = Schema::parse("heap.dtd", dtd)?;
/// # let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
/// # for size in [16, 48] {
/// #     let mut owned = OwnedRecord::default();
/// #     owned.push_number(size);
/// #     writer.record(1, 3, &owned)?;
/// # }
/// # let file = tempfile::NamedTempFile::new()?;
/// # std::fs::write(file.path(), writer.finish()?)?;
/// // The trace contains two records `malloc` with the sizes 16 and 48.
/// let table = find(&open(file.path(), &OpenOptions::default())?, "malloc")?;
/// let mut conditions = Conditions::default();
/// conditions.add(&*table, "size >= 32")?;
/// let selection = conditions.select(None);
/// let mut rows = 0;
/// for batch in table.scan(&selection.scan(None, 1))? {
///     rows += selection.rows(batch?)?.num_rows();
/// }
/// assert_eq!(rows, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Conditions(Vec<Arc<Condition<Column>>>);

/// The columns and rows of a table to return, and the columns that must be read for them.
#[derive(Clone, Debug)]
pub struct Selection {
    columns: Option<Vec<usize>>,
    /// The number of columns to return, or `None` for all. The columns after them are read only for conditions.
    wanted: Option<usize>,
    conditions: Conditions,
}

/// The values to which a name in a condition refers. Several columns can have fields of that name.
#[derive(Clone, Debug)]
struct Column(Vec<Path>);

/// A column, or a field of the structures in it.
#[derive(Clone, Debug)]
struct Path {
    /// The index of the column in the table.
    column: usize,
    /// The indices of structure fields, outermost first.
    fields: Vec<usize>,
    data_type: DataType,
    leaf: Option<Arc<Leaf>>,
}

impl Conditions {
    /// Adds a condition in the language of [`metatf_tools::condition`].
    ///
    /// # Errors
    /// Returns an error if the syntax is invalid, the table lacks a column, or a number is compared with a string.
    pub fn add(&mut self, table: &dyn Table, text: &str) -> Result<(), ConditionError> {
        let condition = Condition::parse(text, &TableFields::new(table))?;
        self.0.push(Arc::new(condition));
        Ok(())
    }

    /// Returns a leaf with times and the times of the rows that can satisfy the conditions, or `None` if the conditions do
    /// not limit the time.
    fn times(&self) -> Option<(Arc<Leaf>, TimeRange)> {
        let mut found = None;
        for condition in &self.0 {
            condition.for_each_field(|column| {
                let leaves = column.0.iter().filter_map(|path| path.leaf.as_ref());
                found = found.take().or_else(|| leaves.filter(|leaf| leaf.is_time()).map(Arc::clone).next());
            });
        }
        let leaf = found?;
        // The path, which is part of a leaf, is unique in its record.
        let is_time = |path: &Path| path.leaf.as_ref() == Some(&leaf);
        let is_time = |column: &Column| column.0.iter().all(is_time);
        let named = |column: &Column, text: &str| {
            let path = column.0.first()?;
            number_of(path.leaf.as_deref(), &path.data_type, text)
        };
        let ranges = self.0.iter().map(|condition| condition.times(&is_time, &named));
        let times = ranges.fold(TimeRange::ALL, |a, b| TimeRange {
            lowest: a.lowest.max(b.lowest),
            highest: a.highest.min(b.highest),
        });
        (times != TimeRange::ALL).then_some((leaf, times))
    }

    /// Selects these columns (`None` for all) of the rows that satisfy the conditions.
    #[must_use]
    pub fn select(&self, columns: Option<&[usize]>) -> Selection {
        let mut read = columns.map(<[usize]>::to_vec);
        if let Some(read) = &mut read {
            let mut add = |column: &Column| {
                for path in &column.0 {
                    if !read.contains(&path.column) {
                        read.push(path.column);
                    }
                }
            };
            self.0.iter().for_each(|condition| condition.for_each_field(&mut add));
        }
        Selection { columns: read, wanted: columns.map(<[usize]>::len), conditions: self.clone() }
    }
}

impl Selection {
    /// Returns the columns to read, as [`Scan::columns`].
    #[must_use]
    pub fn columns(&self) -> Option<&[usize]> {
        self.columns.as_deref()
    }

    /// Returns the scan that produces the batches for [`rows`](Self::rows). The caller needs at most `limit` rows.
    #[must_use]
    pub fn scan(&self, limit: Option<u64>, threads: usize) -> Scan {
        // With conditions, the number of rows to read is not known in advance.
        let limit = limit.filter(|_| self.conditions.0.is_empty());
        Scan { columns: self.columns.clone(), limit, threads, times: self.conditions.times() }
    }

    /// Returns the selected columns of the rows that satisfy the conditions.
    ///
    /// # Errors
    /// Returns an error if the batch lacks a column.
    pub fn rows(&self, mut batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns = self.columns.as_deref();
        for condition in &self.conditions.0 {
            let holds = |row| condition.holds(&BatchRow { batch: &batch, columns, row });
            let mask: BooleanArray = (0..batch.num_rows()).map(|row| Some(holds(row))).collect();
            batch = filter_record_batch(&batch, &mask)?;
        }
        match self.wanted {
            Some(wanted) if wanted < batch.num_columns() => batch.project(&(0..wanted).collect::<Vec<_>>()),
            _ => Ok(batch),
        }
    }
}

/// The columns of a table, and the fields of structures in them.
struct TableFields(Vec<(String, Path)>);

impl TableFields {
    fn new(table: &dyn Table) -> Self {
        let leaves = table.leaves();
        let leaf = |name: &str| leaves.iter().find(|(path, _)| path == name).map(|(_, leaf)| Arc::clone(leaf));
        let mut fields = Self(Vec::new());
        let schema = table.schema();
        for (column, field) in schema.fields().iter().enumerate() {
            let path = Path { column, fields: Vec::new(), data_type: field.data_type().clone(), leaf: None };
            fields.add(field.name().clone(), path, &leaf);
        }
        fields
    }

    /// Adds a column, or the fields of its structures. Types nest as deep as a DTD's records, at most 32 (spec 3.5).
    fn add(&mut self, name: String, path: Path, leaf: &dyn Fn(&str) -> Option<Arc<Leaf>>) {
        let leaf_here = leaf(&name);
        match &path.data_type {
            // A list of the names of set bits represents a single number, so its items are not added.
            DataType::List(_) if is_flags(&path.data_type, leaf_here.as_deref()) => {}
            DataType::List(item) => {
                let data_type = item.data_type().clone();
                return self.add(name, Path { data_type, ..path }, leaf);
            }
            DataType::Struct(members) => {
                for (index, member) in members.iter().enumerate() {
                    let mut fields = path.fields.clone();
                    fields.push(index);
                    let data_type = member.data_type().clone();
                    self.add(format!("{name}.{}", member.name()), Path { fields, data_type, ..path.clone() }, leaf);
                }
                return;
            }
            _ => {}
        }
        if is_comparable(&path.data_type) {
            self.0.push((name, Path { leaf: leaf_here, ..path }));
        }
    }
}

/// Returns whether [`test_value`] supports a type. The only unsupported types in trace tables are maps, whose keys are
/// data.
fn is_comparable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(key, values) => {
            matches!(**key, DataType::Int8 | DataType::UInt8 | DataType::Int32) && is_comparable(values)
        }
        DataType::List(item) => is_comparable(item.data_type()),
        DataType::Boolean
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Timestamp(..)
        | DataType::Duration(_) => true,
        other => other.is_integer(),
    }
}

/// Returns whether a column contains lists of the names of set bits.
fn is_flags(data_type: &DataType, leaf: Option<&Leaf>) -> bool {
    let is_text = matches!(data_type, DataType::List(item) if item.data_type() == &DataType::Utf8);
    is_text && leaf.is_some_and(|leaf| matches!(leaf.names, Names::Flags(_)))
}

impl Fields for TableFields {
    type Field = Column;

    fn find(&self, name: &str) -> Option<Column> {
        let paths = self.0.iter().filter(|(path, _)| names_field(name, path)).map(|(_, path)| path.clone());
        let paths = paths.collect::<Vec<_>>();
        (!paths.is_empty()).then_some(Column(paths))
    }

    fn kinds(&self, column: &Column) -> Kinds {
        let is_number = |path: &Path| match &path.leaf {
            Some(leaf) => leaf.is_numeric(),
            None => !matches!(values(&path.data_type), DataType::Utf8 | DataType::Binary),
        };
        Kinds { numbers: column.0.iter().any(is_number), bytes: !column.0.iter().all(is_number) }
    }

    fn has_name(&self, column: &Column, text: &str) -> bool {
        column.0.iter().any(|path| number_of(path.leaf.as_deref(), &path.data_type, text).is_some())
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Returns the value type of a dictionary type, or any other type unchanged.
fn values(data_type: &DataType) -> &DataType {
    if let DataType::Dictionary(_, values) = data_type { values } else { data_type }
}

/// Returns the number denoted by a name or word in a column, such as `zombie`, `true` or `2026-11-28T12:00:00Z`.
fn number_of(leaf: Option<&Leaf>, data_type: &DataType, text: &str) -> Option<i128> {
    if let Some(leaf) = leaf {
        return leaf_number(leaf, text);
    }
    let format = match data_type {
        DataType::Boolean => Format::Bool,
        DataType::Timestamp(TimeUnit::Second, _) => Format::DateS,
        DataType::Timestamp(TimeUnit::Millisecond, _) => Format::DateMs,
        DataType::Timestamp(TimeUnit::Microsecond, _) => Format::DateUs,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Format::DateNs,
        _ => return None,
    };
    format.number_of_word(text).map(|n| n.cast_signed().into())
}

/// One row of a batch.
struct BatchRow<'b> {
    batch: &'b RecordBatch,
    /// The columns of the table that the batch contains, in order, or `None` for all.
    columns: Option<&'b [usize]>,
    row: usize,
}

impl Row<Column> for BatchRow<'_> {
    fn any(&self, column: &Column, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {
        column.0.iter().any(|path| {
            let place = match self.columns {
                None => Some(path.column),
                Some(columns) => columns.iter().position(|column| *column == path.column),
            };
            let array = place.and_then(|place| self.batch.columns().get(place));
            array.is_some_and(|array| test_value(array, self.row, &path.fields, path, test))
        })
    }
}

/// Returns whether the test holds for a value of an array, or for one of the items of a list.
fn test_value(
    array: &ArrayRef,
    row: usize,
    fields: &[usize],
    path: &Path,
    test: &mut dyn FnMut(Value<'_>) -> bool,
) -> bool {
    if row >= array.len() || array.is_null(row) {
        return false;
    }
    let name = |text: &str| number_of(path.leaf.as_deref(), &path.data_type, text);
    let mut number = |n: i128| test(Value::Named(n, &name));
    macro_rules! primitive {
        ($type:ty) => {
            array.as_primitive_opt::<$type>().is_some_and(|array| number(array.value(row).into()))
        };
    }
    match array.data_type() {
        DataType::Int8 => primitive!(arrow::Int8Type),
        DataType::Int16 => primitive!(arrow::Int16Type),
        DataType::Int32 => primitive!(arrow::Int32Type),
        DataType::Int64 => primitive!(arrow::Int64Type),
        DataType::UInt8 => primitive!(arrow::UInt8Type),
        DataType::UInt16 => primitive!(arrow::UInt16Type),
        DataType::UInt32 => primitive!(arrow::UInt32Type),
        DataType::UInt64 => primitive!(arrow::UInt64Type),
        DataType::Duration(TimeUnit::Second) => primitive!(arrow::DurationSecondType),
        DataType::Duration(TimeUnit::Millisecond) => primitive!(arrow::DurationMillisecondType),
        DataType::Duration(TimeUnit::Microsecond) => primitive!(arrow::DurationMicrosecondType),
        DataType::Duration(TimeUnit::Nanosecond) => primitive!(arrow::DurationNanosecondType),
        DataType::Timestamp(TimeUnit::Second, _) => primitive!(arrow::TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => primitive!(arrow::TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => primitive!(arrow::TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => primitive!(arrow::TimestampNanosecondType),
        DataType::Boolean => array.as_boolean_opt().is_some_and(|array| number(array.value(row).into())),
        DataType::Float32 => array
            .as_primitive_opt::<arrow::Float32Type>()
            .is_some_and(|array| test(Value::Float(array.value(row).into()))),
        DataType::Float64 => {
            array.as_primitive_opt::<arrow::Float64Type>().is_some_and(|array| test(Value::Float(array.value(row))))
        }
        DataType::Utf8 => array.as_string_opt::<i32>().is_some_and(|array| text(array.value(row), path, test)),
        DataType::Binary => array.as_binary_opt::<i32>().is_some_and(|array| test(Value::Bytes(array.value(row)))),
        DataType::Dictionary(..) => array.as_any_dictionary_opt().is_some_and(|words| {
            key(words.keys(), row).is_some_and(|key| test_value(words.values(), key, fields, path, test))
        }),
        DataType::List(_) => {
            let Some(items) = array.as_list_opt::<i32>().map(|list| list.value(row)) else { return false };
            if is_flags(array.data_type(), path.leaf.as_deref()) {
                let names = (0..items.len()).filter_map(|item| items.as_string_opt::<i32>().map(|n| n.value(item)));
                return number(names.filter_map(name).fold(0, |bits, bit| bits | bit));
            }
            (0..items.len()).any(|item| test_value(&items, item, fields, path, test))
        }
        DataType::Struct(_) => {
            let Some((field, fields)) = fields.split_first() else { return false };
            let column = array.as_struct_opt().and_then(|array| array.columns().get(*field));
            column.is_some_and(|column| test_value(column, row, fields, path, test))
        }
        _ => false,
    }
}

/// Returns the dictionary key of a row. Supports only the key types that tables use.
fn key(keys: &dyn Array, row: usize) -> Option<usize> {
    let key = match keys.data_type() {
        DataType::Int8 => i32::from(keys.as_primitive_opt::<arrow::Int8Type>()?.value(row)),
        DataType::UInt8 => i32::from(keys.as_primitive_opt::<arrow::UInt8Type>()?.value(row)),
        _ => keys.as_primitive_opt::<arrow::Int32Type>()?.value(row),
    };
    usize::try_from(key).ok()
}

/// Tests a text, or the number that the text names.
fn text(text: &str, path: &Path, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {
    let Some(leaf) = path.leaf.as_deref().filter(|leaf| leaf.is_numeric()) else {
        return test(Value::Bytes(text.as_bytes()));
    };
    // A number without a name or word is represented by its digits.
    let digits = || match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    let number = leaf_number(leaf, text).or_else(digits);
    number.is_some_and(|n| test(Value::Named(n, &|text| leaf_number(leaf, text))))
}
