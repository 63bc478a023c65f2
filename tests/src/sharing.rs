//! Traces derived from traces with mostly invalid calls. A part must contain the blocks that are live in the complete
//! trace, and nothing may panic.

#[path = "../../heap/hatf/tests/it/common/taken.rs"]
pub(crate) mod taken;

use hatf::share::{Anonymizer, Cut, KeptNames, Merged, OfProcess, Records, Sampler, Tokens, merge};
use hatf_lab::HeapTracker;
use hatf_trace::event::{EventSink, EventSource, Item};
use hatf_trace::forms::TraceReader;
use hatf_trace::{OwnedEvent, Result};
use taken::Taken;

/// Source of stored events.
struct Given {
    events: Vec<OwnedEvent>,
    next: usize,
}

impl EventSource for Given {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        self.next += 1;
        Ok(self.events.get(self.next - 1).map(|event| Item::Event(event.get())))
    }
}

/// Returns the number of blocks live at the end.
fn live(events: &[OwnedEvent]) -> u64 {
    let mut tracker = HeapTracker::new(|_: &hatf_lab::ObjectEvent| Ok(()));
    events.iter().for_each(|event| tracker.event(&event.get()).expect("no trace is refused"));
    tracker.heap().objects.live_count()
}

/// Derives parts, a sample, an anonymized trace and a trace of two processes.
pub(crate) fn share(input: &[u8], events: &[OwnedEvent]) {
    let first = 1 + u64::from(input.first().copied().unwrap_or(0)) % (events.len() as u64 + 1);
    let mut part = Taken::default();
    let mut cut = Cut::new(Records { first, last: None }, &mut part);
    events.iter().for_each(|event| cut.event(&event.get()).expect("memory takes it"));
    if cut.finish().is_ok() {
        assert_eq!(live(&part.events), live(events));
    }
    let mut sample = Taken::default();
    let mut sampler = Sampler::new(100, first, &mut sample);
    events.iter().for_each(|event| sampler.event(&event.get()).expect("memory takes it"));
    assert!(sampler.counts().blocks <= sampler.counts().of_blocks);
    let mut without = Taken::default();
    let mut anonymizer = Anonymizer::new(Tokens::new([1; 16]), KeptNames::default(), &mut without);
    // Addresses at the end of the address space cannot be moved.
    if events.iter().try_for_each(|event| anonymizer.event(&event.get())).is_ok() {
        assert_eq!((without.events.len(), live(&without.events)), (events.len(), live(events)));
    }
    let merged = |name: &str| {
        let trace = TraceReader::new(Given { events: events.to_vec(), next: 0 });
        Merged { trace, name: name.to_owned(), offset: first }
    };
    let mut all = Taken::default();
    if merge(vec![merged("one"), merged("two")], &mut all).is_ok() {
        for (number, process) in (1..).zip(all.user_metadata["merged"].as_array().into_iter().flatten()) {
            let mut own = Taken::default();
            let mut of_process = OfProcess::new(number, process, &mut own);
            all.events.iter().for_each(|event| of_process.event(&event.get()).expect("memory takes it"));
        }
    }
}
