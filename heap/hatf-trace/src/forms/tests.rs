//! Tests of conversions between all formats, and of the losses that the conversions report.

mod tools;
mod unlikely;

use std::collections::BTreeMap;
use std::io::Cursor;

use metatf::container::{ChunkWriter, WriteOptions};

use super::*;
use crate::event::{
    Accesses, Call, Event, EventKind, EventSource as _, Function, Pages, Resident, Stack, UserMetadata,
};
use crate::heap::{HeapOptions, HeapWriter};
use crate::loss::Loss;

fn input(bytes: &[u8]) -> Input {
    Input::of("a trace in memory".to_owned(), Box::new(Cursor::new(bytes.to_vec()))).unwrap()
}

fn converted(from: &'static Form, to: &Form, bytes: &[u8]) -> Result<(Vec<u8>, Losses)> {
    convert_bytes(bytes, Some(from), to, &CreateOptions::default())
}

/// Opens a trace of this format.
fn of_form(form: &'static Form, bytes: &[u8]) -> Result<TraceReader> {
    read(input(bytes), &OpenOptions { form: Some(form), ..OpenOptions::default() })
}

fn whole(from: &'static Form, to: &Form, bytes: &[u8]) -> Vec<u8> {
    let (bytes, losses) = converted(from, to, bytes).unwrap();
    assert!(losses.is_empty(), "{} to {}: {losses}", from.name, to.name);
    bytes
}

fn records(words: &[&[u64]]) -> Vec<u8> {
    words.iter().flat_map(|words| words.iter().flat_map(|word| word.to_le_bytes())).collect()
}

/// The first events of real programs: gawk in 32-byte records, and python3 with five threads in 64-byte records.
const GAWK: &[u8] = include_bytes!("../../tests/data/gawk.raw32.zst");
const PYTHON: &[u8] = include_bytes!("../../tests/data/python_threads.raw64.zst");

fn decompressed(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::decode_all(bytes).unwrap()
}

#[test]
fn raw_records_to_heap_and_back() {
    for (form, file) in [(&RAW32, GAWK), (&raw::RAW64, PYTHON)] {
        let bytes = decompressed(file);
        assert!(bytes.len() > 100_000);
        // Compressed input is detected.
        let heap = whole(form, &HEAP, file);
        assert!(heap.len() < bytes.len() / 8, "{}", heap.len());
        assert!(whole(&HEAP, form, &heap) == bytes, "{} differs", form.name);
        // The same holds for a conversion through JSON lines.
        let lines = whole(&HEAP, &jsonl::FORM, &heap);
        let again = whole(&jsonl::FORM, &HEAP, &lines);
        assert!(whole(&HEAP, form, &again) == bytes, "{} by JSON lines differs", form.name);
    }
}

#[test]
fn raw_records_to_hatf_and_back() {
    // HATF 1.0 has no stacks.
    let mut bytes = decompressed(PYTHON);
    for record in bytes.as_chunks_mut::<64>().0 {
        record[48..56].fill(0);
    }
    for form in [&hatf10::FORM, &hatf1::FORM] {
        let there = whole(&raw::RAW64, form, &bytes);
        assert!(whole(form, &raw::RAW64, &there) == bytes, "{} differs", form.name);
    }
}

#[test]
fn odd_values_of_raw_records() {
    let odd: &[&[u64]] = &[
        &[1, u64::MAX - 1, u64::MAX, 0],
        &[1, 0, 0, 0],
        &[2, 0, 0, 0],
        &[3, 7, 1, 0],
        &[4, 0, 0, 0],
        &[4, 0, 0, u64::MAX],
        &[4, 9, 5, 5],
        &[5, 1, u64::MAX, 0],
        &[1, 8, u64::MAX, 0],
        &[2, 0, u64::MAX, 0],
        &[2, 0, u64::MAX, 0],
    ];
    let bytes = records(odd);
    assert_eq!(whole(&HEAP, &RAW32, &whole(&RAW32, &HEAP, &bytes)), bytes);
    let odd: &[&[u64]] = &[
        &[1, 8, 16, 0, u64::MAX, 0, u64::MAX, 0],
        &[5, 8, 32, 0, 3, u64::MAX, 7, u64::MAX],
        &[3, 8, 48, 0, 2, 1, 0, 2],
        &[2, 0, 48, 0, 0, 1, 7, 0],
    ];
    let bytes = records(odd);
    assert_eq!(whole(&HEAP, &raw::RAW64, &whole(&raw::RAW64, &HEAP, &bytes)), bytes);
}

#[test]
fn raw_records_that_are_none() {
    let good = [1, 8, 16, 0];
    for (bad, kind) in [
        ([6, 0, 0, 0], "found 6"),
        ([0, 0, 0, 0], "found 0"),
        ([1, 8, 16, 5], "an old address"),
        ([2, 8, 16, 0], "a size"),
        ([4, u64::MAX, 16, 0], "2^64 - 1"),
    ] {
        let error = converted(&RAW32, &HEAP, &records(&[&good, &good, &bad])).unwrap_err().to_string();
        assert!(error.contains("byte 64 (record 2)") && error.contains(kind), "{error}");
    }
    let error = converted(&RAW32, &HEAP, &records(&[&good, &good[..3]])).unwrap_err().to_string();
    assert!(error.contains("byte 32") && error.contains("24 bytes at the end"), "{error}");
    let error = converted(&raw::RAW64, &HEAP, &records(&[&[1, 8, 16, 0, 0, 1, 0, 9]])).unwrap_err().to_string();
    assert!(error.contains("an alignment or a count"), "{error}");
}

/// Returns events of every kind.
fn everything() -> Vec<Event<'static>> {
    let call = |function, detail, size, usable, old, address| Call { function, detail, size, usable, old, address };
    let whats = [
        EventKind::ThreadStart { creator: 0, task: 77 },
        EventKind::Image { process: 77, path: b"/bin/a program" },
        EventKind::Call(call(Function::Malloc, 0, 10, 24, 0, 0x10)),
        EventKind::Call(call(Function::Calloc, 3, 12, 0, 0, 0x30)),
        EventKind::Call(call(Function::Realloc, 0, 30, 0, 0x10, 0x50)),
        EventKind::Call(call(Function::Realloc, 0, 30, 0, 0, 0x70)),
        EventKind::Call(call(Function::Reallocarray, 5, 30, 0, 0x70, 0x70)),
        EventKind::Call(call(Function::Memalign, 64, 30, 0, 0, 0x80)),
        EventKind::Call(call(Function::PosixMemalign, 4096, 30, 0, 0, 0x1000)),
        EventKind::Call(call(Function::AlignedAlloc, 32, 30, 0, 0, 0x20)),
        EventKind::Call(call(Function::Valloc, 0, 30, 0, 0, 0x2000)),
        EventKind::Call(call(Function::Pvalloc, 0, 30, 0, 0, 0x3000)),
        EventKind::Call(call(Function::Realloc, 0, 0, 0, 0x50, 0)),
        EventKind::Free { address: 0x30 },
        EventKind::Free { address: 0xdead },
        EventKind::ReallocBegin { old: 0x70 },
        EventKind::ReallocEnd(call(Function::Realloc, 0, 300, 0, 0, 0x90)),
        EventKind::ReallocBegin { old: 0x90 },
        EventKind::ReallocEnd(call(Function::Reallocarray, 3, 300, 0, 0, 0x70)),
        EventKind::Failed(call(Function::Reallocarray, 3, 300, 0, 0x70, 0)),
        EventKind::Failed(call(Function::PosixMemalign, 64, 1 << 60, 0, 0, 0)),
        EventKind::Mark { name: b"here \"it\" is" },
        EventKind::PhaseBegin { name: b"load" },
        EventKind::PhaseEnd { name: b"load" },
        EventKind::ModuleLoad { bias: 0x1000, start: 0x2000, end: u64::MAX, name: b"0a1b /lib/a b.so" },
        EventKind::Source { path: b"src/a.c" },
        EventKind::Symbol { frame: 0x401000, line: 0, name: b"inner(int)" },
        EventKind::Symbol { frame: 0x401000, line: 12, name: b"outer" },
        EventKind::ModuleUnload { start: 0x2000 },
        EventKind::Lost { events: 1000 },
        EventKind::Recording { on: false },
        EventKind::Recording { on: true },
        EventKind::ThreadStart { creator: 1, task: 0 },
        EventKind::ThreadName { name: b"a worker" },
        EventKind::Pages(Pages::Map { start: 0x7f00_0000_0000, length: 1 << 40, protection: 3, flags: 34 }),
        EventKind::Pages(Pages::Advise { start: 0x7f00_0000_0000, length: 8192, advice: 4 }),
        EventKind::Pages(Pages::Remap { from: 4096, from_length: 8192, start: 1 << 20, length: u64::MAX }),
        EventKind::Pages(Pages::Unmap { start: 1 << 20, length: 16384 }),
        EventKind::Pages(Pages::Break { end: 0x5555_0000 }),
        EventKind::Resident(Resident { resident: 1 << 33, shared: 4096, data: 8192, mapped: u64::MAX }),
        EventKind::Accesses(Accesses {
            address: 0x2000,
            loads: 1 << 40,
            stores: 3,
            touched: 1,
            granules: 2,
            reached: true,
        }),
        EventKind::Accesses(Accesses { address: 0xdead, ..Accesses::default() }),
        EventKind::LastAccess { address: 0x2000, last: 8_000 },
        EventKind::LastAccess { address: 0xdead, last: 0 },
        EventKind::Untouched { address: 0x2000, bytes: 1 << 33 },
        EventKind::Untouched { address: 0xdead, bytes: 0 },
        EventKind::Enter { function: 0x401000 },
        EventKind::Leave,
        EventKind::ThreadEnd,
        EventKind::Image { process: 77, path: b"\xff" },
        EventKind::Killed { signal: 9 },
        EventKind::Image { process: 78, path: b"" },
        EventKind::Exit { status: 3 },
    ];
    let mut heap = 0;
    let event = |(n, kind): (u64, EventKind<'static>)| {
        heap += u64::from(matches!(kind, EventKind::Image { .. }));
        let stack: &[u64] = match n % 3 {
            0 if matches!(kind, EventKind::Call(_) | EventKind::Free { .. } | EventKind::Pages(_)) => {
                &[0x401000, 0x402000, u64::MAX]
            }
            1 if matches!(kind, EventKind::Call(_)) => &[0x401000],
            _ => &[],
        };
        let timeless = matches!(kind, EventKind::Source { .. } | EventKind::Symbol { .. });
        let time = if timeless { 0 } else { n * 1_000 };
        Event { kind, time, thread: 1 + n % 3, heap, stack: stack.into(), attributes: b"" }
    };
    (0..).zip(whats).map(event).collect()
}

/// A sink that formats events and comments as text.
#[derive(Default)]
struct Text(Vec<String>, UserMetadata);

impl EventSink for Text {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.0.push(format!("{event:?}"));
        Ok(())
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.0.push(format!("{text:?}"));
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.1.extend(user_metadata.clone());
        Ok(())
    }
}

fn heap_of(events: &[Event<'_>], options: &HeapOptions) -> (Vec<u8>, Losses) {
    let mut trace = Vec::new();
    let mut writer = HeapWriter::new(&mut trace, options).unwrap();
    writer.user_metadata(serde_json::json!({"program": "a", "command": ["a", "b c"]}).as_object().unwrap()).unwrap();
    writer.comment(b"a \xff comment").unwrap();
    events.iter().for_each(|event| writer.event(event).unwrap());
    let losses = writer.finish().unwrap();
    (trace, losses)
}

fn text_of(form: &'static Form, bytes: &[u8]) -> Text {
    let mut text = Text::default();
    of_form(form, bytes).unwrap().give(&mut text).unwrap();
    text
}

fn expected(events: &[Event<'_>]) -> Vec<String> {
    let comment = format!("{:?}", b"a \xff comment");
    std::iter::once(comment).chain(events.iter().map(|event| format!("{event:?}"))).collect()
}

/// A format change that is not visible in names increases the version number, and readers reject later versions.
#[test]
fn heap_traces_of_a_later_version() {
    let version = |format: &str| {
        let dtd = crate::heap::format::FORMAT.dtd.as_bytes();
        let mut writer = ChunkWriter::new(Vec::new(), &WriteOptions::default(), dtd).unwrap();
        writer.user_metadata(&format!("{{\"format\":{format}}}")).unwrap();
        let trace = writer.finish(0).unwrap();
        of_form(&HEAP, &trace).err().map(|error| error.to_string())
    };
    let later = "a trace in memory: unsupported heap trace version 2: this program reads version 1";
    assert_eq!(version("{\"name\":\"heap\",\"version\":2}").as_deref(), Some(later));
    for format in ["{\"name\":\"heap\",\"version\":1}", "{\"name\":\"mine\",\"version\":2}", "7", "{}"] {
        assert_eq!(version(format), None, "{format}");
    }
}

/// heap.dtd and its JSON lines preserve everything, whatever the group size, and with or without a heap model.
#[test]
fn everything_to_heap_and_json_and_back() {
    let events = everything();
    for (group_records, plain) in [1, 2, 7, 1_000_000].into_iter().flat_map(|group| [(group, false), (group, true)]) {
        let (heap, losses) = heap_of(&events, &HeapOptions { group_records, plain, ..HeapOptions::default() });
        assert!(losses.is_empty(), "{losses}");
        let text = text_of(&HEAP, &heap);
        assert_eq!(text.0, expected(&events));
        assert_eq!(text.1["program"], "a");
        assert_eq!(text.1["clock"]["resolution_ns"], 1);
        let (lines, losses) = converted(&HEAP, &jsonl::FORM, &heap).unwrap();
        assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::UserMetadata, 2)]);
        assert_eq!(text_of(&jsonl::FORM, &lines).0, expected(&events));
    }
}

/// Uses more stacks than the reader and the writer remember, and uses each stack three times.
#[test]
fn stacks_without_end() {
    let stacks: Vec<Vec<u64>> = (1..=200).map(|stack| (1..=10).map(|frame| stack << 8 | frame).collect()).collect();
    let call = Call { size: 8, address: 0x1000, ..Call::new(Function::Malloc) };
    let rounds = (0..3).flat_map(|_| &stacks);
    let pairs = rounds.flat_map(|stack| {
        [
            Event { stack: stack.into(), ..Event::new(EventKind::Call(call)) },
            Event::new(EventKind::Free { address: call.address }),
        ]
    });
    let events: Vec<_> = pairs.collect();
    let (heap, losses) = heap_of(&events, &HeapOptions::default());
    assert!(losses.is_empty(), "{losses}");
    let expected: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(text_of(&HEAP, &heap).0[1..], expected);
}

/// A coarse clock rounds times down, and a trace without a clock contains no times.
#[test]
fn clocks() {
    let events = everything();
    let (heap, losses) = heap_of(&events, &HeapOptions { resolution: 2_000, ..HeapOptions::default() });
    assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Rounding, 24)]);
    let rounded: Vec<_> = events.iter().map(|event| Event { time: event.time / 2_000 * 2_000, ..*event }).collect();
    assert_eq!(text_of(&HEAP, &heap).0, expected(&rounded));
    for plain in [false, true] {
        let (heap, losses) = heap_of(&events, &HeapOptions { resolution: 0, plain, ..HeapOptions::default() });
        assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Time, 49), (Loss::Accesses, 2)]);
        // The last access to a block contains a time, too.
        let timed = |event: &&Event<'_>| !matches!(event.kind, EventKind::LastAccess { .. });
        let timeless: Vec<_> = events.iter().filter(timed).map(|event| Event { time: 0, ..*event }).collect();
        assert_eq!(text_of(&HEAP, &heap).0, expected(&timeless));
    }
}

/// The data that HATF 1.0 can store is preserved, and the rest is counted.
#[test]
fn everything_to_hatf_and_back() {
    let events: Vec<_> = everything().into_iter().map(|event| Event { stack: Stack::NONE, ..event }).collect();
    let (heap, _) = heap_of(&events, &HeapOptions::default());
    let is_kept = |event: &&Event<'_>| {
        !matches!(
            event.kind,
            EventKind::Failed(_)
                | EventKind::Mark { .. }
                | EventKind::PhaseBegin { .. }
                | EventKind::PhaseEnd { .. }
                | EventKind::ModuleLoad { .. }
                | EventKind::ModuleUnload { .. }
                | EventKind::Source { .. }
                | EventKind::Symbol { .. }
                | EventKind::Lost { .. }
                | EventKind::Recording { .. }
                | EventKind::ThreadName { .. }
                | EventKind::Pages(_)
                | EventKind::Resident(_)
                | EventKind::Accesses(_)
                | EventKind::LastAccess { .. }
                | EventKind::Untouched { .. }
                | EventKind::Enter { .. }
                | EventKind::Leave
        )
    };
    let plain = |event: &Event<'static>| {
        let mut event = *event;
        if let EventKind::Call(call) = &mut event.kind {
            call.usable = 0;
        }
        event
    };
    let kept: Vec<_> = events.iter().filter(is_kept).map(plain).collect();
    for form in [&hatf10::FORM, &hatf1::FORM] {
        let (bytes, losses) = converted(&HEAP, form, &heap).unwrap();
        let counted = [
            (Loss::Usable, 1),
            (Loss::ThreadNames, 1),
            (Loss::Pages, 8),
            (Loss::Marks, 3),
            (Loss::Modules, 5),
            (Loss::Failed, 2),
            (Loss::Lost, 1),
            (Loss::Recording, 2),
            (Loss::Accesses, 4),
            (Loss::Functions, 2),
        ];
        assert_eq!(losses.iter().collect::<Vec<_>>(), counted, "{}", form.name);
        let again: Vec<_> = text_of(form, &bytes).0.into_iter().filter(|line| line.starts_with("Event")).collect();
        let wanted: Vec<_> = kept
            .iter()
            .map(|event| {
                // A thread of HATF10.dtd has no heap.
                let thread = matches!(event.kind, EventKind::ThreadStart { .. } | EventKind::ThreadEnd);
                format!("{:?}", Event { heap: if thread { 0 } else { event.heap }, ..*event })
            })
            .collect();
        assert_eq!(again, wanted, "{}", form.name);
    }
}

#[test]
fn malloclab_and_back() {
    let rep = "20000\n4\n7\n1\na 0 512\na 1 128\nr 0 640\na 2 0\nf 1\nf 0\na 3 99\n";
    let heap = whole(&malloclab::FORM, &HEAP, rep.as_bytes());
    assert_eq!(String::from_utf8(whole(&HEAP, &malloclab::FORM, &heap)).unwrap(), rep);
    // Blocks of other traces are numbered, and the heap size is the peak of live bytes.
    let raw =
        records(&[&[1, 10, 0x100, 0], &[2, 0, 5, 0], &[4, 30, 0x200, 0x100], &[1, 7, 0x100, 0], &[2, 0, 0x200, 0]]);
    let (rep, losses) = converted(&RAW32, &malloclab::FORM, &raw).unwrap();
    assert_eq!(String::from_utf8(rep).unwrap(), "37\n2\n4\n1\na 0 10\nr 0 30\na 1 7\nf 0\n");
    assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Addresses, 2), (Loss::UnknownFrees, 1)]);
    for (bad, line) in [
        ("1\n2\n", "line 3"),
        ("1\n2\n3\n4\nx 1\n", "line 5"),
        ("1\n1\n1\n1\na 0 1\na 1\n", "line 6"),
        ("1\n1\n2\n1\na 0 1\n", "line 6: the header announces 2 operations, but the trace contains 1"),
    ] {
        let error = converted(&malloclab::FORM, &HEAP, bad.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(line), "{error}");
    }
}

/// Records and attributes of other recorders pass through both HATF 1.0 formats unchanged.
#[test]
fn attributes_of_others() {
    let mut writer = crate::hatf1::Writer::new(Vec::new());
    let record = |kind| crate::hatf1::Record {
        size: 8,
        address: 16,
        thread: 2,
        heap: 5,
        time: 9,
        ..crate::hatf1::Record::new(kind)
    };
    let alloc = record(crate::hatf1::Kind::Alloc);
    for attributes in [&b"\x00\x01"[..], b"calloc", b"size=8", b"", b"realloc end count=1"] {
        writer.record(&crate::hatf1::Record { attributes, ..alloc }).unwrap();
        writer.record(&crate::hatf1::Record { size: 0, attributes, ..record(crate::hatf1::Kind::Free) }).unwrap();
    }
    let native = writer.finish().unwrap();
    let (there, losses) = converted(&hatf1::FORM, &hatf10::FORM, &native).unwrap();
    assert!(losses.is_empty(), "{losses}");
    let back = whole(&hatf10::FORM, &hatf1::FORM, &there);
    assert_eq!(whole(&hatf1::FORM, &jsonl::FORM, &back), whole(&hatf1::FORM, &jsonl::FORM, &native));
    // heap.dtd has neither heaps nor attributes.
    let (_, losses) = converted(&hatf1::FORM, &HEAP, &native).unwrap();
    assert!(losses.iter().any(|(loss, count)| loss == Loss::Heap && count == 10));
    assert!(losses.iter().any(|(loss, count)| loss == Loss::Attributes && count == 8));
}

#[test]
fn kinds_of_realloc_that_contradict_their_addresses() {
    let mut writer = crate::hatf1::Writer::new(Vec::new());
    for kind in [crate::hatf1::Kind::ReallocNoAlloc, crate::hatf1::Kind::ReallocAllocFree] {
        let record = crate::hatf1::Record { size: 8, old_address: 16, address: 32, ..crate::hatf1::Record::new(kind) };
        writer.record(&record).unwrap();
    }
    let (_, losses) = converted(&hatf1::FORM, &HEAP, &writer.finish().unwrap()).unwrap();
    assert!(losses.iter().any(|(loss, count)| loss == Loss::ReallocKind && count == 1));
}

/// Totals of the objects of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    objects: u64,
    bytes: u64,
    unmatched_frees: u64,
    begun_twice: u64,
    live: BTreeMap<u64, u64>,
}

impl Sums {
    fn of(form: &'static Form, bytes: &[u8]) -> Self {
        let mut sums = Self::default();
        of_form(form, bytes).unwrap().give(&mut sums).unwrap();
        sums
    }

    fn ends(&mut self, address: u64) {
        self.unmatched_frees += u64::from(self.live.remove(&address).is_none());
    }
}

impl EventSink for Sums {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match event.kind {
            EventKind::Call(call) => {
                if call.old_is_gone() {
                    self.ends(call.old);
                }
                if call.address != 0 {
                    self.objects += 1;
                    self.bytes += call.size;
                    self.begun_twice += u64::from(self.live.insert(call.address, call.size).is_some());
                }
            }
            EventKind::Free { address } => self.ends(address),
            _ => {}
        }
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
        Ok(())
    }
}

/// "If malloc and/or free are called from realloc, records for these operations occur in the trace in addition" (Table 1).
#[test]
fn records_inside_of_a_realloc() {
    use crate::hatf1::{Kind, Record, Writer};
    let record =
        |kind, size, old_address, address, thread| Record { size, old_address, address, thread, ..Record::new(kind) };
    let alloc = |size, address, thread| record(Kind::Alloc, size, 0, address, thread);
    let free = |address, thread| record(Kind::Free, 0, 0, address, thread);
    let moved = |size, old, new, thread| record(Kind::ReallocAllocFree, size, old, new, thread);
    // Counts objects, bytes, frees without a block, and allocations at the address of a live block.
    let totals = |records: &[Record<'_>]| {
        let mut writer = Writer::new(Vec::new());
        records.iter().for_each(|record| writer.record(record).unwrap());
        let sums = Sums::of(&hatf1::FORM, &writer.finish().unwrap());
        (sums.objects, sums.bytes, sums.unmatched_frees, sums.begun_twice)
    };
    let all = [alloc(10, 1000, 1), alloc(30, 2000, 1), free(1000, 1), moved(30, 1000, 2000, 1), free(2000, 1)];
    assert_eq!(totals(&all), (2, 40, 0, 0));
    // The inner records are interleaved with a record of another thread, incomplete, in reverse order, or missing.
    let between = [all[0], all[1], alloc(5, 9000, 2), all[2], all[3], all[4]];
    assert_eq!(totals(&between), (3, 45, 0, 0));
    let (malloc_alone, free_alone) = ([all[0], all[1], all[3], all[4]], [all[0], all[2], all[3], all[4]]);
    let turned = [all[0], all[2], all[1], all[3], all[4]];
    for records in [&malloc_alone[..], &free_alone, &turned, &[all[0], all[3], all[4]]] {
        assert_eq!(totals(records), (2, 40, 0, 0), "{records:?}");
    }
    // A realloc without an old block, and a realloc to size 0.
    let ends = [
        alloc(7, 500, 1),
        record(Kind::ReallocAlloc, 7, 0, 500, 1),
        free(500, 1),
        record(Kind::ReallocFree, 0, 500, 0, 1),
    ];
    assert_eq!(totals(&ends), (1, 7, 0, 0));
    // Another thread frees the block at an address that the realloc then reuses, so all records are separate calls.
    let recycled = [alloc(10, 1000, 1), alloc(30, 2000, 1), free(2000, 2), moved(30, 1000, 2000, 1), free(2000, 1)];
    assert_eq!(totals(&recycled), (3, 70, 0, 0));
    // Another thread reuses the address of the freed block, so all records are separate calls.
    let passed = [alloc(10, 1000, 1), free(1000, 1), alloc(20, 1000, 2), moved(30, 1000, 2000, 1), free(2000, 1)];
    assert_eq!(totals(&passed), (3, 60, 0, 0));
}

/// A stream with inner records is read as the same trace as a stream without them.
#[test]
fn inner_records_are_written_and_read() {
    let bytes = decompressed(GAWK);
    let options = CreateOptions { inner_records: true, ..CreateOptions::default() };
    let (inner, losses) = convert_bytes(&bytes, Some(&RAW32), &hatf1::FORM, &options).unwrap();
    assert!(losses.is_empty() && inner.len() > whole(&RAW32, &hatf1::FORM, &bytes).len());
    assert_eq!(Sums::of(&hatf1::FORM, &inner), Sums::of(&RAW32, &bytes));
}

#[test]
fn json_lines_that_say_nothing_sound() {
    for (line, kind) in [
        ("{", "line 2"),
        ("{}", "no `@record`"),
        (r#"{"@section":"heap","@record":"malloc","time":0,"stack":0,"size":-1}"#, "requires an integer in `size`"),
        (r#"{"@section":"heap","@record":"malloc","time":0,"stack":5}"#, "has no frames"),
        (r#"{"@section":"heap","@record":"mark","time":0,"name":5}"#, "has no string"),
        (r#"{"@section":"heap","@record":"fred","time":0}"#, "no record `fred`"),
        (r#"{"@section":null,"@record":"free","address":0}"#, "requires an integer in `thread`"),
    ] {
        let error = converted(&jsonl::FORM, &HEAP, format!("\n{line}\n").as_bytes()).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains(kind), "{error}");
    }
}

#[test]
fn forms_are_guessed() {
    let heap = whole(&RAW32, &HEAP, &records(&[&[1, 8, 16, 0]]));
    assert_eq!(input(&heap).guess().unwrap(), &HEAP);
    let hatf10 = whole(&HEAP, &hatf10::FORM, &heap);
    assert_eq!(input(&hatf10).guess().unwrap(), &hatf10::FORM);
    let (raw, _) = convert_bytes(&hatf10, None, &RAW32, &CreateOptions::default()).unwrap();
    assert_eq!(raw, records(&[&[1, 8, 16, 0]]));
    assert_eq!(input(b"{\"@section\":null}").guess().unwrap(), &jsonl::FORM);
    let error = input(&[1, 0, 0, 0]).guess().unwrap_err().to_string();
    assert!(error.contains("--from"), "{error}");
    let named = |name: &str| Input::of(name.to_owned(), Box::new(&[0_u8; 4][..])).unwrap().guess().unwrap();
    assert_eq!(named("dir.x/perl.raw32.zst"), &RAW32);
    assert_eq!(named("perl.hatf"), &hatf1::FORM);
    // The last suffix determines the format, and Meta-TF files are recognized by their bytes.
    assert_eq!(named("perl.mtf.raw64.gz"), &raw::RAW64);
    for (number, form) in FORMS.iter().enumerate() {
        assert!(FORMS[..number].iter().all(|other| other != form), "{form:?} has two rows");
        assert_eq!(Form::of(form.name), Some(*form));
        form.suffixes.iter().for_each(|suffix| assert_eq!(Form::of_file(&format!("a{suffix}.zst")), Some(*form)));
    }
}

/// Truncated and corrupt inputs produce errors in every format, and nothing panics.
#[test]
fn cut_input() {
    let events = everything();
    let (heap, _) = heap_of(&events, &HeapOptions::default());
    for form in [&HEAP, &hatf10::FORM, &hatf1::FORM, &jsonl::FORM] {
        let bytes = if form == &HEAP { heap.clone() } else { converted(&HEAP, form, &heap).unwrap().0 };
        for cut in (0..bytes.len()).step_by(bytes.len() / 60 + 1) {
            let mut text = Text::default();
            if let Ok(mut source) = of_form(form, &bytes[..cut]) {
                let _ = source.give(&mut text);
            }
        }
    }
    let mut source = RawSource::<_, 32>::new(&[9_u8; 40][..]);
    assert!(source.next().is_err());
    assert!(matches!(source.next(), Ok(None)), "something comes after an error");
}
