//! Split debug information (`-gsplit-dwarf`) in a package, or in one file per unit.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::SplitDwarfLoad;
use addr2line::gimli::{self, Dwarf, DwarfPackage, DwarfSections, DwoId, EndianSlice, RunTimeEndian};

use super::elf::{Elf, Mapped};
use super::files::Files;
use super::sections::{Bytes, is_read};

/// Storage for the files of units. Files are read on demand and kept.
pub(super) struct SplitFiles {
    files: Vec<OnceCell<Box<DwarfSections<Vec<u8>>>>>,
    used: Cell<usize>,
}

impl SplitFiles {
    pub(super) fn new(units: usize) -> Self {
        Self { files: (0..units).map(|_| OnceCell::new()).collect(), used: Cell::new(0) }
    }

    /// Stores a file. Returns `None` if there are more files than units.
    fn keep(&self, file: DwarfSections<Vec<u8>>) -> Option<&DwarfSections<Vec<u8>>> {
        let place = self.files.get(self.used.get())?;
        self.used.set(self.used.get() + 1);
        Some(place.get_or_init(|| Box::new(file)))
    }
}

/// A finder of split debug information.
pub(super) struct Split<'b> {
    package: Option<DwarfPackage<Bytes<'b>>>,
    kept: &'b SplitFiles,
    /// The path of the image.
    image: &'b Path,
    files: &'b Files,
    endian: RunTimeEndian,
    missing: RefCell<Option<String>>,
}

impl<'b> Split<'b> {
    pub(super) fn new(
        package: Option<DwarfPackage<Bytes<'b>>>,
        kept: &'b SplitFiles,
        own: &'b Elf<'_>,
        files: &'b Files,
        endian: RunTimeEndian,
    ) -> Self {
        Self { package, kept, image: own.path, files, endian, missing: RefCell::new(None) }
    }

    /// Returns the reason why the first missing file could not be used, or `None` if no file is missing.
    pub(super) fn missing(self) -> Option<String> {
        self.missing.into_inner()
    }

    /// Returns the split debug information of a unit, or `None` if it is missing.
    ///
    /// # Errors
    /// The package is corrupt.
    pub(super) fn load(&self, load: &SplitDwarfLoad<Bytes<'b>>) -> gimli::Result<Option<Arc<Dwarf<Bytes<'b>>>>> {
        if let Some(package) = &self.package
            && let Some(unit) = package.find_cu(load.dwo_id, &load.parent)?
        {
            return Ok(Some(Arc::new(unit)));
        }
        let mut why = None;
        for path in self.candidates(load) {
            match self.read(&path, load) {
                Ok(unit) => return Ok(unit),
                Err(error) => drop(why.get_or_insert(error)),
            }
        }
        let mut missing = self.missing.borrow_mut();
        *missing = missing.take().or(why);
        Ok(None)
    }

    /// Returns the possible locations of a unit's file, which are its path at compile time and the directory of the
    /// image.
    fn candidates(&self, load: &SplitDwarfLoad<Bytes<'b>>) -> Vec<PathBuf> {
        let path =
            |bytes: &Option<Bytes<'b>>| bytes.as_ref().map(|bytes| PathBuf::from(OsStr::from_bytes(bytes.slice())));
        let Some(name) = path(&load.path) else { return Vec::new() };
        let compiled = path(&load.comp_dir).unwrap_or_default().join(&name);
        let beside = self.image.with_file_name(name.file_name().unwrap_or_default());
        let mut paths = self.files.on_this_machine(&compiled);
        paths.push(beside);
        paths
    }

    fn read(&self, path: &Path, load: &SplitDwarfLoad<Bytes<'b>>) -> Result<Option<Arc<Dwarf<Bytes<'b>>>>, String> {
        let file = Mapped::open(path)?;
        let elf = Elf::parse(&file)?;
        let section = |id: gimli::SectionId| match id.dwo_name().filter(|_| is_read(id)) {
            Some(name) => elf.section(name).map(|content| content.into_owned()),
            None => Ok(Vec::new()),
        };
        let Some(sections) = self.kept.keep(DwarfSections::load(section)?) else { return Ok(None) };
        let mut dwarf = sections.borrow(|section| EndianSlice::new(section, self.endian));
        if first_id(&dwarf).ok().flatten() != Some(load.dwo_id) {
            return Err(format!("{} is debug information for a different build", path.display()));
        }
        dwarf.make_dwo(&load.parent);
        Ok(Some(Arc::new(dwarf)))
    }
}

/// Returns the ID that identifies the unit to which a split file belongs.
fn first_id(dwarf: &Dwarf<Bytes<'_>>) -> gimli::Result<Option<DwoId>> {
    let Some(header) = dwarf.units().next()? else { return Ok(None) };
    Ok(dwarf.unit(header)?.dwo_id)
}
