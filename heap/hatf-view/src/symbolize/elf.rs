//! ELF files of programs and of debug information. The total size of their sections is limited.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::{CompressionFormat, Object, ObjectSection};

/// Maximum size in bytes of the uncompressed sections, in addition to [`TIMES`] times the file size.
const SECTIONS: u64 = 256 << 20;

/// Factor for the file size. Debug information usually compresses by a factor of three to eight.
const TIMES: u64 = 16;

/// Returns the maximum total size of the sections in a file of this size.
pub(super) fn most(bytes: u64) -> u64 {
    bytes.saturating_mul(TIMES).saturating_add(SECTIONS)
}

/// A file mapped into memory.
pub(super) struct Mapped {
    path: PathBuf,
    bytes: Mmap,
}

impl Mapped {
    /// Maps a file.
    ///
    /// # Errors
    /// The file cannot be read, or it is not a regular file. (Opening a pipe or device might block forever.)
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let about = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(about)?;
        if !file.metadata().map_err(about)?.is_file() {
            return Err(format!("{} is not a file", path.display()));
        }
        Ok(Self { path: path.to_owned(), bytes: map(&file).map_err(about)? })
    }
}

fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: nothing here writes to the mapping. Another program may modify the file meanwhile, so every reader of
    // these bytes validates them each time. If the file is truncated, a read kills the process with a signal. If a
    // helper reads the file, this kills only the helper.
    unsafe { Mmap::map(file) }
}

/// A parsed ELF file.
pub(super) struct Elf<'m> {
    pub(super) path: &'m Path,
    pub(super) object: object::File<'m>,
    bytes: &'m [u8],
}

impl<'m> Elf<'m> {
    /// Parses the tables of a file.
    ///
    /// # Errors
    /// The file is not an ELF file, or its compressed sections claim more bytes than [`most`].
    pub(super) fn parse(file: &'m Mapped) -> Result<Self, String> {
        let bytes = &*file.bytes;
        let object = object::File::parse(bytes).map_err(|error| error.to_string())?;
        let elf = Self { path: &file.path, object, bytes };
        elf.check()?;
        Ok(elf)
    }

    fn check(&self) -> Result<(), String> {
        let mut claimed = 0_u64;
        for section in self.object.sections() {
            let Ok(range) = section.compressed_file_range() else { continue };
            if range.format != CompressionFormat::None {
                claimed = claimed.saturating_add(range.uncompressed_size);
            }
            if claimed > most(self.bytes()) {
                let name = section.name().unwrap_or("without a name");
                return Err(format!(
                    "section {name} claims {} bytes, which is too many for its file",
                    range.uncompressed_size
                ));
            }
        }
        Ok(())
    }

    /// Returns the length of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the checksum that a debug link to this file contains.
    pub(super) fn checksum(&self) -> u32 {
        let mut checksum = flate2::Crc::new();
        checksum.update(self.bytes);
        checksum.sum()
    }

    /// Returns the build ID, or an empty slice if there is none.
    pub(super) fn build_id(&self) -> &'m [u8] {
        self.object.build_id().ok().flatten().unwrap_or_default()
    }

    /// Returns whether the file itself contains debug information.
    pub(super) fn has_debug_information(&self) -> bool {
        self.find(".debug_info").is_some_and(|section| section.file_range().is_some_and(|(_, bytes)| bytes > 0))
    }

    /// Returns the name and the checksum of the separate debug information file.
    pub(super) fn debug_link(&self) -> Option<(OsString, u32)> {
        let (name, checksum) = self.object.gnu_debuglink().ok()??;
        Some((OsStr::from_bytes(name).to_owned(), checksum))
    }

    /// Returns the name and the ID of the supplementary debug file.
    pub(super) fn shared_link(&self) -> Option<(OsString, SharedId<'m>)> {
        if let Ok(Some((name, build_id))) = self.object.gnu_debugaltlink() {
            return Some((OsStr::from_bytes(name).to_owned(), SharedId::BuildId(build_id)));
        }
        let (name, checksum) = self.debug_sup()?;
        (!name.is_empty()).then(|| (OsStr::from_bytes(name).to_owned(), SharedId::Checksum(checksum)))
    }

    /// Returns whether this is the supplementary file with this ID.
    pub(super) fn is_shared(&self, id: &SharedId<'_>) -> bool {
        match id {
            SharedId::BuildId(id) => self.build_id() == *id,
            SharedId::Checksum(id) => {
                self.debug_sup().is_some_and(|(name, checksum)| name.is_empty() && checksum == *id)
            }
        }
    }

    /// Returns the name and the checksum in `.debug_sup`. In the supplementary file itself, the name is empty.
    fn debug_sup(&self) -> Option<(&'m [u8], &'m [u8])> {
        let section = self.object.section_by_name(".debug_sup")?.data().ok()?;
        // Skip the version and the flag for the supplementary file.
        let text = section.get(3..)?;
        let end = text.iter().position(|byte| *byte == 0)?;
        Some((&text[..end], &text[end + 1..]))
    }

    /// Returns a section. Compilers before 2016 named compressed sections differently.
    fn find(&self, name: &str) -> Option<object::Section<'m, '_>> {
        let older = || self.object.section_by_name(&name.replacen(".debug", ".zdebug", 1));
        self.object.section_by_name(name).or_else(older)
    }

    /// Returns the uncompressed content of a section, which is empty if there is no such section.
    ///
    /// # Errors
    /// The section is corrupt.
    pub(super) fn section(&self, name: &str) -> Result<Cow<'m, [u8]>, String> {
        let Some(section) = self.find(name) else { return Ok(Cow::Borrowed(&[])) };
        let compressed = section.compressed_data().map_err(|error| format!("section {name}: {error}"))?;
        let (size, mut content) = (compressed.uncompressed_size, Vec::new());
        let mut read = |input: &mut dyn Read| input.take(size.saturating_add(1)).read_to_end(&mut content).is_ok();
        let is_whole = match compressed.format {
            CompressionFormat::None => return Ok(Cow::Borrowed(compressed.data)),
            CompressionFormat::Zlib => read(&mut flate2::read::ZlibDecoder::new(compressed.data)),
            CompressionFormat::Zstandard => {
                zstd::Decoder::new(compressed.data).is_ok_and(|mut decoder| read(&mut decoder))
            }
            _ => false,
        };
        if is_whole && content.len() as u64 == size {
            return Ok(Cow::Owned(content));
        }
        Err(format!("compressed section {name} is corrupt"))
    }
}

/// The ID of a supplementary file.
pub(super) enum SharedId<'m> {
    BuildId(&'m [u8]),
    Checksum(&'m [u8]),
}
