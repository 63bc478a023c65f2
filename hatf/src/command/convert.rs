//! `hatf convert`

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use hatf::convert::{Form, Input, Options as Convert};
use hatf::{Error, Result};
use metatf::container::{Forward, Sink, WriteOptions};
use tempfile::NamedTempFile;

use super::Convert as Options;
use super::progress::Shown;

/// Bytes written at once.
const BUFFER: usize = 1 << 18;

pub(crate) fn run(options: &Options) -> Result<u8> {
    let input = Input::open(&options.input)?;
    let to = match (options.to, &options.output) {
        (Some(form), _) => form,
        (None, output) => of_name(output.as_deref())?,
    };
    let mut write = WriteOptions::default();
    options.profile.apply(&mut write);
    let convert = Convert { from: options.from, write, resolution: options.clock, group_records: options.group };
    let (target, sink) = Target::create(options.output.as_deref())?;
    let sink = Box::new(Shown::new(sink, target.is_stdout()));
    let (sink, losses) = hatf::convert::convert(input, to, &convert, sink)?;
    target.keep(sink)?;
    for (loss, count) in losses.iter() {
        eprintln!("hatf: {} cannot hold {}: {count}", to.name(), loss.text());
    }
    Ok(u8::from(options.strict && !losses.is_empty()))
}

/// The form of an output by its name.
fn of_name(output: Option<&Path>) -> Result<Form> {
    let name = output.map(|path| path.display().to_string()).unwrap_or_default();
    let ends = [
        (".mtf", Form::Heap),
        (".hatf", Form::Hatf1),
        (".raw32", Form::Raw32),
        (".raw64", Form::Raw64),
        (".rep", Form::Malloclab),
        (".jsonl", Form::Jsonl),
    ];
    let found = ends.iter().find(|(end, _)| name.ends_with(end));
    let unknown = || Error::Usage("the name of the output does not tell its form: --to says it".to_owned());
    found.map(|(_, form)| *form).ok_or_else(unknown)
}

/// What is written until it is whole: standard output, or a file under another name beside the one asked for.
struct Target {
    stdout: bool,
    temporary: Option<(NamedTempFile, PathBuf)>,
}

impl Target {
    fn create(path: Option<&Path>) -> Result<(Self, Box<dyn Sink>)> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            let out = BufWriter::with_capacity(BUFFER, std::io::stdout().lock());
            return Ok((Self { stdout: true, temporary: None }, Box::new(Forward(out))));
        };
        let problem = || Error::system(path.display().to_string());
        // What is no plain file (a pipe, /dev/null) is written as it is.
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let file = std::fs::OpenOptions::new().write(true).open(path).map_err(problem())?;
            let target = Self { stdout: false, temporary: None };
            return Ok((target, Box::new(Forward(BufWriter::with_capacity(BUFFER, file)))));
        }
        let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = temporary(folder).map_err(problem())?;
        let file = temporary.reopen().map_err(problem())?;
        let target = Self { stdout: false, temporary: Some((temporary, place)) };
        Ok((target, Box::new(BufWriter::with_capacity(BUFFER, file))))
    }

    fn is_stdout(&self) -> bool {
        self.stdout
    }

    /// It is whole: a file gets its name. Dropped without this, it is removed.
    fn keep(self, mut sink: Box<dyn Sink>) -> Result<()> {
        sink.flush()?;
        drop(sink);
        let Some((temporary, place)) = self.temporary else { return Ok(()) };
        let name = place.display().to_string();
        temporary.persist(place).map(drop).map_err(|error| Error::System(name, error.error))
    }
}

/// A temporary file with the rights that a new file has.
fn temporary(folder: &Path) -> std::io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hatf-").permissions(std::fs::Permissions::from_mode(0o666));
    builder.tempfile_in(folder)
}
