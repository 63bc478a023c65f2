//! Benchmark rows for other methods: a ring buffer, a system call, `tracing` with several subscribers, and fastrace.

use crate::built::run;
use crate::measure::{cold, each};
use crate::row::Row;
use crate::{EVENTS, Result, itself};
use cpu_time::ProcessTime;
use metatf_bench::subscribers;
use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;

/// Number of events per measurement of a slow method, which takes about a microsecond per event.
const FEW: u64 = EVENTS / 20;

/// Row names, their names in [`subscribers`], and whether the events are written to a file.
const SUBSCRIBERS: [(&str, &str, bool); 5] = [
    ("`tracing`, no subscriber", "none", false),
    ("`tracing`, a subscriber that does nothing", "null", false),
    ("`tracing`, `metatf-tracing` to a file, `block`", "file", true),
    ("`tracing`, `tracing-subscriber` fmt to a file", "fmt", true),
    ("`fastrace`, a reporter that does nothing", "fastrace", false),
];

/// Measures all rows. Each row runs in its own process, because a process has only one subscriber.
pub(crate) fn all(folder: &Path) -> Result<()> {
    let mut ring = vec![[0_u64; 3]; 1 << 15];
    let put = |n| ring[black_box(n) as usize & 0x7fff] = black_box([n, n * 64, 3]);
    println!("{}", Row::new("a plain ring, three words", each(EVENTS, put)));
    system_call(&folder.join("raw"))?;
    for (name, _, _) in SUBSCRIBERS {
        print!("{}", run(itself("peer", folder)?.arg(name))?);
    }
    Ok(())
}

/// Measures a `write` call per event.
fn system_call(path: &Path) -> Result<()> {
    let mut file = File::create(path)?;
    let mut bytes = [0_u8; 32];
    let thread = cold(FEW, |n| {
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        file.write_all(&bytes).expect("a file can be written");
    });
    let name = "`write` to a file, 32 bytes";
    println!("{}", Row { all: Some(thread), bytes: Some(32.0), lost: Some(0.0), ..Row::new(name, thread) });
    Ok(())
}

/// Measures the row with this name.
pub(crate) fn one(name: &str, folder: &Path) -> Result<()> {
    let found = SUBSCRIBERS.into_iter().find(|(row, _, _)| *row == name);
    let (name, way, files) = found.ok_or_else(|| format!("unknown row `{name}`"))?;
    let path = folder.join("subscriber");
    // Fast subscribers are timed for longer.
    let events = if ["none", "null"].contains(&way) { EVENTS } else { FEW };
    let started = ProcessTime::now();
    let thread = subscribers::run(way, &path, u32::try_from(events)?, false)?;
    let all = started.elapsed();
    let mut row = Row::new(name, thread.as_secs_f64() * 1e9 / events as f64);
    if files {
        row.all = Some(all.as_secs_f64() * 1e9 / events as f64);
        row.bytes = Some(std::fs::metadata(&path)?.len() as f64 / events as f64);
        row.lost = Some(0.0);
    }
    println!("{row}");
    Ok(())
}
