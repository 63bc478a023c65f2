//! Measures the wall-clock speedup of several threads over one thread when reading the groups of a compressed trace:
//!
//! ```text
//! cargo run --release -p metatf-bench --no-default-features --features parallel --bin threads [NAME]
//! ```
//!
//! Reads the shipped events, repeated ten times. This requires an otherwise idle machine. The result is the minimum
//! time over all rounds; in each round, every number of threads runs once. For comparison, each round also runs as many
//! single-threaded processes as there are cores. They share nothing but the machine, so threads cannot be expected to
//! be faster than these processes together. NAME restricts the run to traces with that string in their names.

use metatf::container::{Codec, Filter, WriteOptions};
use metatf_bench::ours::hatf10::{Fit, plain};
use metatf_bench::ours::heap;
use metatf_bench::{Event, Result, events};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;
/// Bytes of content per group. For plain HATF 1.0, this is about 150,000 records. The other formats use `SMALL_GROUP`,
/// because their records have a few bytes each.
const GROUP: usize = 2 << 20;
const SMALL_GROUP: usize = 1 << 19;
/// The first argument of a process that only reads. It is followed by the index of a trace in `WAYS` and the path of
/// the trace's file.
const ALONE: &str = "--alone";

/// Reads a trace using this many threads.
type Read = fn(&[u8], usize) -> Result<u64>;

/// The traces.
const WAYS: [(&str, Read); 5] = [
    ("plain HATF 1.0, LZ4", plain::par_all),
    ("plain HATF 1.0, zstd 3", plain::par_all),
    ("`heap-split.dtd`, zstd", heap::split::par_all),
    ("`heap-values.dtd`, zstd", heap::values::par_all),
    ("`heap.dtd`, zstd", heap::model::par_all),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, number, file] = arguments.as_slice()
        && first == ALONE
    {
        return alone(number.parse()?, file);
    }
    let (once, what) = events::load()?;
    let events = once.repeat(10);
    let cores = std::thread::available_parallelism()?.get();
    println!("{what}; ten times, {cores} cores\n");
    let threads: Vec<usize> = (0..).map(|power| 1 << power).take_while(|&threads| threads <= cores).collect();
    let head: Vec<String> = threads
        .iter()
        .map(|threads| if *threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") })
        .collect();
    println!(
        "| million records a second | {} | the last to the first | {cores} processes | to 1 thread |",
        head.join(" | ")
    );
    println!("| --- |{} ---: | ---: | ---: |", " ---: |".repeat(threads.len()));
    let wanted = |name: &str| arguments.iter().all(|argument| name.contains(argument));
    for (number, &(name, read)) in WAYS.iter().enumerate().filter(|(_, (name, _))| wanted(name)) {
        let trace = write(number, &events)?;
        let others = Others::new(number, &trace, cores)?;
        let (times, apart) = least(&trace, read, &threads, others)?;
        let rate = |time: Duration| events.len() as f64 / 1e6 / time.as_secs_f64();
        let rates: Vec<String> = times.iter().map(|&time| format!("{:.0}", rate(time))).collect();
        let one = times.first().copied().unwrap_or_default().as_secs_f64();
        let gain = |time: Duration| one / time.as_secs_f64();
        let all = times.last().copied().unwrap_or_default();
        let apart = apart.div_f64(cores as f64);
        println!("| {name} | {} | {:.2} | {:.0} | {:.2} |", rates.join(" | "), gain(all), rate(apart), gain(apart));
    }
    Ok(())
}

/// Writes a trace of [`WAYS`].
fn write(number: usize, events: &[Event]) -> Result<Vec<u8>> {
    let with = |codec| WriteOptions { codec, filter: Filter::None, group_size: GROUP, ..WriteOptions::default() };
    // A chunk is never divided between groups.
    let small = WriteOptions { group_size: SMALL_GROUP, chunk_size: SMALL_GROUP, ..heap::options() };
    let written = |codec| plain::write(events, &with(codec), Fit::Widen, true, Vec::new());
    Ok(match number {
        0 => written(Codec::Lz4)?,
        1 => written(Codec::Zstd(3))?,
        2 => heap::split::write(events, &small, Vec::new())?,
        3 => heap::values::write(events, &small, Vec::new())?,
        _ => heap::model::write(events, &small, Vec::new())?,
    })
}

/// Returns the minimum time for each number of threads, and the minimum time in which all processes together finish.
/// Each process reads the trace once.
fn least(trace: &[u8], read: Read, threads: &[usize], mut others: Others) -> Result<(Vec<Duration>, Duration)> {
    let expected = read(trace, 1)?;
    let mut times = vec![Duration::MAX; threads.len()];
    let mut apart = Duration::MAX;
    for _ in 0..ROUNDS {
        for (&threads, time) in threads.iter().zip(&mut times) {
            let start = Instant::now();
            let sum = black_box(read(black_box(trace), threads)?);
            *time = (*time).min(start.elapsed());
            if sum != expected {
                return Err(format!(
                    "{threads} threads computed the sum {sum}; expected {expected}, as computed by one thread"
                )
                .into());
            }
        }
        let start = Instant::now();
        others.read()?;
        apart = apart.min(start.elapsed());
    }
    others.end()?;
    Ok((times, apart))
}

/// Processes that read a trace on request.
struct Others {
    all: Vec<(Child, ChildStdin, BufReader<ChildStdout>)>,
    _file: tempfile::NamedTempFile,
}

impl Others {
    fn new(number: usize, trace: &[u8], processes: usize) -> Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(trace)?;
        let mut all = Vec::new();
        for _ in 0..processes {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(ALONE).arg(number.to_string()).arg(file.path());
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
            all.push((child, stdin.ok_or("no input")?, BufReader::new(stdout.ok_or("no output")?)));
        }
        let mut others = Self { all, _file: file };
        others.read()?;
        Ok(others)
    }

    /// Makes all processes read the trace and waits for them.
    fn read(&mut self) -> Result<()> {
        for (_, stdin, _) in &mut self.all {
            stdin.write_all(b"\n")?;
        }
        for (_, _, stdout) in &mut self.all {
            let mut line = String::new();
            if stdout.read_line(&mut line)? == 0 {
                return Err("a process has ended".into());
            }
        }
        Ok(())
    }

    fn end(self) -> Result<()> {
        for (mut child, stdin, _) in self.all {
            drop(stdin);
            child.wait()?;
        }
        Ok(())
    }
}

/// Reads a trace once for each input line, and prints a line afterwards.
fn alone(number: usize, file: &str) -> Result<()> {
    let (_, read) = WAYS.get(number).ok_or("no such trace")?;
    let trace = std::fs::read(file)?;
    for line in std::io::stdin().lock().lines() {
        line?;
        println!("{}", black_box(read(black_box(&trace), 1)?));
    }
    Ok(())
}
