//! The times of groups, which let `dump --where` and tables skip groups.
#![allow(clippy::expect_used, reason = "a test")]

use crate::common::{metatfc, written};
use metatf::container::Reader;
use metatf_test::{Folder, Run};
use std::fmt::Write as _;

const DTD: &str = "\
time.width = 2; time.interpretation = delta 0; time.role = \"time\";
section heap 1 {
    alloc: (tag, time, size, name) {
        tag.value = 4;
        size.width = 1; size.interpretation = none;
        name.width = 1; name.interpretation = sectionOffset 2;
    }
    free: (tag, n*value, time) {
        tag.value = 5;
        n.width = 1; n.interpretation = none;
        value.interpretation = sectionStride 3 1;
    }
    other: (tag, note) { tag.value = 6; note.width = 1; note.interpretation = none; }
}
section names 2 { text: vfield { vfield.data.format = \"utf8\"; } }
section values 3 { v: (item) { item.width = 4; item.interpretation = delta 0; } }
";

/// Writes `a.mtf` with ten groups, in which times begin at `1000 * group`, and `b.mtf` with the same records but without
/// the times of groups.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut lines = String::new();
    let mut offset = 0;
    for group in 0..10_u32 {
        if group > 0 {
            let _ = writeln!(lines, r#"{{"@group":{group}}}"#);
        }
        let name = format!("group {group}");
        let _ = writeln!(lines, r#"{{"@section":"names","@record":"text","vfield":"{name}","@shared":true}}"#);
        for n in 0..300_u32 {
            // Times also go back.
            let time = group * 1000 + n * 7 % 300;
            let record = match n % 5 {
                0 => format!(r#""free","n":2,"value":[{n},{}],"time":{time}"#, n * group),
                1 => format!(r#""other","note":{}"#, n % 256),
                _ => format!(r#""alloc","time":{time},"size":{},"name":{offset}"#, n % 200),
            };
            // One group contains no times.
            let record = if group == 7 { r#""other","note":7"# } else { &*record };
            let _ = writeln!(lines, r#"{{"@section":"heap","@record":{record}}}"#);
        }
        offset += 1 + name.len();
    }
    written(&folder, "a.mtf", DTD, &lines, 1);
    written(&folder, "b.mtf", &DTD.replace("time.role", "time.other"), &lines, 1);
    assert!(kinds(&folder, "a.mtf").ends_with(&[129]) && !kinds(&folder, "b.mtf").contains(&129));
    folder
}

/// Returns the kinds of a trace's chunks.
fn kinds(folder: &Folder, name: &str) -> Vec<u8> {
    let mut reader = Reader::open(folder.join(name)).expect("a trace");
    reader.chunks().expect("chunks").iter().map(|chunk| chunk.kind).collect()
}

/// Overwrites bytes in the middle of the groups with these numbers.
fn damage(folder: &Folder, name: &str, groups: &[usize]) {
    let mut bytes = folder.read("a.mtf");
    let mut reader = Reader::open(folder.join("a.mtf")).expect("a trace");
    let chunks = reader.chunks().expect("chunks").iter().filter(|chunk| chunk.is_data() && !chunk.is_shared());
    let mut group = usize::MAX;
    for chunk in chunks {
        group = group.wrapping_add(usize::from(chunk.is_group_start()));
        if groups.contains(&group) {
            let at = usize::try_from(chunk.offset).expect("an offset") + 48;
            bytes[at..at + 8].fill(0xAA);
        }
    }
    folder.write(name, bytes);
}

fn same(folder: &Folder, args: &[&str]) -> Run {
    let on = |trace: &str| metatfc(folder, &[args, &[trace]].concat()).exits(0);
    let (with, without) = (on("a.mtf"), on("b.mtf"));
    assert_eq!(with.text(), without.text(), "{args:?}");
    with
}

#[test]
fn conditions_on_times_select_the_same_records() {
    let folder = folder();
    let conditions = [
        ("time >= 3000 && time < 4000", 240),
        ("time > 8100 and size > 100", 103),
        ("time == 2001 || 5000 == time", 2),
        ("time < 5 || time > 9298", 5),
        ("time > 20000", 0),
        ("time > 20000 || note == 7", 300),
        ("!(time > 100)", 921),
        ("time >= 3000 && time < 4000 && name == 20", 0),
    ];
    for (condition, count) in conditions {
        for format in ["text", "jsonl"] {
            for options in [&["--threads", "1"][..], &["--threads", "3"], &["--skip", "3"], &["--tail", "2"]] {
                let args = [&["dump", "--format", format, "--where", condition], options].concat();
                let lines = same(&folder, &args).text().lines().count();
                if options[0] == "--threads" && format == "jsonl" {
                    assert_eq!(lines, count, "{condition}");
                }
            }
        }
    }
    // These print resolved elements and stream elements.
    same(&folder, &["dump", "--resolve", "--where", "time >= 8000"]);
    same(&folder, &["dump", "--all", "--where", "time >= 8000"]);
}

#[test]
fn groups_outside_the_times_are_not_read() {
    let folder = folder();
    let condition = ["dump", "--format", "jsonl", "--where", "time >= 3000 && time < 5000"];
    damage(&folder, "others.mtf", &[0, 1, 2, 5, 6, 7, 8, 9]);
    damage(&folder, "wanted.mtf", &[4]);
    for threads in ["1", "3"] {
        let dump = |name: &str| metatfc(&folder, &[&condition[..], &["--threads", threads, name]].concat());
        assert_eq!(dump("others.mtf").exits(0).text(), dump("a.mtf").exits(0).text());
        dump("wanted.mtf").exits(1);
    }
    // Conditions that do not limit the time read everything.
    for condition in ["time >= 3000 || size == 3", "!(time < 3000)", "note == 3"] {
        metatfc(&folder, &["dump", "--where", condition, "others.mtf"]).exits(1);
    }
    metatfc(&folder, &["verify", "others.mtf"]).exits(1);
    // Groups without times match no condition on times.
    let mut bytes = folder.read("a.mtf");
    bytes.truncate(bytes.len() - 20);
    folder.write("open.mtf", bytes);
    metatfc(&folder, &["dump", "--where", "time >= 3000 && time < 4000", "open.mtf"]).exits(1);
}

/// Tables have the same rows and record numbers, and skip groups, too.
#[test]
#[cfg(feature = "export")]
fn tables_skip_groups() {
    let folder = folder();
    damage(&folder, "others.mtf", &[0, 1, 2, 5, 6, 7, 8, 9]);
    for threads in ["1", "3"] {
        for condition in ["time >= 3000 and time < 5000", "time > 4290 or time == 3000", "size == 9 and time >= 3100"] {
            // With a reference, records are read one by one.
            for columns in ["@number,time,size", "@number,time,name"] {
                let csv = |name: &str| {
                    let args = ["convert", name, "-", "--to", "csv", "--record", "alloc", "--threads", threads];
                    metatfc(&folder, &[&args[..], &["--where", condition, "--columns", columns]].concat())
                };
                let whole = csv("b.mtf").exits(0).text();
                assert!(whole.lines().count() > 1, "{condition}");
                assert_eq!(csv("a.mtf").exits(0).text(), whole, "{condition}");
                let is_limited = condition.ends_with("< 5000");
                let others = csv("others.mtf").exits(i32::from(!is_limited));
                assert!(!is_limited || others.text() == whole);
            }
        }
    }
}

#[test]
fn tools_write_the_times_again() {
    let folder = folder();
    let condition = "time >= 3000 && time < 4000";
    let lines = |name: &str| {
        let args = ["dump", "--format", "jsonl", "--where", condition, name];
        metatfc(&folder, &args).exits(0).text().lines().count()
    };
    metatfc(&folder, &["convert", "a.mtf", "c.mtf"]).exits(0);
    metatfc(&folder, &["convert", "a.mtf", "one.mtf", "--group", "0"]).exits(0);
    metatfc(&folder, &["sort", "a.mtf", "-o", "d.mtf"]).exits(0);
    metatfc(&folder, &["verify", "--salvage", "e.mtf", "a.mtf"]).exits(0);
    for (name, has_times) in [("c.mtf", true), ("one.mtf", false), ("e.mtf", true)] {
        assert_eq!(kinds(&folder, name).contains(&129), has_times, "{name}");
        metatfc(&folder, &["verify", name]).exits(0);
        assert_eq!(lines(name), 240, "{name}");
    }
    metatfc(&folder, &["verify", "d.mtf"]).exits(0);
    assert_eq!(lines("d.mtf"), 240);
}

#[test]
fn verify_finds_wrong_times() {
    let folder = folder();
    let mut reader = Reader::open(folder.join("a.mtf")).expect("a trace");
    let chunks = reader.chunks().expect("chunks").to_vec();
    let last = chunks.last().expect("a chunk");
    let bytes = folder.read("a.mtf");
    let start = usize::try_from(last.offset).expect("an offset");
    // The chunk lists two leaves in seven bytes, then the number of groups, and the first group.
    let change = |place: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[start + 48 + place] = byte;
        let end = start + 48 + last.stored_len as usize;
        let crc = crc32c(&[&bytes[start..start + 44], &bytes[start + 48..end]].concat());
        bytes[start + 44..start + 48].copy_from_slice(&crc.to_le_bytes());
        folder.write("x.mtf", bytes);
        metatfc(&folder, &["verify", "x.mtf"])
    };
    assert_eq!(bytes[start + 48..start + 56], [2, 1, 4, 1, 1, 5, 3, 10]);
    change(7, 10).exits(0);
    // The first group has times from 0 to 299.
    assert_eq!(bytes[start + 56..start + 59], [0xAD, 0x02, 0]);
    let first = chunks.iter().find(|chunk| chunk.is_group_start()).expect("a group").offset;
    let message = format!("x.mtf: offset {first}: the records of the group that begins here have times from 0 to 299");
    change(8, 0xAC).exits(1).says(&message);
    change(7, 11).exits(1).says(&format!("offset {start}"));
    // The wrong times hide records, but nothing else.
    change(9, 1);
    let hidden = metatfc(&folder, &["dump", "--where", "time >= 172 && time < 300", "x.mtf"]).exits(0);
    assert!(hidden.text().is_empty());
    assert_eq!(metatfc(&folder, &["dump", "x.mtf"]).exits(0).text(), metatfc(&folder, &["dump", "a.mtf"]).text());
}

/// Returns the CRC-32C.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82F6_3B78 } else { 0 })
    })
}
