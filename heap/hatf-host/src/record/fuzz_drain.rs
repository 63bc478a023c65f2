//! Drains a spool with arbitrary content that other threads modify at the same time, for the fuzz target with this
//! name. Like `processes::drain`, but without a program, it merges events in rounds or keeps only the last part, and
//! returns chunks to the spool.

use std::collections::VecDeque;
use std::path::Path;

use super::order::{Encode, Keep, LastPart, MemorySamples, Moment, Timeline};
use super::spool::{Keeper, Returned, SpoolFile};
use hatf_trace::Result;
use hatf_trace::event::EventSink;

/// The number of rounds that drain a part of the spool, with increasing stamps, before the rest is drained.
const ROUNDS: u64 = 4;
/// Events per round.
const ROUND: usize = 1_000;

/// Drains the spool in a directory as [`super::record`] does while the program runs. With `keep`, only the last part is
/// kept. Returns the number of events passed to the sink.
///
/// # Errors
/// Returns an error if the directory contains no spool, or the sink failed.
#[doc(hidden)]
pub fn drain_any(folder: &Path, keep: Option<Keep>, sink: &mut dyn EventSink) -> Result<u64> {
    let file = SpoolFile::open(folder)?;
    let spool = file.spool();
    let samples = MemorySamples::default();
    let timeline = Timeline::new(Moment { stamp: 0, nanoseconds: 0 });
    let mut encode = Encode::new(spool, file.folder(), timeline, &samples, sink);
    let returned = Returned::new(spool.header());
    let mut keeper = Keeper::new(&file, spool, &returned, 1);
    let mut last_part = keep.map(|keep| LastPart::new(keep, spool));
    let mut moments = VecDeque::new();
    for round in 1..=ROUNDS {
        // The stamps grow from 16 to 64 bits, so that all encoded lengths occur.
        let now = Moment { stamp: 1 << (16 * round - 1), nanoseconds: round };
        moments.push_back(now);
        encode.timeline.learn(now);
        let is_gone = |task: u32| task.is_multiple_of(2);
        if let Some(last_part) = &mut last_part {
            let since = last_part.since(&mut moments, now);
            let (chunks, another) = last_part.tend(spool, since, is_gone);
            if another {
                file.write_lasting(&last_part.to_json())?;
            }
            returned.give(chunks);
        } else {
            encode.merge.end_threads(is_gone);
            encode.round(now.stamp, ROUND);
            encode.merge.skip_gaps(false);
            encode.merge.give_up_holding();
            encode.merge.finish_threads(is_gone);
            returned.give(encode.merge.take_finished());
        }
        keeper.tend();
    }
    match last_part {
        Some(last_part) => last_part.encode(&mut encode, u64::MAX),
        None => encode.rest(u64::MAX),
    }
    encode.finish(0, None, serde_json::Map::new());
    let events = encode.sink.events;
    encode.sink.error.map_or(Ok(events), Err)
}
