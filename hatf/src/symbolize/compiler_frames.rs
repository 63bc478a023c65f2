//! Where frames are in the terms of a compiler that reads profiles: names as the linker has them, lines from the first of the
//! function, columns.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use addr2line::{Context, gimli};
use gimli::{AttributeValue, DebugInfoOffset, Dwarf, DwarfSections, EndianSlice, RunTimeEndian, UnitHeader};
use object::{CompressionFormat, Object, ObjectSection, ReadCache, ReadRef};

use super::find::{Files, file_of, separate};
use crate::stacks::Module;

/// A call in a function's source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompilerFrame {
    /// The name of the function as the linker has it: mangled.
    pub function: String,
    /// The line of the call, from the line on which the function begins.
    pub line_offset: u32,
    /// The column of the call, from 1; 0: not known.
    pub column: u32,
    /// Whether the function was put into the next one.
    pub inlined: bool,
}

/// A function's entry refers to another, and that to another again, at most so often.
const ORIGINS: usize = 8;

type Bytes<'b> = EndianSlice<'b, RunTimeEndian>;

/// Returns where each frame of a module is, inlined functions first. A frame has none if there is no debug information of it, or if
/// that lacks a function's name, its first line, or the line of a call.
///
/// # Errors
/// Why the module's file cannot be used.
pub fn compiler_frames(module: &Module, frames: &[u64], files: &Files) -> Result<Vec<Vec<CompilerFrame>>, String> {
    let path = file_of(module, files)?;
    let look_up = || match in_file(&path, module, frames)? {
        Some(found) => Ok(Some(found)),
        // Debug information that was moved to a file of its own.
        None => separate(module, files).map_or(Ok(None), |path| {
            in_file(&path, module, frames).map_err(|error| format!("{}: {error}", path.display()))
        }),
    };
    // What is in the file comes from anywhere.
    let found = catch_unwind(AssertUnwindSafe(look_up));
    let found = found.unwrap_or_else(|_| Err("its debug information is damaged".to_owned()))?;
    Ok(found.unwrap_or_else(|| vec![Vec::new(); frames.len()]))
}

/// Looks frames up in a file; `None`: it has no debug information.
fn in_file(path: &Path, module: &Module, frames: &[u64]) -> Result<Option<Vec<Vec<CompilerFrame>>>, String> {
    let cache = ReadCache::new(File::open(path).map_err(|error| error.to_string())?);
    let file = object::File::parse(&cache).map_err(|error| error.to_string())?;
    if file.section_by_name(".debug_info").is_none() {
        return Ok(None);
    }
    let sections = DwarfSections::load(|id| section(&file, id.name()))?;
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let dwarf = Arc::new(sections.borrow(|section| EndianSlice::new(section, endian)));
    let found = LookUp::new(dwarf).and_then(|mut look_up| {
        // The call is before the address that it returns to.
        let offsets = frames.iter().map(|frame| frame.wrapping_sub(module.bias).wrapping_sub(1));
        offsets.map(|offset| look_up.frames(offset)).collect()
    });
    found.map(Some).map_err(|error| format!("its debug information is damaged: {error}"))
}

/// Returns the content of a section, uncompressed; none where there is no such section.
fn section<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, name: &str) -> Result<Cow<'d, [u8]>, String> {
    let Some(section) = file.section_by_name(name) else { return Ok(Cow::Borrowed(&[])) };
    let compressed = section.compressed_data().map_err(|error| error.to_string())?;
    let mut content = Vec::new();
    let read = match compressed.format {
        CompressionFormat::None => return Ok(Cow::Borrowed(compressed.data)),
        CompressionFormat::Zlib => flate2::read::ZlibDecoder::new(compressed.data)
            .take(compressed.uncompressed_size)
            .read_to_end(&mut content)
            .is_ok(),
        CompressionFormat::Zstandard => zstd::Decoder::new(compressed.data)
            .and_then(|decoder| decoder.take(compressed.uncompressed_size).read_to_end(&mut content))
            .is_ok(),
        _ => false,
    };
    if read { Ok(Cow::Owned(content)) } else { Err(format!("section {name} is compressed, and damaged")) }
}

/// Looks addresses up.
struct LookUp<'b> {
    context: Context<Bytes<'b>>,
    dwarf: Arc<Dwarf<Bytes<'b>>>,
    /// Units by their places, and of these such as were needed: link-time optimization puts functions of one into another.
    headers: BTreeMap<usize, UnitHeader<Bytes<'b>>>,
    units: BTreeMap<usize, gimli::Unit<Bytes<'b>>>,
}

impl<'b> LookUp<'b> {
    fn new(dwarf: Arc<Dwarf<Bytes<'b>>>) -> gimli::Result<Self> {
        let context = Context::from_arc_dwarf(Arc::clone(&dwarf))?;
        let (mut headers, mut units) = (BTreeMap::new(), dwarf.units());
        while let Some(header) = units.next()? {
            headers.extend(header.debug_info_offset().map(|offset| (offset.0, header)));
        }
        Ok(Self { context, dwarf, headers, units: BTreeMap::new() })
    }

    /// Returns the calls at an address of the file, innermost first; none where one of them is not known well enough.
    fn frames(&mut self, address: u64) -> gimli::Result<Vec<CompilerFrame>> {
        let Some(unit) = self.context.find_dwarf_and_unit(address).skip_all_loads() else { return Ok(Vec::new()) };
        let unit = unit.header.debug_info_offset().map_or(0, |offset| offset.0);
        let mut frames = self.context.find_frames(address).skip_all_loads()?;
        let mut calls = Vec::new();
        while let Some(frame) = frames.next()? {
            let location = frame.location.and_then(|location| Some((location.line?, location.column.unwrap_or(0))));
            let known = frame.function.zip(frame.dw_die_offset).zip(location);
            let Some(((name, entry), (line, column))) = known else { return Ok(Vec::new()) };
            calls.push((name.raw_name()?.into_owned(), unit.saturating_add(entry.0), line, column));
        }
        drop(frames);
        let last = calls.len().saturating_sub(1);
        let mut found = Vec::with_capacity(calls.len());
        for (number, (function, entry, line, column)) in calls.into_iter().enumerate() {
            let Some(first) = self.first_line(entry, ORIGINS)? else { return Ok(Vec::new()) };
            // A line of another file, such as one that a macro's file gave, wraps as in LLVM.
            let line_offset = line.wrapping_sub(first);
            found.push(CompilerFrame { function, line_offset, column, inlined: number < last });
        }
        Ok(found)
    }

    /// Returns the line of a function's declaration; `entry` is its place in `.debug_info`.
    fn first_line(&mut self, entry: usize, origins: usize) -> gimli::Result<Option<u32>> {
        let Some((start, header)) = self.headers.range(..=entry).next_back() else { return Ok(None) };
        let unit = match self.units.entry(*start) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.dwarf.unit(*header)?),
        };
        let Some(offset) = DebugInfoOffset(entry).to_unit_offset(&unit.header) else { return Ok(None) };
        let function = unit.entry(offset)?;
        if let Some(line) = function.attr_value(gimli::DW_AT_decl_line).and_then(|line| line.udata_value()) {
            return Ok(u32::try_from(line).ok());
        }
        let origin = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification].into_iter();
        let origin = origin.filter_map(|name| function.attr_value(name)).find_map(|value| match value {
            AttributeValue::UnitRef(offset) => Some(offset.to_debug_info_offset(&unit.header)?.0),
            AttributeValue::DebugInfoRef(offset) => Some(offset.0),
            _ => None,
        });
        match (origin, origins.checked_sub(1)) {
            (Some(origin), Some(origins)) => self.first_line(origin, origins),
            _ => Ok(None),
        }
    }
}
