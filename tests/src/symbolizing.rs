//! Inputs of `hatf symbolize`, from arbitrary bytes: program files, and maps of functions generated at run time.

use std::path::Path;

use hatf_trace::{Event, EventKind, EventSink as _};
use hatf_view::symbolize::{Files, Frame, Image, Symbolizer, Wanted, build_id, find};

/// Maximum length of a function name.
const LONGEST: usize = 1024;

/// Initial programs of this target, one with compressed debug information.
pub const PROGRAMS: [&[u8]; 2] = [include_bytes!("../data/inlined.elf"), include_bytes!("../data/inlined-zlib.elf")];

/// Reads a byte of switches and a file: a program, or a function map if the lowest bit is set.
///
/// # Panics
/// Panics if a name is too long, or if a file cannot be written.
pub fn symbolize(input: &[u8]) {
    let Some((switches, content)) = input.split_first() else { return };
    let folder = tempfile::tempdir().expect("there is room for it");
    let path = folder.path().join("input");
    std::fs::write(&path, content).expect("there is room for it");
    let files = Files { debug_dirs: vec![folder.path().to_owned()], ..Files::default() };
    if switches & 1 == 0 { program(&path, content, &files) } else { map(Files { perf_map: Some(path), ..files }) }
}

/// Looks up frames around the program's entry point, and others.
fn program(path: &Path, content: &[u8], files: &Files) {
    let entry = content.get(24..32).and_then(|entry| entry.try_into().ok()).map_or(0, u64::from_le_bytes);
    let near = (0..32).map(|at| entry.wrapping_add(at * 2).wrapping_sub(24));
    let frames: Vec<u64> = near.chain([0, 1, u64::MAX]).collect();
    let image = Image { build_id: build_id(path).unwrap_or_default(), path: path.display().to_string() };
    let answer = Symbolizer::new(files.clone()).symbolize(&image, &frames);
    assert_eq!(answer.frames.len(), frames.len());
    answer.frames.iter().flatten().for_each(ends);
}

fn map(files: Files) {
    let stack = [0x7010, 0x10, u64::MAX];
    let mut wanted = Wanted::new();
    let image = EventKind::Image { process: 1, path: b"node" };
    let free = Event { stack: (&stack).into(), ..Event::new(EventKind::Free { address: 16 }) };
    for event in [Event::new(image), free] {
        wanted.event(&event).expect("it is only looked at");
    }
    assert!(find(&wanted, &files).named <= stack.len());
}

fn ends(frame: &Frame) {
    assert!(frame.function.len() <= LONGEST && frame.file.len() <= LONGEST, "{frame:?}");
}

/// Returns the programs and a map. They are unrelated to the vectors, so only one vector returns them.
pub(crate) fn seeds(path: &Path, _: &[u8]) -> Vec<Vec<u8>> {
    if !path.ends_with("bad/dtd/base-unknown-record/format.dtd") {
        return Vec::new();
    }
    let programs = PROGRAMS.iter().map(|program| [&[0], *program].concat());
    programs.chain([b"\x017000 100 LazyCompile:*f a.js:1:1\n0 20 g\nffffffffffffff00 ff h\n".to_vec()]).collect()
}
