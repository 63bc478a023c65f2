//! How tables of other sizes would have done.

use std::io::{self, Write};

use serde::Serialize;

use super::table::{Entry, InfoTable, Lookups, TableSettings};
use crate::Result;
use metatf_page::units::{count, percent};

/// A context and its blocks: what a table needs to know to choose what it evicts.
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

/// Tables that only count their look-ups.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    tables: Vec<InfoTable<Blocks>>,
}

/// A table, and its look-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeOutcome {
    /// The table.
    #[serde(flatten)]
    pub table: TableSettings,
    /// Its look-ups.
    #[serde(flatten)]
    pub lookups: Lookups,
}

impl Sizes {
    /// Makes empty tables.
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

    /// Returns what their look-ups came to.
    #[must_use]
    pub fn outcomes(&self) -> Vec<SizeOutcome> {
        let outcome = |table: &InfoTable<_>| SizeOutcome { table: table.settings(), lookups: table.lookups() };
        self.tables.iter().map(outcome).collect()
    }
}

/// Prints the look-ups of tables.
///
/// # Errors
/// The output's.
pub fn sizes_text(outcomes: &[SizeOutcome], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nTABLES (a look-up for each block that ended)")?;
    writeln!(
        out,
        "  {:>10} {:>5} {:>12} {:>14} {:>10} {:>14}",
        "sets", "ways", "entries", "first fills", "", "evictions"
    )?;
    for SizeOutcome { table, lookups } in outcomes {
        writeln!(
            out,
            "  {:>10} {:>5} {:>12} {:>14} {:>10} {:>14} {:>10}",
            count(table.sets as u64),
            table.ways,
            count((table.sets * table.ways) as u64),
            count(lookups.first_fills),
            percent(lookups.first_fills, lookups.lookups),
            count(lookups.evictions),
            percent(lookups.evictions, lookups.lookups)
        )?;
    }
    Ok(())
}
