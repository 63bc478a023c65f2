//! Tests that written profiles are read back unchanged and that raw LLVM profiles are read according to their layout.

use hatf_lab::profile::{Cpus, FirstCpus, HeapInfo, Lifetimes, Live, Loads, Spread};
use hatf_lab::sites::Amount;
use metatf::container::Reader;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use hatf_trace::stacks::{Function, Location, Module};

fn spread() -> impl Strategy<Value = Spread> {
    (any::<u64>(), any::<u64>(), 0..9_u64).prop_map(|(total, min, max)| Spread { total, min, max })
}

fn info() -> impl Strategy<Value = HeapInfo> {
    use proptest::option::of;
    let times = (spread(), any::<[u64; 3]>(), of(any::<u64>()));
    let cpus = (any::<[u64; 5]>(), of(any::<[u64; 2]>()));
    let spreads = (spread(), of(spread()), of(spread()), of(spread()), of(spread()));
    let rest = (of(1..u64::MAX), of(vec(any::<u64>(), 1..5)), of(any::<[u64; 5]>()), of(any::<[u64; 4]>()));
    (0..4_u64, any::<u32>(), spreads, of(times), of(cpus), rest).prop_map(
        |(
            context,
            count,
            (size, accesses, utilized, density, over_time),
            times,
            cpus,
            (data_type_id, histogram, loads, live),
        )| {
            HeapInfo {
                context,
                alloc_count: count.into(),
                size,
                lifetimes: times.map(|(lifetime, [alloc, dealloc, overlaps], first)| Lifetimes {
                    lifetime,
                    alloc_timestamp: alloc,
                    dealloc_timestamp: dealloc,
                    num_lifetime_overlaps: overlaps,
                    first_alloc_timestamp: first,
                }),
                access_count: accesses,
                percent_utilized: utilized,
                cpus: cpus.map(|([alloc, dealloc, migrated, same_alloc, same_dealloc], first)| Cpus {
                    alloc_cpu_id: alloc,
                    dealloc_cpu_id: dealloc,
                    num_migrated_cpu: migrated,
                    num_same_alloc_cpu: same_alloc,
                    num_same_dealloc_cpu: same_dealloc,
                    first: first.map(|[first_alloc_cpu_id, first_dealloc_cpu_id]| FirstCpus {
                        first_alloc_cpu_id,
                        first_dealloc_cpu_id,
                    }),
                }),
                data_type_id,
                access_density: density,
                lifetime_access_density: over_time,
                access_histogram: histogram,
                loads: loads.map(|[loads, stores, unread, unknown, reached]| Loads {
                    total_load_count: loads,
                    total_store_count: stores,
                    unread_count: unread,
                    unknown_count: unknown,
                    reached_count: reached,
                }),
                live: live.map(|[blocks, bytes, left, left_bytes]| Live {
                    peak: Amount { blocks, bytes },
                    end: Amount { blocks: left, bytes: left_bytes },
                }),
            }
        },
    )
}

/// Returns a profile with two modules, three locations and three contexts, one of which is a size class. There is no
/// description of context 0.
fn profile(infos: Vec<HeapInfo>) -> HeapProfile {
    let module = |number: usize, path: &str| {
        let start = 0x1000 * (number as u64 + 1);
        let (build_id, path) = ("0a1b".to_owned(), path.to_owned());
        Module { number, bias: start, start, end: start + 0x1000, build_id, path, is_program: false }
    };
    let location = |address: u64, module: &str| Location {
        address,
        module: module.to_owned(),
        build_id: "0a1b".to_owned(),
        is_program: address.is_multiple_of(2),
        offset: address & 0xfff,
        process: 0,
        functions: vec![Function { name: format!("f{address}"), file: "a.c".to_owned(), line: address }],
    };
    let contexts = [
        (1, ProfileContext::Stack(vec![0, 1])),
        (2, ProfileContext::Stack(vec![2, 1])),
        (3, ProfileContext::Size { exponent: 6, thread: 2 }),
    ];
    HeapProfile {
        modules: vec![module(0, "/bin/a"), module(1, "/lib/b.so")],
        locations: vec![location(0x1010, "/bin/a"), location(0x1021, "/bin/a"), location(0x2030, "/lib/b.so")],
        contexts: contexts.into(),
        infos,
        tick: 1000,
        about: [("program".to_owned(), "/bin/a".into())].into_iter().collect(),
    }
}

fn written(profile: &HeapProfile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_profile(profile, &mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> hatf_trace::Result<HeapProfile> {
    read_profile(Reader::from_slice(bytes).map_err(|error| hatf_trace::Error::Trace(error.to_string().into()))?, || ())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_profile_is_read_as_it_was_written(infos in vec(info(), 0..12)) {
        let profile = profile(infos);
        let again = read(&written(&profile)).unwrap();
        prop_assert_eq!(&again.infos, &profile.infos);
        prop_assert_eq!(&again.contexts, &profile.contexts);
        prop_assert_eq!(&again.locations, &profile.locations);
        prop_assert_eq!(&again.modules, &profile.modules);
        prop_assert_eq!((again.tick, &again.about), (1000, &profile.about));
    }
}

fn block(context: u64, first: u64, last: u64) -> HeapInfo {
    let ended = |alloc, dealloc| hatf_lab::profile::Ended {
        context,
        size: 8,
        timestamps: Some((alloc, dealloc)),
        cpus: Some((0, 0)),
        ..Default::default()
    };
    HeapInfo::new(&ended(first, last), 1000)
}

/// Blocks of different runs are not neighbors. Contexts are the same if their stacks are, regardless of where the
/// modules were loaded.
#[test]
fn profiles_of_two_runs() {
    let first = profile(vec![block(1, 0, 10), block(3, 0, 5), block(1, 5, 12)]);
    let mut second = profile(vec![block(2, 0, 3), block(1, 0, 4), block(3, 1, 2)]);
    // In the second run, the program is loaded at another address, and contexts have other numbers.
    for location in &mut second.locations {
        location.address += 0x10_0000;
    }
    second.contexts = [
        (1, ProfileContext::Stack(vec![2, 1])),
        (2, ProfileContext::Stack(vec![0, 1])),
        (3, ProfileContext::Size { exponent: 6, thread: 2 }),
    ]
    .into();
    let merged = merge([first.clone(), second]).unwrap();
    let counts = |info: &HeapInfo| {
        let overlaps = info.lifetimes.unwrap().num_lifetime_overlaps;
        (merged.name(info.context, 1), info.alloc_count, overlaps, info.cpus.unwrap().num_same_alloc_cpu)
    };
    let infos: Vec<_> = merged.infos.iter().map(counts).collect();
    // In the first run, two blocks overlap. The last block of one run never counts as overlapping the first block of
    // the other run.
    let expected =
        [("f4112:4112 <- ..", 3, 1, 1), ("up to 64 bytes, thread 2", 2, 0, 0), ("f8240:8240 <- ..", 1, 0, 0)];
    assert_eq!(infos, expected.map(|(name, blocks, overlaps, same)| (name.to_owned(), blocks, overlaps, same)));
    assert_eq!((merged.modules.len(), merged.locations.len(), merged.contexts.len()), (2, 3, 3));
    assert!(merged.is_merged() && !first.is_merged());
    let other = HeapProfile { tick: 1, ..first.clone() };
    assert_eq!(
        merge([first, other]).unwrap_err().to_string(),
        "cannot merge profiles with different tick lengths (1000 ns and 1 ns)"
    );
    let unknown = profile(vec![block(9, 0, 1)]);
    assert_eq!(merge([unknown]).unwrap_err().to_string(), "context 9 is not described");
}

#[test]
fn a_context_that_is_described_twice() {
    let mut bytes = Vec::new();
    let mut writer = ProfileWriter::new(&mut bytes, 1).unwrap();
    for exponent in [1, 2] {
        writer.context(7, &ProfileContext::Size { exponent, thread: 1 }, &[]).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(read(&bytes).unwrap_err().to_string(), "context 7 is described twice");
}

/// Builds a raw profile according to the layout: two segments, and three blocks of two stacks.
fn raw(version: u64, histogram: &[u64]) -> Vec<u8> {
    let mut sections = [Vec::new(), Vec::new(), Vec::new()];
    let put = |out: &mut Vec<u8>, numbers: &[u64]| numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
    put(&mut sections[0], &[2]);
    for (start, end, offset, id) in [(0x5000, 0x6000, 0x4000, 20_u8), (0x7000, 0x7800, 0x7000, 4)] {
        put(&mut sections[0], &[start, end, offset, id.into()]);
        sections[0].extend((0..32).map(|n| if n < id { n + 1 } else { 0 }));
    }
    put(&mut sections[1], &[3]);
    for (n, stack) in [(1, 0xaa), (2, 0xbb), (3, 0xaa)] {
        put(&mut sections[1], &[stack]);
        // Each number identifies its field and its block.
        let field = |field: u64| 100 * n + field;
        let small = |out: &mut Vec<u8>, fields: std::ops::Range<u64>| {
            fields.for_each(|number| out.extend(u32::try_from(field(number)).unwrap().to_le_bytes()));
        };
        let out = &mut sections[1];
        small(out, 0..1);
        put(out, &[field(1), field(2), field(3), field(4)]);
        small(out, 5..9);
        put(out, &[field(9)]);
        small(out, 10..18);
        put(out, &[if n == 2 { 0 } else { field(18) }, field(19)]);
        small(out, 20..22);
        put(out, &[field(22)]);
        small(out, 23..25);
        if version > 3 {
            let entries = if n == 2 { &[][..] } else { histogram };
            out.extend(u32::try_from(entries.len()).unwrap().to_le_bytes());
            put(out, &[0xdead_beef]);
            for entry in entries {
                if version == 4 {
                    put(out, &[*entry]);
                } else {
                    out.extend(u16::try_from(*entry).unwrap().to_le_bytes());
                }
            }
        }
    }
    while !sections[1].len().is_multiple_of(8) {
        sections[1].push(0);
    }
    put(&mut sections[2], &[2]);
    put(&mut sections[2], &[0xbb, 1, 0x9000]);
    put(&mut sections[2], &[0xaa, 3, 0x5010, 0x77ff, 0x7800]);
    let offsets = sections.iter().scan(48, |at, section| {
        let offset = *at;
        *at += section.len() as u64;
        Some(offset)
    });
    let offsets: Vec<u64> = offsets.collect();
    let total = 48 + sections.iter().map(Vec::len).sum::<usize>() as u64;
    let mut file = vec![0x81, 0x72, 0x66, 0x6f, 0x72, 0x70, 0x6d, 0xff];
    put(&mut file, &[version, total, offsets[0], offsets[1], offsets[2]]);
    file.extend(sections.concat());
    file
}

/// Returns the block that the layout test expects. Its fields are `100 n` plus their positions.
fn expected(n: u64, context: u64, access_histogram: Option<Vec<u64>>) -> HeapInfo {
    let field = |number: u64| 100 * n + number;
    let spread = |at| Spread { total: field(at), min: field(at + 1), max: field(at + 2) };
    HeapInfo {
        context,
        alloc_count: field(0),
        access_count: Some(spread(1)),
        size: spread(4),
        lifetimes: Some(Lifetimes {
            lifetime: spread(9),
            alloc_timestamp: field(7),
            dealloc_timestamp: field(8),
            num_lifetime_overlaps: field(15),
            first_alloc_timestamp: None,
        }),
        percent_utilized: None,
        cpus: Some(Cpus {
            alloc_cpu_id: field(12),
            dealloc_cpu_id: field(13),
            num_migrated_cpu: field(14),
            num_same_alloc_cpu: field(16),
            num_same_dealloc_cpu: field(17),
            first: None,
        }),
        data_type_id: (n != 2).then(|| field(18)),
        access_density: Some(spread(19)),
        lifetime_access_density: Some(spread(22)),
        access_histogram,
        loads: None,
        live: None,
    }
}

#[test]
fn raw_profiles_of_each_version() {
    // For version 5, the number of entries is odd, so that a block is not aligned. The entries are 5 and 0xfff << 15.
    for (version, stored, histogram) in [
        (3, &[][..], None),
        (4, &[7, u64::MAX][..], Some(vec![7, u64::MAX])),
        (5, &[5, 0xffff, 0x1003], Some(vec![5, 0xfff << 15, 6])),
    ] {
        let profiles = import(&raw(version, stored)).unwrap();
        let [profile] = &profiles[..] else { panic!("version {version}: {} profiles", profiles.len()) };
        let infos = [expected(1, 1, histogram.clone()), expected(2, 2, None), expected(3, 1, histogram)];
        assert_eq!(profile.infos, infos, "version {version}");
        let stack =
            |context| profile.stack(context).map(|l| (l.address, l.offset, &l.build_id[..])).collect::<Vec<_>>();
        let id = "0102030405060708090a0b0c0d0e0f1011121314";
        // The return addresses of the calls.
        assert_eq!(stack(1), [(0x5011, 0x1011, id), (0x7800, 0x800, "01020304"), (0x7801, 0x7801, "")]);
        assert_eq!(stack(2), [(0x9001, 0x9001, "")]);
        let modules: Vec<_> = profile.modules.iter().map(|module| (module.start, module.end, module.bias)).collect();
        assert_eq!(modules, [(0x5000, 0x6000, 0x4000), (0x7000, 0x7800, 0x7000)]);
        // Absent data is also absent from the written profile.
        assert_eq!(read(&written(profile)).unwrap().infos, profile.infos);
    }
}

#[test]
fn several_raw_profiles_in_one_file() {
    let file = [raw(3, &[]), raw(5, &[1])].concat();
    let profiles = import(&file).unwrap();
    assert_eq!(profiles.iter().map(|profile| profile.infos.len()).collect::<Vec<_>>(), [3, 3]);
    let merged = merge(profiles).unwrap();
    assert_eq!((merged.infos.len(), merged.infos[0].alloc_count), (2, 100 + 300 + 100 + 300));
    // One of the blocks has no histogram, so the merged histogram is unknown.
    assert_eq!(merged.infos[0].access_histogram, None);
}

#[test]
fn damaged_raw_profiles() {
    let whole = raw(5, &[1, 2, 3]);
    for length in 0..whole.len() {
        let error = import(&whole[..length]).unwrap_err().to_string();
        assert!(error.starts_with("offset "), "{length}: {error}");
    }
    let broken = |at: usize, value: u64| {
        let mut file = whole.clone();
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        import(&file).unwrap_err().to_string()
    };
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    let [infos, stacks] = [32, 40].map(|at| usize::try_from(number(at)).unwrap());
    let wrong = [
        (0, 1, "offset 0: not a raw LLVM memory profile"),
        (8, 2, "offset 0: unsupported version 2: expected 3 to 5"),
        (8, 6, "offset 0: unsupported version 6"),
        (16, 47, "offset 0: the size of the profile is invalid"),
        (16, u64::MAX, "offset 0: the size of the profile is invalid"),
        (24, 47, "offset 0: the offset of the segments is outside"),
        (32, u64::MAX, "offset 0: the offset of the memory info blocks is outside"),
        (40, 48, "offset 0: the sections are in the wrong order"),
        (48, u64::MAX, "offset 48: the number of segments is 18446744073709551615, which exceeds"),
        (48 + 8 + 24, 33, "offset 56: the build id of segment 0"),
        (
            infos,
            1 << 60,
            &format!("offset {infos}: the number of memory info blocks is 1152921504606846976, which exceeds"),
        ),
        (infos + 8, 0xcc, &format!("offset {}: there is no stack 0xcc", infos + 8)),
        // The number of histogram entries, and half of the pointer after it.
        (infos + 16 + 132, 0x7fff_ffff, &format!("offset {}: 2147483647 entries", infos + 16 + 132)),
        (stacks + 16, u64::MAX, &format!("offset {}: the depth", stacks + 16)),
        (stacks + 32, 0xbb, &format!("offset {}: stack 0xbb is defined twice", stacks + 32)),
    ];
    for (at, value, message) in wrong {
        let error = broken(at, value);
        assert!(error.starts_with(message), "{at}: {error}");
    }
    let behind = [whole.clone(), vec![0; 8]].concat();
    assert!(import(&behind).unwrap_err().to_string().starts_with(&format!("offset {}: ", whole.len())));
    assert!(import(&[]).is_err());
}

/// Covers merged contexts, quoted names, numbers that are too large, and unknown data.
#[test]
fn memory_profiles_of_llvm() {
    let frame = |function: &str, line_offset, column, inlined| CompilerFrame {
        function: function.to_owned(),
        line_offset,
        column,
        inlined,
    };
    let by_location = vec![
        vec![frame("_Z5innerv", 1, 2, true), frame("_Z5outerv", 3, 4, false)],
        vec![frame("main", 5, 6, false)],
        vec![frame("it's", u32::MAX, 0, false)],
        vec![],
    ];
    let frames = CompilerFrames { by_location, ..CompilerFrames::default() };
    let stacks = [vec![0, 1], vec![0, 3, 1], vec![2, 1], vec![3], vec![1, 0, 0]];
    let contexts = (1..).zip(stacks.map(ProfileContext::Stack));
    let size = (6, ProfileContext::Size { exponent: 4, thread: 1 });
    let loads = |reached_count| Loads {
        total_load_count: 1,
        total_store_count: 1,
        unread_count: 0,
        unknown_count: 0,
        reached_count,
    };
    let infos = vec![
        HeapInfo { loads: Some(loads(0)), ..expected(1, 1, None) },
        HeapInfo { loads: Some(loads(0)), ..expected(2, 2, None) },
        HeapInfo { alloc_count: 1 << 40, access_count: None, lifetime_access_density: None, ..expected(3, 3, None) },
        expected(4, 4, None),
        HeapInfo { loads: Some(loads(1)), cpus: None, ..expected(5, 5, None) },
        expected(6, 6, None),
    ];
    // A tick is 10 ms.
    let profile =
        HeapProfile { contexts: contexts.chain([size]).collect(), infos, tick: 10_000_000, ..HeapProfile::default() };
    let memprof = Memprof::new(&profile, &frames, false);
    assert_eq!((memprof.contexts(), memprof.unplaced, memprof.unknown), (3, 2, 2));
    let yaml = |memprof: &Memprof| {
        let mut out = Vec::new();
        memprof.yaml(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    insta::assert_snapshot!("memprof", yaml(&memprof));
    // Now both contexts with unknown accesses have lifetimes, in all functions that contain the allocation.
    let unused = yaml(&Memprof::new(&profile, &frames, true));
    assert_eq!(unused.matches("TotalLifetime:").count(), yaml(&memprof).matches("TotalLifetime:").count() + 2);
}

/// Returns the profile with three contexts as an uncompressed pprof profile.
fn pprof() -> Vec<u8> {
    let amount = |blocks| Amount { blocks, bytes: 7 * blocks };
    let live = Some(Live { peak: amount(2), end: amount(1) });
    let infos = (1..=3).map(|context| HeapInfo::of_sums(context, amount(10 * context), live)).collect();
    let (mut written, mut plain) = (Vec::new(), Vec::new());
    let create = ProfileForm::of("pprof").and_then(|form| form.create).unwrap();
    let mut profile = profile(infos);
    profile.set_times(Some(1_700_000_000), Some(1_234_567_890));
    create(&profile, &ProfileOptions::default(), &mut |_| panic!("a note"), &mut written).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&written[..]), &mut plain).unwrap();
    plain
}

/// Merged profiles start with the earliest run, and their duration is the sum over all runs.
#[test]
fn merged_profiles_have_the_times_of_all_runs() {
    let of = |start, duration| {
        let mut profile = HeapProfile::default();
        profile.set_times(start, duration);
        profile
    };
    let merged = merge([of(Some(200), Some(5)), of(None, None), of(Some(100), Some(7))]).unwrap();
    assert_eq!((merged.start(), merged.duration()), (Some(100), Some(12)));
    let merged = merge([of(None, None)]).unwrap();
    assert_eq!((merged.start(), merged.duration()), (None, None));
}

#[test]
fn pprof_is_read_as_it_was_written() {
    let read = read_pprof(&pprof(), &mut || ()).unwrap();
    let shown: Vec<_> = read.infos.iter().map(|info| (info.alloc_count, info.size, info.live.unwrap().peak)).collect();
    let size = |bytes| Spread { total: bytes, min: 7, max: 7 };
    let peak = Amount { blocks: 2, bytes: 14 };
    assert_eq!(shown, [(10, size(70), peak), (20, size(140), peak), (30, size(210), peak)]);
    let mut written = profile(Vec::new()).locations;
    written.iter_mut().for_each(|location| location.is_program = location.module == "/bin/a");
    assert_eq!(read.locations[..3], written);
    let modules: Vec<_> = read.modules.iter().map(|module| (module.start, module.bias, module.path.as_str())).collect();
    assert_eq!(modules, [(0x1000, 0x1000, "/bin/a"), (0x2000, 0x2000, "/lib/b.so")]);
    assert_eq!((read.start(), read.duration()), (Some(1_700_000_000), Some(1_234_567_890)));
    // A context without a stack becomes a function.
    assert_eq!(read.name(3, 1), "up to 64 bytes, thread 2");
}

/// Corrupt data results in an error with a position or in another profile; nothing panics.
#[test]
fn pprof_that_is_damaged() {
    let whole = pprof();
    for cut in 0..whole.len() {
        let _ = read_pprof(&whole[..cut], &mut || ());
    }
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let _ = read_pprof(&bytes, &mut || ());
        }
    }
    // Returns a field of bytes.
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let strings = [field(6, b""), field(6, b"inuse_space"), field(6, b"cpu")].concat();
    let (heap, cpu) = (field(1, &[8, 1]), field(1, &[8, 2]));
    let negative = field(2, &[0x12, 10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    for (parts, why) in [
        (vec![], "not a heap profile"),
        (vec![&cpu[..], &strings], "pprof: not a heap profile: its values are cpu"),
        (vec![&heap[..]], "string 1 does not exist: the profile has only 0 strings"),
        (vec![&heap, &strings, &negative], "a value is negative"),
        (vec![&heap, &strings, &field(2, &[0x12, 2, 1, 1])], "a different number of values"),
        (vec![&heap, &strings, &field(2, &[8, 5, 16, 1])], "there is no location 5"),
        (vec![&heap, &strings, &field(4, &[8, 1, 16, 9])], "there is no mapping 9"),
        (vec![&heap, &strings, &field(4, &[8, 1, 34, 2, 8, 3])], "there is no function 3"),
        (vec![&heap, &strings, &field(5, &[16, 1])], "function 0 is defined twice or has the number 0"),
        (vec![&[0x0a, 9, 1]], "byte 2: a field of 9 bytes, but only 1 remain in its message"),
        (vec![&[0x0b]], "byte 0: invalid wire type 3"),
        (vec![&[0x80]], "byte 0: a varint is truncated"),
    ] {
        let error = read_pprof(&parts.concat(), &mut || ()).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
}

/// Formats that contain live memory reject a profile without live memory or report a note.
#[test]
fn profiles_that_do_not_say_what_was_live() {
    let profile = profile(vec![HeapInfo::of_sums(1, Amount { blocks: 3, bytes: 8 }, None)]);
    let write = |form: &str| {
        let (mut notes, mut bytes) = (Vec::new(), Vec::new());
        let create = ProfileForm::of(form).and_then(|form| form.create).unwrap();
        let written = create(&profile, &ProfileOptions::default(), &mut |note| notes.push(note.to_owned()), &mut bytes);
        (written.map_err(|error| error.to_string()), notes.len())
    };
    assert_eq!(write("pprof"), (Ok(1), 1));
    assert_eq!(write("dhat"), (Ok(1), 1));
    assert_eq!(write("speedscope"), (Ok(1), 0));
    assert!(write("massif").0.unwrap_err().contains("does not record live memory"));
}
