//! Frames by debug information: functions with those that were inlined, files, lines and columns.

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

/// The debug information of an image, uncompressed.
pub(super) struct Sections<'m> {
    own: DwarfSections<Cow<'m, [u8]>>,
    /// What several images have in common.
    shared: Option<DwarfSections<Cow<'m, [u8]>>>,
    /// What was split off as the program was compiled.
    package: Option<DwarfPackageSections<Cow<'m, [u8]>>>,
    split_files: SplitFiles,
    endian: RunTimeEndian,
}

impl<'m> Sections<'m> {
    /// Reads the sections that tell functions and lines.
    ///
    /// # Errors
    /// One is damaged.
    pub(super) fn read(
        debug: &Elf<'m>,
        shared: Option<&Elf<'m>>,
        package: Option<&Elf<'m>>,
    ) -> Result<Self, Box<dyn Error>> {
        let read = |elf: &Elf<'m>| {
            DwarfSections::load(|id| if is_read(id) { elf.section(id.name()) } else { Ok(Cow::default()) })
        };
        // Its index says where a unit's part of each section is: all have to be there.
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

/// Looks addresses up.
pub(super) struct LookUp<'b> {
    context: Context<Bytes<'b>>,
    split: Split<'b>,
    first_lines: FirstLines<'b>,
    symbols: &'b SymbolTable<'b>,
}

impl<'b> LookUp<'b> {
    /// Makes the tables by which addresses are looked up.
    ///
    /// # Errors
    /// They are damaged.
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

    /// Returns which of the split files was missing first.
    pub(super) fn missing(self) -> Option<String> {
        self.split.missing()
    }

    /// Returns the frames of an address, innermost first; none: there is no debug information of it.
    ///
    /// Where there are lines alone (`-gmlt`), names are those of the symbol table, and a function begins on the line of its first
    /// instruction. Of inlined functions the first line is not known then.
    ///
    /// # Errors
    /// It is damaged.
    pub(super) fn frames(&self, address: u64) -> gimli::Result<Vec<Frame>> {
        if address == u64::MAX {
            // The library looks for what begins before the next.
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

    /// Adds to a function that was not inlined what the symbol table knows of it.
    fn complete(&self, address: u64, frame: &mut Frame) -> gimli::Result<()> {
        let Some(symbol) = self.symbols.find(address) else { return Ok(()) };
        if frame.first_line == 0 {
            frame.first_line = self.context.find_location(symbol.start)?.and_then(|place| place.line).unwrap_or(0);
        }
        // Tables of lines alone have short names, and compilers give some functions no other.
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
