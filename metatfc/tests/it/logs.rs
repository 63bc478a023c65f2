//! Files of other tools, in `tests/logs`: captures by tcpdump and Wireshark, and recordings by perf and LLVM XRay. Each
//! test compares every record with the output of the tool that defines the format. `dev/scripts/log-samples` creates
//! the files and the expected output; `made-by.txt` lists the versions of the tools.

use super::common::{metatfc, run};
use metatf_test::{Folder, Run, root, run_with, skip};
use std::process::Command;

/// A file whose format can be recognized.
struct Log {
    name: &'static str,
    bytes: &'static [u8],
    /// A DTD generated from the file, if no built-in DTD defines its records.
    dtd: Option<&'static str>,
    /// The section that contains the records.
    section: &'static str,
    /// The equivalent explicit options: the DTD, the byte order, and the number of bytes before and after the records.
    said: (&'static str, &'static str, usize, usize),
    records: usize,
}

const PCAP: Log = Log {
    name: "packets.pcap",
    bytes: include_bytes!("../logs/packets.pcap"),
    dtd: None,
    section: "packets",
    said: ("pcap", "little", 24, 0),
    records: 30,
};
const PCAPNG: Log = Log {
    name: "packets.pcapng",
    bytes: include_bytes!("../logs/packets.pcapng"),
    dtd: None,
    section: "blocks",
    said: ("pcapng", "little", 0, 0),
    records: 72,
};
/// Every type of block whose contents are defined.
const BLOCKS: Log = Log {
    name: "blocks.pcapng",
    bytes: include_bytes!("../logs/blocks.pcapng"),
    dtd: None,
    section: "blocks",
    said: ("pcapng", "big", 0, 0),
    records: 15,
};
const PERF: Log = Log {
    name: "perf.data",
    bytes: include_bytes!("../logs/perf.data"),
    dtd: None,
    section: "records",
    said: ("perf", "little", 264, 30_976 - 264 - 25_968),
    records: 392,
};
/// A file with a generated DTD.
const PIPE: Log = Log {
    name: "perf-pipe.data",
    bytes: include_bytes!("../logs/perf-pipe.data"),
    dtd: Some("perf-pipe.dtd"),
    section: "records",
    said: ("perf-pipe.dtd", "little", 16, 0),
    records: 179,
};
const XRAY: Log = Log {
    name: "calls.xray",
    bytes: include_bytes!("../logs/calls.xray"),
    dtd: None,
    section: "calls",
    said: ("xray", "little", 32, 0),
    records: 162,
};
const HPROF: Log = Log {
    name: "heap.hprof",
    bytes: include_bytes!("../logs/heap.hprof"),
    dtd: None,
    section: "records",
    said: ("hprof", "big", 31, 0),
    records: 35,
};
const ALL: [&Log; 7] = [&PCAP, &PCAPNG, &BLOCKS, &PERF, &PIPE, &XRAY, &HPROF];

impl Log {
    /// Returns only the records.
    fn content(&self) -> &[u8] {
        let (.., before, behind) = self.said;
        self.bytes.get(before..self.bytes.len() - behind).expect("a file with records")
    }

    /// Writes the file to a directory, with the DTD if it is not built in.
    fn put(&self, here: &Folder) {
        here.write(self.name, self.bytes);
        if let Some(dtd) = self.dtd {
            let mut script = Command::new(root().join("dev/scripts/perf-dtd"));
            let made = run_with(script.arg(self.name).current_dir(&**here), b"").exits(0);
            here.write(dtd, made.out);
        }
    }

    /// Runs a command without options other than a generated DTD.
    fn command(&self, here: &Folder, command: &[&str]) -> Run {
        let dtd = self.dtd.map_or(Vec::new(), |dtd| vec!["--dtd", dtd]);
        metatfc(here, &[command, &dtd].concat())
    }

    /// Runs a command with explicit options.
    fn command_as_said(&self, here: &Folder, command: &[&str]) -> Run {
        let (name, order, skip, behind) = self.said;
        let (skip, take) = (skip.to_string(), self.content().len().to_string());
        let mut args = vec!["--raw", "--order", order, "--dtd", name, "--skip-bytes", &skip];
        if behind > 0 {
            args.extend(["--take-bytes", &take]);
        }
        metatfc(here, &[command, &args].concat())
    }

    fn lines(&self, here: &Folder) -> Run {
        self.command(here, &["dump", "--all", "--section", self.section, "--format", "jsonl", self.name]).exits(0)
    }
}

fn python() -> bool {
    Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Checks that a script prints the records in the same way as the original tool.
fn same_text(log: &Log, script: &[&str], reference: &str) {
    let here = &Folder::new();
    log.put(here);
    let lines = log.lines(here);
    assert_eq!(lines.out.iter().filter(|byte| **byte == b'\n').count(), log.records);
    let (name, args) = script.split_first().expect("a script");
    let text = run_with(Command::new(root().join("dev/scripts").join(name)).args(args), &lines.out).exits(0);
    assert_eq!(text.text(), reference, "{}", log.name);
}

#[test]
fn packets_are_those_of_tshark() {
    if !python() {
        return skip("python3 is not there");
    }
    same_text(&PCAP, &["pcap-text", "packets"], include_str!("../logs/packets-pcap-packets.txt"));
    same_text(&PCAPNG, &["pcap-text", "packets"], include_str!("../logs/packets-pcapng-packets.txt"));
    let big = ["pcap-text", "packets", "--order", "big"];
    same_text(&BLOCKS, &big, include_str!("../logs/blocks-pcapng-packets.txt"));
}

#[test]
fn blocks_are_those_of_tshark() {
    if !python() {
        return skip("python3 is not there");
    }
    same_text(&PCAPNG, &["pcap-text", "blocks"], include_str!("../logs/packets-pcapng-blocks.txt"));
    let big = ["pcap-text", "blocks", "--order", "big"];
    same_text(&BLOCKS, &big, include_str!("../logs/blocks-pcapng-blocks.txt"));
}

#[test]
fn records_are_those_of_perf() {
    if !python() {
        return skip("python3 is not there");
    }
    same_text(&PERF, &["perf-text"], include_str!("../logs/perf.txt"));
    same_text(&PIPE, &["perf-text"], include_str!("../logs/perf-pipe.txt"));
}

#[test]
fn calls_are_those_of_llvm() {
    if !python() {
        return skip("python3 is not there");
    }
    same_text(&XRAY, &["xray-text"], include_str!("../logs/calls.txt"));
}

/// Objects are read from a Java heap dump, from which a program has removed most objects, and from handwritten records.
#[test]
fn objects_of_java_are_read() {
    let here = &Folder::new();
    HPROF.put(here);
    let lines = metatfc(here, &["dump", "--all", "--names", "--format", "jsonl", "heap.hprof"]).exits(0).text();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let head = lines.last().expect("the header");
    assert_eq!((&head["magic"], &head["version"]), (&"JAVA PRO".into(), &"FILE 1.0.2".into()));
    assert_eq!(head["time"], "2026-11-27T02:52:41.041Z");
    let objects: Vec<&serde_json::Value> = lines.iter().filter_map(|l| l["objects"].as_array()).flatten().collect();
    for (record, count) in [
        ("class_dump", 3),
        ("instance", 3),
        ("object_array", 3),
        ("array", 15),
        ("root_thread", 3),
        ("root_java_frame", 3),
        ("root_jni_global", 3),
        ("root_sticky_class", 3),
    ] {
        assert_eq!(objects.iter().filter(|object| object["@record"] == record).count(), count, "{record}");
    }
    assert_eq!(objects.len(), 36);
    // The width of array elements and class values depends on their type.
    let widths = [("char", 2), ("byte", 1), ("short", 2), ("int", 4), ("long", 8), ("object", 8), ("boolean", 1)];
    let width = |ty: &serde_json::Value| widths.iter().find(|(name, _)| ty == name).map(|(_, width)| *width);
    let length = |data: &serde_json::Value| data.as_str().map(|hex| hex.len() as u64 / 2);
    for object in &objects {
        if object["@record"] == "array" {
            let n = object["n"].as_u64().expect("a number");
            assert_eq!(length(&object["data"]), width(&object["type"]).map(|width: u64| width * n), "{object}");
        }
        for value in object["static"].as_array().into_iter().flatten() {
            assert_eq!(length(&value["value"]), width(&value["type"]), "{object}");
        }
    }
    // Text output contains the objects, too.
    metatfc(here, &["dump", "heap.hprof"]).exits(0).prints("  objects=[class_dump{id=").prints("} instance{id=");
    // An invalid type has no value.
    let dump = [b"\x23".as_slice(), &[0; 12], &3_u32.to_be_bytes(), &[3]].concat();
    let file = [&HPROF.bytes[..31], b"\x1c", &[0; 4], &18_u32.to_be_bytes(), &dump].concat();
    here.write("none.hprof", file);
    metatfc(here, &["dump", "--format", "jsonl", "none.hprof"]).exits(0).prints("\"n\":3,\"type\":3,\"data\":\"\"");
    // Bytes that do not form complete records remain bytes.
    let file = [&HPROF.bytes[..31], b"\x1c", &[0; 4], &19_u32.to_be_bytes(), &dump, b"\x23"].concat();
    here.write("rest.hprof", file);
    metatfc(here, &["dump", "rest.hprof"]).exits(0).prints(&format!("  objects=23{}000000030323\n", "00".repeat(12)));
}

#[test]
fn the_dtd_of_perf_is_what_the_script_makes() {
    if !python() {
        return skip("python3 is not there");
    }
    let here = &Folder::new();
    here.write("perf.data", PERF.bytes);
    let shipped = std::fs::read_to_string(root().join("dtds/perf.dtd")).expect("the DTD");
    for args in [&[][..], &["perf.data"]] {
        let made = run_with(Command::new(root().join("dev/scripts/perf-dtd")).args(args).current_dir(&**here), b"");
        assert_eq!(made.exits(0).text(), shipped);
    }
    let wrong =
        [("a.txt", &b"no recording"[..], "no perf.data file"), ("cut", &PERF.bytes[..140], "ends in its header")];
    for (name, bytes, problem) in wrong {
        here.write(name, bytes);
        let mut script = Command::new(root().join("dev/scripts/perf-dtd"));
        run_with(script.arg(name).current_dir(&**here), b"").exits(1).says(problem);
    }
}

/// Converting to a trace and back yields the same file with any trace encoding, with and without the parts around the
/// records.
#[test]
fn files_come_back_byte_for_byte() {
    let here = &Folder::new();
    for log in ALL {
        if log.dtd.is_some() && !python() {
            skip("python3 is not there");
            continue;
        }
        log.put(here);
        for profile in ["fast", "archive"] {
            log.command(here, &["convert", log.name, "log.mtf", "--profile", profile]).exits(0);
            metatfc(here, &["verify", "log.mtf"]).exits(0).prints("whole: ");
            metatfc(here, &["convert", "log.mtf", "again", "--to", "raw"]).exits(0);
            assert!(here.read("again") == log.bytes, "{}, {profile}", log.name);
        }
        log.command_as_said(here, &["convert", log.name, "log.mtf"]).exits(0);
        metatfc(here, &["convert", "log.mtf", "again", "--to", "raw"]).exits(0);
        assert!(here.read("again") == log.content(), "{}", log.name);
    }
}

/// Explicit options yield the same records as the file's own header.
#[test]
fn options_stand_in_for_the_prologue() {
    let here = &Folder::new();
    for log in [&PCAP, &PCAPNG, &BLOCKS, &PERF, &XRAY, &HPROF] {
        log.put(here);
        let (dtd, ..) = log.said;
        let text = metatfc(here, &["show", "--format", "dtd", log.name]).exits(0).text();
        assert_eq!(text, metatfc(here, &["show", "--format", "dtd", dtd]).exits(0).text());
        let dump = ["dump", "--format", "jsonl", log.name];
        assert_eq!(log.command_as_said(here, &dump).exits(0).text(), log.command(here, &dump).exits(0).text());
        // A pipe yields the same records.
        let piped = run(here, &["dump", "--format", "jsonl", "-"], log.bytes).exits(0).text();
        assert_eq!(piped, log.command(here, &dump).exits(0).text());
    }
}

/// The header of a capture defines the byte order and the time unit, and its fields can be read.
#[test]
fn each_magic_of_pcap() {
    let here = &Folder::new();
    let packet = |order: fn(u32) -> [u8; 4]| [1, 2, 3, 3].map(order).concat();
    for (magic, order, unit) in [
        ([0xd4, 0xc3, 0xb2, 0xa1], u32::to_le_bytes as fn(u32) -> [u8; 4], "microseconds"),
        ([0xa1, 0xb2, 0xc3, 0xd4], u32::to_be_bytes, "microseconds"),
        ([0x4d, 0x3c, 0xb2, 0xa1], u32::to_le_bytes, "nanoseconds"),
        ([0xa1, 0xb2, 0x3c, 0x4d], u32::to_be_bytes, "nanoseconds"),
    ] {
        let head = [&magic[..], &[0; 12], &order(96), &order(1)].concat();
        here.write("a.pcap", [&head, &packet(order), &b"abc"[..]].concat());
        let all = metatfc(here, &["dump", "--all", "--names", "--format", "jsonl", "a.pcap"]).exits(0).text();
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(lines.len(), 2, "{all}");
        assert!(
            lines[0].contains(&format!("\"magic\":\"{unit}\"")) && lines[0].contains("\"snap_length\":96"),
            "{all}"
        );
        assert!(lines[1].contains("\"seconds\":1,\"fraction\":2,") && lines[1].ends_with("\"616263\"}"), "{all}");
    }
}

/// Invalid values in a header are rejected.
#[test]
fn a_damaged_prologue_is_an_error_at_its_place() {
    let here = &Folder::new();
    let perf = |at: usize, value: u64| {
        let mut file = PERF.bytes.to_vec();
        file[at..][..8].copy_from_slice(&value.to_le_bytes());
        file
    };
    for (file, problem) in [
        (PCAP.bytes[..20].to_vec(), "begins like a file of pcap, but offset 20"),
        (PERF.bytes[..150].to_vec(), "begins like a file of perf, but offset 104"),
        // The offset and size of the records.
        (perf(40, 103), "leaf attributes"),
        (perf(40, u64::MAX), "leaf attributes"),
        (perf(48, 30_713), "the size of the records is 30713"),
        (perf(48, u64::MAX), "the size of the records is 18446744073709551615"),
        // An undefined header size.
        (perf(8, 105), "its first bytes match none of hprof, mps, pcap, pcapng, perf, xray"),
        (PCAPNG.bytes[..11].to_vec(), "its first bytes match none of"),
        (XRAY.bytes[..40].to_vec(), "its first bytes match none of"),
        (b"no log".to_vec(), "it begins with `no l`"),
        (Vec::new(), "it is empty"),
    ] {
        here.write("bad", file);
        for command in ["dump", "verify", "stat"] {
            metatfc(here, &[command, "bad"]).exits(1).says("metatfc: bad: ").says(problem);
        }
    }
    // Errors in the records are found only when the records are read.
    here.write("cut", &PCAPNG.bytes[..40]);
    metatfc(here, &["dump", "cut"]).exits(1).says("metatfc: cut: offset");
}

/// A file can be read with a user's DTD. If no DTD matches, the error contains a hint.
#[test]
fn a_file_by_a_dtd_of_its_own() {
    let here = &Folder::new();
    let dtd = "section head 1 {
            prologue: (magic, length, name) {
                magic.width = 4; magic.interpretation = none; magic.value = 0x6c6f6731; magic.role = \"magic\";
                length.width = 2; length.interpretation = none;
                name.width = length.value; name.interpretation = none; name.format = \"utf8\";
            }
        }
        section records 2 { r: (tag, a) { tag.value = 4; a.width = 2; a.interpretation = none; } }";
    here.write("log.dtd", dtd);
    let log = b"log1\0\x03abc\x04\x01\x02\x04\x03\x04";
    here.write("a.log", log);
    let jsonl = ["dump", "--format", "jsonl", "--dtd", "log.dtd", "a.log"];
    metatfc(here, &jsonl).exits(0).prints("\"a\":258").prints("\"a\":772");
    metatfc(here, &[&jsonl[..], &["--all"]].concat()).exits(0).prints("\"name\":\"abc\"");
    // The DTD is found on METATF_PATH.
    metatfc(here, &["dump", "a.log"]).exits(0).prints("a=258");
    // Of two DTDs that match the file, the first by name reads it.
    here.write(
        "twin.dtd",
        dtd.replace("a.width", "b.width").replace("a.inter", "b.inter").replace("(tag, a)", "(tag, b)"),
    );
    metatfc(here, &["dump", "a.log"]).exits(0).prints("a=258");
    metatfc(here, &["dump", "--dtd", "twin.dtd", "a.log"]).exits(0).prints("b=258");
    // If its prologue does not end, the next DTD is tried; if all fail, the first error is reported.
    here.write("log.dtd", dtd.replace("length.width = 2", "length.width = 4"));
    metatfc(here, &["dump", "a.log"]).exits(0).prints("b=258");
    here.write("log.dtd", dtd);
    here.write("cut.log", &log[..7]);
    metatfc(here, &["dump", "cut.log"]).exits(1).says("it begins like a file of log, but offset 6");
    std::fs::remove_file(here.join("twin.dtd")).expect("it is there");
    // A DTD on METATF_PATH is tried before a built-in DTD, even if its name comes later.
    here.write("same.dtd", dtd.replace("0x6c6f6731", "0xa1b2c3d4"));
    here.write("capture", [&PCAP.bytes[..4], b"\x03\0abc\x04\x01\x02"].concat());
    metatfc(here, &["dump", "capture"]).exits(0).prints("a=513");
    std::fs::remove_file(here.join("same.dtd")).expect("it is there");
    here.write("other", b"log2");
    metatfc(here, &["dump", "other"])
        .exits(1)
        .says("match none of log, hprof, mps, ")
        .says("to try another DTD, use --dtd FILE");
    metatfc(here, &["dump", "--dtd", "pcap", "a.log"]).exits(1).says("its first bytes do not match pcap");
    metatfc(here, &["dump", "--dtd", "heap", "a.log"])
        .exits(1)
        .says("heap does not describe how files without a header begin");
    metatfc(here, &["convert", "--dtd", "log.dtd", "a.log", "a.mtf"]).exits(0);
    metatfc(here, &["convert", "a.mtf", "again.log", "--to", "raw"]).exits(0);
    assert_eq!(here.read("again.log"), log);
    // The same holds through JSON lines.
    let json = metatfc(here, &["dump", "--format", "jsonl", "--all", "a.mtf"]).exits(0);
    run(here, &["convert", "--dtd", "log.dtd", "--order", "big", "-", "b.mtf"], &json.out).exits(0);
    metatfc(here, &["convert", "b.mtf", "again.log", "--to", "raw"]).exits(0);
    assert_eq!(here.read("again.log"), log);
}

/// Errors contain the position, and salvaging prints the intact records.
#[test]
fn damage_is_told_and_left_out() {
    let here = &Folder::new();
    for log in [&PCAP, &PCAPNG, &PERF, &XRAY] {
        log.put(here);
        let count = |run: &Run| run.out.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(
            count(&log.command(here, &["dump", "--salvage", log.name]).exits(0).says("nothing was lost")),
            log.records
        );
        // The corruption starts at the last byte of a record.
        let lines = log.lines(here).text();
        let (dtd, ..) = log.said;
        let record = lines.lines().nth(log.records * 3 / 4).expect("a record");
        let record: serde_json::Value = serde_json::from_str(record).expect("JSON");
        let middle = usize::try_from(record["@offset"].as_u64().expect("a place")).expect("a place") - 1;
        let mut damaged = log.bytes.to_vec();
        damaged[middle..][..30].fill(0xee);
        here.write("bad", damaged);
        log.command(here, &["dump", "bad"]).exits(1).says("metatfc: bad: offset");
        let salvaged = log.command(here, &["dump", "--salvage", "bad"]).exits(0);
        let left = count(&salvaged.says("damaged (offset"));
        match dtd {
            // Only the previous packet determines where a packet begins.
            "pcap" => assert!(left > 0 && left < log.records, "{left}"),
            // The beginning of a record cannot be recognized with certainty either.
            "xray" => assert!(left > 0, "{left}"),
            _ => assert!((1..5).contains(&(log.records - left)), "{}: {left}", log.name),
        }
        // Truncate the file inside a record and read it to the end.
        here.write("cut", &log.bytes[..middle]);
        let (dtd, order, before, _) = log.said;
        let whole = Log { name: "cut", bytes: &log.bytes[..middle], said: (dtd, order, before, 0), ..*log };
        whole.command_as_said(here, &["dump", "cut"]).exits(1).says("metatfc: cut: offset");
        let salvaged = whole.command_as_said(here, &["dump", "--salvage", "cut"]).exits(0);
        let left = count(&salvaged.says("damaged (offset"));
        assert!(left > 0 && left < log.records, "{}: {left}", log.name);
    }
    // The bytes after the records are not a record.
    PERF.put(here);
    let skip = ["--raw", "--class", "2", "--order", "little", "--skip-bytes", "264", "--dtd", "perf"];
    metatfc(here, &[&["dump", "perf.data"][..], &skip].concat()).exits(1).says("record begins at 26232");
    let take = [&["verify", "perf.data"][..], &skip, &["--take-bytes", "30713"]].concat();
    metatfc(here, &take).exits(1).says("perf.data: the file has only 30976 bytes");
    metatfc(here, &["verify", "perf.data", "--take-bytes", "9"]).exits(2).says("--raw");
    let piped = [&["verify", "-", "--take-bytes", "25968"][..], &skip].concat();
    run(here, &piped, PERF.bytes).exits(0).prints("whole: 392 records");
}

/// Reading with the wrong byte order, the wrong format or a different sample layout is an error.
#[test]
fn a_wrong_file_is_an_error() {
    let here = &Folder::new();
    PCAPNG.put(here);
    let other = Log { said: ("pcapng", "big", 0, 0), ..PCAPNG };
    other.command_as_said(here, &["dump", "packets.pcapng"]).exits(1).says("leaf byte_order_magic");
    let other = Log { said: ("pcap", "little", 24, 0), ..PCAPNG };
    other.command_as_said(here, &["dump", "packets.pcapng"]).exits(1).says("but fewer bytes remain in the section");
    here.write(PIPE.name, PIPE.bytes);
    metatfc(here, &["verify", PIPE.name]).exits(1).says("metatfc: perf-pipe.data: offset");
}

/// In a file without records, `--head`, `--skip` and `--tail` count the elements of a stream section.
#[test]
fn some_of_the_packets() {
    let here = &Folder::new();
    PCAP.put(here);
    let all = PCAP.command(here, &["dump", "packets.pcap", "--format", "jsonl"]).exits(0).text();
    let all: Vec<&str> = all.lines().collect();
    assert_eq!(all.len(), PCAP.records);
    let wanted = [
        (&["--head", "2"][..], &all[..2]),
        (&["--skip", "3", "--head", "4"], &all[3..7]),
        (&["--tail", "5"], &all[25..]),
    ];
    for (options, lines) in wanted {
        let some =
            PCAP.command(here, &[&["dump", "packets.pcap", "--format", "jsonl"][..], options].concat()).exits(0).text();
        assert!(some.lines().eq(lines.iter().copied()), "{options:?}: {some}");
    }
}

/// Records can be sorted by a time that follows a repeated field. Elements of a stream section cannot be sorted.
#[test]
fn records_are_put_in_order() {
    let here = &Folder::new();
    PERF.put(here);
    PERF.command(here, &["sort", "perf.data", "-o", "sorted.mtf"]).exits(0);
    let lines = metatfc(here, &["dump", "--format", "jsonl", "sorted.mtf"]).exits(0).text();
    let times = lines.lines().filter_map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        record.get("time").and_then(serde_json::Value::as_u64)
    });
    let times: Vec<u64> = times.collect();
    assert!(times.len() > 380 && times.is_sorted(), "{times:?}");
    PCAP.put(here);
    PCAP.command(here, &["sort", "--by", "seconds", "packets.pcap", "-o", "no.mtf"])
        .exits(2)
        .says("elements of a stream");
}
