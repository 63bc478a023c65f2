//! Fuzz target for heap trace formats, both Meta-TF and foreign ones.

use hatf_trace::forms::{CreateOptions, FORMS, Form, HEAP, Input, convert_bytes};
use hatf_trace::hatf1::{Item, Reader, Record, Writer};
use hatf_view::profile::{PROFILES, ProfileForm, ProfileOptions, import, merge, read_profile, write_profile};
use metatf::container::{Codec, WriteOptions};
use metatf_tools::recode::Preset;
use std::io::Read as _;
use std::path::Path;

/// Converts a trace to another format. Returns the result and whether it is lossless.
fn converted(from: &'static Form, to: &Form, bytes: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (bytes, losses) = convert_bytes(bytes, Some(from), to, &CreateOptions::default()).ok()?;
    Some((bytes, losses.is_empty()))
}

fn named(form: &str) -> &'static Form {
    Form::of(form).unwrap_or(&HEAP)
}

/// Reads a byte that chooses a format, and a trace in that format. A readable trace can be written as `heap.dtd` and
/// read again; a lossless conversion can be reversed. Further formats are those of heap profiles.
///
/// # Panics
/// Panics if one of these checks fails.
pub fn convert_heap(input: &[u8]) {
    let Some((&form, trace)) = input.split_first() else { return };
    let presets: Vec<_> = PROFILES.into_iter().filter(|form| form.open.is_some()).collect();
    let number = usize::from(form) % (FORMS.len() + presets.len());
    let Some(&form) = FORMS.get(number) else { return preset(presets[number - FORMS.len()], trace) };
    if form.name == "hatf1" {
        native(trace);
    }
    let Some((heap, all)) = converted(form, &HEAP, trace) else { return };
    if form == &HEAP {
        // These formats follow the heap and contain its stacks.
        for other in ["heaptrack", "firefox"] {
            converted(&HEAP, named(other), &heap).expect("what was written can be read");
        }
    }
    if form.create.is_none() {
        return;
    }
    let (again, still_all) = converted(&HEAP, form, &heap).expect("what was written can be read");
    if !all || !still_all {
        return;
    }
    if form.name.starts_with("raw") && !is_compressed(trace) {
        assert_eq!(again, trace, "{}", form.name);
    }
    let (twice, _) = converted(form, &HEAP, &again).expect("what was written can be read");
    let lines = |heap: &[u8]| converted(&HEAP, named("jsonl"), heap).expect("a heap trace has lines").0;
    assert_eq!(lines(&heap), lines(&twice), "{}", form.name);
}

/// Raw profile of a program instrumented by clang 19.
const RAW: &[u8] = include_bytes!("../../heap/hatf/tests/data/clang19_histogram.memprofraw");

/// Checks that a readable profile survives a round trip, can be merged, and can be written in each format that opens no
/// other file.
fn preset(form: &ProfileForm, bytes: &[u8]) {
    let read = |bytes: &[u8]| read_profile(metatf::container::Reader::from_slice(bytes).ok()?, || ()).ok();
    let input = Input::of("a preset".to_owned(), Box::new(std::io::Cursor::new(bytes.to_vec())));
    let Some(presets) = input.ok().zip(form.open).and_then(|(input, open)| open(input, &mut || ()).ok()) else {
        return;
    };
    for preset in &presets {
        let mut written = Vec::new();
        write_profile(preset, &mut written).expect("what was read can be written");
        let again = read(&written).expect("what was written can be read");
        assert_eq!((&again.infos, &again.contexts), (&preset.infos, &preset.contexts));
        for form in PROFILES.into_iter().filter(|form| form.name != "memprof-yaml") {
            let Some(create) = form.create else { continue };
            let (options, mut written) = (ProfileOptions::default(), Vec::new());
            let _ = create(&again.clone().merged(), &options, &mut |_| (), &mut written);
            if form.name == "pprof" {
                let input = Input::of("pprof".to_owned(), Box::new(std::io::Cursor::new(written)));
                let open = form.open.expect("pprof is read as well");
                open(input.expect("memory is read"), &mut || ()).expect("what was written can be read");
            }
        }
    }
    // A heap info block of an undescribed context is an error.
    let _ = merge(presets);
}

fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || bytes.starts_with(&[0x1f, 0x8b])
}

/// Checks that the records of a HATF 1.0 stream, up to its first error, survive a round trip.
fn native(stream: &[u8]) {
    let records = native_records(stream);
    let mut writer = Writer::new(Vec::new());
    for (record, attributes) in &records {
        writer.record(&Record { attributes, ..*record }).expect("what was read can be written");
    }
    assert_eq!(native_records(&writer.finish().expect("memory takes it")), records);
}

fn native_records(stream: &[u8]) -> Vec<(Record<'static>, Vec<u8>)> {
    let mut reader = Reader::new(stream);
    let mut records = Vec::new();
    while let Ok(Some(item)) = reader.next() {
        let Item::Record(record) = item else { continue };
        let mut kept = Record::new(record.kind);
        for &part in record.kind.numbers() {
            *kept.number_mut(part) = record.number(part);
        }
        records.push((kept, record.attributes.to_vec()));
    }
    assert!(matches!(reader.next(), Ok(None)), "something comes after the end");
    records
}

/// Converts a HATF 1.0 trace to `dtds/heap.dtd`, once stored and once with the preset for the smallest traces.
#[must_use]
pub fn heap_traces(hatf: &[u8]) -> Vec<Vec<u8>> {
    let mut stored = WriteOptions { codec: Codec::Stored, ..WriteOptions::default() };
    stored.trial = None;
    let mut archive = WriteOptions::default();
    Preset::Archive.apply(&mut archive);
    let traces = [stored, archive].map(|write| {
        let options = CreateOptions { write, ..CreateOptions::default() };
        Some(convert_bytes(hatf, Some(named("hatf1")), &HEAP, &options).ok()?.0)
    });
    traces.into_iter().flatten().collect()
}

/// Returns profiles of LLVM and of jemalloc, and the first one also in the writable formats.
fn profile_seeds() -> Vec<Vec<u8>> {
    let readable: Vec<_> = PROFILES.into_iter().filter(|form| form.open.is_some()).collect();
    let seed = |name: &str, bytes: &[u8]| {
        let place = readable.iter().position(|form| form.name == name).unwrap_or(0);
        [&[(FORMS.len() + place) as u8], bytes].concat()
    };
    let mut seeds = vec![seed("memprofraw", RAW), seed("jemalloc", JEMALLOC)];
    for preset in import(RAW).iter().flatten() {
        for form in readable.iter().filter(|form| form.create.is_some()) {
            let (create, mut written) = (form.create.expect("it is written"), Vec::new());
            create(preset, &ProfileOptions::default(), &mut |_| (), &mut written).expect("memory takes it");
            let mut plain = Vec::new();
            // Uncompressed if possible: a fuzzer gets nowhere by changing compressed bytes.
            let read = flate2::read::GzDecoder::new(&written[..]).read_to_end(&mut plain);
            seeds.push(seed(form.name, if read.is_ok() { &plain } else { &written }));
        }
    }
    seeds
}

/// Short logs of other tools.
const HEAPTRACK_RAW: &[u8] =
    b"v 10400 3\nx 2 /t\nX ./t\nI 1000 5e2\nm 1 -\nm 1 x 5000 0 6f8 1000 2a1\nt 6190 0\nt 6010 1\n\
    + 64 2 9000\nc a\n+ 65 1 9100\n- 9000\nm 1 -\nR 3c4\n";
const HEAPTRACK: &[u8] = b"v 10400 3\nX ./t\ns 2 /t\ns 4 main\ns 3 t.c\ns 3 put\ni 6010 1 2\ni 6190 1 4 3 9 2 3 7\n\
    t 1 0\nt 2 1\na 64 2\n+ 0\n+ 0\nc 14\n- 0\n# end\n";
const MTRACE: &[u8] = b"= Start\n@ ./t:(add+0x15)[0x1185] + 0x5580 0x40\n@ ./t:[0x1185] < 0x5580\n\
    @ ./t:[0x1185] > 0x5700 0x80\n@ [0x99] + (nil) 0x7\n@ ./t:[0x1190] - 0x5700\n= End\n";
const MEMRAY: &[u8] = b"HEADER magic=memray file_format=ALL_ALLOCATIONS start_time=100 main_tid=1 \
    skipped_frames_on_main_tid=0 command_line=m\nSEGMENT_HEADER filename=/l.so num_segments=1 addr=0x1000\nSEGMENT (nil) 10\n\
    NATIVE_FRAME_ID ip=0x1001 index=0\nCONTEXT_SWITCH tid=1\n\
    CODE_OBJECT code_id=1 function_name=f filename=m.py firstlineno=1 linetable_size=2\n\
    ALLOCATION address=0x10 size=8 allocator=malloc native_frame_id=1\nFRAME_PUSH code_object_id=1 instruction_offset=1\n\
    MEMORY_RECORD time=103 memory=5\nALLOCATION address=0x10 size=0 allocator=free native_frame_id=0\nFRAME_POP count=1\n\
    ALLOCATION address=0x20 size=9 allocator=pymalloc_realloc native_frame_id=0\nTRAILER\n";
const JEMALLOC: &[u8] =
    b"heap_v2/16384\n  t*: 196: 205535 [1015: 3037279]\n@ 0x4045 0x6171\n  t*: 191: 195636 [191: 195636]\n\
    @ 0x2ed9\n  t*: 1: 81939 [1: 81939]\n\nMAPPED_LIBRARIES:\n5000-7000 r-xp 00001000 fe:00 10   /tmp/j\n";

/// Returns the HATF 1.0 vectors in each heap trace format.
#[must_use]
pub fn seeds(path: &Path, bytes: &[u8]) -> Vec<Vec<u8>> {
    let as_form = |form: &Form, bytes: &[u8]| {
        let number = FORMS.iter().position(|f| *f == form).unwrap_or(0);
        [&[number as u8], bytes].concat()
    };
    let of = |form: &str| vec![as_form(named(form), bytes)];
    let hatf10 = path.to_string_lossy().contains("hatf10");
    match path.extension().and_then(|e| e.to_str()) {
        Some("hatf") => {
            let heap = heap_traces(bytes).into_iter().map(|t| as_form(&HEAP, &t)).collect();
            let logs = [("heaptrack", HEAPTRACK_RAW), ("heaptrack", HEAPTRACK), ("mtrace", MTRACE), ("memray", MEMRAY)];
            let logs = logs.map(|(form, log)| as_form(named(form), log)).to_vec();
            [of("hatf1"), heap, logs, profile_seeds()].concat()
        }
        Some("mtf") if hatf10 => of("hatf10"),
        Some("jsonl") if path.to_string_lossy().contains("hatf-") => of("jsonl"),
        _ => Vec::new(),
    }
}
