//! Fuzz target for threads that attach to rings, emit and detach while another process, here another thread, writes to
//! the buffer file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};

use metatf::container::Forward;
use metatf_derive::metatf;
use metatf_telemetry::layout::{Header, RING_HEAD_BYTES, RING_LEAST, RingHead};
use metatf_telemetry::{Place, Policy, Settings};

#[metatf(dtd = "../telemetry/metatf-telemetry/tests/rare.dtd", emitters = "crate::attached::events")]
mod events {}

/// Threads that may have rings at the same time. Each thread has one large and one small ring.
const THREADS: u32 = 2;
/// Events per thread. All threads of an input together emit more events than fit into a ring.
const EVENTS: u32 = 700;

/// The buffers of this process, and the initial bytes of their file.
struct Live {
    file: File,
    head: Vec<u8>,
}

/// A process can start this telemetry only once, so inputs take turns.
static LIVE: LazyLock<Mutex<Live>> =
    LazyLock::new(|| Mutex::new(start().expect("buffers can be made in a folder of temporary files")));

fn start() -> Result<Live, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let settings = Settings {
        control: "all".to_owned(),
        filename: Some(folder.path().join("rare.mtf")),
        place: Place::Folder(folder.path().to_owned()),
        policy: Policy::Overwrite,
        ring_bytes: RING_LEAST,
        threads: THREADS,
        drain: false,
        ..Settings::default()
    };
    // The telemetry stays alive until the process exits.
    std::mem::forget(events::TELEMETRY.start_to(settings, Box::new(Forward(std::io::sink())))?);
    let path = events::TELEMETRY.buffers().ok_or("there are no buffers")?;
    let file = File::options().read(true).write(true).open(path)?;
    let mut head = vec![0; usize::try_from(file.metadata()?.len() - rings_bytes())?];
    file.read_exact_at(&mut head, 0)?;
    Ok(Live { file, head })
}

const fn rings_bytes() -> u64 {
    2 * THREADS as u64 * (RING_HEAD_BYTES + RING_LEAST)
}

/// Returns the offset at which damage begins: in the header, in its batches, or in the head or the events of a ring.
fn place(kind: u8, head: u64) -> u64 {
    let ring = |index: u8| head + u64::from(index % 4) * (RING_HEAD_BYTES + RING_LEAST);
    match kind % 10 {
        0 => 0,
        1 => core::mem::offset_of!(Header, batches) as u64,
        kind @ 2..6 => ring(kind - 2) + core::mem::offset_of!(RingHead, head) as u64,
        kind => ring(kind - 6) + RING_HEAD_BYTES,
    }
}

/// Parses changes, each a position (kind and two bytes), a length and bytes. The strings are not damaged because they
/// belong to the program itself.
fn damage(mut rest: &[u8], head: u64) -> Vec<(u64, &[u8])> {
    let mut all = Vec::new();
    while let [kind, low, high, length, bytes @ ..] = rest {
        let (bytes, next) = bytes.split_at(usize::from(length & 15).min(bytes.len()));
        all.push((place(*kind, head) + (u64::from(u16::from_le_bytes([*low, *high])) & 0xfff), bytes));
        rest = next;
    }
    all
}

/// Lets threads attach and emit while the mapping is overwritten with arbitrary bytes. No event may land outside a
/// ring, and a dump either fails with a message or contains no more events than fit into the rings.
///
/// # Panics
/// Panics if one of these checks fails.
pub fn attach(input: &[u8]) {
    let Some((&form, rest)) = input.split_first() else { return };
    let live = LIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let damage = damage(rest, live.head.len() as u64);
    live.file.write_all_at(&live.head, 0).expect("a file can be written");
    let write = || {
        for (at, bytes) in &damage {
            live.file.write_all_at(bytes, *at).expect("a file can be written");
        }
    };
    let (is_done, mut all_ended) = (AtomicBool::new(false), true);
    std::thread::scope(|scope| {
        if form & 1 != 0 && !damage.is_empty() {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    write();
                }
            });
        }
        for round in 0..3 {
            if form & (2 << round) != 0 {
                write();
            }
            let threads: Vec<_> = (0..THREADS + round % 2).map(|_| scope.spawn(emit)).collect();
            all_ended &= threads.into_iter().all(|thread| thread.join().is_ok());
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(all_ended);
    match events::TELEMETRY.dump("/dev/null") {
        Ok(count) => assert!(count <= rings_bytes() / 8, "{count} events"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Attaches to rings, emits events and detaches.
fn emit() {
    for number in 0..EVENTS {
        events::alloc(number, 16 * u64::from(number));
        if number % 50 == 0 {
            events::create(number, "of blocks of some size, with a name that is not short");
        }
    }
}

/// Returns inputs that damage each position, before threads attach and meanwhile. The values are positions that are too
/// large, odd, or in another ring.
pub(crate) fn seeds(path: &Path, _: &[u8]) -> Vec<Vec<u8>> {
    let values = [65_533_u64, 65_536, u64::MAX, u64::MAX - 7, 1 << 40, 3];
    let one = |form: u8, kind: u8, value: u64| [&[form, kind, 0, 0, 8], value.to_ne_bytes().as_slice()].concat();
    if path.ends_with("hatf10-plain/format.dtd") {
        values.iter().flat_map(|value| (0..10).map(move |kind| one(kind % 3 * 3 + 1, kind, *value))).collect()
    } else {
        Vec::new()
    }
}
