//! Events and spans of `tracing` with several subscribers, and of fastrace.

use cpu_time::ThreadTime;
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use metatf_telemetry::{Policy, Settings};
use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;

/// Emits this many events or spans to the subscriber named `way`, which may write to a file. Returns the CPU time of
/// this thread up to the last event. When the function returns, all data is in the file.
///
/// # Errors
/// Fails if there is no such subscriber, or if the file cannot be written.
pub fn run(way: &str, path: &Path, count: u32, spans: bool) -> crate::Result<Duration> {
    let mut thread = Duration::ZERO;
    let mut emit = || {
        let begun = ThreadTime::now();
        match (way, spans) {
            ("fastrace", true) => (0..count).for_each(fast_span),
            ("fastrace", false) => (0..count).for_each(fast_event),
            (_, true) => (0..count).for_each(span),
            (_, false) => (0..count).for_each(event),
        }
        thread = begun.elapsed();
    };
    let registry = tracing_subscriber::registry();
    match way {
        "none" => emit(),
        "null" => tracing::subscriber::with_default(Null, emit),
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
            emit();
            drop((guard, root));
            fastrace::flush();
        }
        _ => return Err(format!("unknown way `{way}`").into()),
    }
    Ok(thread)
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

/// A reporter that discards spans.
struct Count;

impl Reporter for Count {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        black_box(spans.len());
    }
}

/// A subscriber that accepts everything and discards it.
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
