//! A plug-in with telemetry, which `tests/it/unload.rs` loads and unloads.

use metatf_derive::metatf;
use metatf_telemetry::Guard;
use std::sync::Mutex;

#[metatf(dtd = "tests/events.dtd", emitters = "crate::events")]
mod events {}

static GUARD: Mutex<Option<Guard>> = Mutex::new(None);

/// Starts telemetry.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_begin() -> bool {
    let started = events::TELEMETRY.start().ok();
    let is_on = started.is_some();
    if let Ok(mut guard) = GUARD.lock() {
        *guard = started;
    }
    is_on
}

/// Emits an event.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_emit(number: u32) {
    events::step!(number);
}

/// Ends telemetry.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_end() {
    if let Ok(mut guard) = GUARD.lock() {
        drop(guard.take());
    }
}
