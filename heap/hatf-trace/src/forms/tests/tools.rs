//! Tests of logs from other tools, and of documents for their viewers.

use super::*;

/// Returns the part of a trace's events that other tools distinguish: block sizes in order, and the functions of their
/// stacks.
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

/// Data that heaptrack 1.4 recorded for a small program, and its interpreted form. Both are truncated, with fewer
/// modules.
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
    // The last call happened after libc was unloaded.
    let last = vec!["0x7f2de4415304".to_owned(), "word+0x10b0".to_owned()];
    assert_eq!(blocks(form, HEAPTRACK_RAW.as_bytes()), [(0x64, stack.clone()), (0x65, stack), (10, last)]);
    let interpreted = vec!["make at /home/u/word.c:3", "main at /home/u/word.c:4", "_start in word"];
    let interpreted: Vec<String> = interpreted.into_iter().map(str::to_owned).collect();
    let expected =
        [(0x64, interpreted.clone()), (0x64, interpreted.clone()), (0x65, vec!["_start in word".to_owned()])];
    assert_eq!(blocks(form, HEAPTRACK.as_bytes()), expected);
    // Times are preserved. Blocks get new addresses. Of several blocks with the same size and stack, the most recently
    // allocated block is freed first.
    let text = text_of(form, HEAPTRACK.as_bytes()).0;
    let frees: Vec<_> = text.iter().filter(|line| line.contains("Free")).collect();
    assert!(frees[0].contains("address: 128") && frees[0].contains("time: 0,"), "{frees:?}");
    assert!(frees[1].contains("address: 240") && frees[1].contains("time: 20000000,"), "{frees:?}");
    // Written data is read back as the same blocks with the same stacks.
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
    // In version 2, strings end at the end of the line.
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
    // A realloc without its second line has freed its block.
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
        (&memray::FORM, sums.as_str(), "line 1: the file contains totals but no events"),
        (&memray::FORM, "TRAILER\n", "line 1: expected a `HEADER` record in the first line"),
        (&memray::FORM, &format!("{head}FRAME_POP count=1\n"), "line 2: more functions return"),
        (&memray::FORM, &format!("{head}ALLOCATION address=x\n"), "line 2: expected a number in `address`, found `x`"),
        (&memray::FORM, &format!("{head}NATIVE_FRAME_ID ip=0x1 index=1\n"), "line 2: there is no native frame 1"),
        (&mtrace::FORM, "@ ./a:[0x1] + 0x2\n", "line 1: expected `@ PLACE + ADDRESS SIZE`"),
        (&mtrace::FORM, "nonsense\n", "line 1: expected"),
        (&heaptrack::FORM, "+ 1\n", "line 1: expected the version (`v`) in the first line"),
        (&heaptrack::FORM, "v 1 4\n", "line 1: unsupported data version 4"),
        (&heaptrack::FORM, "v 1 3\n+ 0\n", "line 2: there is no allocation 0"),
        (&heaptrack::FORM, "v 1 3\na 1 1\n", "line 2: there is no stack 1"),
        (&heaptrack::FORM, "v 1 3\na 1 0\n- 0\n", "line 3: a free refers to a block that is not live"),
        (&heaptrack::FORM, "v 1 3\nt 1 0\n", "line 2: a stack refers to an unknown frame"),
        (&heaptrack::FORM, "v 1 3\nx 1 a\nt 1 1\n", "line 3: a stack refers to an unknown frame"),
        (&heaptrack::FORM, "v 1 3\ns 9 a\n", "line 2: a string is shorter"),
        (&heaptrack::FORM, "v 1 3\nm 1 a ffffffffffffffff 1 2\n", "line 2: a module has no segments"),
        (&heaptrack::FORM, "v 1 3\na ffffffffffffffff 0\n+ 0\n", "line 3: the blocks do not fit in the address space"),
    ] {
        let error = converted(form, &HEAP, log.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{log}: {error}");
    }
    // Stacks have a maximum depth.
    let mut deep = "v 1 3\nx 1 a\n".to_owned();
    (0..=text::DEPTH).for_each(|parent| deep += &format!("t 1 {parent:x}\n"));
    deep += &format!("+ 1 {:x} 10\n", text::DEPTH + 1);
    assert!(
        converted(&heaptrack::FORM, &HEAP, deep.as_bytes()).unwrap_err().to_string().contains("a stack has more than")
    );
    let long = [b"v 1 3\n# ".as_slice(), &vec![b'a'; 1 << 20]].concat();
    assert!(converted(&heaptrack::FORM, &HEAP, &long).unwrap_err().to_string().contains("line 2: the line exceeds"));
}

/// Firefox profiles contain a memory sample for each allocation and each free.
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
    // Walks the stack of the first sample from its innermost frame.
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
    assert!(converted(&firefox::FORM, &HEAP, b"{}").unwrap_err().to_string().contains("write-only"));
}

/// A profile of many events is a sample of blocks: it contains both the allocation and the free of a block, or neither.
#[test]
fn firefox_profiles_of_many_events() {
    let (weights, addresses, losses, _) = sampled_firefox_profile(64, 1000, |block| block);
    assert!((20..=64).contains(&weights.len()), "{}", weights.len());
    let sampled = losses.iter().find(|(loss, _)| *loss == Loss::Sampled).unwrap().1;
    assert_eq!(sampled + weights.len() as u64, 1995);
    for (weight, address) in weights.iter().zip(&addresses).filter(|(_, address)| **address <= 995 << 8) {
        assert!(weight.abs() >= address >> 8);
        let both = weights.iter().zip(&addresses).filter(|(_, other)| *other == address);
        assert_eq!(both.map(|(weight, _)| weight).sum::<i64>(), 0, "block {}", address >> 8);
    }
}

/// The weights of a sample add up to the bytes of all blocks, and the profile is labeled as a sample.
#[test]
fn firefox_weights_are_scaled() {
    let size = |block: u64| if block.is_multiple_of(100) { 100_000 } else { 16 + block % 200 };
    let (weights, _, _, product) = sampled_firefox_profile(4_000, 40_000, size);
    let estimated = weights.iter().filter(|weight| **weight > 0).sum::<i64>();
    let allocated = (1..=40_000).map(size).sum::<u64>().cast_signed();
    assert!((estimated - allocated).abs() * 100 < allocated * 2, "{estimated} in place of {allocated}");
    assert!(product.contains("sampled at one block per"), "{product}");
    // A profile of all blocks is exact.
    let (weights, _, _, product) = sampled_firefox_profile(4_000, 1_000, size);
    assert_eq!(
        weights.iter().filter(|weight| **weight > 0).sum::<i64>(),
        (1..=1_000).map(size).sum::<u64>().cast_signed()
    );
    assert_eq!(product, "hatf");
}

/// Writes a profile of at most `most` samples, for blocks that each live until five more are allocated. Returns the
/// weights, addresses, losses and product name.
fn sampled_firefox_profile(
    most: usize,
    blocks: u64,
    size: impl Fn(u64) -> u64,
) -> (Vec<i64>, Vec<i64>, Losses, String) {
    let mut out = Vec::new();
    let mut sink = firefox::FirefoxSink::new(&mut out);
    sink.most = most;
    for block in 1..=blocks {
        let call = Call { size: size(block), address: block << 8, ..Call::new(Function::Malloc) };
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
    (of("weight"), of("memoryAddress"), losses, json["meta"]["product"].as_str().unwrap().to_owned())
}
