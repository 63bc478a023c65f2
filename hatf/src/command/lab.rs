//! What the commands of the laboratory share.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hatf::convert::{Form, Input, read};
use hatf::lab::Calls;
use hatf::loss::Losses;
use hatf::pipeline::{EventFeed, read_beside};
use hatf::{Error, Result};
use hatf_lab::{Event, Observer};
use metatf_cli::{OutputFile, Progress};

/// The trace, and how many threads work on it.
#[derive(clap::Args)]
pub(crate) struct Source {
    /// The trace, in any form that hatf convert reads; `-` is standard input.
    pub(crate) trace: PathBuf,

    /// The form of the trace [default: guessed from its first bytes or its name].
    #[arg(long, value_enum, value_name = "FORM")]
    from: Option<Form>,

    /// Threads that work at once; the result is the same [default: as many as there are cores].
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,
}

impl Source {
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Gives an observer all events of the trace, which is read in a thread of its own if there may be two.
    pub(crate) fn observe<O: Observer>(&self, calls: &mut Calls<Shown<O>>) -> Result<()> {
        let (path, from) = (&self.trace, self.from);
        let mut losses = Losses::default();
        if self.threads() == 1 {
            losses = read(Input::open(path)?, from, super::print_message, calls)?;
        } else {
            let give = |sink: &mut EventFeed| {
                losses = read(Input::open(path)?, from, super::print_message, sink)?;
                Ok(())
            };
            read_beside(give, calls)?;
        }
        losses
            .iter()
            .for_each(|(loss, count)| eprintln!("hatf: {}: not read: {count} {}", path.display(), loss.text()));
        Ok(())
    }
}

/// An observer that shows how many events it was given.
pub(crate) struct Shown<O>(O, Progress);

impl<O> Shown<O> {
    pub(crate) fn new(observer: O) -> Self {
        Self(observer, Progress::new("events"))
    }

    /// Returns the observer, and clears the line.
    pub(crate) fn into_inner(self) -> O {
        self.0
    }
}

impl<O: Observer> Observer for Shown<O> {
    #[inline]
    fn event(&mut self, event: &Event) -> hatf_lab::Result<()> {
        self.1.step();
        self.0.event(event)
    }
}

/// Writes a picture to a file.
pub(crate) fn draw(path: &Path, picture: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let drawn = || {
        let (file, mut out) = OutputFile::create(path)?;
        picture(&mut out)?;
        file.keep(out)
    };
    drawn().map_err(Error::system(path.display().to_string()))
}
