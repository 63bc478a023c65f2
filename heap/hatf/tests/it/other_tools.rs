//! Files of other tools: these tools and `hatf` compute the same sums.
//!
//! The variable `HATF_TEST_PPROF` names Go's pprof, and `HATF_TEST_MEMRAY` names memray.
#![expect(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use metatf_test::{Folder, run, skip};
use serde_json::Value;

use crate::common::{compiled, hatf};

/// Returns a command for an installed program. If the program is missing, prints a message and returns `None`.
fn tool(name: &str, arguments: &[&str]) -> Option<Command> {
    let there = Command::new(name).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        skip(&format!("there is no {name}"));
        return None;
    }
    Some(Command::new(name))
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&hatf(arguments).exits(0).text()).unwrap()
}

const MEASURES: [&str; 3] = ["allocated", "peak", "leaked"];

/// Returns the blocks and bytes of each measure, summed over all sites.
fn sums(trace: &str) -> [(u64, u64); 3] {
    let sites = json(&["sites", "--format", "json", trace]);
    let sites = sites["sites"].as_array().unwrap();
    MEASURES.map(|measure| {
        let sum = |of: &str| sites.iter().map(|site| site[measure][of].as_u64().unwrap()).sum();
        (sum("blocks"), sum("bytes"))
    })
}

/// Returns the same sums for a profile.
fn profile_sums(profile: &str) -> [(u64, u64); 3] {
    let contexts = json(&["profile", "show", "--format", "json", profile]);
    let contexts = contexts["contexts"].as_array().unwrap();
    let sum = |of: &str| contexts.iter().map(|context| context[of].as_u64().unwrap()).sum();
    [("alloc_count", "total_size"), ("peak_count", "peak_size"), ("end_count", "end_size")]
        .map(|(blocks, bytes)| (sum(blocks), sum(bytes)))
}

/// Records and symbolizes a program. Returns its trace and profile.
fn recorded(folder: &Folder) -> Option<(String, String)> {
    let program = compiled(folder, "stacks", &["-O1", "-Wl,--build-id"])?.display().to_string();
    let [trace, named, profile] = ["t.mtf", "s.mtf", "p.prof.mtf"].map(|name| folder.path(name));
    hatf(["record", "--stacks", "-q", "-o", &trace, "--", &program]).exits(7);
    hatf(["symbolize", &trace, "-o", &named]).exits(0);
    hatf(["profile", &named, "-o", &profile, "--sets", "1", "--ways", "1"]).exits(0);
    Some((named, profile))
}

fn exported(folder: &Folder, profile: &str, form: &str) -> String {
    let path = folder.path(&format!("out.{form}"));
    hatf(["convert", "--to", form, profile, &path]).exits(0);
    path
}

#[test]
#[cfg(target_arch = "x86_64")]
fn profiles_of_other_tools_have_the_same_sums() {
    let folder = Folder::new();
    let Some((trace, profile)) = recorded(&folder) else { return };
    let [allocated, peak, leaked] = sums(&trace);
    // The sums do not depend on evictions from the table.
    assert_eq!(profile_sums(&profile), [allocated, peak, leaked]);

    let pprof = exported(&folder, &profile, "pprof");
    let back = folder.path("back.prof.mtf");
    hatf(["convert", &pprof, &back]).exits(0);
    // In pprof, the memory in use is that at one time.
    assert_eq!(profile_sums(&back), [allocated, peak, peak]);
    // Without an intermediate profile.
    let direct = folder.path("direct.pb.gz");
    hatf(["convert", &trace, &direct]).exits(0);
    hatf(["convert", &direct, &back]).exits(0);
    assert_eq!(profile_sums(&back), [allocated, peak, peak]);
    let stacks = |profile: &str| {
        let shown = json(&["profile", "show", "--format", "json", profile]);
        let contexts = shown["contexts"].as_array().unwrap();
        let stack = |context: &Value| {
            let stack = context["stack"].as_array().unwrap();
            (
                context["total_size"].as_u64(),
                stack.iter().map(|frame| frame["functions"].to_string()).collect::<Vec<_>>(),
            )
        };
        let mut stacks: Vec<_> = contexts.iter().map(stack).collect();
        stacks.sort();
        stacks
    };
    assert_eq!(stacks(&back), stacks(&profile));
    let go = std::env::var("HATF_TEST_PPROF").unwrap_or_else(|_| "pprof".to_owned());
    if let Some(mut command) = tool(&go, &["-h"]) {
        let raw = run(command.args(["-raw", "-symbolize=none", &pprof])).exits(0).text();
        let samples = raw.split("Samples:\n").nth(1).unwrap().split("Locations\n").next().unwrap();
        assert!(
            samples.starts_with("alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]")
        );
        let values = samples.lines().skip(1).filter_map(|line| line.split_once(':'));
        let values: Vec<Vec<u64>> =
            values.map(|(values, _)| values.split_whitespace().map(|value| value.parse().unwrap()).collect()).collect();
        let sum = |column: usize| values.iter().map(|values| values[column]).sum::<u64>();
        assert_eq!([sum(0), sum(1), sum(2), sum(3)], [allocated.0, allocated.1, peak.0, peak.1]);
        assert!(raw.contains("[FN]"), "{raw}");
        let year = raw.lines().find_map(|line| line.strip_prefix("Time: ")).expect("the profile's time");
        assert!(!year.starts_with("1970"), "{year}");
        assert!(raw.contains("Duration: "), "{raw}");
    }

    let speedscope: Value =
        serde_json::from_str(&std::fs::read_to_string(exported(&folder, &profile, "speedscope")).unwrap()).unwrap();
    let ends: Vec<u64> =
        speedscope["profiles"].as_array().unwrap().iter().map(|of| of["endValue"].as_u64().unwrap()).collect();
    assert_eq!(ends, [peak.1, allocated.1, leaked.1]);
    let frames = speedscope["shared"]["frames"].as_array().unwrap();
    assert!(frames.iter().any(|frame| frame["name"] == "main" && frame["line"].as_u64() > Some(0)), "{frames:?}");
    for sample in speedscope["profiles"][0]["samples"].as_array().unwrap() {
        assert!(sample.as_array().unwrap().iter().all(|frame| frame.as_u64().unwrap() < frames.len() as u64));
    }

    let dhat: Value =
        serde_json::from_str(&std::fs::read_to_string(exported(&folder, &profile, "dhat")).unwrap()).unwrap();
    let points = dhat["pps"].as_array().unwrap();
    let sum = |of: &str| points.iter().map(|point| point[of].as_u64().unwrap()).sum::<u64>();
    assert_eq!([(sum("tbk"), sum("tb")), (sum("gbk"), sum("gb")), (sum("ebk"), sum("eb"))], [allocated, peak, leaked]);
    assert!(["bu", "bsu", "bksu"].iter().all(|unit| dhat[unit].is_string()));

    let massif = exported(&folder, &profile, "massif");
    let text = std::fs::read_to_string(&massif).unwrap();
    assert!(text.contains(&format!("mem_heap_B={}\n", peak.1)) && text.contains(&format!("mem_heap_B={}\n", leaked.1)));
    if let Some(mut command) = tool("ms_print", &["--version"]) {
        let printed = run(command.arg(&massif)).exits(0).text();
        let exact = metatf_page::units::count(peak.1);
        assert!(printed.contains(&exact) && printed.contains("main ("), "{printed}");
    }

    // The Firefox Profiler format contains the events.
    let firefox = folder.path("t.firefox.json");
    hatf(["convert", &trace, &firefox]).exits(0);
    let firefox: Value = serde_json::from_str(&std::fs::read_to_string(firefox).unwrap()).unwrap();
    let samples = &firefox["threads"][0]["nativeAllocations"];
    let weights: Vec<i64> =
        samples["weight"].as_array().unwrap().iter().map(|weight| weight.as_i64().unwrap()).collect();
    assert_eq!(weights.iter().filter(|weight| **weight > 0).sum::<i64>().cast_unsigned(), allocated.1);
    assert_eq!(weights.iter().sum::<i64>().cast_unsigned(), leaked.1);
}

/// Returns the sums that `heaptrack_print` reports for a file: allocations, temporary allocations, bytes at the peak
/// and leaked bytes. Suppressions of known library leaks are disabled.
fn heaptrack_costs(folder: &Folder, file: &str) -> [u64; 4] {
    ["allocations", "temporary", "peak", "leaked"].map(|cost| {
        let flames = folder.path("flames");
        let all = ["--disable-builtin-suppressions", "--disable-embedded-suppressions"];
        let arguments = [all[0], all[1], "-f", file, "-F", &flames, "--flamegraph-cost-type", cost];
        run(Command::new("heaptrack_print").args(arguments)).exits(0);
        let text = std::fs::read_to_string(flames).unwrap();
        text.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    })
}

/// The sums of a heaptrack log are those that heaptrack reports, and so are the sums of a log written from a trace.
#[test]
#[cfg(target_arch = "x86_64")]
fn heaptrack_has_the_same_sums() {
    let folder = Folder::new();
    if tool("heaptrack", &["--version"]).is_none() || tool("heaptrack_print", &["--version"]).is_none() {
        return;
    }
    let Some(program) = compiled(&folder, "stacks", &["-O1"]) else { return };
    let perl = Path::new("/usr/bin/perl");
    let script = "for (1..3000) { $h{$_ % 97} .= chr(65 + $_ % 26) }";
    let programs = [vec![program.as_os_str()], vec![perl.as_os_str(), OsStr::new("-e"), OsStr::new(script)]];
    for (number, program) in programs.iter().enumerate() {
        let raw = folder.path(&format!("raw{number}"));
        let mut command = Command::new("heaptrack");
        run(command.args(["--raw", "-o", &raw]).args(program));
        let raw = folder.path(&format!("raw{number}.raw.zst"));
        // heaptrack converts its raw data to interpreted data.
        let interpret = "/usr/lib/heaptrack/libexec/heaptrack_interpret";
        let Some(mut command) = tool(interpret, &["--version"]) else { return };
        let log = zstd::stream::decode_all(&std::fs::read(&raw).unwrap()[..]).unwrap();
        let interpreted = metatf_test::run_with(&mut command, &log).exits(0);
        let file = folder.path(&format!("{number}.heaptrack"));
        std::fs::write(&file, &interpreted.out).unwrap();
        let [allocations, temporary, peak, leaked] = heaptrack_costs(&folder, &file);
        assert!(allocations > 10 && peak > 1000, "{allocations} {peak}");
        for read in [&raw, &file] {
            let ours = sums(read);
            assert_eq!((ours[0].0, ours[1].1, ours[2].1), (allocations, peak, leaked), "{read}");
        }
        // heaptrack also counts a free as temporary after an allocation of another block of the same size and stack.
        let sites = json(&["sites", "--format", "json", &raw]);
        let ours = sites["sites"].as_array().unwrap().iter().map(|site| site["temporary"]["blocks"].as_u64().unwrap());
        let ours: u64 = ours.sum();
        assert!(ours <= temporary && temporary - ours <= 2 + temporary / 10, "{ours} {temporary}");
    }
    let Some((trace, _)) = recorded(&folder) else { return };
    let written = folder.path("t.heaptrack");
    hatf(["convert", &trace, &written]).exits(0);
    let [allocations, _, peak, leaked] = heaptrack_costs(&folder, &written);
    let ours = sums(&trace);
    assert_eq!((ours[0].0, ours[1].1, ours[2].1), (allocations, peak, leaked));
    let shown = run(Command::new("heaptrack_print").args(["-f", &written])).exits(0).text();
    assert!(shown.contains("main") && shown.contains("stacks.c:"), "{shown}");
}

/// The records that memray prints have the same sums as memray's statistics.
#[test]
fn memray_has_the_same_sums() {
    let folder = Folder::new();
    let memray = std::env::var("HATF_TEST_MEMRAY").unwrap_or_else(|_| "memray".to_owned());
    if tool(&memray, &["--version"]).is_none() {
        return;
    }
    let script = folder.path("w.py");
    std::fs::write(
        &script,
        "import json\nkeep = [bytearray(1000 + i) for i in range(50)]\njson.dumps([keep[0].hex()] * 9)\ndel keep[9:]\n",
    )
    .unwrap();
    for options in [&[][..], &["--native"], &["--trace-python-allocators"]] {
        let [file, parsed, stats] = ["w.bin", "w.memray", "w.json"].map(|name| folder.path(name));
        run(Command::new(&memray).args(["run", "-q", "-f", "-o", &file]).args(options).arg(&script)).exits(0);
        std::fs::write(&parsed, run(Command::new(&memray).args(["parse", &file])).exits(0).out).unwrap();
        run(Command::new(&memray).args(["stats", "--json", "-f", "-o", &stats, &file])).exits(0);
        let theirs: Value = serde_json::from_str(&std::fs::read_to_string(&stats).unwrap()).unwrap();
        let number = |place: &str| theirs.pointer(place).and_then(Value::as_u64).unwrap();
        // Page mappings do not count as blocks here.
        let mapped: u64 =
            std::fs::read_to_string(&parsed).unwrap().lines().filter(|line| line.contains(" allocator=mmap ")).count()
                as u64;
        let [allocated, peak, _] = sums(&parsed);
        assert_eq!(allocated.0 + mapped, number("/total_num_allocations"), "{options:?}");
        if mapped == 0 {
            assert_eq!(allocated.1, number("/total_bytes_allocated"), "{options:?}");
            assert_eq!(peak.1, number("/metadata/peak_memory"), "{options:?}");
        }
        let sites = hatf(["sites", "--by", "allocated", &parsed]).exits(0).text();
        assert!(sites.contains("w.py:"), "{sites}");
    }
}

/// `hatf` reads glibc's log of a program, and `hatf symbolize` finds its functions.
#[test]
#[cfg(target_arch = "x86_64")]
fn mtrace_logs_of_glibc() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "traced", &["-O0"]) else { return };
    let [log, named] = ["t.mtrace", "t.sym.mtf"].map(|name| folder.path(name));
    let mut command = Command::new(&program);
    run(command.env("MALLOC_TRACE", &log).env("LD_PRELOAD", "libc_malloc_debug.so.0")).exits(0);
    if !Path::new(&log).exists() {
        return skip("glibc's library of malloc's hooks is not there");
    }
    // A reallocation replaces 100 bytes by 5,000, so it adds 4,900 bytes.
    assert_eq!(sums(&log), [(4, 5157), (2, 5150), (2, 5007)]);
    hatf(["symbolize", &log, "-o", &named]).exits(0);
    let sites = hatf(["sites", "--by", "leaked", &named]).exits(0).text();
    assert!(sites.contains("main at ") && sites.contains("traced.c:9"), "{sites}");
}

/// The sums of a sampled profile from jemalloc 5.3 are those of `jeprof --show_bytes`, which truncates where `hatf`
/// rounds.
#[test]
fn jemalloc_profiles_are_scaled_as_jeprof_does_it() {
    let folder = Folder::new();
    let text = "heap_v2/16384
  t*: 196: 205535 [1015: 3037279]
  t0: 196: 205535 [1015: 3037279]
@ 0x7f0464422045 0x564d135a6171 0x564d135a61ab
  t*: 191: 195636 [191: 195636]
  t0: 191: 195636 [191: 195636]
@ 0x7f0464422045 0x564d135a6171 0x564d135a61b5
  t*: 0: 0 [781: 3971759]
@ 0x7f0464422ed9
  t*: 1: 81939 [1: 81939]

MAPPED_LIBRARIES:
564d135a5000-564d135a6000 r--p 00000000 fe:00 10059783                   /tmp/a b/jm
564d135a6000-564d135a7000 r-xp 00001000 fe:00 10059783                   /tmp/a b/jm
7ffcf5e31000-7ffcf5e52000 rw-p 00000000 00:00 0                          [stack]
";
    folder.write("j.heap", text);
    let [profile, made] = ["j.heap", "j.prof.mtf"].map(|name| folder.path(name));
    hatf(["convert", &profile, &made]).exits(0).says("3 of 3 contexts");
    let [allocated, live, _] = profile_sums(&made);
    // jeprof reports 3,310,675 bytes in use and 18,195,028 bytes allocated.
    assert!(live.1.abs_diff(3_310_675) <= 3 && allocated.1.abs_diff(18_195_028) <= 3, "{live:?} {allocated:?}");
    let shown = json(&["profile", "show", "--format", "json", &made]);
    let frame = &shown["contexts"][0]["stack"][1];
    assert_eq!((&frame["module"], &frame["offset"]), (&"/tmp/a b/jm".into(), &0x1171.into()));
    for (wrong, why) in [
        ("heap_v2/0\n", "line 1: expected heap_v2/INTERVAL at the start"),
        ("heap_v2/9\n@ x\n", "line 2: expected hexadecimal addresses"),
        ("heap_v2/9\n@ 0x1\n t*: 1: 2\n", "line 3: expected counts of the form"),
    ] {
        folder.write("w.heap", wrong);
        hatf(["profile", "show", &folder.path("w.heap")]).exits(1).says(why);
    }
}
