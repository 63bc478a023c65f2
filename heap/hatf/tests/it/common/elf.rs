//! ELF files that no compiler writes.
#![allow(clippy::cast_possible_truncation, reason = "they are small")]

/// A section of an ELF file.
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) content: Vec<u8>,
}

/// Returns a section with this content.
pub(crate) fn bytes(name: &str, content: Vec<u8>) -> Section<'_> {
    Section { name, kind: 1, flags: 0, content }
}

/// Returns a zlib-compressed section that claims this uncompressed size.
pub(crate) fn compressed(name: &str, claimed: u64, content: Vec<u8>) -> Section<'_> {
    compressed_by(1, name, claimed, content)
}

/// Returns a compressed section that claims this uncompressed size. Algorithm 1 is zlib, and 2 is zstd.
pub(crate) fn compressed_by(algorithm: u64, name: &str, claimed: u64, mut content: Vec<u8>) -> Section<'_> {
    let header = [algorithm, claimed, 1].map(u64::to_le_bytes).concat();
    content.splice(0..0, header);
    Section { name, kind: 1, flags: 0x800, content }
}

/// Returns a link to a debug information file, with checksum 0.
pub(crate) fn debug_link(name: &str) -> Section<'static> {
    debug_link_of(name, 0)
}

/// Returns a link to a debug information file with this checksum.
pub(crate) fn debug_link_of(name: &str, checksum: u32) -> Section<'static> {
    let mut content = [name.as_bytes(), &[0]].concat();
    content.resize(content.len().next_multiple_of(4), 0);
    content.extend(checksum.to_le_bytes());
    bytes(".gnu_debuglink", content)
}

/// Returns a symbol table of functions with 16 bytes each, starting at address 0x1000.
pub(crate) fn functions(names: &[&[u8]]) -> [Section<'static>; 2] {
    let (mut strings, mut symbols) = (vec![0], vec![0; 24]);
    for (at, name) in (0_u64..).zip(names) {
        symbols.extend((strings.len() as u32).to_le_bytes());
        // A global function in section 1.
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend([0x1000 + 16 * at, 16].map(u64::to_le_bytes).concat());
        strings.extend([name, &[0][..]].concat());
    }
    [
        Section { name: ".symtab", kind: 2, flags: 0, content: symbols },
        Section { name: ".strtab", kind: 3, flags: 0, content: strings },
    ]
}

/// Builds a 64-bit program.
pub(crate) fn program(sections: Vec<Section<'_>>) -> Vec<u8> {
    let strings = Section { name: ".shstrtab", kind: 3, flags: 0, content: Vec::new() };
    let mut sections: Vec<_> = sections.into_iter().chain([strings]).collect();
    let (mut names, mut starts) = (vec![0], Vec::new());
    for section in &sections {
        starts.push(names.len() as u32);
        names.extend([section.name.as_bytes(), &[0]].concat());
    }
    let count = sections.len();
    sections[count - 1].content = names;
    let strings = sections.iter().position(|section| section.name == ".strtab").map_or(0, |at| at + 1);
    let (mut headers, mut content) = (vec![0; 64], Vec::new());
    for (section, start) in sections.iter().zip(starts) {
        let (link, each) = if section.kind == 2 { (strings as u32, 24) } else { (0, 0) };
        headers.extend([start, section.kind].map(u32::to_le_bytes).concat());
        let offset = 64 + content.len() as u64;
        headers.extend([section.flags, 0, offset, section.content.len() as u64].map(u64::to_le_bytes).concat());
        headers.extend([link, u32::from(section.kind == 2)].map(u32::to_le_bytes).concat());
        headers.extend([1, each].map(u64::to_le_bytes).concat());
        content.extend(&section.content);
        content.resize(content.len().next_multiple_of(8), 0);
    }
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2_u16, 62].map(u16::to_le_bytes).concat());
    file.extend(1_u32.to_le_bytes());
    file.extend([0x1000, 0, 64 + content.len() as u64].map(u64::to_le_bytes).concat());
    file.extend(0_u32.to_le_bytes());
    file.extend([64, 56, 0, 64, count as u16 + 1, count as u16].map(u16::to_le_bytes).concat());
    [file, content, headers].concat()
}
