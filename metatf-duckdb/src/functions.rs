//! The table functions: their names, their parameters, and the table that each makes.

use std::ffi::CStr;
use std::sync::Arc;

use metatf_arrow::Table;

use crate::api::{self, Bind, Chunk, Connection, Result, TableFunction};
use crate::scan::{Bound, Position, Running};

/// A function of SQL.
#[derive(Clone, Copy)]
enum Function {
    /// `metatf_test('values')`.
    #[cfg(feature = "test-tables")]
    Test,
}

/// Registers all of them.
pub(crate) fn register(to: &Connection) -> Result<()> {
    #[cfg(feature = "test-tables")]
    api::register(to, Function::Test)?;
    Ok(())
}

impl TableFunction for Function {
    type Bound = Bound;
    type Scan = Running;
    type Local = Position;

    fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "test-tables")]
            Self::Test => "metatf_test",
        }
    }

    fn parameters(self) -> usize {
        1
    }

    fn named(self) -> &'static [&'static CStr] {
        &[c"predicate"]
    }

    fn bind(self, bind: &Bind) -> Result<Bound> {
        let table: Arc<dyn Table> = match self {
            #[cfg(feature = "test-tables")]
            Self::Test => Arc::new(crate::test_tables::TestTable::named(&bind.parameter(0)?).ok_or("no such table")?),
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
