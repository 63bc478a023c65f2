//! Fuzz target for the buffers of a killed program: intact buffers of a program that ran, with damage applied.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::LazyLock;

use metatf::container::{Forward, Sink};
use metatf_derive::metatf;
use metatf_telemetry::{Place, Settings, layout, postmortem};

#[metatf(dtd = "../telemetry/metatf-telemetry/tests/events.dtd", emitters = "crate::buffers::events")]
mod events {}

/// Intact buffers, as the program left them.
static WHOLE: LazyLock<Vec<u8>> =
    LazyLock::new(|| whole().expect("buffers can be made in a folder of temporary files"));

fn whole() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let settings = Settings {
        control: "all".to_owned(),
        filename: Some(folder.path().join("events.mtf")),
        place: Place::Folder(folder.path().to_owned()),
        ring_bytes: layout::RING_LEAST,
        threads: 1,
        drain: false,
        ..Settings::default()
    };
    let telemetry = events::TELEMETRY.start_with(settings)?;
    for number in 0..40 {
        events::step(number);
        events::said("some text", &[1, 2, 3]);
        events::tick();
        events::touch(7, events::intern(&format!("string {}", number % 8)));
    }
    let files = std::fs::read_dir(folder.path())?.flatten().map(|entry| entry.path());
    let is_buffers = |path: &Path| path.extension().is_none_or(|extension| extension != "mtf");
    let path = files.into_iter().find(|path| is_buffers(path)).ok_or("there are no buffers")?;
    let whole = std::fs::read(path)?;
    telemetry.finish()?;
    Ok(whole)
}

/// Returns the positions at which damage begins: the header, its batches, the strings of the header, the ring head, the
/// ring's events, the offset of the string area, and that area.
fn places() -> [usize; 7] {
    let rings = WHOLE.len() - usize::try_from(layout::RING_HEAD_BYTES + layout::RING_LEAST).unwrap_or(0);
    let events = usize::try_from(layout::RING_HEAD_BYTES).unwrap_or(0);
    let strings = rings - usize::try_from(layout::STRINGS_BYTES).unwrap_or(0);
    let header = core::mem::offset_of!(layout::Header, strings_at);
    [0, 200, usize::try_from(layout::TEXTS_AT).unwrap_or(0), rings, rings + events, header, strings]
}

/// Builds a file from an input. Two bits of the first byte choose its content: 0 for the buffers, 1 for the buffers in
/// a core dump, 2 for a prefix of the buffers, 3 for the rest of the input. Changes to the buffers follow, each a
/// position (kind and two bytes), a length and bytes.
fn file(input: &[u8]) -> Vec<u8> {
    let Some((&form, mut rest)) = input.split_first() else { return Vec::new() };
    if form & 3 == 3 {
        return rest.to_vec();
    }
    let mut made = WHOLE.clone();
    while let [kind, low, high, length, bytes @ ..] = rest {
        let from = places()[usize::from(*kind) % 7] + usize::from(u16::from_le_bytes([*low, *high]));
        let (bytes, next) = bytes.split_at(usize::from(length & 15).min(bytes.len()));
        if let Some(place) = made.get_mut(from..from + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        rest = next;
    }
    match form & 3 {
        1 => [b"\x7fELF".as_slice(), &[0; 4092], &made].concat(),
        2 => made[..(usize::from(form >> 2) << 11).min(made.len())].to_vec(),
        _ => made,
    }
}

/// Reads damaged buffers: the result is an error with a message, or at most as many events as fit.
///
/// # Panics
/// Panics if the result is neither.
pub fn postmortem(input: &[u8]) {
    thread_local! {
        static PLACE: (tempfile::TempDir, std::cell::RefCell<Option<File>>) =
            (tempfile::tempdir().expect("a folder can be made"), std::cell::RefCell::default());
    }
    let bytes = file(input);
    PLACE.with(|(folder, kept)| {
        let path = folder.path().join("damaged");
        let mut kept = kept.borrow_mut();
        let file = kept.get_or_insert_with(|| File::create(&path).expect("a file can be made"));
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(&bytes))
            .expect("a file can be written");
        let sink: Box<dyn Sink + Send> = Box::new(Forward(std::io::sink()));
        match postmortem::Buffers::open(&path).and_then(|buffers| buffers.recover(sink)) {
            Ok((found, _)) => assert!(found.in_buffers <= bytes.len() as u64 / 8, "{found:?}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

/// Returns inputs: intact buffers unchanged, in a core dump, and truncated; and the bytes of a vector as a file.
pub(crate) fn seeds(path: &Path, bytes: &[u8]) -> Vec<Vec<u8>> {
    let good = || (0..3).flat_map(|form| (0..7).map(move |place| vec![form | 0x50, place, 8, 0, 4, 1, 0, 0, 0]));
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("mtf") => vec![[&[3], bytes].concat()],
        Some("dtd") if path.ends_with("hatf10-plain/format.dtd") => good().collect(),
        _ => Vec::new(),
    }
}
