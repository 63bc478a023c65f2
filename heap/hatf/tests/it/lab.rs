//! The laboratory commands.

use crate::common::hatf;
use insta::assert_snapshot;
use metatf_test::Folder;

/// Directory of traces of programs, as compressed raw records.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");

/// The four simulated allocators keep their invariants for the first calls of real programs.
#[test]
fn simulate() {
    for name in ["gawk.raw32.zst", "perl_hash.raw32.zst", "python_threads.raw64.zst"] {
        let path = DATA.to_owned() + name;
        let text = hatf(["simulate", "--invariants=100", &path]).exits(0).text();
        assert_snapshot!(format!("simulate-{name}"), text.replace(DATA, ""));
        let alone = hatf(["simulate", "--threads", "1", &path]).exits(0).text();
        assert_eq!(text, alone, "{name}");
    }
}

/// Simulated modern allocators keep their invariants, and `hatf whatif` ranks them by peak.
#[test]
fn whatif() {
    for name in ["gawk.raw32.zst", "python_threads.raw64.zst"] {
        let path = DATA.to_owned() + name;
        let modern = "glibc,jemalloc,mimalloc,tcmalloc,tlsf,buddy,bump";
        let text = hatf(["simulate", "--invariants=1000", "-a", modern, &path]).exits(0).text();
        assert_snapshot!(format!("simulate-modern-{name}"), text.replace(DATA, ""));
        let text = hatf(["whatif", "--format", "json", "--now", "jemalloc", &path]).exits(0).text();
        assert_eq!(
            text,
            hatf(["whatif", "--format", "json", "--now", "jemalloc", "--threads", "1", &path]).exits(0).text()
        );
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let predictions = json["predictions"].as_array().unwrap();
        assert!(predictions.is_sorted_by_key(|of| of["peak"].as_u64()));
        let now = predictions.iter().find(|of| of["allocator"] == "jemalloc").unwrap();
        assert_eq!((&now["saves"], &now["replay"]), (&0.0.into(), &"jemalloc".into()));
        hatf(["whatif", &path]).exits(0).prints("GLIBC_TUNABLES=glibc.malloc.tcache_count=0");
    }
    let trace = DATA.to_owned() + "gawk.raw32.zst";
    hatf(["whatif", &trace, "--now", "hoard"]).exits(2).says("[possible values: glibc, jemalloc, mimalloc, tcmalloc]");
}

#[test]
fn simulate_as_data_and_as_a_picture() {
    let folder = Folder::new();
    let (trace, svg) = (DATA.to_owned() + "gawk.raw32.zst", folder.path("heap.svg"));
    let options = ["--allocator", "bsd,first:grow=64", "--weight", "examined=3", "--svg", &svg, "--format", "json"];
    let text = hatf([&["simulate", &trace], &options[..]].concat()).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let [bsd, first] = &json["allocators"].as_array().unwrap()[..] else { panic!("{text}") };
    assert_eq!((&bsd["name"], &first["name"]), (&"bsd".into(), &"first:grow=64".into()));
    assert_eq!(first["allocator"], "first:word=8:least=32:grow=64");
    assert_eq!((&first["weights"]["examined"], &first["weights"]["split"]), (&3.into(), &1.into()));
    assert_eq!((&json["trace"]["events"], &bsd["events"]), (&bsd["events"], &first["events"]));
    let picture = std::fs::read_to_string(svg).unwrap();
    assert!(picture.contains(">first:grow=64<") && picture.ends_with("</svg>\n"), "{picture}");
}

#[test]
fn simulate_by_mistake() {
    let trace = DATA.to_owned() + "gawk.raw32.zst";
    hatf(["simulate", &trace, "-a", "hoard"]).exits(2).says("`hoard` is not one of bsd, first, best, cache");
    hatf(["simulate", &trace, "--weight", "x=1"]).exits(2).says("expected one of examined, ");
    hatf(["simulate", "/no/such/trace"]).exits(1).says("/no/such/trace");
    hatf(["simulate", "/dev/null"]).exits(1).says("specify it with --from");
    hatf(["simulate", "/dev/null", "--from", "raw32"]).exits(0).prints("0 events");
}

/// `hatf fragmentation` attributes the held pages of real programs to sites, threads and sizes.
#[test]
fn fragmentation() {
    for name in ["perl_hash.raw32.zst", "python_threads.raw64.zst"] {
        let path = DATA.to_owned() + name;
        let text = hatf(["fragmentation", &path]).exits(0).text();
        assert_snapshot!(format!("fragmentation-{name}"), text.replace(DATA, ""));
        assert_eq!(text, hatf(["fragmentation", "--threads", "1", &path]).exits(0).text(), "{name}");
    }
}

#[test]
fn fragmentation_as_data_and_as_pictures() {
    let folder = Folder::new();
    let (trace, svg, map) =
        (DATA.to_owned() + "python_threads.raw64.zst", folder.path("held.svg"), folder.path("map.svg"));
    let options = ["--at", "100,end", "--page", "64k", "--pin", "9", "--format", "json", "--svg", &svg, "--map", &map];
    let text = hatf([&["fragmentation", &trace], &options[..]].concat()).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let [early, end] = &json["moments"].as_array().unwrap()[..] else { panic!("{text}") };
    assert_eq!((&early["tick"], &end["tick"]), (&100.into(), &json["trace"]["events"]));
    assert_eq!((&end["pages"][0]["page"], &end["pages"][0]["pin"]), (&65536.into(), &9.into()));
    for moment in [early, end] {
        for of in ["sites", "threads", "sizes"] {
            let shares = moment[of].as_array().unwrap();
            let sum: u64 = shares.iter().map(|share| share["wasted"].as_u64().unwrap()).sum();
            assert_eq!(sum, moment["pages"][0]["wasted"].as_u64().unwrap(), "{of}");
        }
    }
    for (picture, part) in [(svg, ">64 KiB pages held<"), (map, "EVENT 100, event 100<")] {
        let picture = std::fs::read_to_string(picture).unwrap();
        assert!(picture.contains(part) && picture.ends_with("</svg>\n"), "{picture}");
    }
}

#[test]
fn fragmentation_by_mistake() {
    let trace = DATA.to_owned() + "gawk.raw32.zst";
    hatf(["fragmentation", &trace, "--at", "1000000"]).exits(2).says("there is no event 1000000");
    hatf(["fragmentation", &trace, "--at", "noon"])
        .exits(2)
        .says("the number of an event, peak, worst, sparsest or end");
    hatf(["fragmentation", "/dev/null"]).exits(1).says("specify it with --from");
    hatf(["fragmentation", "/no/such/trace"]).exits(1).says("/no/such/trace");
}

/// All commands report contradictions in a trace, in the same words.
#[test]
fn contradictions() {
    let folder = Folder::new();
    let (raw, trace) = (folder.path("wrong.raw"), folder.path("wrong.mtf"));
    let (malloc, free) = (|at, size| [1, size, at, 0], |at| [2, 0, at, 0]);
    let calls: [[u64; 4]; 6] =
        [malloc(1000, 100), malloc(1020, 100), free(1000), free(1000), malloc(1020, 8), free(64)];
    std::fs::write(&raw, calls.concat().into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    hatf(["convert", "--from", "raw32", &raw, &trace]).exits(0);
    let lines = [
        "1 frees of blocks that are not in the trace",
        "1 frees of blocks that were already freed: the program freed them twice",
        "1 blocks were allocated at the address of a live block, which then counts as freed",
        "1 blocks overlap a live block, and both are counted",
    ];
    let fit = format!("model fit -m mean -o {}", folder.path("model.json"));
    let printing = ["report", "fragmentation", "simulate", "whatif", "sites", &fit, "diff"];
    for command in printing {
        let mut arguments: Vec<&str> = command.split(' ').chain([trace.as_str()]).collect();
        arguments.extend((command == "diff").then_some(trace.as_str()));
        let ended = hatf(arguments).exits(0);
        lines.iter().fold(ended, |ended, line| ended.prints(line));
    }
    let ended = hatf(["sites", "--format", "folded", &trace]).exits(0);
    lines.iter().fold(ended, |ended, line| ended.says(line));
}

/// An error in the middle of a trace names the file.
#[test]
fn damaged_in_the_middle() {
    let folder = Folder::new();
    let (trace, damaged) = (folder.path("whole.mtf"), folder.path("damaged.mtf"));
    hatf(["convert", &(DATA.to_owned() + "gawk.raw32.zst"), &trace]).exits(0);
    let mut bytes = std::fs::read(trace).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&damaged, bytes).unwrap();
    let model = folder.path("model.json");
    let fit = ["model", "fit", "-m", "mean", "-o", &model];
    let commands: [&[&str]; 6] = [&["report"], &["simulate"], &["whatif"], &["fragmentation"], &["replay"], &fit];
    for command in commands {
        hatf([command, &[&damaged]].concat()).exits(1).says(&format!("hatf: {damaged}: offset "));
    }
}
