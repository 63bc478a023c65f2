//! Inputs: a file or standard input, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use metatf::container::Reader;

use super::Form;
use crate::{Error, Result, trace};

/// Bytes read at once.
const BUFFER: usize = 1 << 18;
/// The magic of a zstd frame, of a gzip member, and of a Meta-TF trace.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const GZIP: &[u8] = &[0x1f, 0x8b];
const METATF: &[u8] = &[0x7f, b'M', b'T', b'F'];

/// An input, of which nothing has been taken.
pub struct Input {
    name: String,
    read: Box<dyn BufRead + Send>,
    /// It is a file as it is: a trace can be mapped.
    plain: bool,
}

impl Input {
    /// Opens a file; `-` is standard input. What is compressed by zstd or gzip is decompressed on the way.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            let name = "standard input".to_owned();
            return Self::of(name, Box::new(io::stdin()));
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(Error::system(name.clone()))?;
        let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let mut input = Self::of(name, Box::new(file))?;
        input.plain = regular && input.plain;
        Ok(input)
    }

    /// Makes an input of any bytes.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn of(name: String, read: Box<dyn Read + Send>) -> Result<Self> {
        let problem = Error::system(name.clone());
        let decompressed = |read| -> io::Result<(Box<dyn BufRead + Send>, bool)> {
            let mut read = BufReader::with_capacity(BUFFER, read);
            let head = head(&mut read)?;
            Ok(if head.starts_with(ZSTD) {
                let decoder = zstd::stream::read::Decoder::with_buffer(read)?;
                (Box::new(BufReader::with_capacity(BUFFER, decoder)), false)
            } else if head.starts_with(GZIP) {
                let decoder = flate2::bufread::MultiGzDecoder::new(read);
                (Box::new(BufReader::with_capacity(BUFFER, decoder)), false)
            } else {
                (Box::new(read), true)
            })
        };
        let (read, plain) = decompressed(read).map_err(problem)?;
        Ok(Self { plain: plain && Path::new(&name).is_file(), name, read })
    }

    /// Returns its name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Guesses the form from its first bytes or its name.
    ///
    /// # Errors
    /// They do not.
    pub fn guess(&mut self) -> Result<Form> {
        let head = head(&mut self.read).map_err(Error::system(self.name.clone()))?;
        if head.starts_with(METATF) {
            // Which of the two DTDs it is shows when it is opened.
            return Ok(Form::Heap);
        }
        if head.starts_with(b"{") {
            return Ok(Form::Jsonl);
        }
        let file = Path::new(&self.name).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let names =
            [(".raw32", Form::Raw32), (".raw64", Form::Raw64), (".hatf", Form::Hatf1), (".rep", Form::Malloclab)];
        let named = names.iter().find(|(part, _)| file.contains(part));
        named.map(|(_, form)| *form).ok_or_else(|| {
            let forms: Vec<&str> = Form::ALL.iter().map(|form| form.name()).collect();
            let forms = forms.join(", ");
            let text =
                format!("{}: neither its bytes nor its name show its form; give it with --from: {forms}", self.name);
            Error::Trace(text.into())
        })
    }

    /// Its bytes, decompressed.
    #[must_use]
    pub fn into_read(self) -> Box<dyn BufRead> {
        self.read
    }

    /// Opens it as a Meta-TF trace.
    ///
    /// # Errors
    /// It is none, or damaged at its head.
    pub fn into_container(self) -> Result<Reader<'static>> {
        let Self { name, read, plain } = self;
        let reader = if plain { metatf_cli::open_trace(Path::new(&name), false) } else { Reader::from_read(read) };
        Ok(trace::opened(reader.map_err(|error| Error::Trace(format!("{name}: {error}").into()))?, &name))
    }
}

/// Returns the first bytes without consuming them.
fn head(read: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let there = read.fill_buf()?;
    Ok(there.iter().take(64).copied().collect())
}
