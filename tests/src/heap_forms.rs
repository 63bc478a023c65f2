//! A fuzz target over the forms of heap traces that are not Meta-TF, and over those that are.

use hatf::profile::{import, merge, read_profile, write_profile};
use hatf_trace::forms::{CreateOptions, FORMS, Form, HEAP, convert_bytes};
use hatf_trace::hatf1::{Item, Reader, Record, Writer};
use metatf::container::{Codec, WriteOptions};
use metatf_tools::recode::Preset;
use std::path::Path;

/// The trace in another form, and whether that holds all of it.
fn converted(from: &'static Form, to: &Form, bytes: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (bytes, losses) = convert_bytes(bytes, Some(from), to, &CreateOptions::default()).ok()?;
    Some((bytes, losses.is_empty()))
}

fn named(form: &str) -> &'static Form {
    Form::of(form).unwrap_or(&HEAP)
}

/// A byte that chooses a form, and a trace of it: what can be read can be written as `heap.dtd`, and read again; where
/// nothing is lost, the way back ends where it began. Two more forms are those of heap presets.
///
/// # Panics
/// It does not.
pub fn convert_heap(input: &[u8]) {
    let Some((&form, trace)) = input.split_first() else { return };
    let number = usize::from(form) % (FORMS.len() + PROFILES);
    let Some(&form) = FORMS.get(number) else { return preset(number - FORMS.len(), trace) };
    if form.name == "hatf1" {
        native(trace);
    }
    let Some((heap, all)) = converted(form, &HEAP, trace) else { return };
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

/// Forms of heap presets: raw ones of LLVM, and those of `heapprof.dtd`.
const PROFILES: usize = 2;

/// Profiles of a program that clang 19 instrumented.
const RAW: &[u8] = include_bytes!("../../hatf/tests/data/clang19_histogram.memprofraw");

/// What can be read as a preset is read again as it was written, and can be merged.
fn preset(form: usize, bytes: &[u8]) {
    let read = |bytes: &[u8]| read_profile(metatf::container::Reader::from_slice(bytes).ok()?, || ()).ok();
    let presets = if form == 0 { import(bytes).ok() } else { read(bytes).map(|preset| vec![preset]) };
    let Some(presets) = presets else { return };
    for preset in &presets {
        let mut written = Vec::new();
        write_profile(preset, &mut written).expect("what was read can be written");
        let again = read(&written).expect("what was written can be read");
        assert_eq!((&again.infos, &again.contexts), (&preset.infos, &preset.contexts));
    }
    // A heap info block of a context that is not described is an error.
    let _ = merge(presets);
}

fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || bytes.starts_with(&[0x1f, 0x8b])
}

/// The records of a HATF 1.0 stream, up to its first error, are read again as they were written.
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

/// A trace of HATF 1.0 as a trace of `dtds/heap.dtd`, its content as it is and by the preset that makes traces smallest.
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

/// A preset in both forms.
fn profile_seeds() -> Vec<Vec<u8>> {
    let [raw, own] = [0, 1].map(|form| (FORMS.len() + form) as u8);
    let mut seeds = vec![[&[raw], RAW].concat()];
    for preset in import(RAW).iter().flatten() {
        let mut written = Vec::new();
        write_profile(preset, &mut written).expect("memory takes it");
        seeds.push([&[own], &written[..]].concat());
    }
    seeds
}

/// The vectors of HATF 1.0, in each of its forms.
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
            [of("hatf1"), heap, profile_seeds()].concat()
        }
        Some("mtf") if hatf10 => of("hatf10"),
        Some("jsonl") if path.to_string_lossy().contains("hatf-") => of("jsonl"),
        _ => Vec::new(),
    }
}
