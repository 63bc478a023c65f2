//! Programs that request memory pages and name threads, and the usable sizes of blocks.
#![expect(clippy::unwrap_used)]

use std::path::Path;

use crate::common::{compiled, hatf};
use hatf_trace::event::{Pages, Resident};
use hatf_trace::forms::TraceReader;
use hatf_trace::{Event, EventKind, EventSource as _, Item};
use metatf_test::Folder;

/// Length of the pages that the program maps.
const LENGTH: u64 = 8 << 20;

fn events(trace: &str, mut each: impl FnMut(&Event<'_>)) {
    let mut reader = TraceReader::open(Path::new(trace)).unwrap();
    while let Some(item) = reader.next().unwrap() {
        if let Item::Event(event) = item {
            each(&event);
        }
    }
}

#[test]
fn calls_for_pages_and_what_the_kernel_says() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "pages", &["-fno-builtin"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    hatf(["record", "--pages", "--stacks", "-o", &trace, "--", &program]).exits(7).says(" 0 lost");
    let (mut calls, mut most, mut breaks, mut stacks) = (Vec::new(), Resident::default(), Vec::new(), 0);
    events(&trace, |event| match event.kind {
        EventKind::Pages(Pages::Break { end }) => breaks.push(end),
        EventKind::Pages(pages) => {
            calls.push(pages);
            stacks += u64::from(!event.stack.is_empty());
        }
        EventKind::Resident(now) if now.private() > most.private() => most = now,
        _ => {}
    });
    let [
        Pages::Map { start, length: LENGTH, protection: 3, flags: 0x22 },
        Pages::Advise { start: advised, length, advice: 4 },
        Pages::Remap { from, from_length: LENGTH, start: moved, length: grown },
        Pages::Unmap { start: unmapped, length: gone },
    ] = calls[..]
    else {
        panic!("{calls:?}")
    };
    assert_eq!((advised, length, from, grown), (start, LENGTH / 2, start, 2 * LENGTH));
    assert_eq!((unmapped, gone), (moved, 2 * LENGTH));
    // If the CPU and the C library support stacks, each of these calls has one.
    assert!(stacks == 4 || !cfg!(target_arch = "x86_64"), "{stacks}");
    // The first of these is the old break, which `sbrk` has moved.
    assert!(breaks.windows(2).any(|pair| pair[1] == pair[0] + 12288), "{breaks:?}");
    assert!(most.private() >= LENGTH && most.data >= LENGTH && most.mapped >= most.resident, "{most:?}");
    let report = hatf(["report", &trace]).exits(0).text();
    for words in ["PAGES", "1 mmap, 1 munmap, 1 mremap", "1 madvise", "resident and private"] {
        assert!(report.contains(words), "{words}: {report}");
    }
    let picture = folder.path("live.svg");
    hatf(["report", &trace, "--svg", &picture]).exits(0);
    assert!(std::fs::read_to_string(picture).unwrap().contains("resident and private pages"));
}

#[test]
fn threads_have_names_and_the_systems_numbers() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "pages", &["-fno-builtin"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    hatf(["record", "-o", &trace, "--", &program]).exits(7).says(" 0 lost");
    let (mut names, mut tasks, mut process, mut asked) = (Vec::new(), Vec::new(), 0, 0);
    events(&trace, |event| match event.kind {
        EventKind::ThreadName { name } => names.push((event.thread, String::from_utf8(name.to_vec()).unwrap())),
        EventKind::ThreadStart { task, .. } => tasks.push(task),
        EventKind::Image { process: image, .. } => process = image,
        EventKind::Resident(_) => asked += 1,
        EventKind::Pages(_) => panic!("{event:?}"),
        _ => {}
    });
    names.sort();
    let expected = [(1, "the first"), (2, "by another"), (3, "by prctl")];
    assert_eq!(names, expected.map(|(thread, name)| (thread, name.to_owned())));
    assert_eq!((tasks.len(), tasks[0]), (3, process));
    assert!(tasks.iter().all(|task| *task >= process), "{tasks:?}");
    // The kernel is queried by default, but not with `--no-resident`.
    assert!(asked > 0);
    let report = hatf(["report", &trace]).exits(0).text();
    assert!(report.contains("to record the calls that request pages too, use hatf record --pages"), "{report}");
    let silent = folder.path("silent.mtf");
    hatf(["record", "--no-resident", "-o", &silent, "--", &program]).exits(7).says(" 0 lost");
    events(&silent, |event| assert!(!matches!(event.kind, EventKind::Resident(_)), "{event:?}"));
    assert!(["the first", "by another", "by prctl"].iter().all(|name| report.contains(name)), "{report}");
}

#[test]
fn what_blocks_really_have() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "pages", &["-fno-builtin"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    for options in [&["--usable"][..], &["--usable", "--stacks"], &["--profile", "debug"]] {
        let command = ["record", "-o", &trace].into_iter().chain(options.iter().copied()).chain(["--", &program]);
        hatf(command).exits(7).says(" 0 lost");
        let mut usable = Vec::new();
        events(&trace, |event| {
            if let EventKind::Call(call) = event.kind {
                assert!(call.usable >= call.size && call.usable < call.size + 4096, "{call:?}");
                usable.push((call.size, call.usable));
            }
        });
        // These are sizes of glibc on 64-bit systems. Other C libraries have different sizes.
        let of_glibc = |size| usable.contains(&(size, 24));
        assert!(of_glibc(11) && of_glibc(12), "{usable:?}");
        hatf(["report", &trace]).exits(0).prints(" larger than requested");
    }
}
