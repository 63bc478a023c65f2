//! Files of other tools, in `tests/logs`: captures of tcpdump and Wireshark, recordings of perf and of LLVM XRay. Each test compares every record with
//! the text that the format's own tool prints. `scripts/log-samples` makes files and texts; the versions of the tools are in `made-by.txt`.

use super::common::{metatfc, run};
use metatf_test::{Folder, Run, root, run_with, skip};
use std::path::Path;
use std::process::Command;

/// A file, and how it is read.
struct Log {
    name: &'static str,
    bytes: &'static [u8],
    dtd: &'static str,
    order: &'static str,
    /// Bytes before the records, and behind them.
    around: (usize, usize),
    records: usize,
}

const PCAP: Log = Log {
    name: "packets.pcap",
    bytes: include_bytes!("../logs/packets.pcap"),
    dtd: "pcap",
    order: "little",
    around: (24, 0),
    records: 30,
};
const PCAPNG: Log = Log {
    name: "packets.pcapng",
    bytes: include_bytes!("../logs/packets.pcapng"),
    dtd: "pcapng",
    order: "little",
    around: (0, 0),
    records: 72,
};
/// Every type of block whose body is described.
const BLOCKS: Log = Log {
    name: "blocks.pcapng",
    bytes: include_bytes!("../logs/blocks.pcapng"),
    dtd: "pcapng",
    order: "big",
    around: (0, 0),
    records: 15,
};
const PERF: Log = Log {
    name: "perf.data",
    bytes: include_bytes!("../logs/perf.data"),
    dtd: "perf",
    order: "little",
    around: (264, 30_976 - 264 - 25_968),
    records: 392,
};
/// Its DTD is made of the file.
const PIPE: Log = Log {
    name: "perf-pipe.data",
    bytes: include_bytes!("../logs/perf-pipe.data"),
    dtd: "perf-pipe.dtd",
    order: "little",
    around: (16, 0),
    records: 179,
};
const XRAY: Log = Log {
    name: "calls.xray",
    bytes: include_bytes!("../logs/calls.xray"),
    dtd: "xray",
    order: "little",
    around: (32, 0),
    records: 162,
};
const ALL: [&Log; 6] = [&PCAP, &PCAPNG, &BLOCKS, &PERF, &PIPE, &XRAY];

impl Log {
    /// Its records alone.
    fn content(&self) -> &[u8] {
        self.bytes.get(self.around.0..self.bytes.len() - self.around.1).expect("a file with records")
    }

    /// Puts the file into a folder, with the DTD if that is not built in.
    fn put(&self, here: &Folder) {
        here.write(self.name, self.bytes);
        if Path::new(self.dtd).extension().is_some() {
            let mut script = Command::new(root().join("scripts/perf-dtd"));
            let made = run_with(script.arg(self.name).current_dir(&**here), b"").exits(0);
            here.write(self.dtd, made.out);
        }
    }

    fn command(&self, here: &Folder, command: &[&str]) -> Run {
        let dtd = if command.first() == Some(&"recode") { "--source-dtd" } else { "--dtd" };
        let skip = self.around.0.to_string();
        let take = self.content().len().to_string();
        let mut args = vec!["--raw", "--class", "2", "--order", self.order, dtd, self.dtd, "--skip-bytes", &skip];
        if self.around.1 > 0 {
            args.extend(["--take-bytes", &take]);
        }
        metatfc(here, &[command, &args].concat())
    }

    fn lines(&self, here: &Folder) -> Run {
        self.command(here, &["dump", "--all", "--format", "jsonl", self.name]).exits(0)
    }
}

fn python() -> bool {
    Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A script puts the records into the words of the format's own tool.
fn same_text(log: &Log, script: &[&str], reference: &str) {
    let here = &Folder::new();
    log.put(here);
    let lines = log.lines(here);
    assert_eq!(lines.out.iter().filter(|byte| **byte == b'\n').count(), log.records);
    let (name, args) = script.split_first().expect("a script");
    let text = run_with(Command::new(root().join("scripts").join(name)).args(args), &lines.out).exits(0);
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

#[test]
fn the_dtd_of_perf_is_what_the_script_makes() {
    if !python() {
        return skip("python3 is not there");
    }
    let here = &Folder::new();
    here.write("perf.data", PERF.bytes);
    let shipped = std::fs::read_to_string(root().join("dtds/perf.dtd")).expect("the DTD");
    for args in [&[][..], &["perf.data"]] {
        let made = run_with(Command::new(root().join("scripts/perf-dtd")).args(args).current_dir(&**here), b"");
        assert_eq!(made.exits(0).text(), shipped);
    }
    let wrong =
        [("a.txt", &b"no recording"[..], "no perf.data file"), ("cut", &PERF.bytes[..140], "ends in its header")];
    for (name, bytes, problem) in wrong {
        here.write(name, bytes);
        let mut script = Command::new(root().join("scripts/perf-dtd"));
        run_with(script.arg(name).current_dir(&**here), b"").exits(1).says(problem);
    }
}

/// There and back it is the same, whatever the encoding of the trace.
#[test]
fn files_come_back_byte_for_byte() {
    let here = &Folder::new();
    for log in ALL {
        if log.dtd == PIPE.dtd && !python() {
            skip("python3 is not there");
            continue;
        }
        log.put(here);
        for profile in ["fast", "archive"] {
            log.command(here, &["recode", log.name, "log.mtf", "--profile", profile]).exits(0);
            metatfc(here, &["verify", "log.mtf"]).exits(0).prints(&log.records.to_string());
            metatfc(here, &["recode", "log.mtf", "again", "--to-raw"]).exits(0);
            assert!(here.read("again") == log.content(), "{}, {profile}", log.name);
        }
    }
}

/// An error has its place; what is whole is printed.
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
        // From the last byte of a record on.
        let lines = log.lines(here).text();
        let record = lines.lines().nth(log.records * 3 / 4).expect("a record");
        let record: serde_json::Value = serde_json::from_str(record).expect("JSON");
        let middle = usize::try_from(record["@offset"].as_u64().expect("a place")).expect("a place") - 1;
        let mut damaged = log.bytes.to_vec();
        damaged[middle..][..30].fill(0xee);
        here.write("bad", damaged);
        log.command(here, &["dump", "bad"]).exits(1).says("metatfc: bad: offset");
        let salvaged = log.command(here, &["dump", "--salvage", "bad"]).exits(0);
        let left = count(&salvaged.says("damaged (offset"));
        match log.dtd {
            // Nothing but the packet before it says where a packet begins.
            "pcap" => assert!(left > 0 && left < log.records, "{left}"),
            // Nor is a record's beginning like nothing else.
            "xray" => assert!(left > 0, "{left}"),
            _ => assert!((1..5).contains(&(log.records - left)), "{}: {left}", log.name),
        }
        // Cut in a record, and read to its end.
        here.write("cut", &log.bytes[..middle]);
        let whole = Log { name: "cut", bytes: &log.bytes[..middle], around: (log.around.0, 0), ..*log };
        whole.command(here, &["dump", "cut"]).exits(1).says("metatfc: cut: offset");
        let salvaged = whole.command(here, &["dump", "--salvage", "cut"]).exits(0);
        let left = count(&salvaged.says("damaged (offset"));
        assert!(left > 0 && left < log.records, "{}: {left}", log.name);
    }
    // What is behind the records is not a record.
    PERF.put(here);
    let skip = ["--raw", "--class", "2", "--order", "little", "--skip-bytes", "264", "--dtd", "perf"];
    metatfc(here, &[&["dump", "perf.data"][..], &skip].concat()).exits(1).says("record begins at 26232");
    let take = [&["verify", "perf.data"][..], &skip, &["--take-bytes", "30713"]].concat();
    metatfc(here, &take).exits(1).says("perf.data: it has 30976 bytes");
    metatfc(here, &["verify", "perf.data", "--take-bytes", "9"]).exits(2).says("--raw");
    let piped = [&["verify", "-", "--take-bytes", "25968"][..], &skip].concat();
    run(here, &piped, PERF.bytes).exits(0).prints("whole: 392 records");
}

/// The other byte order, another format, another layout of samples.
#[test]
fn a_wrong_file_is_an_error() {
    let here = &Folder::new();
    PCAPNG.put(here);
    let other = Log { order: "big", ..PCAPNG };
    other.command(here, &["dump", "packets.pcapng"]).exits(1).says("leaf byte_order_magic");
    let other = Log { around: (24, 0), dtd: "pcap", ..PCAPNG };
    other
        .command(here, &["dump", "packets.pcapng"])
        .exits(1)
        .says("bytes are asked for, more than the section has left");
    here.write(PIPE.name, PIPE.bytes);
    let other = Log { dtd: "perf", ..PIPE };
    other.command(here, &["verify", PIPE.name]).exits(1).says("metatfc: perf-pipe.data: offset");
}

/// Elements of a stream are counted as records are, where there is nothing else.
#[test]
fn some_of_the_packets() {
    let here = &Folder::new();
    PCAP.put(here);
    let all = PCAP.command(here, &["dump", "packets.pcap", "--format", "csv"]).exits(0).text();
    let all: Vec<&str> = all.lines().skip(1).collect();
    assert_eq!(all.len(), PCAP.records);
    let wanted = [
        (&["--head", "2"][..], &all[..2]),
        (&["--skip", "3", "--head", "4"], &all[3..7]),
        (&["--tail", "5"], &all[25..]),
    ];
    for (options, lines) in wanted {
        let some =
            PCAP.command(here, &[&["dump", "packets.pcap", "--format", "csv"][..], options].concat()).exits(0).text();
        assert!(some.lines().skip(1).eq(lines.iter().copied()), "{options:?}: {some}");
    }
}

/// A time behind a repetition is found; elements of a stream have none to go by.
#[test]
fn records_are_put_in_order() {
    let here = &Folder::new();
    PERF.put(here);
    PERF.command(here, &["sort", "perf.data", "sorted.mtf"]).exits(0);
    let lines = metatfc(here, &["dump", "--format", "jsonl", "sorted.mtf"]).exits(0).text();
    let times = lines.lines().filter_map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        record.get("time").and_then(serde_json::Value::as_u64)
    });
    let times: Vec<u64> = times.collect();
    assert!(times.len() > 380 && times.is_sorted(), "{times:?}");
    PCAP.put(here);
    PCAP.command(here, &["sort", "--by", "seconds", "packets.pcap", "no.mtf"]).exits(2).says("elements of a stream");
}
