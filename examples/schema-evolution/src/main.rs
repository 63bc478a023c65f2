//! Reads traces of one DTD version with code generated from another, matching fields by name.

mod v1 {
    include!(concat!(env!("OUT_DIR"), "/v1.rs"));
}
mod v2 {
    include!(concat!(env!("OUT_DIR"), "/v2.rs"));
}

use std::io::Cursor;

fn main() -> metatf::Result<()> {
    new_reader_old_trace()?;
    what_is_lost()?;
    old_reader_new_trace()?;
    println!("both versions read each other's traces");
    Ok(())
}

// region: old
fn new_reader_old_trace() -> metatf::Result<()> {
    let mut trace = v1::Writer::new(Cursor::new(Vec::new()))?;
    trace.step(&v1::Step { player: 1, x: 3, y: 4 })?;
    trace.pause(&v1::Pause { player: 1 })?;
    trace.step(&v1::Step { player: 2, x: 5, y: 6 })?;
    let bytes = trace.finish()?.into_inner();

    // The speed, which the trace does not have, is the DTD's default. The pause, which the reader does not know, is
    // skipped.
    let mut trace = v2::Trace::from_slice(&bytes)?;
    let records: Vec<v2::Record> = trace.records().collect::<metatf::Result<_>>()?;
    let step = |player, x, y| v2::Record::Game(v2::Game::Step(v2::Step { player, speed: 5, y, x }));
    assert_eq!(records, [step(1, 3, 4), step(2, 5, 6)]);
    Ok(())
}
// endregion

/// Prints the fields that occur only in the trace or only in the reader's DTD.
fn what_is_lost() -> metatf::Result<()> {
    let mut trace = v1::Writer::new(Cursor::new(Vec::new()))?;
    trace.pause(&v1::Pause { player: 1 })?;
    let bytes = trace.finish()?.into_inner();

    // region: unmatched
    let trace = v2::Trace::from_slice(&bytes)?;
    if let Some(unmatched) = trace.unmatched().filter(|unmatched| !unmatched.is_empty()) {
        eprintln!("warning: {unmatched}");
    }
    // endregion
    let lost = trace.unmatched().map(|unmatched| unmatched.unread.join(", "));
    assert_eq!(lost.as_deref(), Some("game.pause"));
    Ok(())
}

// region: new
fn old_reader_new_trace() -> metatf::Result<()> {
    let mut trace = v2::Writer::new(Cursor::new(Vec::new()))?;
    trace.step(&v2::Step { player: 1, speed: 9, y: 4, x: 3 })?;
    trace.jump(&v2::Jump { player: 1, height: 2 })?;
    let bytes = trace.finish()?.into_inner();

    let mut trace = v1::Trace::from_slice(&bytes)?;
    let records: Vec<v1::Record> = trace.records().collect::<metatf::Result<_>>()?;
    assert_eq!(records, [v1::Record::Game(v1::Game::Step(v1::Step { player: 1, x: 3, y: 4 }))]);
    Ok(())
}
// endregion
