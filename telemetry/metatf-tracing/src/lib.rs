//! Writes spans and events of [`tracing`](https://docs.rs/tracing) to [Meta-TF](https://github.com/metatf/metatf)
//! traces.
//!
//! ```no_run
//! let trace = metatf_tracing::init()?;
//! // .. the program ..
//! trace.finish()?;
//! # Ok::<(), metatf_tracing::Error>(())
//! ```
//!
//! Programs that use other layers call [`layer`]. `METATF_TELEMETRY_FILENAME` sets the name of the trace, and the other
//! variables of [`metatf_telemetry::Settings::with_environment`] apply as well.
//!
//! Each thread writes to its own buffer, without locks and without formatting numbers, and a background thread
//! compresses the buffers into the trace. If the program is killed, no emitted event is lost:
//! `metatf_telemetry::postmortem` and `metatfc telemetry` can still read it. `metatfc dump --format lines`
//! prints the events of a trace, and every other `metatfc` command can read it, too. Its DTD is `tracing.dtd` in this
//! crate.

mod layer;
mod records;
mod visit;

pub use layer::TraceLayer;
pub use metatf_telemetry::{Error, Guard, Policy, Settings};

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Returns the default settings, in which all kinds are enabled.
#[must_use]
pub fn settings() -> Settings {
    Settings { control: "all".to_owned(), ..Settings::default() }
}

/// Creates the layer and starts the trace. Environment variables override the settings.
///
/// # Examples
///
/// ```
/// use metatf::dynamic::{JsonOptions, Trace};
/// use metatf_tracing::{Settings, layer, settings};
/// use tracing_subscriber::layer::SubscriberExt as _;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("requests.mtf");
/// let (layer, trace) = layer(Settings { filename: Some(path.clone()), ..settings() })?;
/// tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
///     tracing::info!(bytes = 4096, "sent");
/// });
/// trace.finish()?;
///
/// let (mut trace, mut lines) = (Trace::open(&path)?, Vec::new());
/// while trace.next_json(&mut lines, JsonOptions::default())? {}
/// assert!(String::from_utf8(lines)?.contains("\"sent\""));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns an error if the trace or its buffers cannot be created, a variable has an invalid value, or a layer already
/// exists.
pub fn layer(settings: Settings) -> Result<(TraceLayer, Guard), Error> {
    let guard = records::TELEMETRY.start_with(settings.with_environment()?)?;
    Ok((TraceLayer::new(), guard))
}

/// Creates the layer with [`settings`], and installs a subscriber that consists only of this layer as the program's
/// default.
///
/// # Errors
/// Returns the same errors as [`layer`], and an error if the program already has a subscriber.
pub fn init() -> Result<Guard, Error> {
    let (layer, guard) = layer(settings())?;
    let begun = tracing_subscriber::registry().with(layer).try_init();
    begun.map_err(|error| Error::Setting(error.to_string()))?;
    Ok(guard)
}

/// Writes the content of the buffers to a file, independently of the trace. This is useful for the flight recorder
/// ([`Policy::Overwrite`]), for example after a slow request. Returns the number of records.
///
/// # Errors
/// Returns an error if there is no trace, or the file cannot be written.
pub fn dump(path: impl AsRef<std::path::Path>) -> Result<u64, Error> {
    records::TELEMETRY.dump(path)
}
