//! A fuzz target over the experiments on heap traces: any calls, most of them wrong.

use hatf::event::{Call, Event, EventKind, EventSink as _, Function, UNKNOWN_SIZE};
use hatf::lab::Calls;
use hatf_lab::allocator::by_name;
use hatf_lab::fragmentation::{Held, Moment, PAGES, Settings, map, text};
use hatf_lab::simulate::{Grid, Simulation};
use hatf_lab::{Event as Tick, Observer, Result};

/// Calls taken from an input: each check of a whole heap goes through all of it.
const CALLS: usize = 500;

/// Gives each event to every experiment.
struct All {
    grid: Grid,
    held: Held,
}

impl Observer for All {
    fn event(&mut self, event: &Tick) -> Result<()> {
        self.grid.event(event)?;
        self.held.event(event)
    }
}

/// Four bytes are a call: its kind, the block, and the size as a mantissa and an exponent.
fn call([kind, block, mantissa, exponent]: [u8; 4]) -> EventKind<'static> {
    // A few blocks, so that the same are met again; some at the end of the address space.
    let address = match block {
        0..240 => u64::from(block) * 48,
        240..250 => u64::from(block) << 56,
        _ => u64::MAX - u64::from(255 - block),
    };
    let size = if exponent == u8::MAX { UNKNOWN_SIZE } else { u64::from(mantissa) << (exponent % 64) };
    let call = Call { size, address, ..Call::new(Function::Realloc) };
    match kind % 16 {
        0..6 => EventKind::Call(Call { function: Function::Malloc, ..call }),
        6..10 => EventKind::Free { address },
        10 => EventKind::Call(Call { old: u64::from(mantissa) * 48, ..call }),
        11 => EventKind::Call(Call { old: address, address: 0, ..call }),
        12 => EventKind::ReallocBegin { old: address },
        13 => EventKind::ReallocEnd(call),
        14 => EventKind::DestroyHeap,
        _ => EventKind::Image { process: 1, path: b"next" },
    }
}

/// Any calls: no invariant of an allocator breaks, the clock counts every event, and wasted bytes are somebody's.
///
/// # Panics
/// It does not.
pub fn experiment(input: &[u8]) {
    let names = ["bsd", "first", "best", "cache", "first:word=1:least=4:grow=8", "cache:entries=1:round=1"];
    let simulation = |name: &str| Simulation::new(name, by_name(name).expect("a known name")).with_invariants(64);
    let grid = Grid::new(names.map(simulation).into(), 1).expect("one thread needs no other");
    let mut calls = Calls::new(All { grid, held: Held::new() });
    for (time, bytes) in (0..).zip(input.as_chunks::<4>().0.iter().take(CALLS)) {
        let (thread, heap) = (u64::from(bytes[3] % 3), u64::from(bytes[2] % 2));
        let stack = &[u64::from(bytes[1] % 4)][..usize::from(bytes[0] / 128)];
        let event = Event { time, thread, heap, stack, ..Event::new(call(*bytes)) };
        calls.event(&event).expect("no invariant breaks");
    }
    let totals = calls.totals();
    let (objects, stacks, all) = calls.into_parts();
    for outcome in all.grid.finish().expect("no invariant breaks") {
        assert_eq!((outcome.events, outcome.objects), (totals.events, totals.objects));
    }
    let held = all.held.finish();
    assert_eq!((held.tick, objects.live().count() as u64), (totals.events, totals.never_freed));
    for page in PAGES {
        let live = objects.live().copied().collect();
        let settings = Settings { page, pin: None };
        let moment = Moment::new(live, held.tick, settings, &|site| format!("{:?}", stacks.get(site)));
        for shares in [&moment.threads, &moment.sizes] {
            let wasted: u64 = shares.iter().map(|share| share.wasted).sum();
            assert_eq!(wasted, moment.pages[0].wasted);
        }
        let mut out = Vec::new();
        text("now", &moment, &mut out).and_then(|()| map("now", &moment, &mut out)).expect("memory takes it");
    }
}
