//! Rows of other Rust programs' means: a ring, a system call, `tracing` with several subscribers, fastrace.

use crate::built::run;
use crate::measure::{cold, each};
use crate::row::Row;
use crate::{EVENTS, Result, itself};
use cpu_time::ProcessTime;
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use metatf_telemetry::{Policy, Settings};
use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use tracing_subscriber::layer::SubscriberExt as _;

/// Events of a measurement that takes a microsecond for each.
const FEW: u64 = EVENTS / 20;

/// All of them; a process has one subscriber, so some are processes.
pub(crate) fn all(folder: &Path) -> Result<()> {
    let mut ring = vec![[0_u64; 3]; 1 << 15];
    let put = |n| ring[black_box(n) as usize & 0x7fff] = black_box([n, n * 64, 3]);
    println!("{}", Row::new("a plain ring, three words", each(EVENTS, put)));
    system_call(&folder.join("raw"))?;
    for peer in ["null", "metatf-tracing", "fmt", "fastrace"] {
        print!("{}", run(itself("peer", folder)?.arg(peer))?);
    }
    Ok(())
}

/// A `write` for each event.
fn system_call(path: &Path) -> Result<()> {
    let mut file = File::create(path)?;
    let mut bytes = [0_u8; 32];
    let put = |n: u64| {
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        file.write_all(&bytes).expect("a file can be written");
    };
    to_file("`write` to a file, 32 bytes", path, put, || Ok(()))
}

/// One that needs a process.
pub(crate) fn one(name: &str, folder: &Path) -> Result<()> {
    let path = folder.join(name);
    let registry = tracing_subscriber::registry();
    match name {
        "null" => {
            println!("{}", Row::new("`tracing`, no subscriber", each(EVENTS, event)));
            tracing::subscriber::set_global_default(Null)?;
            println!("{}", Row::new("`tracing`, a subscriber that does nothing", each(EVENTS, event)));
            Ok(())
        }
        "metatf-tracing" => {
            let settings =
                Settings { policy: Policy::Block, filename: Some(path.clone()), ..metatf_tracing::settings() };
            let (layer, guard) = metatf_tracing::layer(settings)?;
            tracing::subscriber::set_global_default(registry.with(layer))?;
            to_file("`tracing`, `metatf-tracing` to a file, `block`", &path, event, || Ok(guard.finish()?))
        }
        "fmt" => {
            let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(File::create(&path)?);
            tracing::subscriber::set_global_default(registry.with(layer))?;
            to_file("`tracing`, `tracing-subscriber` fmt to a file", &path, event, || Ok(()))
        }
        "fastrace" => {
            fastrace::set_reporter(Count, Config::default());
            let root = fastrace::Span::root("root", SpanContext::random());
            let guard = root.set_local_parent();
            let thread = cold(FEW, fast_event);
            drop((guard, root));
            fastrace::flush();
            println!("{}", Row::new("`fastrace`, a reporter that does nothing", thread));
            Ok(())
        }
        _ => Err(format!("there is no `{name}`").into()),
    }
}

/// Prints a row of what goes to a file.
fn to_file(name: &str, path: &Path, put: impl FnMut(u64), finish: impl FnOnce() -> Result<()>) -> Result<()> {
    let started = ProcessTime::now();
    let thread = cold(FEW, put);
    finish()?;
    let all = started.elapsed().as_secs_f64() * 1e9 / FEW as f64;
    let bytes = std::fs::metadata(path)?.len() as f64 / FEW as f64;
    println!("{}", Row { all: Some(all), bytes: Some(bytes), lost: Some(0.0), ..Row::new(name, thread) });
    Ok(())
}

fn event(n: u64) {
    tracing::info!(address = n * 64, size = n & 0xfff, cpu = 3);
}

fn fast_event(n: u64) {
    let properties = || [("address", (n * 64).to_string()), ("size", (n & 0xfff).to_string()), ("cpu", "3".to_owned())];
    fastrace::local::LocalSpan::add_event(fastrace::Event::new("event").with_properties(properties));
}

/// Takes spans, and does nothing with them.
struct Count;

impl Reporter for Count {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        black_box(spans.len());
    }
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
