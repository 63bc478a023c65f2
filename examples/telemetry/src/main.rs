//! Events from a running program: a toy allocator with pools, used by several threads.
//!
//! `cargo run -p example-telemetry` demonstrates telemetry. `cargo run -p example-telemetry -- run` runs only the
//! program, configured by the environment: `METATF_TELEMETRY_CONTROL="Arena Pool" METATF_TELEMETRY_FILENAME=pools.mtf
//! cargo run -p example-telemetry -- run`.

mod allocator;

// region: include
mod pools {
    include!(concat!(env!("OUT_DIR"), "/pools.rs"));
}
// endregion

use allocator::Arena;
use metatf_telemetry::{Policy, Settings};
use pools::{Pools, Record, Trace};
use std::path::Path;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

// region: run
/// Runs the program with the settings from the environment.
fn run() -> Result<()> {
    let telemetry = pools::TELEMETRY.start()?;
    metatf_telemetry::install_panic_hook();
    work();
    telemetry.finish()?;
    Ok(())
}
// endregion

/// Runs four threads, each with its own arena.
fn work() {
    let threads: Vec<_> = (0..4).map(|seed| std::thread::spawn(move || one_thread(seed))).collect();
    for thread in threads {
        thread.join().expect("a thread of the example does not panic");
    }
}

fn one_thread(seed: u64) {
    let mut arena = Arena::new(&[("small", 32), ("large", 1024)]);
    let mut live = Vec::new();
    let mut random = seed + 1;
    for _ in 0..5000 {
        // Xorshift; any fluctuating sequence will do.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let pool = u8::from(random.is_multiple_of(8));
        if live.len() > 200 || (random >> 32).is_multiple_of(2) {
            if let Some((pool, address)) = live.pop() {
                arena.free(pool, address);
            }
        } else if let Some(address) = arena.alloc(pool) {
            live.push((pool, address));
        }
    }
    for (pool, address) in live {
        arena.free(pool, address);
    }
}

/// Counts the blocks that a trace allocates and frees, and the dropped events.
fn count(path: &Path) -> Result<(u64, u64, u64)> {
    let (mut given, mut back, mut dropped) = (0, 0, 0);
    Trace::open(path)?.for_each(|record| match record {
        Record::Pools(Pools::Alloc(_)) => given += 1,
        Record::Pools(Pools::Free(_)) => back += 1,
        Record::Pools(Pools::Dropped(record)) => dropped += record.count,
        _ => {}
    })?;
    Ok((given, back, dropped))
}

/// Demonstrates telemetry and checks the results.
fn show() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pools.mtf");
    let settings = Settings {
        filename: Some(path.clone()),
        control: "Pool".to_owned(),
        policy: Policy::Block,
        ..Settings::default()
    };
    let telemetry = pools::TELEMETRY.start_with(settings)?;
    // Only pool events are enabled here.
    work();
    // From here on, all events are enabled.
    pools::TELEMETRY.set_kinds("all")?;
    work();
    // The last events of each thread, which are still in memory.
    let last = folder.path().join("last.mtf");
    println!("{} events are in memory", pools::TELEMETRY.dump(&last)?);
    telemetry.finish()?;

    let (given, back, dropped) = count(&path)?;
    println!("{given} blocks were allocated, {back} were freed; {dropped} events were dropped");
    println!("the trace has {} bytes", std::fs::metadata(&path)?.len());
    assert_eq!(dropped, 0, "threads wait for the drain");
    if cfg!(feature = "without-objects") {
        assert_eq!(given, 0);
    } else {
        assert!(given > 0 && given == back);
    }
    Ok(())
}

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("run") { run() } else { show() }
}
