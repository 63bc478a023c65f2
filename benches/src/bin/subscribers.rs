//! What events and spans of `tracing` cost with several subscribers: nanoseconds of processor time of the whole process, up to where
//! all is in the file, and bytes there.
//!
//! `cargo run --release -p metatf-bench --no-default-features --features telemetry --bin subscribers`
#![allow(clippy::expect_used, reason = "what fails ends the measurement")]

use cpu_time::ProcessTime;
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use metatf_telemetry::{Policy, Settings};
use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;

/// Events, and spans, of a measurement; and measurements of which the median counts.
const COUNT: u32 = 500_000;
const RUNS: usize = 5;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What the events go to: a name in the table, and one for the command line.
const WAYS: [(&str, &str); 8] = [
    ("no subscriber", "none"),
    ("a registry without a layer", "registry"),
    ("`metatf-tracing`, flight recorder", "keep"),
    ("`metatf-tracing`, to a file", "file"),
    ("`tracing-subscriber` fmt, to a file", "fmt"),
    ("the same, to nowhere", "fmt-null"),
    ("`tracing-chrome`, to a file", "chrome"),
    ("`fastrace`, a reporter that counts", "fastrace"),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    if let (Some(way), Some(what)) = (arguments.next(), arguments.next()) {
        return measure(&way, what == "spans");
    }
    println!("| | event, ns | bytes | span, ns | bytes |\n| --- | ---: | ---: | ---: | ---: |");
    for (title, way) in WAYS {
        let (events, spans) = (median(way, "events")?, median(way, "spans")?);
        println!("| {title} | {:.0} | {} | {:.0} | {} |", events.0, events.1, spans.0, spans.1);
    }
    Ok(())
}

/// The median of some runs, each a process: a program has one subscriber.
fn median(way: &str, what: &str) -> Result<(f64, String)> {
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let output = Command::new(std::env::current_exe()?).args([way, what]).output()?;
        let text = String::from_utf8(output.stdout)?;
        let (nanoseconds, bytes) = text.trim().split_once(' ').ok_or_else(|| format!("{way}: {text}"))?;
        runs.push((nanoseconds.parse::<f64>()?, bytes.to_owned()));
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(runs.swap_remove(RUNS / 2))
}

/// Emits all of it, and prints nanoseconds and bytes for each.
fn measure(way: &str, spans: bool) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("out");
    let begun = ProcessTime::now();
    run(way, &path, spans)?;
    let nanoseconds = begun.elapsed().as_secs_f64() * 1e9 / f64::from(COUNT);
    let bytes = std::fs::metadata(&path).map(|metadata| metadata.len()).unwrap_or_default();
    let bytes = if bytes == 0 { "-".to_owned() } else { format!("{:.2}", bytes as f64 / f64::from(COUNT)) };
    println!("{nanoseconds} {bytes}");
    Ok(())
}

fn run(way: &str, path: &Path, spans: bool) -> Result<()> {
    let emit = || if spans { (0..COUNT).for_each(span) } else { (0..COUNT).for_each(event) };
    let registry = tracing_subscriber::registry();
    match way {
        "none" => emit(),
        "registry" => tracing::subscriber::with_default(registry, emit),
        "keep" | "file" => {
            let policy = if way == "keep" { Policy::Overwrite } else { Policy::Block };
            let settings = Settings { policy, filename: Some(path.to_owned()), ..metatf_tracing::settings() };
            let (layer, guard) = metatf_tracing::layer(settings)?;
            tracing::subscriber::with_default(registry.with(layer), emit);
            guard.finish()?;
            if way == "keep" {
                std::fs::remove_file(path)?;
            }
        }
        "fmt" => {
            let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(File::create(path)?);
            let shown = tracing_subscriber::fmt::format::FmtSpan::FULL;
            tracing::subscriber::with_default(registry.with(layer.with_span_events(shown)), emit);
        }
        "fmt-null" => {
            let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(std::io::sink);
            let shown = tracing_subscriber::fmt::format::FmtSpan::FULL;
            tracing::subscriber::with_default(registry.with(layer.with_span_events(shown)), emit);
        }
        "chrome" => {
            let (layer, guard) = tracing_chrome::ChromeLayerBuilder::new().file(path).include_args(true).build();
            tracing::subscriber::with_default(registry.with(layer.boxed()), emit);
            drop(guard);
        }
        "fastrace" => {
            fastrace::set_reporter(Count, Config::default());
            let root = fastrace::Span::root("root", SpanContext::random());
            let guard = root.set_local_parent();
            (0..COUNT).for_each(|n| if spans { fast_span(n) } else { fast_event(n) });
            drop((guard, root));
            fastrace::flush();
        }
        _ => return Err(format!("no way `{way}`").into()),
    }
    Ok(())
}

fn event(n: u32) {
    tracing::info!(address = u64::from(n) * 64, size = n & 0xfff, cpu = 3);
}

fn span(n: u32) {
    tracing::info_span!("work", n).in_scope(|| black_box(n));
}

fn fast_event(n: u32) {
    let properties =
        || [("address", (u64::from(n) * 64).to_string()), ("size", (n & 0xfff).to_string()), ("cpu", "3".to_owned())];
    fastrace::local::LocalSpan::add_event(fastrace::Event::new("event").with_properties(properties));
}

fn fast_span(n: u32) {
    let _span = fastrace::local::LocalSpan::enter_with_local_parent("work").with_property(|| ("n", n.to_string()));
    black_box(n);
}

/// Takes spans, and does nothing with them.
struct Count;

impl Reporter for Count {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        black_box(spans.len());
    }
}
