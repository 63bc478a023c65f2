//! Measures the cost of a Tracy event and prints rows for the benchmark `telemetry`.
//!
//! With `alone`, the client keeps all events in memory, as it does until something connects. With `connected`, it waits
//! for a connection, and prints the nanoseconds per event, the nanoseconds that the process had used before, and the
//! number of events.

use cpu_time::{ProcessTime, ThreadTime};
use std::hint::black_box;
use std::time::Duration;
use tracy_client::Client;

/// Events per measurement. Without a connection, they stay in memory and occupy some hundred bytes each.
const EVENTS: u64 = 200_000;

fn main() {
    let client = Client::start();
    match std::env::args().nth(1).as_deref() {
        Some("alone") => {
            let named = |name: &str, event: &dyn Fn(u64)| println!("{name}|{}|-|-|-", thread(event));
            named("Tracy, a message of 16 bytes", &|_| client.message(black_box("a text to be put"), 0));
            named("Tracy, a zone", &|n| {
                let _zone = tracy_client::span!("zone", 0);
                black_box(n);
            });
            named("Tracy, a zone with three values", &zone);
        }
        Some("connected") => {
            // SAFETY: this only queries whether a socket is connected.
            while unsafe { tracy_client::sys::___tracy_connected() } == 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
            // The remaining events are sent at the end of the process; the parent knows the CPU time used up to that
            // point.
            let before = ProcessTime::now().as_duration().as_nanos();
            let thread = thread(zone);
            println!("{thread} {before} {EVENTS}");
        }
        _ => panic!("`alone` or `connected`"),
    }
}

fn zone(n: u64) {
    let zone = tracy_client::span!("event", 0);
    zone.emit_value(n * 64);
    zone.emit_value(n & 0xfff);
    zone.emit_value(3);
}

/// Returns the CPU time of this thread in nanoseconds per event.
fn thread(event: impl Fn(u64)) -> f64 {
    let started = ThreadTime::now();
    (0..EVENTS).for_each(event);
    started.elapsed().as_secs_f64() * 1e9 / EVENTS as f64
}
