//! Inputs: files or standard input, compressed or not.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use metatf::container::{Reader, WholeFile};

use super::{FORMS, Form, Segments};
use crate::trace::{Opening, SPOOLED_EVENTS};
use crate::{Error, Result};

/// Bytes read at a time.
const BUFFER: usize = 1 << 18;
/// The magic numbers of a zstd frame, a gzip member, and a Meta-TF trace.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const GZIP: &[u8] = &[0x1f, 0x8b];
const METATF: &[u8] = &[0x7f, b'M', b'T', b'F'];

/// An input from which nothing has been consumed.
///
/// # Examples
///
/// ```
/// use hatf_trace::forms::{Form, Input};
///
/// let log = "= Start\n@ ./grep:[0x1185] + 0x5580 0x40\n";
/// let mut input = Input::of("a pipe".to_owned(), Box::new(log.as_bytes()))?;
/// assert_eq!(Some(input.guess()?), Form::of("mtrace"));
/// // Guessing the format does not consume the log.
/// assert_eq!(std::io::read_to_string(input.into_read())?, log);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Input {
    name: String,
    content: Content,
    /// The path of an uncompressed file, which can be mapped.
    plain: Option<PathBuf>,
    opening: Opening,
}

enum Content {
    Bytes(Box<dyn BufRead + Send>),
    /// An opened Meta-TF trace.
    Trace(Box<Reader<'static>>),
    /// A directory of segments.
    Folder(PathBuf),
}

/// The beginning of an input.
pub struct Head<'i> {
    /// The first bytes after decompression, at most 64.
    pub bytes: &'i [u8],
    /// The opened trace, if it is a Meta-TF trace.
    pub trace: Option<&'i Reader<'static>>,
}

impl Input {
    /// Opens a file; `-` is standard input. Data compressed with zstd or gzip is decompressed during reading.
    ///
    /// # Errors
    /// The file does not exist or cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::of("standard input".to_owned(), Box::new(io::stdin()));
        }
        let name = path.display().to_string();
        if is_segmented(path)? {
            let content = Content::Folder(path.to_owned());
            return Ok(Self { name, content, plain: None, opening: Opening::default() });
        }
        let file = WholeFile::open(path).map_err(Error::system(name.clone()))?;
        let regular = file.is_regular();
        let (content, plain) = content(Box::new(file)).map_err(Error::system(name.clone()))?;
        let plain = (regular && plain).then(|| path.to_owned());
        Ok(Self { name, content, plain, opening: Opening::default() })
    }

    /// Creates an input from a byte stream.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub fn of(name: String, read: Box<dyn Read + Send>) -> Result<Self> {
        let (content, _) = content(read).map_err(Error::system(name.clone()))?;
        Ok(Self { name, content, plain: None, opening: Opening::default() })
    }

    /// Sets how the input is opened if it is a Meta-TF trace. Must be called before the format is determined.
    #[must_use]
    pub fn opening(self, opening: Opening) -> Self {
        Self { opening, ..self }
    }

    /// Returns the directory if the input is a directory of [segments](super::Segments).
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        if let Content::Folder(folder) = &self.content { Some(folder) } else { None }
    }

    /// Returns the error for commands that read only one file.
    fn one_file(&self) -> Error {
        let name = &self.name;
        Error::Trace(format!("{name} is a directory of segments: this command reads only one of them").into())
    }

    /// Returns the name of the input for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Guesses the format from the first bytes or the name.
    ///
    /// # Errors
    /// The format cannot be determined, or the input is a Meta-TF trace with a corrupt head.
    pub fn guess(&mut self) -> Result<&'static Form> {
        if self.folder().is_some() {
            return Ok(&super::HEAP);
        }
        if let Some(form) = self.sniffed()? {
            return Ok(form);
        }
        if is_program_head(&self.head()?) {
            let text =
                format!("{0} is a program, not a trace: `hatf run {0}` records it and reports on its heap", self.name);
            return Err(Error::Trace(text.into()));
        }
        let file = Path::new(&self.name).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Form::of_file(file).ok_or_else(|| {
            let readable = FORMS.into_iter().filter(|form| form.open.is_some());
            let forms = readable.map(|form| form.name).collect::<Vec<_>>().join(", ");
            let text = format!("{}: unknown trace format; specify it with --from: {forms}", self.name);
            Error::Trace(text.into())
        })
    }

    fn sniffed(&mut self) -> Result<Option<&'static Form>> {
        self.recognized(|head| FORMS.into_iter().find(|form| (form.sniff)(head)))
    }

    /// Passes the beginning of the input to a function that may recognize it.
    ///
    /// # Errors
    /// The input cannot be read, or it is a Meta-TF trace with a corrupt head.
    pub fn recognized<T>(&mut self, recognize: impl FnOnce(&Head<'_>) -> Option<T>) -> Result<Option<T>> {
        let bytes = self.head()?;
        if bytes.starts_with(METATF) {
            self.look()?;
        }
        let trace = match &self.content {
            Content::Trace(trace) => Some(&**trace),
            Content::Bytes(_) | Content::Folder(_) => None,
        };
        Ok(recognize(&Head { bytes: &bytes, trace }))
    }

    /// Returns the first bytes without consuming them. For an opened Meta-TF trace, this is the magic number.
    fn head(&mut self) -> Result<Vec<u8>> {
        match &mut self.content {
            Content::Bytes(read) => head(read).map_err(Error::system(self.name.clone())),
            Content::Trace(_) => Ok(METATF.to_vec()),
            Content::Folder(_) => Ok(Vec::new()),
        }
    }

    /// Opens the input as a Meta-TF trace unless it is already open.
    fn look(&mut self) -> Result<()> {
        let Content::Bytes(read) = &mut self.content else { return Ok(()) };
        let read = std::mem::replace(read, Box::new(io::empty()));
        let reader = match &self.plain {
            Some(path) => (self.opening.open)(path),
            None => Reader::from_read(read),
        };
        let mut reader = reader.map_err(|error| match error.kind {
            metatf::ErrorKind::Io(error) => Error::System(self.name.clone(), error.into()),
            _ => Error::Trace(format!("{}: {error}", self.name).into()),
        })?;
        (self.opening.opened)(&mut reader, &self.name);
        self.content = Content::Trace(Box::new(reader));
        Ok(())
    }

    /// Returns whether the input is a Meta-TF trace.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn is_metatf(&mut self) -> Result<bool> {
        Ok(self.head()?.starts_with(METATF))
    }

    /// Returns the decompressed bytes. If the input is a Meta-TF trace that was [guessed](Self::guess), its bytes are
    /// already consumed.
    #[must_use]
    pub fn into_read(self) -> Box<dyn BufRead + Send> {
        match self.content {
            Content::Bytes(read) => read,
            Content::Trace(_) | Content::Folder(_) => Box::new(io::empty()),
        }
    }

    /// Opens the input as a Meta-TF trace.
    ///
    /// # Errors
    /// The input is not a Meta-TF trace, or its head is corrupt.
    pub fn into_container(mut self) -> Result<Reader<'static>> {
        self.look()?;
        match self.content {
            Content::Trace(trace) => Ok(*trace),
            Content::Bytes(_) => Err(Error::Trace(format!("{}: not a Meta-TF trace", self.name).into())),
            Content::Folder(_) => Err(self.one_file()),
        }
    }

    /// Opens the input like [`into_container`](Self::into_container) if it is recognized as a trace of this format.
    ///
    /// # Errors
    /// The trace has another format, which the error names.
    pub(super) fn into_container_of(mut self, form: &Form) -> Result<Reader<'static>> {
        self.look()?;
        match self.sniffed()? {
            Some(other) if other != form => {
                let text =
                    format!("{} is in a different format: {}; use --from {}", self.name, other.about, other.name);
                Err(Error::Trace(text.into()))
            }
            _ => self.into_container(),
        }
    }
}

/// Returns whether a file begins like a program: an ELF file or a script.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    let mut bytes = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).is_ok() && is_program_head(&bytes)
}

fn is_program_head(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"#!")
}

/// Decompresses the input if necessary. Also returns whether the input was uncompressed.
fn content(read: Box<dyn Read + Send>) -> io::Result<(Content, bool)> {
    let mut read = BufReader::with_capacity(BUFFER, read);
    let head = head(&mut read)?;
    let (read, plain): (Box<dyn BufRead + Send>, _) = if head.starts_with(ZSTD) {
        (Box::new(BufReader::with_capacity(BUFFER, unpacked_zstd(read)?)), false)
    } else if head.starts_with(GZIP) {
        let decoder = flate2::bufread::MultiGzDecoder::new(read);
        (Box::new(BufReader::with_capacity(BUFFER, decoder)), false)
    } else {
        (Box::new(read), true)
    };
    Ok((Content::Bytes(read), plain))
}

#[cfg(not(target_family = "wasm"))]
fn unpacked_zstd(read: BufReader<Box<dyn Read + Send>>) -> io::Result<impl Read + Send> {
    zstd::stream::read::Decoder::with_buffer(read)
}

#[cfg(target_family = "wasm")]
fn unpacked_zstd(read: BufReader<Box<dyn Read + Send>>) -> io::Result<impl Read + Send> {
    ruzstd::decoding::StreamingDecoder::new(read).map_err(io::Error::other)
}

/// Returns the first bytes without consuming them.
fn head(read: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    while let Err(error) = read.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // The bytes are already buffered, so this call does not read again.
    Ok(read.fill_buf()?.iter().take(64).copied().collect())
}

/// An input that can be read repeatedly.
///
/// # Examples
///
/// ```
/// use hatf_trace::forms::{OpenOptions, RawSink, RereadInput, read};
/// use std::io::Write;
///
/// let mut file = tempfile::NamedTempFile::new()?;
/// file.write_all(b"= Start\n@ ./grep:[0x1185] + 0x5580 0x40\n")?;
/// let input = RereadInput::new(file.path(), None)?;
/// let mut sink = RawSink::<_, 32>::new(Vec::new());
/// for _ in 0..2 {
///     read(input.open()?, &OpenOptions::default())?.give(&mut sink)?;
/// }
/// assert_eq!(sink.records(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RereadInput {
    path: PathBuf,
    /// A copy of piped data in an unnamed temporary file.
    copy: Option<File>,
}

impl RereadInput {
    /// Opens a regular file directly and copies anything else unchanged to a temporary file; `-` is standard input.
    /// `form` is the format of the trace. If it is `None`, the format is guessed before anything is copied, because the
    /// input may be endless.
    ///
    /// # Errors
    /// The input does not exist, cannot be read or has no known format, or the temporary file cannot be written.
    pub fn new(path: &Path, form: Option<&Form>) -> Result<Self> {
        let copied = |mut read: Box<dyn Read + Send>| -> Result<Self> {
            // A full temporary directory is not an error of the input.
            let failed = |error: io::Error| match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                    Error::temporary_file()(error)
                }
                _ => Error::system(input_name(path))(error),
            };
            let mut copy = tempfile::tempfile().map_err(Error::temporary_file())?;
            io::copy(&mut read.by_ref().take(BUFFER as u64), &mut copy).map_err(failed)?;
            let copied = Self { path: path.to_owned(), copy: Some(copy.try_clone().map_err(Error::temporary_file())?) };
            let mut begun = copied.open()?;
            if form.is_none() && !begun.is_metatf()? {
                begun.guess()?;
            }
            drop(begun);
            copy.seek(SeekFrom::End(0)).map_err(Error::temporary_file())?;
            io::copy(&mut read, &mut copy).map_err(failed)?;
            Ok(copied)
        };
        if path == Path::new("-") {
            return copied(Box::new(io::stdin()));
        }
        if is_segmented(path)? || path.is_file() {
            return Ok(Self { path: path.to_owned(), copy: None });
        }
        copied(Box::new(File::open(path).map_err(Error::system(path.display().to_string()))?))
    }

    /// Opens the input from its start. Previously opened inputs must not be read any more.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn open(&self) -> Result<Input> {
        let Some(copy) = &self.copy else { return Input::open(&self.path) };
        let again = || {
            let mut file = copy.try_clone()?;
            file.seek(SeekFrom::Start(0))?;
            Ok(file)
        };
        let file = again().map_err(Error::temporary_file())?;
        Input::of(input_name(&self.path), Box::new(file))
    }
}

/// Returns the name of an input for messages.
fn input_name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Checks that a path can be a trace; `-` is standard input. Returns whether it is a directory of segments.
fn is_segmented(path: &Path) -> Result<bool> {
    if path == Path::new("-") {
        return Ok(false);
    }
    let name = path.display().to_string();
    // A missing file is reported in the system's own words.
    let found = fs::metadata(path).map_err(Error::system(name.clone()))?;
    if found.is_dir() && path.join(SPOOLED_EVENTS).is_file() {
        let advice = format!("{name} is a spool, not a trace: run `hatf recover {name}` to create its trace");
        return Err(Error::Trace(advice.into()));
    }
    if found.is_dir() && !Segments::list(path).is_ok_and(|segments| !segments.is_empty()) {
        return Err(Error::System(name, io::ErrorKind::IsADirectory.into()));
    }
    Ok(found.is_dir())
}
