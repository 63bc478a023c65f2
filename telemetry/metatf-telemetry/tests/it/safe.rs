//! Checks that safe code cannot use emitters and their slots to write an event outside of its ring. CI also runs these
//! tests under AddressSanitizer.
#![forbid(unsafe_code)]

use std::io;

use metatf_telemetry::private::Slot;
use metatf_telemetry::{Place, Policy, Settings, Telemetry, TraceSink};

const DTD: &str = "n.width = 8; n.interpretation = none; length.width = 4; length.interpretation = none;
section s 1 {
    one: (n) { tag.value = 4; tag.kind = \"A\"; }
    long: (length, bytes) { tag.value = 5; tag.kind = \"A\"; bytes.width = length.value; bytes.interpretation = none; }
}
";
const TABLE: &str = "kinds A\nrare long\nevent one 1 4 0 1 u64@0.0\nevent long 1 5 0 1 #1 bytes@0.0\n";

thread_local! {
    static SLOTS: [Slot; 1] = const { [Slot::new()] };
}

const fn telemetry(name: &'static str) -> Telemetry {
    Telemetry::new(name, DTD, TABLE, |each| SLOTS.with(|slots| each(slots)))
}

fn settings(ring_bytes: u64) -> Settings {
    Settings {
        control: "all".to_owned(),
        filename: Some(std::env::temp_dir().join("metatf-telemetry-safe.%p.%n.mtf")),
        policy: Policy::Overwrite,
        ring_bytes,
        threads: 4,
        place: Place::Core,
        drain: false,
        ..Settings::default()
    }
}

/// Removes the traces.
fn remove(names: &[&str]) {
    for name in names {
        let file = format!("metatf-telemetry-safe.{}.{name}.mtf", std::process::id());
        std::fs::remove_file(std::env::temp_dir().join(file)).unwrap();
    }
}

/// A slot belongs to the ring of one telemetry. Another telemetry, with larger rings, does not write to that ring.
#[test]
fn a_slot_used_with_two_telemetries_stays_in_its_ring() {
    static SMALL: Telemetry = telemetry("small.dtd");
    static LARGE: Telemetry = telemetry("large.dtd");
    let guards = [(&SMALL, 64 << 10), (&LARGE, 8 << 20)].map(|(t, ring)| t.start_with(settings(ring)).unwrap());
    let long = vec![7; 500_000];
    for (slots, slot) in
        [[&SMALL, &LARGE], [&LARGE, &SMALL]].into_iter().flat_map(|slots| [(slots, Slot::new()), (slots, Slot::rare())])
    {
        slots[0].emit(&slot, 0, [1]);
        slots[1].emit_tail(&slot, 1, [500_000], [&long]);
        for n in 0..200_000 {
            slots[usize::from(n % 7 == 0)].emit(&slot, 0, [n]);
        }
        // Use a slot for which one of the telemetries no longer has a ring.
        slots[0].emit_tail(&slot, 1, [500_000], [&long]);
    }
    drop(guards);
    remove(&["small", "large"]);
}

/// A sink that emits an event and then fails.
struct Fails(&'static Telemetry);

impl io::Write for Fails {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        SLOTS.with(|[slot]| self.0.emit(slot, 0, [1]));
        Err(io::Error::other("on purpose"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A failed start leaves no slot attached to its buffers, because the next start may have different buffers.
#[test]
fn a_start_that_fails_leaves_no_slot_in_its_rings() {
    static TELEMETRY: Telemetry = telemetry("again.dtd");
    TELEMETRY.set_control(u64::MAX);
    let sink: TraceSink = Box::new(metatf::container::Forward(Fails(&TELEMETRY)));
    TELEMETRY.start_to(settings(64 << 10), sink).unwrap_err();
    let guard = TELEMETRY.start_with(settings(8 << 20)).unwrap();
    let long = vec![7; 500_000];
    SLOTS.with(|[slot]| {
        for n in 0..12 {
            TELEMETRY.emit_tail(slot, 1, [1000], [&long[..1000]]);
            TELEMETRY.emit_tail(slot, 1, [500_000], [&long]);
            TELEMETRY.emit(slot, 0, [n]);
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let dumped = TELEMETRY.dump(folder.path().join("dump.mtf")).unwrap();
    assert_eq!(dumped, 36, "all events are in the rings of the second start");
    drop(guard);
    remove(&["again"]);
}
