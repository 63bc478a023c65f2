//! Frames from debug information, which consist of functions (including inlined ones), files, lines and columns.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use addr2line::gimli::{self, AbbreviationsCacheStrategy, DwarfPackageSections, DwarfSections, EndianSlice};
use addr2line::gimli::{RunTimeEndian, SectionId};
use addr2line::{Context, Location};
use object::Object as _;

use super::answer::Frame;
use super::elf::Elf;
use super::files::Files;
use super::first_lines::FirstLines;
use super::names::{cut, cut_symbol, demangled};
use super::sections::{Bytes, is_read};
use super::split::{Split, SplitFiles};
use super::symbol_table::SymbolTable;

/// The uncompressed debug information of an image.
pub(super) struct Sections<'m> {
    own: DwarfSections<Cow<'m, [u8]>>,
    /// The supplementary file, which several images share.
    shared: Option<DwarfSections<Cow<'m, [u8]>>>,
    /// The package of split debug information.
    package: Option<DwarfPackageSections<Cow<'m, [u8]>>>,
    split_files: SplitFiles,
    endian: RunTimeEndian,
}

impl<'m> Sections<'m> {
    /// Reads the sections that describe functions and lines.
    ///
    /// # Errors
    /// A section is corrupt.
    pub(super) fn read(
        debug: &Elf<'m>,
        shared: Option<&Elf<'m>>,
        package: Option<&Elf<'m>>,
    ) -> Result<Self, Box<dyn Error>> {
        let read = |elf: &Elf<'m>| {
            DwarfSections::load(|id| if is_read(id) { elf.section(id.name()) } else { Ok(Cow::default()) })
        };
        // The package index refers to all sections, so all of them must be loaded.
        let section = |elf: &Elf<'m>, id: SectionId| id.dwo_name().map_or(Ok(Cow::default()), |name| elf.section(name));
        let package = package.map(|elf| DwarfPackageSections::load(|id| Ok::<_, Box<dyn Error>>(section(elf, id)?)));
        let package = package.transpose()?;
        let endian = if debug.object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let (own, shared) = (read(debug)?, shared.map(read).transpose()?);
        let mut units = own.debug_info.borrow(|section| EndianSlice::new(section, endian)).units();
        let mut count = 0;
        while let Ok(Some(_)) = units.next() {
            count += 1;
        }
        Ok(Self { own, shared, package, split_files: SplitFiles::new(count), endian })
    }

    fn bytes<'b>(&self, section: &'b [u8]) -> Bytes<'b> {
        EndianSlice::new(section, self.endian)
    }
}

/// Lookup tables for addresses.
pub(super) struct LookUp<'b> {
    context: Context<Bytes<'b>>,
    split: Split<'b>,
    first_lines: FirstLines<'b>,
    symbols: &'b SymbolTable<'b>,
}

impl<'b> LookUp<'b> {
    /// Builds the lookup tables.
    ///
    /// # Errors
    /// The tables are corrupt.
    pub(super) fn new(
        sections: &'b Sections<'_>,
        symbols: &'b SymbolTable<'_>,
        own: &'b Elf<'_>,
        files: &'b Files,
    ) -> gimli::Result<Self> {
        let mut dwarf = sections.own.borrow_with_sup(sections.shared.as_ref(), |section| sections.bytes(section));
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let package = sections
            .package
            .as_ref()
            .map(|package| package.borrow(|section| sections.bytes(section), EndianSlice::new(&[], sections.endian)));
        let dwarf = Arc::new(dwarf);
        let split = Split::new(package.transpose()?, &sections.split_files, own, files, sections.endian);
        let context = Context::from_arc_dwarf(Arc::clone(&dwarf))?;
        Ok(Self { context, split, first_lines: FirstLines::new(dwarf), symbols })
    }

    /// Returns a message about the first missing split file.
    pub(super) fn missing(self) -> Option<String> {
        self.split.missing()
    }

    /// Returns the frames of an address, innermost first. Returns no frames if there is no debug information about the
    /// address.
    ///
    /// If the debug information contains only line tables (`-gmlt`), names come from the symbol table, and a function
    /// begins on the line of its first instruction. The first line of inlined functions is then unknown.
    ///
    /// # Errors
    /// The debug information is corrupt.
    pub(super) fn frames(&self, address: u64) -> gimli::Result<Vec<Frame>> {
        if address == u64::MAX {
            // The library searches for ranges that begin before the next address, which does not exist here.
            return Ok(Vec::new());
        }
        for (load, loaded) in self.context.preload_units(address) {
            loaded(self.split.load(&load)?)?;
        }
        let Some(unit) = self.context.find_dwarf_and_unit(address).skip_all_loads() else { return Ok(Vec::new()) };
        let mut frames = self.context.find_frames(address).skip_all_loads()?;
        let mut found = Vec::new();
        while let Some(addr2line::Frame { dw_die_offset, function, location }) = frames.next()? {
            let symbol = function.as_ref().map(|name| name.raw_name()).transpose()?.unwrap_or_default();
            let Location { file, line, column } = location.unwrap_or(Location { file: None, line: None, column: None });
            found.push(Frame {
                function: demangled(&symbol),
                symbol: cut_symbol(&symbol),
                file: file.map(cut).unwrap_or_default(),
                line: line.unwrap_or(0),
                column: column.unwrap_or(0),
                first_line: dw_die_offset.map_or(Ok(0), |entry| self.first_lines.of(unit, entry))?,
                inlined: true,
            });
        }
        if let Some(outer) = found.last_mut() {
            outer.inlined = false;
            self.complete(address, outer)?;
            if outer.function.is_empty() {
                found.clear();
            }
        }
        Ok(found)
    }

    /// Completes a frame with data from the symbol table. The frame's function must not be inlined.
    fn complete(&self, address: u64, frame: &mut Frame) -> gimli::Result<()> {
        let Some(symbol) = self.symbols.find(address) else { return Ok(()) };
        if frame.first_line == 0 {
            frame.first_line = self.context.find_location(symbol.start)?.and_then(|place| place.line).unwrap_or(0);
        }
        // Line-table-only information contains unqualified names, and some functions have no linkage name in it.
        if frame.function.is_empty() || (is_mangled(symbol.name) && !is_mangled(frame.symbol.as_bytes())) {
            let name = String::from_utf8_lossy(symbol.name);
            (frame.function, frame.symbol) = (demangled(&name), cut_symbol(&name));
        }
        Ok(())
    }
}

fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}
