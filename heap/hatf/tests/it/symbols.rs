//! Debug information in each format that compilers and linkers write yields the same results.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

use std::path::Path;

use hatf_view::symbolize::{Answer, Files, Frame, Image, Missing, Symbolizer};
use metatf_test::Folder;
use object::{Object as _, ObjectSection as _};

use crate::common::{compiled, elf};

/// Symbolizes addresses in a program.
fn answer(path: &Path, addresses: &[u64]) -> Answer {
    let image = Image { path: path.display().to_string(), build_id: String::new() };
    let files = Files { debug_dirs: Vec::new(), ..Files::default() };
    Symbolizer::new(files).symbolize(&image, addresses)
}

fn with_lines(answer: &Answer) -> usize {
    answer.frames.iter().filter(|frames| frames.first().is_some_and(|frame| frame.line > 0)).count()
}

/// A program with debug information as the compiler writes it, addresses in the program, and their frames.
struct Plain {
    bytes: Vec<u8>,
    addresses: Vec<u64>,
    frames: Vec<Vec<Frame>>,
}

fn plain(folder: &Folder) -> Option<Plain> {
    let path = compiled(folder, "stacks", &["-O1"])?;
    let bytes = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let text = file.section_by_name(".text").unwrap();
    let addresses: Vec<u64> = (text.address()..text.address() + text.size()).step_by(4).collect();
    let plain = answer(&path, &addresses);
    assert_eq!(plain.missing, None);
    assert!(with_lines(&plain) > 100, "{}", with_lines(&plain));
    let main = plain.frames.iter().flatten().find(|frame| frame.function == "main").unwrap();
    assert!(main.first_line > 0 && main.line >= main.first_line && main.file.ends_with("stacks.c"), "{main:?}");
    Some(Plain { bytes, addresses, frames: plain.frames })
}

/// Sections compressed with zlib and with zstd are read.
#[test]
fn compressed_sections() {
    let (folder, other) = (Folder::new(), Folder::new());
    let Some(Plain { bytes, addresses, frames }) = plain(&folder) else { return };
    let zlib = compiled(&other, "stacks", &["-O1", "-gz=zlib"]).unwrap();
    assert_eq!(answer(&zlib, &addresses), Answer { frames: frames.clone(), missing: None });

    let file = object::File::parse(&*bytes).unwrap();
    let section = |section: object::Section<'_, '_>| {
        let (name, content) = (section.name().unwrap().to_owned(), section.data().unwrap().to_vec());
        let kind = match &*name {
            ".symtab" => 2,
            ".strtab" => 3,
            _ => 1,
        };
        (name, kind, content)
    };
    let sections: Vec<_> = file.sections().map(section).collect();
    let wanted = sections.iter().filter(|(name, ..)| name.starts_with(".debug_") || name.ends_with("tab"));
    let wanted = wanted.filter(|(name, ..)| name != ".shstrtab").map(|(name, kind, content)| match kind {
        1 => elf::compressed_by(2, name, content.len() as u64, zstd::encode_all(&**content, 3).unwrap()),
        _ => elf::Section { name, kind: *kind, flags: 0, content: content.clone() },
    });
    let zstd = other.join("zstd");
    std::fs::write(&zstd, elf::program(wanted.collect())).unwrap();
    let found = answer(&zstd, &addresses);
    assert_eq!((found.frames, found.missing), (frames, None));
}

/// Debug information is read from a linked file if the checksum matches.
#[test]
fn a_link_to_debug_information() {
    let (folder, other) = (Folder::new(), Folder::new());
    let Some(Plain { bytes, addresses, frames }) = plain(&folder) else { return };
    std::fs::create_dir(other.join(".debug")).unwrap();
    let separate = other.join(".debug/stacks.debug");
    std::fs::write(&separate, &bytes).unwrap();
    let mut checksum = flate2::Crc::new();
    checksum.update(&bytes);
    let program = other.join("stacks");
    let linked = elf::debug_link_of("stacks.debug", checksum.sum());
    std::fs::write(&program, elf::program(vec![linked])).unwrap();
    assert_eq!(answer(&program, &addresses), Answer { frames, missing: None });

    std::fs::write(&separate, [&*bytes, &[0]].concat()).unwrap();
    let found = answer(&program, &addresses);
    assert!(found.frames.iter().all(Vec::is_empty));
    assert_eq!(
        found.missing,
        Some(Missing::Part(format!("{} is debug information for a different build", separate.display())))
    );
    std::fs::remove_file(&separate).unwrap();
    assert_eq!(answer(&program, &addresses).missing, Some(Missing::DebugInformation));
}

/// Debug information that was split off during compilation is read.
#[test]
fn split_debug_information() {
    let (folder, other) = (Folder::new(), Folder::new());
    let Some(Plain { addresses, frames, .. }) = plain(&folder) else { return };
    let program = compiled(&other, "stacks", &["-O1", "-gsplit-dwarf"]).unwrap();
    assert_eq!(answer(&program, &addresses), Answer { frames, missing: None });

    let files = std::fs::read_dir(program.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let split = files.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "dwo")).unwrap();
    std::fs::write(&split, "damaged").unwrap();
    let found = answer(&program, &addresses);
    assert!(with_lines(&found) > 100 && matches!(found.missing, Some(Missing::Part(_))), "{:?}", found.missing);
    std::fs::remove_file(&split).unwrap();
    let Some(Missing::Part(why)) = answer(&program, &addresses).missing else { panic!("nothing is missing") };
    assert!(why.contains(".dwo: "), "{why}");
}
