//! A synthetic core file, whole, truncated, and with wrong numbers.

use std::io::{Seek as _, Write as _};

use super::{CoreError, CoreFile};
use crate::glibc::tests::{self, DATA, SEGMENT};
use crate::{Memory as _, read_heap};

/// Returns a core file in memory.
fn opened(bytes: &[u8]) -> Result<CoreFile, CoreError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    CoreFile::read(file)
}

fn note(kind: u32, content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(content.len()).unwrap();
    let head = [5, size, kind].into_iter().flat_map(u32::to_le_bytes);
    head.chain(*b"CORE\0\0\0\0")
        .chain(content.iter().copied())
        .chain(vec![0; content.len().next_multiple_of(4) - content.len()])
        .collect()
}

/// Returns the synthetic process of the tests of glibc as a core file: the header, the program headers, the notes, and
/// the memory from byte 4096.
fn core_file() -> Vec<u8> {
    let image = tests::image(tests::V2_36);
    let mut status = vec![0; 336];
    status[112 + 8 * 19..][..8].copy_from_slice(&(tests::VARIABLES + 0x900).to_le_bytes());
    status[112 + 8 * 21..][..8].copy_from_slice(&(tests::VARIABLES + 0x800).to_le_bytes());
    let mut process = vec![0; 136];
    process[24..28].copy_from_slice(&1234_u32.to_le_bytes());
    process[40..43].copy_from_slice(b"ser");
    process[56..69].copy_from_slice(b"./server -v 1");
    let mut files: Vec<u8> = [1, 4096, DATA, DATA + 0x4000, 3].into_iter().flat_map(u64::to_le_bytes).collect();
    files.extend(b"/lib/libc.so.6\0");
    let notes = [note(1, &status), note(3, &process), note(0x4649_4c45, &files)].concat();
    let count = image.mappings.len() + 1;
    let mut file = vec![0; 64];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[16..20].copy_from_slice(&[4, 0, 62, 0]);
    file[32] = 64;
    file[56] = u8::try_from(count).unwrap();
    let header = |kind: u32, flags: u32, words: [u64; 6]| {
        let words = words.into_iter().flat_map(u64::to_le_bytes);
        [kind, flags].into_iter().flat_map(u32::to_le_bytes).chain(words).collect::<Vec<_>>()
    };
    file.extend(header(4, 0, [64 + 56 * count as u64, 0, 0, notes.len() as u64, 0, 0]));
    let mut memory = Vec::new();
    for mapping in &image.mappings {
        let mut content = vec![0; usize::try_from(mapping.end - mapping.start).unwrap()];
        image.read(mapping.start, &mut content).unwrap();
        let (offset, size) = (4096 + memory.len() as u64, content.len() as u64);
        file.extend(header(1, 6, [offset, mapping.start, 0, size, size, 0]));
        memory.extend(content);
    }
    file.extend(notes);
    file.resize(4096, 0);
    file.extend(memory);
    file
}

#[test]
fn a_core_file_contains_the_blocks_of_the_process() {
    let core = opened(&core_file()).unwrap();
    assert_eq!((core.process, core.command.join(" ")), (1234, "./server -v 1".to_owned()));
    assert_eq!(
        core.threads,
        [tests::thread()].map(|thread| crate::Thread { stack_pointer: tests::VARIABLES + 0x900, ..thread })
    );
    let named: Vec<_> = core.mappings.iter().filter(|mapping| !mapping.name.is_empty()).collect();
    let names: Vec<_> = named.iter().map(|mapping| (&*mapping.name, mapping.start)).collect();
    assert_eq!(names, [("[heap]", SEGMENT), ("/lib/libc.so.6", DATA)]);
    let heap = read_heap(&core, &core.mappings, &core.threads).unwrap().unwrap();
    assert_eq!(heap.live().collect::<Vec<_>>(), tests::expected(tests::V2_36));
}

/// Pages of zeros and holes in the file do not count.
#[test]
fn pages_of_zeros_are_absent() {
    let bytes = core_file();
    let mut sparse = tempfile::tempfile().unwrap();
    let pages = bytes.chunks(4096);
    for page in pages {
        if page.iter().all(|byte| *byte == 0) {
            sparse.seek_relative(4096).unwrap();
        } else {
            sparse.write_all(page).unwrap();
        }
    }
    sparse.set_len(bytes.len() as u64).unwrap();
    let resident = |core: CoreFile| core.mappings.iter().map(|mapping| mapping.resident).collect::<Vec<_>>();
    let (sparse, whole) = (resident(CoreFile::read(sparse).unwrap()), resident(opened(&bytes).unwrap()));
    assert_eq!(sparse, whole);
    let written = bytes[4096..].chunks(4096).filter(|page| page.iter().any(|byte| *byte != 0)).count() as u64;
    assert_eq!(whole.iter().sum::<u64>(), 4096 * written);
    assert!(written < 16);
}

/// Each mistake is reported with its offset.
#[test]
fn mistakes_have_an_offset() {
    let (load, notes) = (64 + 56, 64 + 6 * 56);
    let files = notes + 20 + 336 + 20 + 136;
    let cases: [(usize, &[u8], u64, &str); 14] = [
        (0, b"\x28\xb5\x2f\xfd", 0, "decompress"),
        (0, b"MZ", 0, "another format"),
        (16, &[3], 16, "a program or library"),
        (18, &[183], 18, "x86-64"),
        (4, &[1], 18, "x86-64"),
        (39, &[0xff], 0xff00_0000_0000_0040, "truncated"),
        (56, &[0xff, 0xff], 56, "no memory"),
        (load + 15, &[0xff], load as u64, "truncated"),
        (load + 16, &[1], load as u64, "begin at a page"),
        (load + 42, &[0], load as u64, "more content"),
        (load + 42, &[0xff; 6], load as u64, "end of all memory"),
        (notes + 4, &[0xff; 4], notes as u64, "ends after its segment"),
        (notes + 4, &[40, 0], notes as u64, "registers"),
        (files + 20, &[2], files as u64, "lacks the 2 files"),
    ];
    for (place, wrong, offset, what) in cases {
        let mut bytes = core_file();
        bytes[place..place + wrong.len()].copy_from_slice(wrong);
        let error = opened(&bytes).map(|core| core.process).expect_err(what);
        let is_right = error.what.contains(what) && error.offset == offset;
        assert!(is_right, "{place} {offset} {what}: {error}");
    }
    // The second segment has the address of the first.
    let mut bytes = core_file();
    bytes.copy_within(load + 16..load + 24, load + 56 + 16);
    assert!(opened(&bytes).unwrap_err().what.contains("overlaps"));
}

/// A truncated file and any wrong byte in its tables lead to blocks or to an error.
#[test]
fn any_byte_may_be_wrong_or_missing() {
    let whole = core_file();
    for length in (0..1200).chain((1200..whole.len()).step_by(4999)) {
        assert!(opened(&whole[..length]).is_err(), "{length}");
    }
    for place in 0..1200 {
        for wrong in [0, 0xff, whole[place] ^ 0x10, whole[place].wrapping_add(1)] {
            let mut bytes = whole.clone();
            bytes[place] = wrong;
            if let Ok(core) = opened(&bytes) {
                let _ = read_heap(&core, &core.mappings, &core.threads);
            }
        }
    }
}

/// A file that claims to be enormous needs neither time nor memory for its holes.
#[test]
fn an_enormous_hole_costs_nothing() {
    let mut bytes = core_file();
    let load = 64 + 56 * 2;
    bytes[load + 32..load + 40].copy_from_slice(&(1_u64 << 36).to_le_bytes());
    bytes[load + 40..load + 48].copy_from_slice(&(1_u64 << 36).to_le_bytes());
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file.set_len(1 << 37).unwrap();
    let result = CoreFile::read(file);
    assert_eq!(result.unwrap().mappings[1].end, tests::OWN + (1 << 36));
}
