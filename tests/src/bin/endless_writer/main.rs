//! Writes records until it is killed, for `tests/it/killed_writer.rs`. Continues the trace if it exists.
//!
//! `endless_writer TRACE LOG FORMAT PACE THREADS`: after each record, the writer appends four bytes to `LOG`, the
//! record's time in milliseconds.

#![allow(clippy::expect_used, clippy::cast_possible_truncation, reason = "a test that goes wrong has to panic")]

use metatf::container::{AppendFile, FlushEvery, WriteOptions};
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

mod paced;
use paced::{PATHS, Pace, jobs, requests};

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> Result {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, trace, log, format, pace, threads] = &arguments[..] else { return Err("five arguments".into()) };
    let pace = Pace::ALL.into_iter().find(|known| known.name() == pace).ok_or("no such pace")?;
    let mut options = WriteOptions { threads: threads.parse()?, ..WriteOptions::default() };
    if let Some(period) = pace.period() {
        options.flush = FlushEvery { time: Some(period), ..FlushEvery::default() };
    }
    let sink = AppendFile::open(trace)?;
    let clock = Clock { start: Instant::now(), log: File::create(log)?, pace };
    match format.as_str() {
        "jobs" => write_jobs(jobs::Writer::with_options(sink, &options)?, clock),
        "jobs-all" => write_all_jobs(jobs::Writer::with_options(sink, &options)?, clock),
        _ => write_requests(requests::Writer::with_options(sink, &options)?, clock),
    }
}

struct Clock {
    start: Instant,
    log: File,
    pace: Pace,
}

impl Clock {
    /// Waits until record `n` is due and returns the time.
    fn tick(&self, n: u64) -> u32 {
        match self.pace {
            Pace::Slow => std::thread::sleep(Duration::from_millis(1)),
            Pace::Burst if n > 2000 => std::thread::sleep(Duration::from_millis(20)),
            Pace::Fast | Pace::Burst => {}
        }
        u32::try_from(self.start.elapsed().as_millis()).unwrap_or(u32::MAX)
    }

    fn written(&mut self, time: u32) -> Result {
        Ok(self.log.write_all(&time.to_le_bytes())?)
    }
}

fn write_jobs(mut writer: jobs::Writer<AppendFile>, mut clock: Clock) -> Result {
    for n in 0.. {
        let time = clock.tick(n);
        if n % 2 == 0 {
            let text = paced::text(n);
            writer.submit(&jobs::Submit { time: time.into(), job: n / 2 + 1, vfield: text.as_slice() })?;
        } else {
            writer.done(&jobs::Done { time: time.into(), job: n / 2 + 1, status: n & 0xff })?;
        }
        clock.written(time)?;
    }
    Ok(())
}

/// Writes the records from an iterator. A record is logged when the writer requests the next one.
fn write_all_jobs(mut writer: jobs::Writer<AppendFile>, mut clock: Clock) -> Result {
    let mut before = None;
    let records = (0_u64..).map(|n| {
        if let Some(time) = before {
            clock.written(time).expect("the log");
        }
        let time = clock.tick(n);
        before = Some(time);
        jobs::Queue::<&[u8]>::Done(jobs::Done { time: time.into(), job: n, status: n & 0xff })
    });
    Ok(writer.write_all(records)?)
}

fn write_requests(mut writer: requests::Writer<AppendFile>, mut clock: Clock) -> Result {
    for n in 0.. {
        let time = clock.tick(n);
        if n % 3 == 0 {
            let text = paced::text(n);
            writer.message(&requests::Message { time: time.into(), level: n & 0xff, vfield: text.as_slice() })?;
        } else {
            let path = writer.paths().intern(format!("/{}", n % PATHS).as_bytes())?;
            writer.request(&requests::Request {
                time: time.into(),
                path,
                status: n & 0xffff,
                took: n & 0xffff_ffff,
            })?;
        }
        clock.written(time)?;
    }
    Ok(())
}
