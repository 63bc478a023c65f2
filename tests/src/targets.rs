//! Bodies of the fuzz targets, called by `dev/fuzz/` and by a test on the stable toolchain.

use crate::example::{Example, same};
use crate::random::{Choices, Seed, options};
use crate::{
    attached, buffers, editing, experiments, generated, heap_forms, importing, merging, oracle, recoding, runtime,
    spools, suppressing, symbolizing,
};
use metatf::container::{Class, Order, Reader, WriteOptions};
use metatf::dynamic::{JsonOptions, Schema, Trace};
use metatf::format::Format;
use metatf::reader::{FormatRef, begins_as, recognize};
use metatf::{Error, ErrorKind};
use metatf_tools::convert::{ConvertError, ConvertOptions};
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// Fuzz target: its name, its body, and the function that turns vector files into inputs.
pub struct Target {
    /// Name of the target in `dev/fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Body, which panics if a check fails.
    pub run: fn(&[u8]),
    /// Returns inputs for a vector file, or nothing if the target cannot use the file.
    pub seeds: Seeds,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "attach", run: attached::attach, seeds: attached::seeds },
    Target { name: "convert_heap", run: heap_forms::convert_heap, seeds: heap_forms::seeds },
    Target { name: "drain", run: spools::drain, seeds: spools::seeds },
    Target { name: "edit_dtd", run: editing::edit_dtd, seeds: editing::seeds },
    // Any bytes are valid calls, so heap traces suffice as seeds.
    Target {
        name: "experiment",
        run: experiments::experiment,
        seeds: |path, bytes| {
            if path.to_string_lossy().contains("heap") {
                only("mtf", path, || vec![bytes.to_vec()])
            } else {
                Vec::new()
            }
        },
    },
    Target { name: "parse_dtd", run: parse_dtd, seeds: |path, bytes| only("dtd", path, || vec![bytes.to_vec()]) },
    Target { name: "postmortem", run: buffers::postmortem, seeds: buffers::seeds },
    Target { name: "read_hatf", run: read_hatf, seeds: hatf_seeds },
    Target { name: "read_json", run: read_json, seeds: json_seeds },
    Target { name: "read_program", run: read_program, seeds: program_seeds },
    Target { name: "read_trace", run: read_trace, seeds: trace_seeds },
    Target { name: "recode", run: recode, seeds: recode_seeds },
    Target { name: "recover", run: spools::recover, seeds: spools::seeds },
    Target { name: "round_trip", run: round_trip, seeds: |_, bytes| vec![bytes.to_vec()] },
    Target { name: "suppress", run: suppressing::suppress, seeds: suppressing::seeds },
    Target { name: "symbolize", run: symbolizing::symbolize, seeds: symbolizing::seeds },
];

/// Names and seeds of targets whose bodies need large crates that this crate does not depend on. The body of `tables`
/// is in `tables/hatf-arrow/tests/it` and that of `import` in `tables/metatf-arrow/tests/it`; each runs its seeds.
pub const TARGETS_ELSEWHERE: &[(&str, Seeds)] = &[("import", importing::seeds), ("tables", trace_seeds)];

/// Function that turns a vector file into inputs, depending on its path.
pub type Seeds = fn(&Path, &[u8]) -> Vec<Vec<u8>>;

/// Splits a trace input into its switches, the chosen DTD (`None` for the embedded one), and the file.
#[must_use]
pub fn trace_input(input: &[u8]) -> Option<(u8, Option<Schema>, Vec<u8>)> {
    let &[switches, dtd, ref trace @ ..] = input else { return None };
    let trace = if dtd & 0x80 == 0 { trace.to_vec() } else { mend(trace) };
    Some((switches, schema(dtd & 0x7f), trace))
}

/// Returns a schema that turns any trace into a span trace: its records begin, end, enter and leave spans, or are
/// events and values, and its fields have the corresponding roles. The bytes stay the same.
#[must_use]
pub fn with_spans(schema: &Schema) -> Schema {
    const WORDS: [&str; 9] = ["begin", "end", "event", "enter", "leave", "begin", "value", "values", "follows"];
    const NUMBERS: [&str; 9] = ["time", "thread", "span", "parent", "process", "field", "string_id", "level", "value"];
    const TEXTS: [&str; 6] = ["string", "value", "fields", "file", "thread_name", "target"];
    let mut dtd = (*schema.dtd).clone();
    // Skip the predefined records.
    for (index, record) in dtd.records.iter_mut().skip(3).enumerate() {
        let (mut numbers, mut texts) = (NUMBERS.iter().cycle(), TEXTS.iter().cycle().skip(index % TEXTS.len()));
        for leaf in &mut record.leaves {
            let (key, value) = if leaf.is_tag() {
                ("span", WORDS.get(index % 10))
            } else if leaf.is_numeric() {
                ("role", numbers.next())
            } else {
                ("role", texts.next())
            };
            leaf.annotations.extend(value.map(|value| (key.to_owned(), format!("\"{value}\""))));
        }
    }
    Schema::new(dtd)
}

fn only(extension: &str, path: &Path, seeds: impl Fn() -> Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if path.extension().is_some_and(|e| e == extension) { seeds() } else { Vec::new() }
}

/// DTDs of the vectors without duplicates. An input chooses one by its number.
static SCHEMAS: LazyLock<Vec<(Vec<u8>, Schema)>> = LazyLock::new(|| {
    let mut schemas: Vec<(Vec<u8>, Schema)> = Vec::new();
    for path in vectors().into_iter().filter(|path| path.ends_with("format.dtd")) {
        let Ok(text) = std::fs::read(&path) else { continue };
        let known = schemas.iter().any(|(other, _)| *other == text);
        if let Some(dtd) = metatf_parser::parse("format.dtd", &text).dtd.filter(|_| !known) {
            schemas.push((text, Schema::new(dtd)));
        }
    }
    schemas
});

/// Reads the DTDs of the vectors, so that this time does not count for the first input.
pub fn set_up() {
    LazyLock::force(&SCHEMAS);
}

/// Returns all vector files, sorted.
///
/// # Panics
/// Panics if there are none.
#[must_use]
pub fn vectors() -> Vec<std::path::PathBuf> {
    fn walk(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the vectors are in this repository").flatten() {
            let path = entry.path();
            if path.is_dir() { walk(&path, files) } else { files.push(path) }
        }
    }
    let mut files = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors"), &mut files);
    files.sort();
    files
}

/// Returns the number, from 1, of the DTD next to a vector file. Returns `None` for numbers over 127, which an input
/// cannot choose.
fn number_of(path: &Path) -> Option<u8> {
    let beside = std::fs::read(path.with_file_name("format.dtd")).ok()?;
    let number = SCHEMAS.iter().position(|(text, _)| *text == beside)? + 1;
    u8::try_from(number).ok().filter(|number| *number < 0x80)
}

/// Returns a DTD by its number, from 1.
fn schema(number: u8) -> Option<Schema> {
    SCHEMAS.get(usize::from(number).checked_sub(1)?).map(|(_, schema)| schema.clone())
}

/// Parses arbitrary text: parsing must not panic, every message must render, and a valid DTD must survive formatting.
///
/// # Panics
/// Panics if one of these checks fails.
pub fn parse_dtd(text: &[u8]) {
    let parsed = metatf_parser::parse("fuzz.dtd", text);
    for diagnostic in &parsed.diagnostics {
        let shown = metatf_parser::render(diagnostic, "fuzz.dtd", text, false);
        assert!(!shown.is_empty());
    }
    let formatted = metatf_parser::format("fuzz.dtd", text);
    let Some(dtd) = parsed.dtd else {
        assert!(parsed.diagnostics.iter().any(|d| d.severity == metatf_parser::Severity::Error), "no DTD, no error");
        return;
    };
    let formatted = formatted.expect("a right DTD can be formatted");
    let again = metatf_parser::parse("fuzz.dtd", formatted.as_bytes()).dtd.expect("formatting keeps a DTD right");
    assert!(dtd.same_meaning(&again), "formatting changed the meaning:\n{formatted}");
    let twice = metatf_parser::format("fuzz.dtd", formatted.as_bytes()).expect("a right DTD can be formatted");
    assert_eq!(formatted, twice, "formatting is idempotent");
    let _ = Format::from_dtd(&dtd);
}

/// Reads a trace. The input is a byte of switches, a byte that chooses the DTD (0 for the embedded one), and the file.
/// If the top bit of the second byte is set, the chunk checksums are fixed first, because no fuzzer guesses them.
///
/// # Panics
/// Panics if the runtime and the reference decoder disagree.
pub fn read_trace(input: &[u8]) {
    let &[switches, dtd, ref trace @ ..] = input else { return };
    let mended = if dtd & 0x80 == 0 { trace.to_vec() } else { mend(trace) };
    let (dtd, trace) = (dtd & 0x7f, &mended[..]);
    let on = |bit: u8| switches & 1 << bit != 0;
    let order = if on(6) { Order::Big } else { Order::Little };
    let class = if on(7) { Class::Bits64 } else { Class::Bits32 };
    let container = match (on(0), on(3), on(4)) {
        (_, _, true) => Reader::raw_from_slice(trace, class, order, if on(5) { 0 } else { 1 }),
        (false, false, _) => Reader::from_slice(trace),
        (true, false, _) => Reader::salvage_slice(trace),
        (false, true, _) => Reader::from_read(trace),
        (true, true, _) => Reader::salvage_read(trace),
    };
    let Ok(mut container) = container else { return };
    let Some(schema) = schema(dtd).or_else(|| Schema::embedded(&container).ok()) else { return };
    if on(3) && on(4) {
        match as_it_begins(&schema, container, trace) {
            Some(recognized) => container = recognized,
            None => return,
        }
    }
    let Ok(mut reader) = Trace::new(schema.clone(), container) else { return };
    reader.reader_mut().set_salvage(on(0));
    reader.reader_mut().set_all(on(1));
    let options = JsonOptions { all: on(1), resolve: on(2), resets: true, names: on(4) };
    let mut lines = Vec::new();
    let end = loop {
        lines.clear();
        match reader.next_json(&mut lines, options) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
        let text = lines.strip_suffix(b"\n").unwrap_or(&lines);
        if !text.is_empty() && !on(2) && text.len() < 10_000 {
            let mut owned = metatf::dynamic::OwnedRecord::default();
            schema.read_json(text, &mut owned).expect("what is printed can be read");
        }
    };
    // Nothing follows an error or the end.
    assert!(matches!(reader.next_entry(), Ok(None)));
    let _ = (reader.reader().container().loss_report().map(ToString::to_string), end.map_err(|e| e.to_string()));
    if on(5) && !on(0) {
        let _ = reader.reader_mut().seek(u64::from(switches));
        while let Ok(Some(_)) = reader.next_entry() {}
    }
    if !on(4) && content_len(trace) < 1 << 16 {
        agree(&schema, trace);
    }
}

/// Opens a file without a header as its start declares it. Its parts must be contiguous bytes of the file, from the
/// first byte on.
fn as_it_begins<'a>(schema: &Schema, mut container: Reader<'a>, bytes: &[u8]) -> Option<Reader<'a>> {
    let format = FormatRef::Shared(Arc::clone(&schema.format));
    let class = container.header().class;
    let found = recognize(&format, bytes, class);
    assert!(
        matches!(found, Ok(None)) || begins_as(&format, bytes, class) == Some(true),
        "known, and not at its beginning"
    );
    let file = found.map_err(|error| error.to_string()).ok().flatten()?;
    let ends = file.parts.iter().try_fold(0, |at, (_, part)| (part.start == at && part.end >= at).then_some(part.end));
    assert!(ends.is_some_and(|end| end <= bytes.len() as u64), "{file:?} of {} bytes", bytes.len());
    container.set_raw_file(file.order, file.section, file.parts);
    Some(container)
}

/// Returns the trace with the correct checksum in every chunk.
#[must_use]
pub fn mend(trace: &[u8]) -> Vec<u8> {
    let mut bytes = trace.to_vec();
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.windows(4).position(|w| w == b"MTFC")) {
        at += found;
        let Some(stored) = bytes.get(at + 12..at + 16) else { break };
        let end = stored.iter().rev().fold(0, |n: usize, &b| n << 8 | usize::from(b)).saturating_add(at + 48);
        if let Some(payload) = bytes.get(at + 48..end) {
            let crc = crc32c(&[&bytes[at..at + 44], payload].concat());
            bytes[at + 44..at + 48].copy_from_slice(&crc.to_le_bytes());
            at = end;
        } else {
            at += 4;
        }
    }
    bytes
}

/// CRC-32C (Castagnoli), bit by bit.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0x82f6_3b78 & (crc & 1).wrapping_neg()))
    };
    !bytes.iter().fold(!0, step)
}

/// Returns the bytes of content in a trace, so that the slow reference decoder can skip large ones.
fn content_len(trace: &[u8]) -> usize {
    let Ok(mut reader) = Reader::from_slice(trace) else { return usize::MAX };
    let mut len = 0_usize;
    while let Ok(Some(part)) = reader.next_part() {
        len = len.saturating_add(reader.bytes(&part.content).len());
    }
    len
}

/// Checks that the runtime and the reference decoder accept the same traces and read the same items.
fn agree(schema: &Schema, trace: &[u8]) {
    let (told, right) = oracle::read(&schema.dtd, trace);
    let (seen, result) = runtime::read(schema, trace);
    // The reference decoder does not check the order of chunks in a group.
    if matches!(result, Err(Error { kind: ErrorKind::Invalid { .. }, .. })) {
        return;
    }
    if right.is_ok() || result.is_ok() {
        same(&told, &seen, &format!("{right:?} {result:?} {}", schema.dtd.text));
        assert_eq!(right.is_ok(), result.is_ok(), "{right:?} {result:?}");
    }
}

/// Recodes a trace. The input is a byte for the records per block, a byte that chooses the DTD (as in [`read_trace`]),
/// and the file. Recoding with every plan and merging its pieces must preserve the content.
///
/// # Panics
/// Panics if the content changes.
pub fn recode(input: &[u8]) {
    let &[block, dtd, ref trace @ ..] = input else { return };
    let trace = if dtd & 0x80 == 0 { trace.to_vec() } else { mend(trace) };
    let Ok(container) = Reader::from_slice(&trace) else { return };
    let Some(schema) = schema(dtd & 0x7f).or_else(|| Schema::embedded(&container).ok()) else { return };
    if content_len(&trace) < 1 << 14 {
        recoding::check(&schema, &trace, usize::from(block) + 1, &schema.dtd.text);
        // Split and merge it as well, unless it is corrupt.
        let sides = u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match merging::check(&schema, &trace, &ConvertOptions::default(), sides, &schema.dtd.text) {
            Ok(()) | Err(ConvertError::Read(_)) => {}
            Err(error) => assert!(merging::is_limit(&schema, error), "{error:?} {}", schema.dtd.text),
        }
    }
}

fn recode_seeds(path: &Path, bytes: &[u8]) -> Vec<Vec<u8>> {
    let number = number_of(path).unwrap_or(0);
    let heaps = only("hatf", path, || heap_forms::heap_traces(bytes));
    let heaps = heaps.iter().map(|heap| [&[100, 0x80], &heap[..]].concat());
    let traces = only("mtf", path, || {
        let with = |block: u8, dtd: u8| [&[block, dtd], bytes].concat();
        vec![with(255, number), with(2, number | 0x80), with(20, 0), with(7, 0x80)]
    });
    heaps.chain(traces).collect()
}

/// Reads a trace with the generated reader that the first byte chooses; one of them is HATF10's.
///
/// # Panics
/// Panics if the generated reader and the dynamic reader disagree.
pub fn read_hatf(input: &[u8]) {
    let Some((&number, trace)) = input.split_first() else { return };
    generated::agree(usize::from(number) % generated::count(), trace);
}

fn hatf_seeds(path: &Path, bytes: &[u8]) -> Vec<Vec<u8>> {
    let vector = path.parent().and_then(Path::file_name).and_then(|n| n.to_str());
    let Some(number) = vector.and_then(generated::number_of) else { return Vec::new() };
    only("mtf", path, || vec![[&[number as u8], bytes].concat()])
}

/// Parses the data that `hatf record` inspects before recording: a program file, and the kernel's description of a
/// process.
///
/// # Panics
/// Panics if a file cannot be written.
pub fn read_program(input: &[u8]) {
    hatf_host::record::read_process(input);
    let path = std::env::temp_dir().join(format!("metatf-program-{}", std::process::id()));
    std::fs::write(&path, input).expect("there is room for it");
    let known = hatf_host::record::not_recorded(path.as_os_str());
    std::fs::remove_file(&path).expect("it was written");
    // The reason must be printable, whatever it is.
    let _ = known.map(|known| known.to_string());
}

/// Returns a program with a table of two entries, a script, and lines of `/proc/N/maps`. They are unrelated to the
/// vectors, so only one vector returns them.
fn program_seeds(path: &Path, _: &[u8]) -> Vec<Vec<u8>> {
    if !path.ends_with("bad/dtd/base-unknown-record/format.dtd") {
        return Vec::new();
    }
    let mut program = vec![0_u8; 64 + 2 * 56];
    program[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    for (at, byte) in [(16, 2), (18, 62), (32, 64), (54, 56), (56, 2), (64, 1), (120, 3)] {
        program[at] = byte;
    }
    let maps = b"1000-2000 r-xp 0 fe:00 7      /lib/libc.so.6\n7fff0000-7fff1000 r--p 0 0:0 0   [vdso]\n";
    vec![
        program,
        b"#!/bin/sh -e\n".to_vec(),
        b"#! /no/such\xff\n".to_vec(),
        maps.to_vec(),
        b"Tgid:\t7\nState:\tR (running)\n".to_vec(),
    ]
}

/// Writes, reads, prints and rewrites a random trace of a random format.
///
/// # Panics
/// Panics if something is lost.
pub fn round_trip(input: &[u8]) {
    let seed = Seed::from_bytes(input);
    let example = Example::new(&seed, true);
    example.check();
    let all = JsonOptions { all: true, resolve: false, resets: true, names: false };
    let lines = runtime::json(&example.schema, &example.trace, all).expect("it was read before");
    if runtime::ends_with_a_table(&lines) {
        return;
    }
    let options = WriteOptions { group_size: usize::MAX, ..example.options.clone() };
    let again = runtime::from_json(&example.schema, &lines, &options).expect("what was printed can be written");
    let printed = runtime::json(&example.schema, &again, all).expect("what was written can be read");
    assert_eq!(lines, printed, "{}", example.about());
}

/// Writes JSON lines and reads the result. The input is a byte that chooses a DTD, 8 bytes that choose options, and the
/// lines.
///
/// # Panics
/// Panics if the written trace cannot be read.
pub fn read_json(input: &[u8]) {
    let Some((&dtd, rest)) = input.split_first() else { return };
    let Some(schema) = schema(dtd) else { return };
    let (chosen, lines) = rest.split_at(rest.len().min(8));
    let options = options(&mut Choices::new(chosen));
    let Ok(lines) = std::str::from_utf8(lines) else { return };
    let Ok(trace) = runtime::from_json(&schema, lines, &options) else { return };
    let (_, result) = runtime::read(&schema, &trace);
    assert_eq!(result, Ok(()), "what was written can be read");
    agree(&schema, &trace);
}

fn trace_seeds(path: &Path, bytes: &[u8]) -> Vec<Vec<u8>> {
    let number = number_of(path).unwrap_or(0);
    let with = |switches: u8, dtd: u8| [&[switches, dtd], bytes].concat();
    match path.extension().and_then(|e| e.to_str()) {
        Some("mtf") => vec![
            with(0x02, number),
            with(0x27, number),
            with(0x0e, number),
            with(0x02, 0),
            with(0x02, number | 0x80),
            with(0x23, number | 0x80),
            // The embedded DTD, with fixed checksums, for vectors whose DTD has no number.
            with(0x02, 0x80),
            with(0x23, 0x80),
        ],
        Some("raw") => [0x12, 0xd2, 0x1a, 0x9a].map(|switches| with(switches, number)).into(),
        Some("hatf") => {
            let heaps = heap_forms::heap_traces(bytes);
            heaps
                .iter()
                .flat_map(|heap| [[&[0x02, 0x80], &heap[..]].concat(), [&[0x27, 0], &heap[..]].concat()])
                .collect()
        }
        _ => Vec::new(),
    }
}

fn json_seeds(path: &Path, bytes: &[u8]) -> Vec<Vec<u8>> {
    let Some(number) = number_of(path) else { return Vec::new() };
    only("jsonl", path, || {
        let with = |version: u8| [&[number, version, 0, 0, 0, 0, 0, 0, 0], bytes].concat();
        vec![with(0), with(255)]
    })
}

/// Returns all DTDs, for tests.
#[must_use]
pub fn schemas() -> Vec<Arc<metatf_parser::Dtd>> {
    SCHEMAS.iter().map(|(_, schema)| Arc::clone(&schema.dtd)).collect()
}
