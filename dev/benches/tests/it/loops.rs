//! Every loop yields the result expected from the events, using short inputs, and the hand-written loops process the
//! same bytes as the readers.

use metatf_bench::ours::{hatf10, heap, universal};
use metatf_bench::{Event, Result, events, hand};

/// Returns the first events of each shipped trace.
fn some() -> Result<Vec<Event>> {
    let mut all = Vec::new();
    for path in events::shipped()? {
        events::read_file(&path, 3000, &mut all)?;
    }
    assert_eq!(all.len(), 21_000, "seven programs");
    assert!(all.iter().any(|event| matches!(event, Event::Realloc { .. })));
    Ok(all)
}

#[test]
fn hand_written_loops() {
    let events = some().unwrap();
    let trace = hatf10::plain_trace(&events).unwrap();
    let content = hand::content(&trace).unwrap();
    assert_eq!(hand::plain::all(&content), Some(events::sum(&events)));
    assert_eq!(hand::plain::one(&content), Some(events::alloc_sizes(&events)));
    assert_eq!(hand::plain::count(&content), Some(events::counts(&events)));
    assert_eq!(hand::plain::all(&content[..content.len() - 1]), None);
    assert_eq!(hand::stored::all(&trace), Some(events::sum(&events)));
    assert_eq!(hand::stored::one(&trace), Some(events::alloc_sizes(&events)));
    assert_eq!(hand::stored::count(&trace), Some(events::counts(&events)));
    let mut damaged = trace.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    assert_eq!(hand::stored::count(&damaged), None, "the damaged chunk should be rejected");
    let mut written = Vec::new();
    hand::plain::write(&events, &mut written);
    assert!(content.ends_with(&written), "the content of the trace, except for the metadata at its start");
    let mut packed = Vec::new();
    hand::packed::write(&events, &mut packed);
    assert_eq!(hand::packed::all(&packed), events::sum(&events));
    assert_eq!(hand::packed::one(&packed), events::alloc_sizes(&events));
    assert_eq!(hand::packed::count(&packed), events::counts(&events));
}

#[test]
fn hatf() {
    use hatf10::{Fit, plain, split};
    let events = some().unwrap();
    let trace = hatf10::plain_trace(&events).unwrap();
    let best = hatf10::best_trace(&trace).unwrap();
    let at_once = |fit| plain::write_all(&events, &hatf10::stored(), fit, true, Vec::new()).unwrap();
    assert!(at_once(Fit::Strict) == trace && at_once(Fit::Widen) == trace, "writing all at once yields the same trace");
    let (sum, one, counts) = (events::sum(&events), events::alloc_sizes(&events), events::counts(&events));
    assert!(best.len() * 10 < trace.len() * 8, "metadata should make the trace smaller");
    let chunks = hand::best::chunks(&best).unwrap();
    assert_eq!((hand::best::all(&chunks), hand::best::one(&chunks)), (Some(sum), Some(one)));
    assert_eq!(hand::best::count(&chunks), Some(counts));
    for trace in [&trace, &best] {
        assert_eq!((plain::all(trace).unwrap(), plain::one(trace).unwrap()), (sum, one));
        assert_eq!((plain::each_all(trace).unwrap(), plain::each_one(trace).unwrap()), (sum, one));
        assert_eq!(plain::each_count(trace).unwrap(), counts);
        assert_eq!((plain::columns_all(trace).unwrap(), plain::columns_one(trace).unwrap()), (sum, one));
        assert_eq!(plain::columns_count(trace).unwrap(), counts);
        assert_eq!((plain::only_one(trace).unwrap(), plain::only_each_one(trace).unwrap()), (one, one));
        assert_eq!((universal::columns_all(trace).unwrap(), universal::columns_one(trace).unwrap()), (sum, one));
        assert_eq!(universal::columns_count(trace).unwrap(), counts);
        assert_eq!((universal::all(trace).unwrap(), universal::one(trace).unwrap()), (sum, one));
        assert_eq!((universal::each_all(trace).unwrap(), universal::each_one(trace).unwrap()), (sum, one));
        assert_eq!((universal::each_count(trace).unwrap(), universal::skipped_count(trace).unwrap()), (counts, counts));
        assert_eq!(universal::entries_all(trace).unwrap(), sum);
        assert_eq!((plain::count(trace).unwrap(), universal::count(trace).unwrap()), (counts, counts));
        assert_eq!(plain::all_read(&**trace).unwrap(), sum);
    }
    let trace = split::write(&events, &hatf10::stored(), Fit::Widen, false, Vec::new()).unwrap();
    assert_eq!(
        (split::all(&trace).unwrap(), split::each_one(&trace).unwrap(), split::each_count(&trace).unwrap()),
        (sum, one, counts)
    );
}

#[test]
fn heaps() {
    let events = some().unwrap();
    let sum = events::sum(&events).wrapping_add(events::realloc_sizes(&events));
    let expected = (sum, events::alloc_sizes(&events), events::counts(&events));
    let options = heap::options();
    let trace = heap::model::write(&events, &options, Vec::new()).unwrap();
    assert_eq!(
        (
            heap::model::all(&trace).unwrap(),
            heap::model::each_one(&trace).unwrap(),
            heap::model::each_count(&trace).unwrap()
        ),
        expected
    );
    let mut again = Vec::new();
    heap::read_events(&trace, usize::MAX, &mut again).unwrap();
    assert_eq!(again, events);
    let trace = heap::timed::write(&events, &options, Vec::new()).unwrap();
    let timed = sum.wrapping_add(heap::timed::sum(events.len()));
    assert_eq!((heap::timed::all(&trace).unwrap(), heap::timed::each_all(&trace).unwrap()), (timed, timed));
    assert_eq!(heap::model::each_one(&trace).unwrap(), expected.1);
    let trace = heap::values::write(&events, &options, Vec::new()).unwrap();
    assert_eq!(
        (
            heap::values::all(&trace).unwrap(),
            heap::values::each_one(&trace).unwrap(),
            heap::values::each_count(&trace).unwrap()
        ),
        expected
    );
    let trace = heap::split::write(&events, &options, Vec::new()).unwrap();
    assert_eq!(
        (
            heap::split::all(&trace).unwrap(),
            heap::split::each_one(&trace).unwrap(),
            heap::split::each_count(&trace).unwrap()
        ),
        expected
    );
}
