//! Models of assigning IDs to strings, and of the copies of strings in buffers.

use crate::sync::model::{Share as _, model, spawn};

use super::*;
use crate::layout::{STRINGS_BYTES, TEXTS_AT};
use crate::strings::{STRINGS, StringId, entries};

/// The number of words that both strings need.
const WORDS: usize = 4;
const TEXTS: [&str; 2] = ["one", "two"];

/// Creates telemetry with buffers.
pub(crate) fn telemetry(policy: Policy, rings: u32, ring_bytes: u64) -> (&'static Telemetry, Mapping) {
    let telemetry: &Telemetry = Box::leak(Box::new(Telemetry::new("", "", "", |_| ())));
    let settings = Settings { place: Place::Core, ..Settings::default() };
    let chosen = telemetry.choose(Chosen::new(&settings, PathBuf::new(), false));
    let rings_at = TEXTS_AT + STRINGS_BYTES;
    let shape = Shape { rings, rare_rings: 0, ring_bytes, rings_at, strings_at: TEXTS_AT, policy };
    telemetry.make(shape, chosen, Clock::Monotonic).unwrap();
    telemetry.state.store(RUNNING, Relaxed);
    (telemetry, telemetry.mapping().unwrap())
}

/// Shares the fields of telemetry that threads access while it runs.
pub(crate) fn share(telemetry: &Telemetry) {
    let Telemetry { base, wake, moved, waiting, .. } = telemetry;
    base.share();
    wake.share();
    moved.share();
    waiting.share();
    telemetry.mapping().unwrap().header().refused.share();
}

/// Shares the strings and their copy in the buffers.
fn share_strings(mapping: &Mapping) {
    STRINGS.share(WORDS, &TEXTS);
    mapping.header().strings.share();
    mapping.header().strings_refused.share();
    for word in 0..WORDS {
        // SAFETY: this is the area for strings.
        unsafe { AtomicU64::from_ptr(mapping.base.add(TEXTS_AT as usize).cast::<u64>().add(word)) }.share();
    }
}

/// Returns the text with this ID in the buffers.
fn text_of(mapping: &Mapping, id: StringId) -> Option<Vec<u8>> {
    let words = mapping.strings(0, mapping.strings_end());
    let entry = entries(&words)
        .map(|entry| entry.expect("entries are whole"))
        .find(|entry| entry[0] >> 32 == u64::from(id.number()))?;
    let length = usize::try_from(entry[0] & 0xffff).unwrap();
    Some(entry[1..].iter().flat_map(|word| word.to_ne_bytes()).take(length).collect())
}

/// Two threads intern the same strings. Both obtain the same ID for each string, and the buffers contain the string by
/// then.
#[test]
fn a_string_has_one_number_which_the_buffers_know() {
    let (telemetry, mapping) = telemetry(Policy::Drop, 1, 2048);
    model(2, move || {
        telemetry.base.share();
        share_strings(&mapping);
        let intern = move |text: &str| {
            let id = STRINGS.intern(text, || telemetry.copy_strings());
            assert_eq!(text_of(&mapping, id).as_deref(), Some(text.as_bytes()));
            id.number()
        };
        let threads = [
            spawn(move || TEXTS.map(intern)),
            spawn(move || {
                let [one, two] = TEXTS;
                let two = intern(two);
                [intern(one), two]
            }),
        ];
        let [mut ids, others] = threads.map(|thread| thread.join().unwrap());
        assert_eq!(ids, others);
        ids.sort_unstable();
        assert_eq!((ids, STRINGS.refused()), ([1, 2], 0));
    });
}

/// Buffers created while a thread adds a string contain that string.
#[test]
fn new_buffers_have_the_newest_string() {
    let (telemetry, mapping) = telemetry(Policy::Drop, 1, 2048);
    model(3, move || {
        telemetry.base.share();
        telemetry.base.store(core::ptr::null_mut(), Relaxed);
        share_strings(&mapping);
        let adds = spawn(move || STRINGS.intern(TEXTS[0], || telemetry.copy_strings()));
        let starts = spawn(move || telemetry.show(&mapping));
        let id = adds.join().unwrap();
        starts.join().unwrap();
        assert_eq!(text_of(&mapping, id).as_deref(), Some(TEXTS[0].as_bytes()));
    });
}
