//! The tables in the header, which contain the text of the DTD, the names of kinds, the metadata of chunks, and CRCs.

use std::fmt::Write as _;

use metatf_parser::Dtd;

use super::layout::Layout;
use crate::emitters::Emitters;
use crate::options::Options;

/// Maximum length of a string literal in bytes. Compilers need not support more than 4,095 characters (C99, 5.2.4.1).
const STRING_MOST: usize = 4000;

/// Writes the tables of a DTD.
pub(super) fn tables(dtd: &Dtd, emitters: &Emitters, layout: &Layout, options: &Options, prefix: &str) -> String {
    let mut out = String::new();
    // The header of a trace stores the length of this name in a single byte.
    let source: String = options.source.chars().take(60).collect();
    let _ = writeln!(
        out,
        "/* The source of the DTD. */\nstatic const char {prefix}_source[] = {};",
        quoted(source.as_bytes())
    );
    if options.source.is_empty() {
        out.clear();
        let _ = writeln!(out, "static const char {prefix}_source[] = \"\";");
    }
    let stem = source.rsplit_once('.').map_or(source.as_str(), |(stem, _)| stem);
    let plain: String = stem.chars().map(|c| if c == '/' { '_' } else { c }).collect();
    let _ = writeln!(out, "#ifdef {}_POSIX", prefix.to_ascii_uppercase());
    let _ = writeln!(out, "static const char {prefix}_name[] = {};", quoted(plain.as_bytes()));
    out.push_str("#endif\n\n");
    let kinds: Vec<_> = emitters.kinds.iter().map(|kind| quoted(kind.as_bytes())).collect();
    let _ = writeln!(out, "static const char *const {prefix}_kinds[] = {{{}}};\n", kinds.join(", "));
    let _ = writeln!(
        out,
        "typedef struct {prefix}_part {{\n    uint32_t length;\n    const char *text;\n}} {prefix}_part;\n"
    );
    let _ = writeln!(out, "/* The text of the DTD, which is embedded in each trace. */");
    let _ = writeln!(out, "static const {prefix}_part {prefix}_dtd[] = {}", parts(&dtd.text));
    let condition = format!("#if defined({}_POSIX) && defined(__linux__)", prefix.to_ascii_uppercase());
    let _ =
        writeln!(out, "{condition}\n/* The source of each value of an event, in the format of metatf-telemetry. */");
    let _ = writeln!(out, "static const {prefix}_part {prefix}_table[] = {}#endif\n", parts(&emitters.table));
    let _ = writeln!(
        out,
        "/* Each chunk begins with records that set the widths of its section's fields, so that events depend on no state. */"
    );
    for (index, section) in layout.sections.iter().enumerate() {
        let bytes: Vec<_> = section.metadata.iter().map(|byte| format!("0x{byte:02x}")).collect();
        let rows: Vec<_> = bytes.chunks(20).map(|row| row.join(", ")).collect();
        let rows = if rows.is_empty() { "0".to_owned() } else { rows.join(",\n    ") };
        let _ = writeln!(out, "static const uint8_t {prefix}_metadata_{}[] = {{\n    {rows}}};", index + 1);
    }
    let _ = writeln!(
        out,
        "static const struct {{\n    uint8_t number;\n    uint8_t flags;\n    uint8_t width;\n    const uint8_t *metadata;\n    size_t length;"
    );
    let _ = writeln!(out, "}} {prefix}_sections[] = {{");
    for (index, section) in layout.sections.iter().enumerate() {
        let (length, width) = (section.metadata.len(), section.width);
        // A chunk of a table resets the state and belongs to no group. Any other chunk starts a group.
        let flags = if section.is_table { 5 } else { 3 };
        let _ =
            writeln!(out, "    {{{}, {flags}, {width}, {prefix}_metadata_{}, {length}}},", section.number, index + 1);
    }
    out.push_str("};\n\n");
    out
}

/// Writes a text in parts that are short enough for compilers.
pub(super) fn parts(text: &str) -> String {
    let mut out = "{\n".to_owned();
    for part in text.as_bytes().chunks(STRING_MOST) {
        let lines: Vec<_> = part.split_inclusive(|b| *b == b'\n').map(quoted).collect();
        let _ = writeln!(out, "    {{{},\n     {}}},", part.len(), lines.join("\n     "));
    }
    out + "};\n"
}

/// Writes bytes as a C string without trigraphs, and without hexadecimal escapes that could absorb the next character.
fn quoted(bytes: &[u8]) -> String {
    let mut out = "\"".to_owned();
    for &byte in bytes {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'"' | b'\\' | b'?' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}

/// Writes the tables for a CRC-32C that processes four bytes at a time. Entry `n` of table `k` is the CRC of byte `n`
/// followed by `k` zero bytes.
pub(super) fn crc() -> String {
    let entry = |byte: u32| (0..8).fold(byte, |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 });
    let table = |zeros: u32| {
        let all = (0..256).map(|byte| (0..zeros).fold(entry(byte), |crc, _| entry(crc & 0xff) ^ crc >> 8));
        let all: Vec<_> = all.map(|crc| format!("0x{crc:08x}")).collect();
        let rows: Vec<_> = all.chunks(8).map(|row| format!("        {},\n", row.join(", "))).collect();
        format!("    {{\n{}    }},\n", rows.concat())
    };
    (0..4).map(table).collect()
}
