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
use object::{CompressionFormat, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef, SymbolKind};
use serde::{Deserialize, Serialize};

use super::checked::check;
use super::find::{Files, file_of, separate};
use crate::stacks::Module;

/// A call in a function's source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
/// that lacks a function's name or the line of a call.
///
/// Where it has lines alone (`-gmlt`), names are those of the symbol table, and a function begins on the line of its first
/// instruction. Of inlined functions the first line is not known then, and taken for 0.
///
/// # Errors
/// Why the module's file cannot be used.
pub fn compiler_frames(module: &Module, frames: &[u64], files: &Files) -> Result<Vec<Vec<CompilerFrame>>, String> {
    match &files.helper {
        Some(helper) => helper.compiler_frames(module, frames, files),
        None => compiler_frames_here(module, frames, files, |_| ()),
    }
}

/// Does the same in this process; `found` is called with the bytes of the files before they are read.
pub(super) fn compiler_frames_here(
    module: &Module,
    frames: &[u64],
    files: &Files,
    found: impl FnOnce(u64),
) -> Result<Vec<Vec<CompilerFrame>>, String> {
    let path = file_of(module, files)?;
    let look_up = || {
        let separate = separate(module, files);
        let bytes = separate.as_ref().map_or(Ok(0), |path| check(path, files))?;
        found(check(&path, files)?.saturating_add(bytes));
        match (in_file(&path, module, frames)?, separate) {
            (None, Some(path)) => {
                // Debug information that was moved to a file of its own.
                in_file(&path, module, frames).map_err(|error| format!("{}: {error}", path.display()))
            }
            (known, _) => Ok(known),
        }
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
    let found = LookUp::new(dwarf, symbols(&file)).and_then(|mut look_up| {
        // The call is before the address that it returns to.
        let offsets = frames.iter().map(|frame| frame.wrapping_sub(module.bias).wrapping_sub(1));
        offsets.map(|offset| look_up.frames(offset)).collect()
    });
    found.map(Some).map_err(|error| format!("its debug information is damaged: {error}"))
}

/// A function of the symbol table: its addresses, and its name.
struct Symbol<'d> {
    start: u64,
    end: u64,
    name: &'d str,
}

/// Returns the functions of the symbol table, by address.
fn symbols<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> Vec<Symbol<'d>> {
    let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let symbol = |symbol: object::Symbol<'d, '_, R>| {
        let (start, name) = (symbol.address(), symbol.name().ok()?);
        Some(Symbol { start, end: start.saturating_add(symbol.size()), name })
    };
    let mut symbols: Vec<Symbol<'_>> = functions.filter_map(symbol).collect();
    symbols.sort_by_key(|symbol| symbol.start);
    symbols
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
    symbols: Vec<Symbol<'b>>,
    /// Units by their places, and of these such as were needed: link-time optimization puts functions of one into another.
    headers: BTreeMap<usize, UnitHeader<Bytes<'b>>>,
    units: BTreeMap<usize, gimli::Unit<Bytes<'b>>>,
}

impl<'b> LookUp<'b> {
    fn new(dwarf: Arc<Dwarf<Bytes<'b>>>, symbols: Vec<Symbol<'b>>) -> gimli::Result<Self> {
        let context = Context::from_arc_dwarf(Arc::clone(&dwarf))?;
        let (mut headers, mut units) = (BTreeMap::new(), dwarf.units());
        while let Some(header) = units.next()? {
            headers.extend(header.debug_info_offset().map(|offset| (offset.0, header)));
        }
        Ok(Self { context, dwarf, symbols, headers, units: BTreeMap::new() })
    }

    /// Returns the calls at an address of the file, innermost first; none where one of them is not known well enough.
    fn frames(&mut self, address: u64) -> gimli::Result<Vec<CompilerFrame>> {
        let Some(unit) = self.context.find_dwarf_and_unit(address).skip_all_loads() else { return Ok(Vec::new()) };
        let unit = unit.header.debug_info_offset().map_or(0, |offset| offset.0);
        let mut frames = self.context.find_frames(address).skip_all_loads()?;
        let mut calls = Vec::new();
        while let Some(frame) = frames.next()? {
            let location = frame.location.and_then(|location| Some((location.line?, location.column.unwrap_or(0))));
            let Some(location) = location else { return Ok(Vec::new()) };
            let function = match frame.function.zip(frame.dw_die_offset) {
                Some((name, entry)) => Some((name.raw_name()?.into_owned(), unit.saturating_add(entry.0))),
                None => None,
            };
            calls.push((function, location));
        }
        drop(frames);
        let symbol = self.symbol(address);
        let last = calls.len().saturating_sub(1);
        let mut found = Vec::with_capacity(calls.len());
        for (number, (function, (line, column))) in calls.into_iter().enumerate() {
            let symbol = symbol.filter(|_| number == last);
            let (function, first) = match (function, symbol) {
                (Some((name, entry)), symbol) => {
                    let line = self.first_line(entry, ORIGINS)?;
                    // Tables of lines alone have short names.
                    let mangled = symbol.map(|(_, name)| name).filter(|symbol| symbol.starts_with("_Z"));
                    (mangled.filter(|_| !name.starts_with("_Z")).map_or(name, str::to_owned), line)
                }
                // They have no function in which nothing was inlined.
                (None, Some((_, name))) => (name.to_owned(), None),
                (None, None) => return Ok(Vec::new()),
            };
            let first = match (first, symbol) {
                (Some(first), _) => first,
                (None, Some((start, _))) => self.line_at(start)?.unwrap_or(0),
                // As LLVM does.
                (None, None) => 0,
            };
            // A line of another file, such as one that a macro's file gave, wraps as in LLVM.
            let line_offset = line.wrapping_sub(first);
            found.push(CompilerFrame { function, line_offset, column, inlined: number < last });
        }
        Ok(found)
    }

    /// Returns the function of the symbol table that an address lies in: its address and its name.
    fn symbol(&self, address: u64) -> Option<(u64, &'b str)> {
        let behind = self.symbols.partition_point(|symbol| symbol.start <= address);
        let symbol = self.symbols.get(behind.checked_sub(1)?)?;
        (address < symbol.end).then_some((symbol.start, symbol.name))
    }

    /// Returns the line of an address.
    fn line_at(&self, address: u64) -> gimli::Result<Option<u32>> {
        Ok(self.context.find_location(address)?.and_then(|location| location.line))
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
