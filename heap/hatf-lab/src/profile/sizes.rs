//! Hit rates of tables with other sizes.

use serde::Serialize;

use super::table::{Entry, InfoTable, Lookups, TableSettings};
use crate::Result;
use metatf_page::{Column, Page, Table, Value};

/// A context and its number of blocks, which suffice for choosing an entry to evict.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    context: u64,
    count: u64,
}

impl Entry for Blocks {
    fn context(&self) -> u64 {
        self.context
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn merge(&mut self, later: Self) {
        self.count = self.count.saturating_add(later.count);
    }
}

/// Tables that only count lookups.
///
/// # Examples
///
/// Two contexts alternate, and only the second table has an entry for each:
///
/// ```
/// use hatf_lab::profile::{Sizes, TableSettings};
///
/// let tables: [TableSettings; 2] = ["1x1".parse()?, "2x1".parse()?];
/// let mut sizes = Sizes::new(tables)?;
/// for context in [1, 2, 1, 2] {
///     sizes.ended(context);
/// }
/// let evictions: Vec<_> = sizes.outcomes().iter().map(|outcome| outcome.lookups.evictions).collect();
/// assert_eq!(evictions, [3, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    tables: Vec<InfoTable<Blocks>>,
}

/// A table and its lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SizeOutcome {
    /// The settings of the table.
    #[serde(flatten)]
    pub table: TableSettings,
    /// The lookups in the table.
    #[serde(flatten)]
    pub lookups: Lookups,
}

impl Sizes {
    /// Creates empty tables.
    ///
    /// # Errors
    /// See [`TableSettings::checked`].
    pub fn new(tables: impl IntoIterator<Item = TableSettings>) -> Result<Self> {
        tables.into_iter().map(InfoTable::new).collect::<Result<_>>().map(|tables| Self { tables })
    }

    /// Looks up the context of a block that ended.
    #[inline]
    pub fn ended(&mut self, context: u64) {
        for table in &mut self.tables {
            table.insert(Blocks { context, count: 1 });
        }
    }

    /// Returns the lookup counts of the tables.
    #[must_use]
    pub fn outcomes(&self) -> Vec<SizeOutcome> {
        let outcome = |table: &InfoTable<_>| SizeOutcome { table: table.settings(), lookups: table.lookups() };
        self.tables.iter().map(outcome).collect()
    }
}

/// Adds the lookup counts of tables of several sizes.
pub fn describe_sizes(outcomes: &[SizeOutcome], page: &mut Page) {
    page.heading("TABLES (one lookup per ended block)");
    let columns = ["sets", "ways", "entries", "first fills", "", "evictions", ""].map(Column::new);
    let mut table = Table::new(columns);
    for SizeOutcome { table: of, lookups } in outcomes {
        let part = |number: u64| [Value::Count(number), Value::Part(number, lookups.lookups)];
        let shape = [of.sets, of.ways, of.sets * of.ways].map(|number| Value::Count(number as u64));
        table.row(shape.into_iter().chain(part(lookups.first_fills)).chain(part(lookups.evictions)));
    }
    page.push(table);
}
