//! The names, parameters and tables of the table functions.

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

/// Name of the column that contains the file of each row.
const FILE: &str = "@file";

/// A SQL function.
#[derive(Clone, Copy)]
enum Function {
    /// `metatf_records('T.mtf', 'malloc')`: the records of a type.
    Records,
    /// `metatf_spans('T.mtf')` for spans and `metatf_events('T.mtf')` for events.
    Made(Made),
    /// `metatf_tables('T.mtf')`: the tables of a trace and their columns.
    Tables,
    /// `heap_objects('T.mtf')` and similar functions: the heap trace table with this name.
    Heap(&'static str),
    /// `metatf_test('values')`: a table for tests.
    #[cfg(feature = "test-tables")]
    Test,
}

/// A table derived from paired records.
#[derive(Clone, Copy)]
enum Made {
    Spans,
    Events,
}

/// Registers all functions.
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

/// Returns the options for opening traces. The parameter `dtd` names the DTD for traces that do not embed one.
fn options(bind: &Bind) -> Result<OpenOptions> {
    let Some(path) = bind.named(c"dtd") else { return Ok(OpenOptions::default()) };
    let text = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
    let schema = Schema::parse(&path, &text).map_err(|error| error.to_string())?;
    Ok(OpenOptions { dtd: Some(schema), ..OpenOptions::default() })
}

/// Returns the tables of a trace of any format.
fn tables_of(path: &Path, options: &OpenOptions) -> Result<Vec<Arc<dyn Table>>> {
    metatf_arrow::open(path, options).map_err(|error| error.to_string())
}

/// Returns the first file.
fn first(files: &[PathBuf]) -> Result<&Path> {
    Ok(files.first().ok_or("no file was specified")?)
}

/// Lists the tables of the first file that matches a pattern.
fn listing(pattern: &str, options: &OpenOptions) -> Result<Listing> {
    Listing::new(&tables_of(first(&files::matching(pattern)?)?, options)?)
}

/// Returns the records of a type in all files that match a pattern.
fn records(pattern: &str, record: &str, options: OpenOptions) -> Result<Union> {
    let files = files::matching(pattern)?;
    let first = first(&files)?;
    let table = find(&tables_of(first, &options)?, record).map_err(|error| format!("{}: {error}", first.display()))?;
    Ok(Union::new(&table, FILE, files.into(), options))
}

/// Returns the spans or events of all files that match a pattern.
fn spans(pattern: &str, made: Made, options: OpenOptions) -> Result<Union> {
    let files = files::matching(pattern)?;
    let first = first(&files)?;
    let tables = metatf_arrow::open_tables(first, &options).map_err(|error| error.to_string())?;
    let table = match made {
        Made::Spans => tables.spans(),
        Made::Events => tables.events(),
    };
    let table = table.ok_or_else(|| format!("{}: its DTD does not define {}", first.display(), made.name()))?;
    Ok(Union::new(&table, FILE, files.into(), options))
}
