//! Writes the golden files, both to generate them and to test whether today's writers do as well.

use super::{Sums, folder, lines, open, records, schema};
use crate::runtime;
use metatf::container::{Class, Codec, Filter, Order, SizeRule, WriteOptions};
use metatf::dynamic::Schema;
use metatf_tools::recode::{Preset, recode};
use std::path::Path;

/// File with the lines that the files `every.*` are written from; their DTD has the same stem.
const EVERY: &str = "every.jsonl";

/// Returns the names of the files written from the lines of `every.jsonl`, with their options.
#[must_use]
pub fn options() -> Vec<(String, WriteOptions)> {
    let codecs = [("stored", Codec::Stored), ("lz4", Codec::Lz4), ("zstd", Codec::Zstd(3)), ("zlib", Codec::Zlib(6))];
    let filters = [
        ("none", Filter::None),
        ("transpose", Filter::Transpose),
        ("record-dictionary", Filter::RecordDictionary),
        ("split-suffix", Filter::SplitSuffix),
        ("auto", Filter::Auto),
        ("columns", Filter::Columns),
    ];
    let kinds = [
        ("32-little", Class::Bits32, Order::Little),
        ("32-big", Class::Bits32, Order::Big),
        ("64-little", Class::Bits64, Order::Little),
        ("64-big", Class::Bits64, Order::Big),
    ];
    let kind = |n: usize| {
        let (name, class, order) = kinds[n % kinds.len()];
        (name, WriteOptions { class, order, dtd_url: "every.dtd".to_owned(), ..WriteOptions::default() })
    };
    let mut files = Vec::new();
    for (c, (codec_name, codec)) in codecs.into_iter().enumerate() {
        for (f, (filter_name, filter)) in filters.into_iter().enumerate() {
            let (kind_name, options) = kind(c + f);
            let name = format!("every.{codec_name}-{filter_name}-{kind_name}.mtf");
            files.push((name, WriteOptions { codec, filter, ..options }));
        }
    }
    for n in 0..kinds.len() {
        let (name, options) = kind(n);
        files.push((format!("every.version-0-{name}.mtf"), WriteOptions { version: 0, ..options.clone() }));
        let small = WriteOptions { chunk_size: 300, group_size: 2000, ..options };
        files.push((format!("every.groups-{name}.mtf"), small));
    }
    let (_, options) = kind(2);
    files.push(("every.no-dtd.mtf".to_owned(), WriteOptions { embed_dtd: false, ..options.clone() }));
    let rules = [("header", SizeRule::Header), ("classes", SizeRule::Classes)];
    for (name, rule) in rules {
        let options = WriteOptions { size_rule: Some(rule), ..options.clone() };
        files.push((format!("every.size-rule-{name}.mtf"), options));
    }
    files
}

/// Writes the lines of `every.jsonl`. A trace of version 0 has no groups and no resets.
fn every(schema: &Schema, lines: &str, options: &WriteOptions) -> Result<Vec<u8>, String> {
    let chunks =
        |line: &&str| options.version == 1 || !["{\"@group\"", "{\"@reset\""].iter().any(|l| line.starts_with(l));
    let lines: String = lines.lines().filter(chunks).map(|line| format!("{line}\n")).collect();
    runtime::from_json(schema, &lines, options)
}

/// Recodes a file with the preset at the end of its name, as `metatfc convert --preset` does.
fn recoded(folder: &Path, name: &str, bytes: &[u8], preset: Preset) -> Result<Vec<u8>, String> {
    let schema = schema(folder, name, bytes);
    let mut trace = open(&schema, name, bytes).map_err(|e| e.to_string())?;
    let header = trace.reader_mut().container().header().clone();
    let mut write =
        WriteOptions { class: header.class, order: header.order, dtd_url: header.dtd_url, ..WriteOptions::default() };
    preset.apply(&mut write);
    let written = recode(&mut trace, Vec::new(), &write, preset.options(), || ());
    written.map(|(out, _)| out).map_err(|e| e.to_string())
}

fn preset(name: &str) -> Option<Preset> {
    Preset::ALL.into_iter().find(|preset| name.ends_with(&format!("-{preset}.mtf")))
}

/// Writes the records of a golden file again, with today's writers and the same options.
///
/// # Errors
/// Fails if the file is invalid.
pub fn rewritten(folder: &Path, name: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
    if let Some(preset) = preset(name) {
        return recoded(folder, name, bytes, preset);
    }
    let schema = schema(folder, name, bytes);
    if let Some((_, options)) = options().into_iter().find(|(file, _)| file == name) {
        let lines = std::fs::read_to_string(folder.join(EVERY)).map_err(|e| e.to_string())?;
        return every(&schema, &lines, &options);
    }
    // In a file without a header, whatever precedes and follows the records is elements.
    let lines = lines(&schema, name, bytes, true).map_err(|e| e.to_string())?;
    let trace = open(&schema, name, bytes).map_err(|e| e.to_string())?;
    let order = trace.reader().container().header().order;
    let raw = WriteOptions { version: 0, raw: true, order, embed_dtd: false, ..WriteOptions::default() };
    runtime::from_json(&schema, &lines, &raw)
}

/// Generates the files `every.*` of a directory, recodes the files whose names end in a preset until they no longer
/// change, and writes `SUMS`.
///
/// # Errors
/// Fails if the files are released, because released files are frozen, or if writing fails.
pub fn make(folder: &Path) -> Result<Sums, String> {
    if Sums::read(folder).is_some_and(|sums| sums.released) {
        return Err(format!("{} is released: its files stay as they are", folder.display()));
    }
    let file = |name: &str| folder.join(name);
    let write = |name: &str, bytes: &[u8]| std::fs::write(file(name), bytes).map_err(|e| e.to_string());
    let text = std::fs::read(file("every.dtd")).map_err(|e| e.to_string())?;
    let every_schema = Schema::parse("every.dtd", &text).map_err(|e| e.to_string())?;
    let lines = records::lines();
    write(EVERY, lines.as_bytes())?;
    for (name, options) in options() {
        write(&name, &every(&every_schema, &lines, &options).map_err(|e| format!("{name}: {e}"))?)?;
    }
    let stored = std::fs::read(file("every.stored-none-32-little.mtf")).map_err(|e| e.to_string())?;
    let values = super::lines(&every_schema, "every.mtf", &stored, false).map_err(|e| e.to_string())?;
    write("every-values.jsonl", values.as_bytes())?;
    for preset in Preset::ALL {
        write(&format!("every.{preset}.mtf").replace("every.", "every.preset-"), &stored)?;
    }
    for name in super::names(folder) {
        let Some(preset) = preset(&name) else { continue };
        let mut bytes = std::fs::read(file(&name)).map_err(|e| e.to_string())?;
        // Block boundaries depend on the resets in the trace: the second time there are none left.
        for _ in 0..2 {
            bytes = recoded(folder, &name, &bytes, preset).map_err(|e| format!("{name}: {e}"))?;
        }
        write(&name, &bytes)?;
    }
    let sums = Sums::of_folder(folder);
    write(Sums::NAME, sums.text().as_bytes())?;
    Ok(sums)
}

/// Regenerates the files in the repository.
///
/// # Errors
/// Fails like [`make`].
pub fn make_all() -> Result<Sums, String> {
    make(&folder())
}
