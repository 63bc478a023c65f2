//! Measures the cost of reading a trace.
//!
//! - `rate TRACE columns` reads only the columns of the universal reader.
//! - `rate TRACE tables` reads all tables through Arrow, each in one scan.
//! - `rate TRACE RECORD` reads one table.
//!
//! Run it under callgrind or `perf stat`.

use std::error::Error;
use std::time::Instant;

use metatf::columns::Columns;
use metatf::dynamic::Trace;
use metatf_arrow::{OpenOptions, Scan, open};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(what)) = (args.next(), args.next()) else {
        return Err("rate TRACE columns|tables|RECORD".into());
    };
    let start = Instant::now();
    let (mut rows, mut batches) = (0, 0);
    if what == "columns" {
        let mut trace = Trace::open(&path)?;
        let mut columns = Columns::default();
        while trace.next_columns(&mut columns)? {
            rows += columns.len();
            batches += 1;
        }
    } else {
        let tables = open(&path, &OpenOptions { stored: true, ..OpenOptions::default() })?;
        for table in tables.iter().filter(|table| what == "tables" || table.name() == what) {
            for batch in table.scan(&Scan { threads: 1, ..Scan::default() })? {
                rows += batch?.num_rows();
                batches += 1;
            }
        }
    }
    println!("{rows} rows in {batches} batches, {:.3} s", start.elapsed().as_secs_f64());
    Ok(())
}
