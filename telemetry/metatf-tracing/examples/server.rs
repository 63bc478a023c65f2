//! A program with `tracing` spans and events that `metatf-tracing` writes to a trace:
//! `cargo run -p metatf-tracing --example server`.

use tracing::{info, instrument, warn};

/// Answers a request.
#[instrument]
fn answer(path: &str) -> u64 {
    let bytes = path.len() as u64 * 100;
    if path.len() > 8 {
        warn!(bytes, "a long path");
    }
    bytes
}

// region: main
fn main() -> Result<(), metatf_tracing::Error> {
    let trace = metatf_tracing::init()?;
    for path in ["/", "/index.html", "/news"] {
        let bytes = answer(path);
        info!(bytes, "sent");
    }
    trace.finish()
}
// endregion
