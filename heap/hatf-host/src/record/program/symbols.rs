//! The symbols of a program. The tables are read in one pass, because reading the file once per name takes half a
//! second in total for a program the size of node.

use object::elf::{SHN_LORESERVE, SHN_UNDEF, SHN_XINDEX, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, Sym64};
use object::read::StringTable;
use object::read::elf::{SectionHeader as _, Sym as _};
use object::{Endianness, File, ReadRef};

/// The symbol tables of a 64-bit executable. The executable may contain both tables, one of them, or neither.
pub(crate) struct Symbols<'d> {
    endian: Endianness,
    /// The debug symbol table, which may be stripped, and the dynamic linker's symbol table.
    tables: [Table<'d>; 2],
}

/// Symbols and their names.
type Table<'d> = (&'d [Sym64<Endianness>], StringTable<'d, &'d [u8]>);

/// A symbol.
pub(crate) struct Symbol<'d> {
    /// The name, or empty if it is invalid.
    pub(crate) name: &'d [u8],
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// The type, for example `STT_FUNC`.
    pub(crate) kind: u8,
    /// Whether the symbol is defined in another file.
    pub(crate) is_undefined: bool,
    /// Whether the symbol is a location in this file.
    pub(crate) is_definition: bool,
}

impl Symbol<'_> {
    /// Returns whether the symbol names code.
    pub(crate) fn is_code(&self) -> bool {
        matches!(self.kind, STT_FUNC | STT_GNU_IFUNC)
    }
}

impl<'d> Symbols<'d> {
    /// Reads the symbols of a file. Returns no symbols if the file is invalid or is not a 64-bit ELF file.
    pub(crate) fn of<R: ReadRef<'d>>(file: &File<'d, R>) -> Self {
        let mut symbols = Self { endian: Endianness::Little, tables: Default::default() };
        let File::Elf64(file) = file else { return symbols };
        symbols.endian = file.endian();
        let sections = file.elf_section_table();
        for (table, of_file) in
            symbols.tables.iter_mut().zip([file.elf_symbol_table(), file.elf_dynamic_symbol_table()])
        {
            let names = sections.section(of_file.string_section());
            let names = names.ok().and_then(|names| names.data(file.endian(), file.data()).ok());
            if let Some(names) = names {
                *table = (of_file.symbols(), StringTable::new(names, 0, names.len() as u64));
            }
        }
        symbols
    }

    /// Returns whether there is a debug symbol table.
    pub(super) fn has_debugging(&self) -> bool {
        self.tables.first().is_some_and(|(symbols, _)| !symbols.is_empty())
    }

    /// Iterates over all symbols.
    pub(super) fn iter(&self) -> impl Iterator<Item = Symbol<'d>> {
        self.of_tables(&self.tables)
    }

    /// Iterates over the symbols that the dynamic linker knows.
    pub(crate) fn exported(&self) -> impl Iterator<Item = Symbol<'d>> {
        self.of_tables(self.tables.get(1..).unwrap_or_default())
    }

    fn of_tables(&self, tables: &[Table<'d>]) -> impl Iterator<Item = Symbol<'d>> {
        tables.iter().flat_map(|(symbols, names)| {
            symbols.iter().map(|symbol| {
                let (section, kind) = (symbol.st_shndx(self.endian), symbol.st_type());
                let is_place = section != SHN_UNDEF && (section < SHN_LORESERVE || section == SHN_XINDEX);
                Symbol {
                    name: symbol.name(self.endian, *names).unwrap_or_default(),
                    address: symbol.st_value(self.endian),
                    size: symbol.st_size(self.endian),
                    kind,
                    is_undefined: section == SHN_UNDEF,
                    is_definition: is_place && matches!(kind, STT_NOTYPE | STT_OBJECT | STT_FUNC | STT_GNU_IFUNC),
                }
            })
        })
    }
}
