//! A shared library that emits events, loaded by the benchmark `telemetry`.
//!
//! Thread-local variables are accessed through a call here, because the location of the library is not known in
//! advance.
#![allow(clippy::cast_possible_truncation, reason = "the casts are of event counts")]

use metatf_derive::metatf;

/// Keeps the last events of each thread and writes nothing.
#[metatf(dtd = "schemas/telemetry.dtd", emitters = "crate::kept")]
mod kept {}

/// Starts telemetry as configured by the environment. Returns 0 on success.
#[unsafe(no_mangle)]
pub extern "C" fn start(_: u64) -> u64 {
    match kept::TELEMETRY.start() {
        Ok(guard) => {
            core::mem::forget(guard);
            0
        }
        Err(_) => 1,
    }
}

/// Emits this many events of a disabled kind.
#[unsafe(no_mangle)]
pub extern "C" fn off(events: u64) -> u64 {
    (0..events).for_each(|n| kept::off!(address = n * 64, size = n as u32 & 0xfff, cpu = 3));
    events
}

/// Emits this many events with three fields.
#[unsafe(no_mangle)]
pub extern "C" fn plain(events: u64) -> u64 {
    (0..events).for_each(|n| kept::plain!(address = n * 64, size = n as u32 & 0xfff, cpu = 3));
    events
}

/// Emits this many events with three fields and a time.
#[unsafe(no_mangle)]
pub extern "C" fn stamped(events: u64) -> u64 {
    (0..events).for_each(|n| kept::stamped!(address = n * 64, size = n as u32 & 0xfff, cpu = 3));
    events
}
