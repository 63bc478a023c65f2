//! Every form to every other, and what is lost on the way.

use std::collections::BTreeMap;
use std::io::Cursor;

use super::*;
use crate::event::{Accesses, Call, Event, EventKind, EventSource as _, Function, Pages, Resident, UserMetadata};
use crate::heap::{HeapOptions, HeapWriter};
use crate::loss::Loss;

fn input(bytes: &[u8]) -> Input {
    Input::of("a trace in memory".to_owned(), Box::new(Cursor::new(bytes.to_vec()))).unwrap()
}

fn converted(from: &'static Form, to: &Form, bytes: &[u8]) -> Result<(Vec<u8>, Losses)> {
    convert_bytes(bytes, Some(from), to, &CreateOptions::default())
}

/// Opens a trace of this form.
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

/// The first events of a real program: gawk with 32 bytes a record, python3 with five threads and 64.
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
        // Compressed input is seen to be so.
        let heap = whole(form, &HEAP, file);
        assert!(heap.len() < bytes.len() / 8, "{}", heap.len());
        assert!(whole(&HEAP, form, &heap) == bytes, "{} differs", form.name);
        // By way of JSON lines, too.
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
        ([6, 0, 0, 0], "tag 6"),
        ([0, 0, 0, 0], "tag 0"),
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

/// One of everything that can happen.
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
        Event { kind, time, thread: 1 + n % 3, heap, stack, attributes: b"" }
    };
    (0..).zip(whats).map(event).collect()
}

/// Events and comments as text.
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

/// heap.dtd, and its JSON lines, hold everything; whatever the size of groups, and with or without a model of the heap.
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

/// More stacks than reader and writer keep, each three times.
#[test]
fn stacks_without_end() {
    let stacks: Vec<Vec<u64>> = (1..=200).map(|stack| (1..=10).map(|frame| stack << 8 | frame).collect()).collect();
    let call = Call { size: 8, address: 0x1000, ..Call::new(Function::Malloc) };
    let rounds = (0..3).flat_map(|_| &stacks);
    let pairs = rounds.flat_map(|stack| {
        [Event { stack, ..Event::new(EventKind::Call(call)) }, Event::new(EventKind::Free { address: call.address })]
    });
    let events: Vec<_> = pairs.collect();
    let (heap, losses) = heap_of(&events, &HeapOptions::default());
    assert!(losses.is_empty(), "{losses}");
    let expected: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(text_of(&HEAP, &heap).0[1..], expected);
}

/// A coarse clock rounds down; without one there are no times.
#[test]
fn clocks() {
    let events = everything();
    let (heap, losses) = heap_of(&events, &HeapOptions { resolution: 2_000, ..HeapOptions::default() });
    assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Rounding, 23)]);
    let rounded: Vec<_> = events.iter().map(|event| Event { time: event.time / 2_000 * 2_000, ..*event }).collect();
    assert_eq!(text_of(&HEAP, &heap).0, expected(&rounded));
    for plain in [false, true] {
        let (heap, losses) = heap_of(&events, &HeapOptions { resolution: 0, plain, ..HeapOptions::default() });
        assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Time, 47), (Loss::Accesses, 2)]);
        // When a block was last accessed is a time, too.
        let timed = |event: &&Event<'_>| !matches!(event.kind, EventKind::LastAccess { .. });
        let timeless: Vec<_> = events.iter().filter(timed).map(|event| Event { time: 0, ..*event }).collect();
        assert_eq!(text_of(&HEAP, &heap).0, expected(&timeless));
    }
}

/// What HATF 1.0 holds of everything is read again as it was, and the rest is counted.
#[test]
fn everything_to_hatf_and_back() {
    let events: Vec<_> = everything().into_iter().map(|event| Event { stack: &[], ..event }).collect();
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
            (Loss::Pages, 6),
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
    // Blocks of other traces are numbered, and the heap is as large as the most that was live.
    let raw =
        records(&[&[1, 10, 0x100, 0], &[2, 0, 5, 0], &[4, 30, 0x200, 0x100], &[1, 7, 0x100, 0], &[2, 0, 0x200, 0]]);
    let (rep, losses) = converted(&RAW32, &malloclab::FORM, &raw).unwrap();
    assert_eq!(String::from_utf8(rep).unwrap(), "37\n2\n4\n1\na 0 10\nr 0 30\na 1 7\nf 0\n");
    assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Addresses, 2), (Loss::UnknownFrees, 1)]);
    for (bad, line) in [("1\n2\n", "line 3"), ("1\n2\n3\n4\nx 1\n", "line 5"), ("1\n1\n1\n1\na 0 1\na 1\n", "line 6")] {
        let error = converted(&malloclab::FORM, &HEAP, bad.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(line), "{error}");
    }
}

/// Records and attributes of other recorders go through HATF 1.0's two forms as they are.
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

/// Sums of the objects of a trace.
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
    // Objects, bytes, frees that have no block, and blocks where one was live.
    let totals = |records: &[Record<'_>]| {
        let mut writer = Writer::new(Vec::new());
        records.iter().for_each(|record| writer.record(record).unwrap());
        let sums = Sums::of(&hatf1::FORM, &writer.finish().unwrap());
        (sums.objects, sums.bytes, sums.unmatched_frees, sums.begun_twice)
    };
    let all = [alloc(10, 1000, 1), alloc(30, 2000, 1), free(1000, 1), moved(30, 1000, 2000, 1), free(2000, 1)];
    assert_eq!(totals(&all), (2, 40, 0, 0));
    // Another thread comes between; one of the two alone; the other order; none.
    let between = [all[0], all[1], alloc(5, 9000, 2), all[2], all[3], all[4]];
    assert_eq!(totals(&between), (3, 45, 0, 0));
    let (malloc_alone, free_alone) = ([all[0], all[1], all[3], all[4]], [all[0], all[2], all[3], all[4]]);
    let turned = [all[0], all[2], all[1], all[3], all[4]];
    for records in [&malloc_alone[..], &free_alone, &turned, &[all[0], all[3], all[4]]] {
        assert_eq!(totals(records), (2, 40, 0, 0), "{records:?}");
    }
    // A realloc of no block, and to no size.
    let ends = [
        alloc(7, 500, 1),
        record(Kind::ReallocAlloc, 7, 0, 500, 1),
        free(500, 1),
        record(Kind::ReallocFree, 0, 500, 0, 1),
    ];
    assert_eq!(totals(&ends), (1, 7, 0, 0));
    // Another thread frees the block, and the realloc has its place: all are calls of their own.
    let recycled = [alloc(10, 1000, 1), alloc(30, 2000, 1), free(2000, 2), moved(30, 1000, 2000, 1), free(2000, 1)];
    assert_eq!(totals(&recycled), (3, 70, 0, 0));
    // Another thread has what was freed.
    let passed = [alloc(10, 1000, 1), free(1000, 1), alloc(20, 1000, 2), moved(30, 1000, 2000, 1), free(2000, 1)];
    assert_eq!(totals(&passed), (3, 60, 0, 0));
}

/// What is written with them is the same trace.
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
        (r#"{"@section":"heap","@record":"malloc","time":0,"stack":0,"size":-1}"#, "no number `size`"),
        (r#"{"@section":"heap","@record":"malloc","time":0,"stack":5}"#, "does not say its frames"),
        (r#"{"@section":"heap","@record":"mark","time":0,"name":5}"#, "does not say its text"),
        (r#"{"@section":"heap","@record":"fred","time":0}"#, "no record `fred`"),
        (r#"{"@section":null,"@record":"free","address":0}"#, "no number `thread`"),
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
    // The last suffix counts, and what is in Meta-TF shows by its bytes.
    assert_eq!(named("perl.mtf.raw64.gz"), &raw::RAW64);
    for (number, form) in FORMS.iter().enumerate() {
        assert!(FORMS[..number].iter().all(|other| other != form), "{form:?} has two rows");
        assert_eq!(Form::of(form.name), Some(*form));
        form.suffixes.iter().for_each(|suffix| assert_eq!(Form::of_file(&format!("a{suffix}.zst")), Some(*form)));
    }
}

/// What is cut off or damaged is an error, whatever the form; nothing panics.
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

/// What of a trace's events other tools tell apart: blocks with sizes, in order, and their stacks' functions.
fn blocks(form: &'static Form, bytes: &[u8]) -> Vec<(u64, Vec<String>)> {
    struct Blocks(crate::stacks::Stacks, Vec<(u64, Vec<String>)>);
    impl EventSink for Blocks {
        fn event(&mut self, event: &Event<'_>) -> Result<()> {
            self.0.note(&event.kind);
            if let EventKind::Call(call) = event.kind {
                let number = self.0.number(event.stack);
                let stack = self.0.get(number).flat_map(crate::stacks::Location::lines).collect();
                self.1.push((call.size, stack));
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
    let mut sink = Blocks(crate::stacks::Stacks::default(), Vec::new());
    of_form(form, bytes).unwrap().give(&mut sink).unwrap();
    sink.1
}

/// What heaptrack 1.4 has recorded of a small program, and what it has made of it. Beginnings, with fewer modules.
const HEAPTRACK_RAW: &str = "v 10400 3
x c /home/u/word
X ./t
I 1000 5e298d
m 1 -
m 1 x 556ac4cb1000 0 6f8 1000 2a1 2000 104 3dd0 270
m 1f /lib/x86_64-linux-gnu/libc.so.6 7f2de43ee000 0 25388 26000 1550fc 17c000 52c31 1cf8d0 12680
t 556ac4cb20b0 0
t 7f2de4415304 1
t 556ac4cb21d0 2
t 556ac4cb2190 3
+ 64 4 556acd7d31d0
c a
+ 65 4 556acd7d3330
- 556acd7d31d0
m 1 -
m 1 x 556ac4cb1000 0 6f8 1000 2a1 2000 104 3dd0 270
+ a 2 556acd7d3770
c b
R 3c4
";
const HEAPTRACK: &str = "v 10400 3
X ./t
I 1000 5e298d
s c /home/u/word
s 6 _start
i 55b1b077c0b0 1 2
t 1 0
s 4 main
s e /home/u/word.c
s 4 make
i 55b1b077c1d0 1 5 4 3 3 4 4
t 2 1
a 64 2
+ 0
+ 0
a 65 1
+ 1
- 0
c 14
- 1
R 3b6

# strings: 5
";

#[test]
fn heaptrack_raw_and_interpreted() {
    let form = &heaptrack::FORM;
    assert_eq!(input(HEAPTRACK_RAW.as_bytes()).guess().unwrap(), form);
    let (program, libc) = ("word+0x11d0".to_owned(), "libc.so.6+0x27304".to_owned());
    let stack = vec!["word+0x1190".to_owned(), program, libc.clone(), "word+0x10b0".to_owned()];
    // The last call is after libc was unloaded.
    let last = vec!["0x7f2de4415304".to_owned(), "word+0x10b0".to_owned()];
    assert_eq!(blocks(form, HEAPTRACK_RAW.as_bytes()), [(0x64, stack.clone()), (0x65, stack), (10, last)]);
    let interpreted = vec!["make at /home/u/word.c:3", "main at /home/u/word.c:4", "_start in word"];
    let interpreted: Vec<String> = interpreted.into_iter().map(str::to_owned).collect();
    let expected =
        [(0x64, interpreted.clone()), (0x64, interpreted.clone()), (0x65, vec!["_start in word".to_owned()])];
    assert_eq!(blocks(form, HEAPTRACK.as_bytes()), expected);
    // Times are kept; blocks have addresses of their own, of which the last one of a size and a stack is freed first.
    let text = text_of(form, HEAPTRACK.as_bytes()).0;
    let frees: Vec<_> = text.iter().filter(|line| line.contains("Free")).collect();
    assert!(frees[0].contains("address: 128") && frees[0].contains("time: 0,"), "{frees:?}");
    assert!(frees[1].contains("address: 240") && frees[1].contains("time: 20000000,"), "{frees:?}");
    // What is written is read again: the same blocks with the same stacks.
    for log in [HEAPTRACK_RAW, HEAPTRACK] {
        let (heap, _) = converted(form, &HEAP, log.as_bytes()).unwrap();
        let (again, losses) = converted(&HEAP, form, &heap).unwrap();
        assert!(losses.iter().any(|(loss, count)| loss == Loss::Addresses && count == 3));
        assert_eq!(
            Sums::of(form, &again).live.values().sum::<u64>(),
            Sums::of(form, log.as_bytes()).live.values().sum::<u64>()
        );
        let names = |blocks: Vec<(u64, Vec<String>)>| blocks.into_iter().map(|(size, _)| size).collect::<Vec<_>>();
        assert_eq!(names(blocks(form, &again)), names(blocks(form, log.as_bytes())));
    }
    let (again, _) = converted(form, form, HEAPTRACK.as_bytes()).unwrap();
    assert_eq!(blocks(form, &again), expected);
    // Of version 2, strings end with their line.
    let old = HEAPTRACK.replace("v 10400 3", "v 10300 2").replace("s c /", "s /").replace("s 6 ", "s ");
    let old = old.replace("s 4 ", "s ").replace("s e ", "s ");
    assert_eq!(blocks(form, old.as_bytes()), expected);
}

#[test]
fn mtrace_and_memray() {
    let mtrace = "= Start\n@ ./a b:(add+0x15)[0x1185] + 0x5580 0x40\n@ ./a b:(add+0x15)[0x1185] < 0x5580\n\
        @ ./a b:(add+0x15)[0x1185] > 0x5700 0x80\n@ [0x99] + (nil) 0x7\n@ ./a b:[0x1185] < 0x5700\n= End\n";
    let text = text_of(&mtrace::FORM, mtrace.as_bytes()).0;
    assert!(text.iter().any(|line| line.contains("ModuleLoad") && line.contains("bias: 281474976710656")), "{text:?}");
    assert_eq!(text.iter().filter(|line| line.contains("Symbol")).count(), 1, "{text:?}");
    let calls: Vec<_> = text.iter().filter(|line| line.contains("Call(") || line.contains("Free {")).collect();
    assert!(
        calls[1].contains("Realloc") && calls[1].contains("old: 21888") && calls[1].contains("size: 128"),
        "{calls:?}"
    );
    // A realloc without its second line has ended its block.
    assert!(calls[2].contains("Free { address: 22272 }"), "{calls:?}");
    assert!(text.iter().any(|line| line.contains("Failed")), "{text:?}");

    let head = "HEADER magic=memray version=13 native_traces=true file_format=ALL_ALLOCATIONS start_time=100 end_time=9 \
        pid=7 main_tid=1 skipped_frames_on_main_tid=1 command_line=memray run a=b.py python_allocator=pymalloc\n";
    let memray = format!(
        "{head}MEMORY_MAP_START\nSEGMENT_HEADER filename=/lib/a b.so num_segments=2 addr=0x1000\nSEGMENT (nil) 10\n\
        SEGMENT 0x100 20\nNATIVE_FRAME_ID ip=0x1001 index=0\nNATIVE_FRAME_ID ip=0x1102 index=1\nCONTEXT_SWITCH tid=1\n\
        CODE_OBJECT code_id=1 function_name=<module> filename=m.py firstlineno=1 linetable_size=12\n\
        CODE_OBJECT code_id=2 function_name=add filename=/a b/w.py firstlineno=3 linetable_size=12\n\
        FRAME_PUSH code_object_id=1 instruction_offset=1 is_entry_frame=1\n\
        ALLOCATION address=0x10 size=8 allocator=malloc native_frame_id=2\n\
        FRAME_PUSH code_object_id=2 instruction_offset=1 is_entry_frame=1\nMEMORY_RECORD time=103 memory=5\n\
        ALLOCATION address=0x20 size=9 allocator=pymalloc_realloc native_frame_id=2\n\
        CONTEXT_SWITCH tid=2\nTHREAD a worker\nALLOCATION address=0x30 size=7 allocator=valloc native_frame_id=0\nTRAILER\n"
    );
    let native = vec!["a b.so+0x102".to_owned(), "a b.so+0x1".to_owned()];
    let expected = [(8, native), (9, vec!["add at /a b/w.py:3".to_owned()]), (7, Vec::new())];
    assert_eq!(blocks(&memray::FORM, memray.as_bytes()), expected);
    let Text(text, metadata) = text_of(&memray::FORM, memray.as_bytes());
    assert_eq!(metadata["command"], serde_json::json!(["memray run a=b.py"]));
    assert!(text.iter().any(|line| line.contains("time: 3000000, thread: 1")), "{text:?}");
    assert!(text.iter().any(|line| line.contains("ThreadName") && line.contains("thread: 2")), "{text:?}");
    let sums = head.replace("ALL_ALLOCATIONS", "AGGREGATED_ALLOCATIONS");
    for (form, log, why) in [
        (&memray::FORM, sums.as_str(), "line 1: not a file of all allocations"),
        (&memray::FORM, "TRAILER\n", "line 1: the first line is no header"),
        (&memray::FORM, &format!("{head}FRAME_POP count=1\n"), "line 2: more functions return"),
        (&memray::FORM, &format!("{head}ALLOCATION address=x\n"), "line 2: `address` is not a number: x"),
        (&memray::FORM, &format!("{head}NATIVE_FRAME_ID ip=0x1 index=1\n"), "line 2: there is no native frame 1"),
        (&mtrace::FORM, "@ ./a:[0x1] + 0x2\n", "line 1: expected `@ PLACE + ADDRESS SIZE`"),
        (&mtrace::FORM, "nonsense\n", "line 1: expected"),
        (&heaptrack::FORM, "+ 1\n", "line 1: the first line does not give the version"),
        (&heaptrack::FORM, "v 1 4\n", "line 1: version 4"),
        (&heaptrack::FORM, "v 1 3\n+ 0\n", "line 2: there is no allocation 0"),
        (&heaptrack::FORM, "v 1 3\na 1 1\n", "line 2: there is no stack 1"),
        (&heaptrack::FORM, "v 1 3\na 1 0\n- 0\n", "line 3: a free of a block that is not live"),
        (&heaptrack::FORM, "v 1 3\nt 1 0\n", "line 2: a stack of a frame"),
        (&heaptrack::FORM, "v 1 3\nx 1 a\nt 1 1\n", "line 3: a stack of a frame"),
        (&heaptrack::FORM, "v 1 3\ns 9 a\n", "line 2: a string that is shorter"),
        (&heaptrack::FORM, "v 1 3\nm 1 a ffffffffffffffff 1 2\n", "line 2: a module whose segments"),
        (&heaptrack::FORM, "v 1 3\na ffffffffffffffff 0\n+ 0\n", "line 3: more bytes than there are addresses"),
    ] {
        let error = converted(form, &HEAP, log.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{log}: {error}");
    }
    // Stacks have a bound.
    let mut deep = "v 1 3\nx 1 a\n".to_owned();
    (0..=text::DEPTH).for_each(|parent| deep += &format!("t 1 {parent:x}\n"));
    deep += &format!("+ 1 {:x} 10\n", text::DEPTH + 1);
    assert!(converted(&heaptrack::FORM, &HEAP, deep.as_bytes()).unwrap_err().to_string().contains("a stack of over"));
    let long = [b"v 1 3\n# ".as_slice(), &vec![b'a'; 1 << 20]].concat();
    assert!(converted(&heaptrack::FORM, &HEAP, &long).unwrap_err().to_string().contains("line 2: a line of over"));
}

/// What the Firefox Profiler reads: a sample of memory for each allocation and each free.
#[test]
fn firefox_profiles() {
    let (heap, _) = converted(&heaptrack::FORM, &HEAP, HEAPTRACK.as_bytes()).unwrap();
    let (json, _) = converted(&HEAP, &firefox::FORM, &heap).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let thread = &json["threads"][0];
    let samples = &thread["nativeAllocations"];
    assert_eq!(samples["weight"], serde_json::json!([100, 100, 101, -100, -101]));
    assert_eq!(samples["memoryAddress"], serde_json::json!([16, 128, 240, 128, 240]));
    assert_eq!(samples["time"][4], 20.0);
    // The stack of the first, from its innermost frame.
    let place = |value: &serde_json::Value| value.as_u64().map(|value| usize::try_from(value).unwrap());
    let (mut at, mut names) = (place(&samples["stack"][0]), Vec::new());
    while let Some(stack) = at {
        let frame = place(&thread["stackTable"]["frame"][stack]).unwrap();
        let function = place(&thread["frameTable"]["func"][frame]).unwrap();
        let name = place(&thread["funcTable"]["name"][function]).unwrap();
        names.push((thread["stringArray"][name].clone(), thread["frameTable"]["line"][frame].clone()));
        at = place(&thread["stackTable"]["prefix"][stack]);
    }
    let names: Vec<_> = names.iter().map(|(name, line)| (name.as_str().unwrap(), line.as_u64())).collect();
    assert_eq!(names, [("make", Some(3)), ("main", Some(4)), ("_start", None)]);
    assert_eq!(json["libs"][0]["name"], "word");
    assert!(converted(&firefox::FORM, &HEAP, b"{}").unwrap_err().to_string().contains("only written"));
}

/// Of many events a sample of blocks is written: both the allocation and the free of a block, or neither.
#[test]
fn firefox_profiles_of_many_events() {
    let mut out = Vec::new();
    let mut sink = firefox::FirefoxSink::new(&mut out);
    sink.most = 64;
    for block in 1..=1000_u64 {
        let call = Call { size: block, address: block << 8, ..Call::new(Function::Malloc) };
        sink.event(&Event::new(EventKind::Call(call))).unwrap();
        if let Some(address) = block.checked_sub(5).filter(|block| *block > 0).map(|block| block << 8) {
            sink.event(&Event::new(EventKind::Free { address })).unwrap();
        }
    }
    let losses = Box::new(sink).finish().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let samples = &json["threads"][0]["nativeAllocations"];
    let of =
        |name: &str| samples[name].as_array().unwrap().iter().map(|value| value.as_i64().unwrap()).collect::<Vec<_>>();
    let (weights, addresses) = (of("weight"), of("memoryAddress"));
    assert!((20..=64).contains(&weights.len()), "{}", weights.len());
    let sampled = losses.iter().find(|(loss, _)| *loss == Loss::Sampled).unwrap().1;
    assert_eq!(sampled + weights.len() as u64, 1995);
    for (weight, address) in weights.iter().zip(&addresses).filter(|(_, address)| **address <= 995 << 8) {
        assert_eq!(weight.abs(), address >> 8);
        let both = weights.iter().zip(&addresses).filter(|(_, other)| *other == address);
        assert_eq!(both.map(|(weight, _)| weight).sum::<i64>(), 0, "block {}", address >> 8);
    }
}
