//! The table functions: their names, their parameters, and the table that each makes.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hatf_arrow::Tables;
use metatf::dynamic::Schema;
use metatf_arrow::{OpenOptions, Table, Union, find};

use crate::api::{self, Bind, Chunk, Connection, Result, TableFunction};
use crate::files;
use crate::listing::Listing;
use crate::scan::{Bound, Position, Running};

/// The column that tells from which file a row is.
const FILE: &str = "@file";

/// A function of SQL.
#[derive(Clone, Copy)]
enum Function {
    /// `metatf_records('T.mtf', 'malloc')`: the records of a type.
    Records,
    /// `metatf_spans('T.mtf')`: the spans, and `metatf_events('T.mtf')`: the events.
    Made(Made),
    /// `metatf_tables('T.mtf')`: which types there are, and their columns.
    Tables,
    /// `heap_objects('T.mtf')`: a table of heap traces, by its name.
    Heap(&'static str),
    /// `metatf_test('values')`.
    #[cfg(feature = "test-tables")]
    Test,
}

/// A table that pairing records gives.
#[derive(Clone, Copy)]
enum Made {
    Spans,
    Events,
}

/// Registers all of them.
pub(crate) fn register(to: &Connection) -> Result<()> {
    api::register(to, Function::Records)?;
    api::register(to, Function::Made(Made::Spans))?;
    api::register(to, Function::Made(Made::Events))?;
    api::register(to, Function::Tables)?;
    for name in Tables::names() {
        api::register(to, Function::Heap(name))?;
    }
    #[cfg(feature = "test-tables")]
    api::register(to, Function::Test)?;
    Ok(())
}

impl TableFunction for Function {
    type Bound = Bound;
    type Scan = Running;
    type Local = Position;

    fn name(self) -> String {
        match self {
            Self::Records => "metatf_records".to_owned(),
            Self::Made(made) => format!("metatf_{}", made.name()),
            Self::Tables => "metatf_tables".to_owned(),
            Self::Heap(table) => format!("heap_{table}"),
            #[cfg(feature = "test-tables")]
            Self::Test => "metatf_test".to_owned(),
        }
    }

    fn parameters(self) -> usize {
        match self {
            Self::Records => 2,
            _ => 1,
        }
    }

    fn named(self) -> &'static [&'static CStr] {
        match self {
            Self::Records | Self::Made(_) | Self::Tables => &[c"predicate", c"dtd"],
            _ => &[c"predicate"],
        }
    }

    fn bind(self, bind: &Bind) -> Result<Bound> {
        let given = bind.parameter(0)?;
        let table: Arc<dyn Table> = match self {
            Self::Records => Arc::new(records(&given, &bind.parameter(1)?, options(bind)?)?),
            Self::Made(made) => Arc::new(spans(&given, made, options(bind)?)?),
            Self::Tables => Arc::new(listing(&given, &options(bind)?)?),
            Self::Heap(name) => {
                let traces = hatf_arrow::open(&files::matching(&given)?).map_err(|error| error.to_string())?;
                traces.get(name).ok_or_else(|| format!("there is no table {name}"))?
            }
            #[cfg(feature = "test-tables")]
            Self::Test => Arc::new(crate::test_tables::TestTable::named(&given).ok_or("no such table")?),
        };
        Bound::new(table, bind.named(c"predicate").as_deref(), bind)
    }

    fn start(bound: &Bound, columns: &[u64]) -> Result<Running> {
        Running::new(bound, columns)
    }

    fn threads(_: &Bound) -> u64 {
        std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64)
    }

    fn next(scan: &Running, local: &mut Position, chunk: &mut Chunk) -> Result<()> {
        scan.next(local, chunk)
    }
}

impl Made {
    fn name(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Events => "events",
        }
    }
}

/// How traces are opened: by the DTD of the parameter `dtd`, if they embed none.
fn options(bind: &Bind) -> Result<OpenOptions> {
    let Some(path) = bind.named(c"dtd") else { return Ok(OpenOptions::default()) };
    let text = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
    let schema = Schema::parse(&path, &text).map_err(|error| error.to_string())?;
    Ok(OpenOptions { dtd: Some(schema), ..OpenOptions::default() })
}

/// The tables of a trace of any format.
fn tables_of(path: &Path, options: &OpenOptions) -> Result<Vec<Arc<dyn Table>>> {
    metatf_arrow::open(path, options).map_err(|error| error.to_string())
}

/// The first of some files.
fn first(files: &[PathBuf]) -> Result<&Path> {
    Ok(files.first().ok_or("no file")?)
}

/// The tables of the first file that a pattern names.
fn listing(pattern: &str, options: &OpenOptions) -> Result<Listing> {
    Listing::new(&tables_of(first(&files::matching(pattern)?)?, options)?)
}

/// The records of a type in all files that a pattern names.
fn records(pattern: &str, record: &str, options: OpenOptions) -> Result<Union> {
    let files = files::matching(pattern)?;
    let first = first(&files)?;
    let table = find(&tables_of(first, &options)?, record).map_err(|error| format!("{}: {error}", first.display()))?;
    Ok(Union::new(&table, FILE, files.into(), options))
}

/// The spans or events of all files that a pattern names.
fn spans(pattern: &str, made: Made, options: OpenOptions) -> Result<Union> {
    let files = files::matching(pattern)?;
    let first = first(&files)?;
    let tables = metatf_arrow::open_tables(first, &options).map_err(|error| error.to_string())?;
    let table = match made {
        Made::Spans => tables.spans(),
        Made::Events => tables.events(),
    };
    let table =
        table.ok_or_else(|| format!("{}: its DTD does not say which records are {}", first.display(), made.name()))?;
    Ok(Union::new(&table, FILE, files.into(), options))
}
