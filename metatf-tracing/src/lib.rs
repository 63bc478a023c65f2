//! Spans and events of [`tracing`](https://docs.rs/tracing) into [Meta-TF](https://github.com/metatf/metatf) traces.
//!
//! ```no_run
//! let trace = metatf_tracing::init()?;
//! // .. what the program does ..
//! trace.finish()?;
//! # Ok::<(), metatf_tracing::Error>(())
//! ```
//!
//! [`layer`] is for programs that have other layers, too. `METATF_TELEMETRY_FILENAME` names the trace, and the other variables of
//! [`metatf_telemetry::Settings::with_environment`] count.
//!
//! A thread writes into a buffer of its own, numbers as they are and without a lock; a background thread compresses the buffers into
//! the trace. What was emitted before the program was killed is not lost: `metatf_telemetry::postmortem` and `metatfc postmortem`
//! read it. [`print()`] prints a trace as lines, and every tool of `metatfc` reads it: its DTD is `tracing.dtd` of this crate.

mod layer;
mod print;
mod records;
mod visit;

pub use layer::TraceLayer;
pub use metatf_telemetry::{Error, Guard, Policy, Settings};
pub use print::print;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The settings where nothing is chosen: everything is on.
#[must_use]
pub fn settings() -> Settings {
    Settings { control: "all".to_owned(), ..Settings::default() }
}

/// Makes the layer, and begins the trace. What the environment sets has the last word.
///
/// # Errors
/// The trace or its buffers cannot be made; a variable has a value that it cannot have; a layer was made before.
pub fn layer(settings: Settings) -> Result<(TraceLayer, Guard), Error> {
    let guard = records::TELEMETRY.start_with(settings.with_environment()?)?;
    Ok((TraceLayer::new(), guard))
}

/// Makes the layer with [`settings`], and a subscriber of it alone, which becomes the program's.
///
/// # Errors
/// As [`layer`]; the program has a subscriber already.
pub fn init() -> Result<Guard, Error> {
    let (layer, guard) = layer(settings())?;
    let begun = tracing_subscriber::registry().with(layer).try_init();
    begun.map_err(|error| Error::Setting(error.to_string()))?;
    Ok(guard)
}

/// Writes what the buffers have to a file, whatever becomes of the trace: for the flight recorder ([`Policy::Overwrite`]), after a slow
/// request, for example. Returns the number of records.
///
/// # Errors
/// There is no trace; the file cannot be written.
pub fn dump(path: impl AsRef<std::path::Path>) -> Result<u64, Error> {
    records::TELEMETRY.dump(path)
}
