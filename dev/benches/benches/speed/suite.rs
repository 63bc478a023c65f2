//! The measurement suite, which runs loops and reports their results.

use crate::clock::ProcessorTime;
use crate::report::{self, Cell, Table};
use criterion::{Criterion, Throughput};
use metatf_bench::Result;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

/// A suite of measurements over the same records.
pub(crate) struct Suite {
    criterion: Criterion<ProcessorTime>,
    results: PathBuf,
    records: usize,
    tables: Vec<Table>,
    /// Whether any loop was skipped because of a filter, because criterion only tests, or because a feature is
    /// disabled.
    partial: bool,
}

impl Suite {
    pub(crate) fn new(records: usize) -> Result<Self> {
        let results = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("metatf-bench");
        let criterion = Criterion::default()
            .with_measurement(ProcessorTime)
            .output_directory(&results)
            .without_plots()
            .sample_size(11)
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_millis(800))
            .configure_from_args();
        Ok(Self { criterion, results, records, tables: Vec::new(), partial: false })
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.tables.push(table);
    }

    /// Reports a loop that is not measured in this build.
    #[cfg_attr(feature = "arrow", allow(dead_code, reason = "everything is included"))]
    pub(crate) fn leave_out(&mut self, what: &str) {
        println!("not measured: {what}");
        self.partial = true;
    }

    /// Returns the median rate of a loop over all records, after checking its result once.
    pub(crate) fn rate<T: PartialEq + std::fmt::Debug>(
        &mut self,
        table: &str,
        name: &str,
        expected: &T,
        mut pass: impl FnMut() -> Result<T>,
    ) -> Result<Cell> {
        let first = pass()?;
        if first != *expected {
            return Err(format!("{table}/{name} returned {first:?}, expected {expected:?}").into());
        }
        let mut ran = false;
        let mut group = self.criterion.benchmark_group(table);
        group.throughput(Throughput::Elements(self.records as u64));
        group.bench_function(name, |bencher| {
            ran = true;
            bencher.iter(|| black_box(pass()));
        });
        group.finish();
        let median = if ran { self.median(table, name)? } else { None };
        self.partial |= median.is_none();
        Ok(median.map_or(Cell::None, |nanoseconds| Cell::Rate(self.records as f64 * 1e3 / nanoseconds)))
    }

    /// Returns criterion's median for a loop in nanoseconds, or `None` if criterion only tested the loop.
    fn median(&self, table: &str, name: &str) -> Result<Option<f64>> {
        let path = self.results.join(table).join(name).join("new/estimates.json");
        let Ok(text) = std::fs::read(&path) else { return Ok(None) };
        let estimates: serde_json::Value = serde_json::from_slice(&text)?;
        // Remove the file so that it is not mistaken for the result of another run.
        std::fs::remove_file(path)?;
        Ok(estimates.pointer("/median/point_estimate").and_then(serde_json::Value::as_f64))
    }

    /// Prints the tables, and writes them to the book if requested.
    pub(crate) fn finish(self, events: &str) -> Result<()> {
        let text = report::text(&self.tables, events);
        println!("{text}");
        if std::env::var_os("METATF_BLESS").is_none() {
            return Ok(());
        }
        if self.partial {
            return Err("the tables of the page require a complete run: no filter, all features".into());
        }
        report::bless(&text)
    }
}
