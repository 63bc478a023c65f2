//! Fuzz targets for the spool of a recording: a spool filled by threads, with damage, while another thread damages it
//! further. The drain reads it while the program runs, and `hatf recover` after a kill.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use hatf_host::record::{Keep, Spooled, drain_any};
use hatf_record::{CHUNK_BYTES, Kind, Owner, Producer, Spool, SpoolEvent, bytes_for};
use hatf_trace::event::{EventSink, EventSource as _, UserMetadata};
use hatf_trace::{Event, Item};
use metatf::container::Reader;

/// Number of chunks in the spool.
const CHUNKS: usize = 6;

/// Intact spool written by two threads.
static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(whole);

fn whole() -> Vec<u8> {
    let layout = Layout::from_size_align(bytes_for(CHUNKS), CHUNK_BYTES).unwrap();
    // SAFETY: the layout is not empty. The zeroed memory belongs to the spool and is used only through it until it is
    // gone.
    unsafe {
        let memory = alloc_zeroed(layout);
        fill(Spool::create(memory, CHUNKS));
        let whole = std::slice::from_raw_parts(memory, layout.size()).to_vec();
        dealloc(memory, layout);
        whole
    }
}

/// Writes the calls of two threads into all chunks but one.
fn fill(spool: Spool<'_>) {
    for chunk in 0..CHUNKS - 1 {
        assert!(spool.make_ready(chunk));
    }
    let producers = [Producer::new(), Producer::new()];
    let mut stamp = 1;
    let mut write = |thread: u32, kind: Kind, address: u64, old: u64| {
        stamp += 3;
        let event = SpoolEvent { size: 24, address, old, extra: 16, ..SpoolEvent::new(kind, thread, stamp) };
        let (slots, used) = event.to_slots();
        let producer = &producers[thread as usize - 1];
        // SAFETY: the memory of the spool stays while there are producers.
        while !unsafe { producer.put_slots(stamp, &slots[..used]) } {
            let Some(chunk) = spool.take().and_then(|chunk| spool.chunk(chunk)) else { return false };
            producer.install(&chunk, Owner { thread, process: 1, image: 1, task: thread }, stamp, stamp);
        }
        true
    };
    let mut is_room = write(1, Kind::Image, 0, 0);
    for number in 0_u64.. {
        let (address, thread) = (0x1000 + 32 * number, if number % 7 == 0 { 2 } else { 1 });
        is_room = is_room
            && write(thread, Kind::Malloc, address, 0)
            && write(thread, Kind::ReallocBegin, 0, address)
            && write(thread, Kind::Realloc, address + 16, address)
            && write(thread, Kind::Free, address + 16, 0);
        if !is_room {
            break;
        }
    }
    spool.header().images.store(1, Ordering::Relaxed);
    spool.header().clock.store(1, Ordering::Relaxed);
}

/// Returns the positions at which damage begins: the header, the chunk states, chunk heads, and slots in the first,
/// middle and last chunk.
fn places() -> [usize; 6] {
    let first = WHOLE.len() - CHUNKS * CHUNK_BYTES;
    [0, 512, first, first + CHUNK_BYTES, first + 3 * CHUNK_BYTES, first + 4 * CHUNK_BYTES]
}

/// Parsed input: the choices in its first byte, the damage with its positions, and files next to the spool.
struct Input<'i> {
    form: u8,
    damage: Vec<(usize, &'i [u8])>,
    /// Rest of the input, used as the file of the head, the stacks or the lasting records.
    rest: &'i [u8],
}

impl<'i> Input<'i> {
    /// Parses changes, each a position (kind and two bytes), a length and bytes. A length over 127 ends them.
    fn new(input: &'i [u8]) -> Option<Self> {
        let (&form, mut rest) = input.split_first()?;
        let mut damage = Vec::new();
        while let [kind, low, high, length @ ..=127, bytes @ ..] = rest {
            let from = places()[usize::from(*kind) % 6] + usize::from(u16::from_le_bytes([*low, *high]) & 0x7fff);
            let (bytes, next) = bytes.split_at(usize::from(length & 15).min(bytes.len()));
            if from + bytes.len() <= WHOLE.len() {
                damage.push((from, bytes));
            }
            rest = next;
        }
        Some(Self { form, damage, rest })
    }
}

/// Sink that discards everything.
struct Nowhere;

impl EventSink for Nowhere {
    fn event(&mut self, _: &Event<'_>) -> hatf_trace::Result<()> {
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> hatf_trace::Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> hatf_trace::Result<()> {
        Ok(())
    }
}

/// Reusable directory for the files of an input.
struct Place {
    folder: tempfile::TempDir,
    events: File,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("a folder of ours");
        let events = File::create(folder.path().join("events")).expect("a file can be made");
        events.set_permissions(fs::Permissions::from_mode(0o600)).expect("a file of ours");
        Self { folder, events }
    }

    /// Runs `act` on the spool of an input, while another thread keeps rewriting the damage.
    fn run(&self, input: &Input<'_>, act: impl FnOnce(&Path)) {
        let folder = self.folder.path();
        for (bit, name) in [(1, "recording.json"), (2, "stacks"), (4, "lasting.json")] {
            let path = folder.join(name);
            match input.form & bit {
                0 => drop(fs::remove_file(path)),
                _ => fs::write(path, input.rest).expect("a file can be written"),
            }
        }
        self.events.set_len(0).and_then(|()| self.events.write_all_at(&WHOLE, 0)).expect("a file can be written");
        let write = || {
            for (at, bytes) in &input.damage {
                self.events.write_all_at(bytes, *at as u64).expect("a file can be written");
            }
        };
        // Half of the inputs start intact and are damaged only meanwhile.
        if input.form & 8 == 0 {
            write();
        }
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            if input.form & 16 != 0 && !input.damage.is_empty() {
                scope.spawn(|| {
                    while !is_done.load(Ordering::Relaxed) {
                        write();
                        self.events.write_all_at(&WHOLE[..512], 0).expect("a file can be written");
                    }
                });
            }
            let done = SetAtEnd(&is_done);
            act(folder);
            drop(done);
        });
    }
}

/// Stops the writing thread even if the other thread panics.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

thread_local! {
    static PLACE: Place = Place::new();
}

/// Recovers a damaged spool, as after a kill: the result is an error with a message, or a readable trace of the
/// remaining events.
///
/// # Panics
/// Panics if the result is neither.
pub fn recover(input: &[u8]) {
    let Some(input) = Input::new(input) else { return };
    PLACE.with(|place| place.run(&input, |folder| recover_in(folder, input.form)));
}

fn recover_in(folder: &Path, form: u8) {
    let mut trace = Vec::new();
    let recovered = Spooled::open(folder).and_then(|spooled| {
        let mut writer = hatf_trace::heap::HeapWriter::new(&mut trace, &hatf_trace::heap::HeapOptions::default())?;
        let recovered = spooled.recover(None, &mut writer);
        writer.finish()?;
        recovered
    });
    match recovered {
        // Without concurrent writes, there is at most one event per slot.
        Ok(recovered) if form & 16 == 0 => {
            assert!(recovered.events <= WHOLE.len() as u64 / 16, "{recovered:?}");
            let container = Reader::from_slice(&trace).expect("a trace was written");
            let mut reader = hatf_trace::heap::HeapReader::of(container).expect("a trace was written");
            let mut events = 0;
            while let Some(item) = reader.next().expect("what was written can be read") {
                events += u64::from(matches!(item, Item::Event(_)));
            }
            assert_eq!(events, recovered.events);
        }
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Drains a damaged spool, as while the program runs: the drain ends with an error message or with events.
///
/// # Panics
/// Panics if it does not.
pub fn drain(input: &[u8]) {
    let Some(input) = Input::new(input) else { return };
    let keep = match input.form >> 5 {
        0..4 => None,
        4 | 5 => Some(Keep::Bytes(2 * CHUNK_BYTES as u64)),
        _ => Some(Keep::Time(2)),
    };
    PLACE.with(|place| {
        place.run(&input, |folder| {
            if let Err(error) = drain_any(folder, keep, &mut Nowhere) {
                assert!(!error.to_string().is_empty());
            }
        });
    });
}

/// Returns inputs with damage at each position in all forms, and the bytes of a vector in the files next to the spool.
pub(crate) fn seeds(path: &Path, bytes: &[u8]) -> Vec<Vec<u8>> {
    let forms = || [0_u8, 8, 16, 24, 0x80, 0xd0].into_iter();
    let damage = |form| {
        (0..6).map(move |place| vec![form, place, 8, 0, 4, 1, 0, 0, 0, place, 64, 0, 8, 255, 255, 255, 255, 1, 0, 0, 0])
    };
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("mtf") => vec![[&[7, 0, 0, 0, 255], bytes].concat()],
        Some("dtd") if path.ends_with("hatf10-plain/format.dtd") => {
            let head =
                br#"{"about":{"format":"heap"},"start":{"clock":1,"stamp":1,"nanoseconds":1,"user_metadata":{}}}"#;
            let lasting = br#"[{"kind":1,"thread":1,"stamp":2,"address":0,"old":0,"extra":0,"text":"x"}]"#;
            let beside = [[&[1, 0, 0, 0, 255], &head[..]].concat(), [&[4, 0, 0, 0, 255], &lasting[..]].concat()];
            forms().flat_map(damage).chain(beside).collect()
        }
        _ => Vec::new(),
    }
}
