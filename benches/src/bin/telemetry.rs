//! What an event of telemetry costs, beside other ways to note one: nanoseconds of processor time, and bytes on disk.
//!
//! `cargo run --release -p metatf-bench --no-default-features --features telemetry --bin telemetry`
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    reason = "numbers of events; what fails ends the measurement"
)]

use cpu_time::{ProcessTime, ThreadTime};
use metatf_derive::metatf;
use metatf_telemetry::{Place, Policy, Settings};
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// Keeps the last events of each thread, and writes nothing.
#[metatf(dtd = "schemas/telemetry.dtd", emitters = "crate::recorder")]
mod recorder {}

/// Writes all events to a file; threads wait for the drain.
#[metatf(dtd = "schemas/telemetry.dtd", emitters = "crate::filed")]
mod filed {}

/// Events of a measurement, and measurements of which the median counts.
const EVENTS: u64 = 2_000_000;
const RUNS: usize = 9;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| Some(folder.path().join(name));
    let settings = Settings { control: "Plain Stamped".to_owned(), ..Settings::default() };
    let overwrite = Settings { policy: Policy::Overwrite, filename: path("recorder.mtf"), ..settings.clone() };
    let _recorder = recorder::TELEMETRY.start_with(overwrite)?;

    println!("| | ns an event |\n| --- | ---: |");
    row("off", median(EVENTS, |n| recorder::off!(address = n * 64, size = n as u32 & 0xfff, cpu = 3)));
    row("on, three fields", median(EVENTS, |n| recorder::plain!(address = n * 64, size = n as u32 & 0xfff, cpu = 3)));
    let stamped = |n| recorder::stamped!(address = n * 64, size = n as u32 & 0xfff, cpu = 3);
    row("with a time", median(EVENTS, stamped));
    row("with a time, two threads at once, each", two_threads(stamped));
    row(
        "with a time and a text of 16 bytes",
        median(EVENTS, |_| recorder::said!(text = black_box("a text to be put"))),
    );
    row(
        "the cycle counter alone",
        median(EVENTS, |_| {
            black_box(cycles());
        }),
    );
    let mut ring = vec![[0_u64; 3]; 1 << 15];
    row(
        "a plain ring, three words",
        median(EVENTS, |n| ring[black_box(n) as usize & 0x7fff] = black_box([n, n * 64, 3])),
    );
    row("`tracing`, no subscriber", median(EVENTS, traced));
    tracing::subscriber::set_global_default(Null)?;
    row("`tracing`, a subscriber that does nothing", median(EVENTS, traced));
    let mut file = std::fs::File::create(folder.path().join("raw"))?;
    let mut bytes = [0_u8; 32];
    row(
        "`write` to a file, 32 bytes",
        median(EVENTS / 20, |n| {
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            file.write_all(&bytes).expect("a file can be written");
        }),
    );

    to_file(&settings, folder.path())?;
    c_header(folder.path())
}

/// The rows of a program in C.
fn c_header(folder: &Path) -> Result<()> {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/telemetry.dtd");
    let parsed = metatf_parser::parse("telemetry.dtd", &std::fs::read(schemas)?);
    let mut options = metatf_codegen::Options::new("telemetry.dtd");
    options.emitters = Some("bench".to_owned());
    let header = metatf_codegen::generate_c(&parsed.dtd.ok_or("the DTD has errors")?, &options)?;
    std::fs::write(folder.join("bench.h"), header)?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/c/telemetry.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-O2", "-pthread", "-DBENCH_POSIX", "-I."]).arg(source).args(["-o", "bench"]);
    match compiler.current_dir(folder).status() {
        Ok(status) if status.success() => {}
        _ => return Err("the program in C needs a compiler, cc".into()),
    }
    let trace = folder.join("c.mtf");
    if !Command::new(folder.join("bench")).arg(&trace).status()?.success() {
        return Err("the program in C failed".into());
    }
    let (mut trace, mut records) = (filed::Trace::open(trace)?, 0);
    trace.for_each(|_| records += 1)?;
    assert_eq!(records, EVENTS);
    Ok(())
}

/// All events to a file, with nothing lost.
fn to_file(settings: &Settings, folder: &Path) -> Result<()> {
    let path = folder.join("filed.mtf");
    let block = Settings {
        policy: Policy::Block,
        filename: Some(path.clone()),
        place: Place::SharedMemory,
        ..settings.clone()
    };
    let telemetry = filed::TELEMETRY.start_with(block)?;
    let started = ProcessTime::now();
    for n in 0..EVENTS {
        filed::stamped!(address = n * 64, size = n as u32 & 0xfff, cpu = 3);
    }
    telemetry.finish()?;
    row("to a file without a loss, drained and compressed", started.elapsed().as_nanos() as f64 / EVENTS as f64);
    let (mut trace, mut records) = (filed::Trace::open(&path)?, 0);
    trace.for_each(|_| records += 1)?;
    assert_eq!(records, EVENTS);
    let bytes = std::fs::metadata(&path)?.len();
    row("the bytes of each of these on disk", bytes as f64 / EVENTS as f64);
    Ok(())
}

fn row(what: &str, nanoseconds: f64) {
    println!("| {what} | {nanoseconds:.2} |");
}

/// Nanoseconds of a call, the median of some runs.
fn median(calls: u64, mut call: impl FnMut(u64)) -> f64 {
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let started = ThreadTime::now();
            (0..calls).for_each(&mut call);
            started.elapsed().as_nanos() as f64 / calls as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[RUNS / 2]
}

/// Nanoseconds of a call in each of two threads: the slower one.
fn two_threads(call: impl Fn(u64) + Copy + Send + 'static) -> f64 {
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(move || median(EVENTS, call))).collect();
    threads.into_iter().map(|thread| thread.join().expect("a loop of events does not panic")).fold(0.0, f64::max)
}

fn traced(n: u64) {
    tracing::info!(address = n * 64, size = n & 0xfff, cpu = 3);
}

#[cfg(target_arch = "x86_64")]
fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> u64 {
    0
}

/// Wants everything, and does nothing with it.
struct Null;

impl tracing::Subscriber for Null {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        black_box(event);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
