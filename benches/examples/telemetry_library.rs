//! A shared library that emits events: of the benchmark `telemetry`, which loads it.
//!
//! Variables of a thread are found by a call here, as it is not known where the library will be.
#![allow(clippy::cast_possible_truncation, reason = "numbers of events")]

use metatf_derive::metatf;

/// Keeps the last events of each thread, and writes nothing.
#[metatf(dtd = "schemas/telemetry.dtd", emitters = "crate::kept")]
mod kept {}

/// Starts telemetry as the environment says. Returns 0 if it runs.
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

/// Emits this many events that are off.
#[unsafe(no_mangle)]
pub extern "C" fn off(events: u64) -> u64 {
    (0..events).for_each(|n| kept::off!(address = n * 64, size = n as u32 & 0xfff, cpu = 3));
    events
}

/// Emits this many events of three fields.
#[unsafe(no_mangle)]
pub extern "C" fn plain(events: u64) -> u64 {
    (0..events).for_each(|n| kept::plain!(address = n * 64, size = n as u32 & 0xfff, cpu = 3));
    events
}

/// Emits this many events of three fields and a time.
#[unsafe(no_mangle)]
pub extern "C" fn stamped(events: u64) -> u64 {
    (0..events).for_each(|n| kept::stamped!(address = n * 64, size = n as u32 & 0xfff, cpu = 3));
    events
}
