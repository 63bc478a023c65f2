//! Traces in segments: `hatf record --rotate`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::common::{compiled, hatf, invariants};
use hatf_trace::event::{Call, Function};
use hatf_trace::forms::{Segments, TraceReader};
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::Folder;

/// A heap operation without addresses: a call with its size, or the number of the block that it frees.
#[derive(Debug, PartialEq)]
enum Step {
    Call(Function, u64, Option<u64>),
    Free(Option<u64>),
}

/// Reads the heap operations of a trace, and the sizes of the blocks that are never freed.
fn steps(trace: &Path) -> (Vec<Step>, Vec<u64>) {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut steps, mut live, mut number) = (Vec::new(), HashMap::new(), 0);
    while let Some(item) = reader.next().unwrap() {
        match item {
            Item::Event(event) => match event.kind {
                EventKind::Call(Call { function, size, old, address, .. }) => {
                    let freed = live.remove(&old).map(|(number, _)| number);
                    number += 1;
                    live.insert(address, (number, size));
                    steps.push(Step::Call(function, size, freed));
                }
                EventKind::Free { address } => steps.push(Step::Free(live.remove(&address).map(|(number, _)| number))),
                _ => {}
            },
            Item::Comment(_) => {}
        }
    }
    let mut left: Vec<_> = live.into_values().collect();
    left.sort_unstable();
    (steps, left.into_iter().map(|(_, size)| size).collect())
}

fn count(folder: &str) -> usize {
    Segments::list(folder.as_ref()).unwrap().complete.len()
}

/// Records the program in segments.
fn recorded(folder: &Folder, name: &str, options: &[&str], words: &[&str]) -> Option<String> {
    let program = compiled(folder, "segments", &[])?;
    let place = folder.path(name);
    let program = program.to_str().unwrap().to_owned();
    let all =
        [&["record", "--group", "3000", "--rotate", "64KiB"][..], options, &["-o", &place, "--", &program], words];
    hatf(all.concat()).exits(0).says(" 0 lost");
    Some(place)
}

#[test]
fn the_segments_contain_what_one_trace_contains() {
    let folder = Folder::new();
    let Some(place) = recorded(&folder, "segments-trace", &["--stacks"], &[]) else { return };
    assert!(count(&place) >= 3, "{}", count(&place));
    let trace = folder.path("one.mtf");
    let program = folder.path("segments");
    hatf(["record", "--stacks", "-o", &trace, "--", &program]).exits(0);
    let (whole, parts) = (steps(trace.as_ref()), steps(place.as_ref()));
    assert_eq!(whole.0.len(), parts.0.len());
    assert!(whole == parts);
    assert_eq!(whole.1.len(), 101);
    assert_eq!(invariants::broken(place.as_ref()), [""; 0]);
    let copy = folder.path("copy.mtf");
    hatf(["convert", &place, &copy]).exits(0);
    assert!(steps(copy.as_ref()) == whole);
    // Each segment contains all that is live, and is a trace by itself.
    for number in 1..=count(&place) as u64 {
        let segment = Path::new(&place).join(Segments::name(number));
        assert_eq!(invariants::broken(&segment), [""; 0]);
        let live = steps(&segment).1;
        assert!((100..=199).all(|size| live.contains(&size)), "{number}: {live:?}");
        let is_last = number == count(&place) as u64;
        let end = if is_last { "Exited with status 0" } else { "the recording continues in the next segment" };
        hatf(["report".as_ref(), segment.as_os_str()]).exits(0).prints(end);
    }
    for command in ["report", "sites", "leaks", "dump"] {
        hatf([command, &place]).exits(0);
    }
    hatf(["diff", &trace, &place]).exits(0);
}

#[test]
fn old_segments_are_deleted() {
    let folder = Folder::new();
    let Some(by_size) = recorded(&folder, "size", &["--retain", "160KiB"], &[]) else { return };
    let segments = Segments::list(by_size.as_ref()).unwrap();
    assert!(segments.complete[0] > 1 && segments.unfinished.is_empty(), "{segments:?}");
    let bytes: u64 = fs::read_dir(&by_size).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes <= 160 << 10, "{bytes}");
    let live = steps(by_size.as_ref()).1;
    assert!(live.len() == 101 && live[..100].iter().copied().eq(100..200), "{live:?}");
    assert_eq!(invariants::broken(by_size.as_ref()), [""; 0]);
    let Some(by_age) = recorded(&folder, "age", &["--retain", "1ms"], &[]) else { return };
    let segments = Segments::list(by_age.as_ref()).unwrap();
    assert!(segments.complete[0] > 1, "{segments:?}");
    hatf(["report", &by_age]).exits(0);
}

#[test]
fn each_process_has_its_own_directory() {
    let folder = Folder::new();
    let Some(place) = recorded(&folder, "parent", &[], &["fork"]) else { return };
    let child = folder.path("parent.processes/2-segments");
    assert!(count(&place) >= 3 && count(&child) >= 3);
    assert_eq!(steps(child.as_ref()).0.len(), steps(place.as_ref()).0.len());
    // A second recording does not touch the first.
    let before = count(&place);
    recorded(&folder, "parent", &[], &[]);
    assert_eq!((count(&place), count(&format!("{place}.1"))), (before, before));
}

/// Errors name the segment and what is wrong with it.
#[test]
fn directories_that_are_not_whole() {
    let folder = Folder::new();
    let Some(place) = recorded(&folder, "place", &[], &[]) else { return };
    let file = |number| Path::new(&place).join(Segments::name(number));
    let last = count(&place) as u64;
    let third = fs::read(file(3)).unwrap();
    let refused = |says: &str| drop(hatf(["report", &place]).exits(1).says(says));
    // Other files are ignored.
    fs::write(Path::new(&place).join("notes.txt"), "not a segment").unwrap();
    fs::write(Path::new(&place).join("3.mtf"), "not a segment").unwrap();
    hatf(["report", &place]).exits(0);
    fs::remove_file(file(3)).unwrap();
    refused("segment 000003.mtf is missing");
    fs::copy(file(2), file(3)).unwrap();
    refused("000003.mtf: wrong name: the file contains segment 2");
    fs::write(file(3), &third[..third.len() / 2]).unwrap();
    refused("segment 000003.mtf: offset");
    fs::write(file(3), b"foreign").unwrap();
    refused("000003.mtf");
    let trace = folder.path("one.mtf");
    let program = folder.path("segments");
    hatf(["record", "-o", &trace, "--", &program]).exits(0);
    fs::copy(&trace, file(3)).unwrap();
    refused("000003.mtf: not a segment of a recording");
    let other = recorded(&folder, "other", &[], &[]).unwrap();
    fs::copy(Path::new(&other).join(Segments::name(3)), file(3)).unwrap();
    refused("000003.mtf: belongs to a different recording");
    fs::write(file(3), &third).unwrap();
    fs::rename(file(last), Path::new(&place).join(Segments::unfinished_name(last))).unwrap();
    hatf(["report", &place]).exits(0).says(".part is not read, because");
    let empty = folder.path("empty");
    fs::create_dir(&empty).unwrap();
    hatf(["report", &empty]).exits(1).says("irectory");
    hatf(["record", "--rotate", "1h", "-o", "-", "--", &program]).exits(2).says("specify a directory");
    hatf(["record", "--rotate", "1h", "--format", "hatf10", "-o", &empty, "--", &program]).exits(2);
    hatf(["record", "--retain", "1h", "-o", &empty, "--", &program]).exits(2).says("--rotate");
}
