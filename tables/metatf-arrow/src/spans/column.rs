//! The columns of the span and event tables.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, Int64Array, MapArray, StringArray, StructArray, TimestampNanosecondArray, UInt64Array,
};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{ArrowError, DataType, Field, Fields, TimeUnit};
use metatf_tools::spans::{Above, Origin, Span, Values, plain};

use super::What;
use crate::builder::{Bytes, Fault, count, offset, take_offsets};
use crate::record_table::NUMBER;

/// A column of a span or event table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Number,
    Name,
    Begin,
    End,
    Duration,
    Own,
    Busy,
    Time,
    Process,
    Thread,
    ThreadName,
    Span,
    ParentRecord,
    Parent,
    ParentName,
    Level,
    LevelNumber,
    Target,
    File,
    Line,
    Message,
    Fields,
}

/// The representation of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// Nanoseconds as signed numbers.
    Count,
    /// Points in time, because all times of the trace are dates.
    Date,
    /// Nanoseconds as stored.
    Stored,
}

/// The values of a span or an event.
pub(crate) struct Row<'r> {
    pub(crate) record: u64,
    pub(crate) name: &'r str,
    /// Time of the event or of the beginning of the span.
    pub(crate) time: u64,
    /// The span, if it has ended.
    pub(crate) ended: Option<&'r Span>,
    pub(crate) busy: Option<u64>,
    pub(crate) process: Option<u64>,
    pub(crate) thread: Option<u64>,
    pub(crate) thread_name: Option<&'r str>,
    pub(crate) number: Option<u64>,
    pub(crate) above: Option<&'r Above>,
    pub(crate) origin: Option<&'r Origin>,
    pub(crate) message: Option<&'r str>,
    pub(crate) values: &'r Values,
}

/// A column under construction.
pub(crate) struct Filling {
    column: Column,
    data: Data,
    nulls: NullBufferBuilder,
}

enum Data {
    Signed(Vec<i64>),
    Date(Vec<i64>),
    Unsigned(Vec<u64>),
    Text(Bytes),
    Map { offsets: Vec<i32>, names: Bytes, values: Bytes },
}

impl Column {
    /// Returns the columns of a table in order.
    pub(crate) fn all(what: What) -> Arc<[Self]> {
        let of_spans = [Self::Begin, Self::End, Self::Duration, Self::Own, Self::Busy, Self::Span].as_slice();
        let own = match what {
            What::Spans => of_spans,
            What::Events => &[Self::Time],
        };
        let common = [Self::Process, Self::Thread, Self::ThreadName, Self::ParentRecord, Self::Parent];
        let origin = [Self::ParentName, Self::Level, Self::LevelNumber, Self::Target, Self::File, Self::Line];
        let message = [Self::Message].into_iter().filter(|_| what == What::Events);
        let columns = [Self::Number, Self::Name].into_iter().chain(own.iter().copied());
        columns.chain(common).chain(origin).chain(message).chain([Self::Fields]).collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Number => NUMBER,
            Self::Name => "name",
            Self::Begin => "begin_time",
            Self::End => "end_time",
            Self::Duration => "duration_ns",
            Self::Own => "self_ns",
            Self::Busy => "busy_ns",
            Self::Time => "time",
            Self::Process => "process",
            Self::Thread => "thread",
            Self::ThreadName => "thread_name",
            Self::Span => "span",
            Self::ParentRecord => "@parent",
            Self::Parent => "parent",
            Self::ParentName => "parent_name",
            Self::Level => "level",
            Self::LevelNumber => "level_number",
            Self::Target => "target",
            Self::File => "file",
            Self::Line => "line",
            Self::Message => "message",
            Self::Fields => "fields",
        }
    }

    fn doc(self, what: What) -> &'static str {
        match (self, what) {
            (Self::Number, What::Spans) => "Number of data records before the one that begins it",
            (Self::Number, What::Events) => "Number of preceding data records in the trace",
            (Self::Name, _) => "Name from the record, or else the name in the DTD",
            (Self::Begin, _) => "Time of the beginning",
            (Self::End, _) => "Time of the end; null if its end is not in the trace",
            (Self::Duration, _) => "Duration",
            (Self::Own, _) => "Part of the duration in which no direct child was open",
            (Self::Busy, _) => "Part of the duration in which a thread was in it; null if no thread ever was",
            (Self::Time, _) => "Time of the event",
            (Self::Process, _) => "Process number",
            (Self::Thread, What::Spans) => "Thread that was in it last, or else that began it",
            (Self::Thread, What::Events) => "Thread number",
            (Self::ThreadName, _) => "Name of the thread",
            (Self::Span, _) => "Number of the span, which may be reused",
            (Self::ParentRecord, _) => "The @number of the enclosing span",
            (Self::Parent, _) => "Number of the enclosing span",
            (Self::ParentName, _) => "Name of the enclosing span",
            (Self::Level, _) => "Severity",
            (Self::LevelNumber, _) => "Number of the level; smaller is more severe",
            (Self::Target, _) => "Part of the program",
            (Self::File, _) => "Source file",
            (Self::Line, _) => "Line in the source file",
            (Self::Message, _) => "Value of the field `message`",
            (Self::Fields, _) => "Field values by name; if a name is repeated, the last value",
        }
    }

    fn data_type(self, time: Time) -> DataType {
        match self {
            Self::Begin | Self::End | Self::Time if time == Time::Date => {
                DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
            }
            Self::Begin | Self::End | Self::Time | Self::Duration | Self::Own | Self::Busy if time == Time::Stored => {
                DataType::UInt64
            }
            Self::Begin | Self::End | Self::Time | Self::Duration | Self::Own | Self::Busy => DataType::Int64,
            Self::Number | Self::ParentRecord => DataType::Int64,
            Self::Process | Self::Thread | Self::Span | Self::Parent | Self::LevelNumber | Self::Line => {
                DataType::UInt64
            }
            Self::Fields => DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry()), false)), false),
            _ => DataType::Utf8,
        }
    }

    pub(crate) fn field(self, what: What, time: Time) -> Field {
        let is_count = matches!(self, Self::Duration | Self::Own | Self::Busy)
            || matches!(self, Self::Begin | Self::End | Self::Time) && time != Time::Date;
        let unit = is_count.then(|| ("unit".to_owned(), "ns".to_owned()));
        let doc = ("doc".to_owned(), self.doc(what).to_owned());
        let is_always = matches!(self, Self::Number | Self::Name | Self::Begin | Self::Time | Self::Fields);
        Field::new(self.name(), self.data_type(time), !is_always).with_metadata(unit.into_iter().chain([doc]).collect())
    }
}

/// Returns the fields of a map entry.
fn entry() -> Fields {
    vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, false)].into()
}

impl Filling {
    pub(crate) fn new(column: Column, time: Time) -> Self {
        let data = match column.data_type(time) {
            DataType::Int64 => Data::Signed(Vec::new()),
            DataType::Timestamp(..) => Data::Date(Vec::new()),
            DataType::UInt64 => Data::Unsigned(Vec::new()),
            DataType::Map(..) => Data::Map { offsets: vec![0], names: Bytes::new(), values: Bytes::new() },
            _ => Data::Text(Bytes::new()),
        };
        Self { column, data, nulls: NullBufferBuilder::new(0) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.column.name()
    }

    /// Returns whether values of record fields are needed.
    pub(crate) fn needs_values(&self) -> bool {
        matches!(self.column, Column::Message | Column::Fields)
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        match &self.data {
            Data::Signed(values) | Data::Date(values) => values.len() * 8,
            Data::Unsigned(values) => values.len() * 8,
            Data::Text(bytes) => bytes.weight(),
            Data::Map { offsets, names, values } => offsets.len() * 4 + names.weight() + values.weight(),
        }
    }

    /// Adds the value of a row. After an error, the column may or may not contain a value for the row.
    pub(crate) fn put(&mut self, row: &Row<'_>) -> Result<(), Fault> {
        let begun = || row.above.and_then(|above| above.begun.as_ref());
        let level = || row.origin.and_then(|origin| origin.level.as_ref());
        match self.column {
            Column::Number => self.number(Some(row.record)),
            Column::Name => self.text(Some(row.name)),
            Column::Begin | Column::Time => self.number(Some(row.time)),
            Column::End => self.number(row.ended.map(|span| span.end)),
            Column::Duration => self.number(row.ended.map(Span::nanoseconds)),
            Column::Own => self.number(row.ended.map(|span| span.own)),
            Column::Busy => self.number(row.busy),
            Column::Process => self.number(row.process),
            Column::Thread => self.number(row.thread),
            Column::ThreadName => self.text(row.thread_name),
            Column::Span => self.number(row.number),
            Column::ParentRecord => self.number(begun().map(|(record, _)| *record)),
            Column::Parent => self.number(row.above.and_then(|above| above.number)),
            Column::ParentName => self.text(begun().map(|(_, name)| &**name)),
            Column::Level => self.text(level().map(|level| level.name.as_str())),
            Column::LevelNumber => self.number(level().map(|level| level.number)),
            Column::Target => self.text(row.origin.and_then(|origin| origin.target.as_deref())),
            Column::File => self.text(row.origin.and_then(|origin| origin.file.as_deref())),
            Column::Line => self.number(row.origin.and_then(|origin| origin.line)),
            Column::Message => self.text(row.message),
            Column::Fields => self.fields(row.values),
        }
    }

    fn number(&mut self, number: Option<u64>) -> Result<(), Fault> {
        self.nulls.append(number.is_some());
        let number = number.unwrap_or(0);
        match &mut self.data {
            Data::Signed(values) | Data::Date(values) => values.push(count(number)?),
            Data::Unsigned(values) => values.push(number),
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, text: Option<&str>) -> Result<(), Fault> {
        self.nulls.append(text.is_some());
        if let Data::Text(bytes) = &mut self.data { bytes.push(text.unwrap_or_default().as_bytes()) } else { Ok(()) }
    }

    /// Adds a map of field values. If a name occurs several times, the last value is used.
    fn fields(&mut self, of: &Values) -> Result<(), Fault> {
        self.nulls.append(true);
        let Data::Map { offsets, names, values } = &mut self.data else { return Ok(()) };
        let left_out = Some(of.left_out()).filter(|count| *count > 0);
        let all = of.iter().map(|(name, value)| (name, plain(value)));
        let all: Vec<_> = all.chain(left_out.map(|count| ("@left_out", Cow::Owned(count.to_string())))).collect();
        for (place, (name, value)) in all.iter().enumerate() {
            if !all.iter().skip(place + 1).any(|(later, _)| later == name) {
                names.push(name.as_bytes())?;
                values.push(value.as_bytes())?;
            }
        }
        offsets.push(offset(names.len())?);
        Ok(())
    }

    /// Builds an array of the first rows and resets the column.
    pub(crate) fn finish(&mut self, rows: usize) -> Result<ArrayRef, ArrowError> {
        // A refused row may have left a value.
        let nulls = self.nulls.finish();
        let nulls = |len: usize| nulls.map(|nulls| nulls.slice(0, len.min(nulls.len())));
        let array: ArrayRef = match &mut self.data {
            Data::Signed(values) => {
                let nulls = nulls(values.len());
                Arc::new(Int64Array::try_new(std::mem::take(values).into(), nulls)?)
            }
            Data::Date(values) => {
                let nulls = nulls(values.len());
                let dates = TimestampNanosecondArray::try_new(std::mem::take(values).into(), nulls)?;
                Arc::new(dates.with_timezone("UTC"))
            }
            Data::Unsigned(values) => {
                let nulls = nulls(values.len());
                Arc::new(UInt64Array::try_new(std::mem::take(values).into(), nulls)?)
            }
            Data::Text(bytes) => {
                let nulls = nulls(bytes.len());
                let (offsets, data) = bytes.finish()?;
                Arc::new(StringArray::try_new(offsets, data, nulls)?)
            }
            Data::Map { offsets, names, values } => {
                let (names, values) = (names.finish_text()?, values.finish_text()?);
                let pairs = names.len().min(values.len());
                let columns: Vec<ArrayRef> = vec![Arc::new(names.slice(0, pairs)), Arc::new(values.slice(0, pairs))];
                let entries = StructArray::try_new(entry(), columns, None)?;
                let DataType::Map(field, _) = self.column.data_type(Time::Count) else {
                    return Err(ArrowError::SchemaError("not a map".to_owned()));
                };
                Arc::new(MapArray::try_new(field, take_offsets(offsets)?, entries, None, false)?)
            }
        };
        Ok(array.slice(0, rows.min(array.len())))
    }
}
