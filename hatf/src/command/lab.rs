//! What the commands of the laboratory share.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use hatf::event::{EventSink, UserMetadata};
use hatf::forms::{self, Form, OpenOptions, RereadInput, TraceReader};
use hatf::lab::Calls;
use hatf::loss::Losses;
use hatf::pipeline::read_beside;
use hatf::stacks::Stacks;
use hatf::{Error, Result};
use hatf_lab::{Accesses, Event, Observer, Totals};
use metatf_cli::{OutputFile, Progress};
use metatf_page::{Block, Form as Printed, Page, render};

/// The trace, and how many threads work on it.
#[derive(clap::Args)]
pub(crate) struct Source {
    /// The trace, in any form that hatf convert reads; `-` is standard input.
    pub(crate) trace: PathBuf,

    /// The form of the trace [default: guessed from its first bytes or its name].
    #[arg(long, value_name = "FORM", value_parser = super::form())]
    pub(crate) from: Option<&'static Form>,

    /// Threads that work at once; the result is the same [default: as many as there are cores].
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) threads: Option<usize>,

    /// The trace, if it is read more than once.
    #[arg(skip)]
    reread: OnceLock<RereadInput>,

    /// What is to be known of the trace was printed.
    #[arg(skip)]
    noted: AtomicBool,
}

impl Source {
    pub(crate) fn new(trace: PathBuf, from: Option<&'static Form>, threads: Option<usize>) -> Self {
        Self { trace, from, threads, reread: OnceLock::new(), noted: AtomicBool::new(false) }
    }

    /// Has the trace read more than once: what comes through a pipe is copied to a temporary file first.
    pub(crate) fn reread(&self) -> Result<()> {
        let input = RereadInput::new(&self.trace)?;
        self.reread.get_or_init(|| input);
        Ok(())
    }

    /// Opens the trace. What is to be known of it is printed the first time.
    pub(crate) fn open(&self) -> Result<TraceReader> {
        let note: fn(&str) = if self.noted.load(Ordering::Relaxed) { |_: &str| () } else { super::print_message };
        let options = OpenOptions { form: self.from, note };
        match self.reread.get() {
            Some(input) => forms::read(input.open()?, &options),
            None => forms::open(&self.trace, &options),
        }
    }

    /// Returns the file that a command writes by default: the trace's name with this ending.
    pub(crate) fn sibling(&self, ending: &str) -> Result<PathBuf> {
        if self.trace == Path::new("-") {
            return Err(Error::Usage("the trace is standard input: name the output with -o".to_owned()));
        }
        Ok(self.trace.with_extension(ending))
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(super::cores)
    }

    /// Gives an observer all events of the trace, for an experiment that needs every block.
    pub(crate) fn observe<O: Observer>(&self, calls: &mut Calls<Shown<O>>) -> Result<()> {
        let read = self.give(calls);
        self.say_sampled(calls.sampling());
        read
    }

    /// Says where a trace contradicts itself, for commands that print no totals.
    pub(crate) fn say_contradictions(&self, totals: &Totals) {
        let trace = self.trace.display();
        totals.oddities.contradictions.lines().for_each(|line| super::print_message(&format!("{trace}: {line}")));
    }

    /// Says where a trace is a sample.
    pub(crate) fn say_sampled(&self, sampling: Option<u64>) {
        if sampling.is_some() {
            let trace = self.trace.display();
            super::print_message(&format!(
                "{trace}: the trace is a sample: this is what became of the sample's blocks alone"
            ));
        }
    }

    /// Gives a sink all events of the trace, which is read in a thread of its own if there may be two.
    pub(crate) fn give(&self, sink: &mut dyn EventSink) -> Result<()> {
        let mut losses = Losses::default();
        let read = if self.threads() == 1 {
            self.open().and_then(|mut trace| trace.give(sink)).map(|lost| losses = lost)
        } else {
            read_beside(|feed| self.open()?.feed(feed).map(|lost| losses = lost), sink)
        };
        read.map_err(|error| super::about(&self.trace, error))?;
        if !self.noted.swap(true, Ordering::Relaxed) {
            say_losses(&format!("{}: an event", self.trace.display()), &losses);
        }
        Ok(())
    }
}

/// Says what the form of a trace, or an event, cannot hold.
pub(crate) fn say_losses(form: &str, losses: &Losses) {
    losses
        .iter()
        .for_each(|(loss, count)| super::print_message(&format!("{form} cannot hold {}: {count}", loss.text())));
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

    fn accessed(&mut self, slot: u32, accesses: &Accesses) {
        self.0.accessed(slot, accesses);
    }

    fn runs_on(&mut self, thread: u64, processor: u64) {
        self.0.runs_on(thread, processor);
    }

    fn sampled(&mut self, mean: u64) {
        self.0.sampled(mean);
    }
}

/// A sink that shows how many events it was given.
pub(crate) struct ShownSink<S>(S, Progress);

impl<S> ShownSink<S> {
    pub(crate) fn new(sink: S) -> Self {
        Self(sink, Progress::new("events"))
    }

    /// Returns the sink, and clears the line.
    pub(crate) fn into_inner(self) -> S {
        self.0
    }
}

impl<S: EventSink> EventSink for ShownSink<S> {
    fn event(&mut self, event: &hatf::Event<'_>) -> Result<()> {
        self.1.step();
        self.0.event(event)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.0.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.0.user_metadata(user_metadata)
    }
}

/// Says what the stacks of a trace lack.
pub(crate) fn hint(trace: &Path, stacks: &Stacks) {
    let name = trace.display();
    if stacks.count() == 1 {
        super::print_message(&format!("{name}: the trace has no stacks; hatf record --stacks records them"));
    } else if !stacks.have_places() {
        super::print_message(&format!(
            "{name}: stacks are addresses: the trace does not say which modules they are in"
        ));
    } else if !stacks.has_symbols() {
        super::print_message(&format!("{name}: no functions are known; hatf symbolize adds them to the trace"));
    }
}

/// Writes a picture to a file.
pub(crate) fn draw(path: &Path, picture: impl Into<Block>) -> Result<()> {
    let page = Page { figures: vec![picture.into()], ..Page::default() };
    let drawn = || {
        let (file, mut out) = OutputFile::create(path)?;
        render(&page, Printed::Svg, &mut out)?;
        file.keep(out)
    };
    drawn().map_err(Error::system(path.display().to_string()))
}
