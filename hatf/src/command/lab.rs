//! What the commands of the laboratory share.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use hatf::event::{EventSink, EventSource as _, UserMetadata};
use hatf::forms::{self, Form, OpenOptions, RereadInput, TraceReader};
use hatf::loss::Losses;
use hatf::pipeline::read_beside;
use hatf::report::SiteTables;
use hatf::stacks::Stacks;
use hatf::threads::both;
use hatf::{Error, Event, Result};
use hatf_lab::{Heap, HeapTracker, Observer, Totals};
use metatf_cli::{OutputFile, Progress};
use metatf_page::{Block, Form as Printed, Page, render};

/// The trace, and how many threads work on it.
#[derive(clap::Args)]
pub(crate) struct Source {
    /// Trace, in any format that `hatf convert` reads; `-` is standard input.
    pub(crate) trace: PathBuf,

    /// Format of the trace [default: detected from its first bytes or its name].
    #[arg(long, value_name = "FORM", value_parser = super::form())]
    pub(crate) from: Option<&'static Form>,

    /// Number of worker threads; the result does not depend on it [default: the number of cores].
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
        let input = RereadInput::new(&self.trace, self.from)?;
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

    /// Returns the nanoseconds in a tick of the trace's clock. The trace has to be one that is [read more than once](Self::reread).
    pub(crate) fn resolution(&self) -> Result<u64> {
        self.open_quietly().map(|trace| trace.resolution())
    }

    /// Opens the trace. What is to be known of it is said elsewhere.
    pub(crate) fn open_quietly(&self) -> Result<TraceReader> {
        let options = OpenOptions { form: self.from, note: |_| () };
        match self.reread.get() {
            Some(input) => forms::read(input.open()?, &options),
            None => forms::open(&self.trace, &options),
        }
    }

    /// Returns the file that a command writes by default: the trace's name with this ending.
    pub(crate) fn sibling(&self, ending: &str) -> Result<PathBuf> {
        if self.trace == Path::new("-") {
            return Err(Error::Usage("the trace is standard input: specify an output file with -o".to_owned()));
        }
        Ok(self.trace.with_extension(ending))
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(super::cores)
    }

    /// Does two parts of the work, at once if there may be two threads.
    pub(crate) fn both<A: Send, B>(
        &self,
        there: impl FnOnce() -> A + Send,
        here: impl FnOnce() -> B,
    ) -> Result<(A, B)> {
        both(self.threads(), there, here).map_err(Error::system("a thread"))
    }

    /// Follows the heap of the trace, for an experiment that needs every block.
    pub(crate) fn observe<O: Observer>(&self, tracker: &mut HeapTracker<O>) -> Result<()> {
        let read = self.read(tracker);
        self.warn_of_sample(tracker.heap());
        read
    }

    /// Says where a trace contradicts itself, for commands that print no totals.
    pub(crate) fn warn_of_contradictions(&self, totals: &Totals) {
        let trace = self.trace.display();
        totals.oddities.contradictions.lines().for_each(|line| super::print_message(&format!("{trace}: {line}")));
    }

    /// Says where a trace is a sample.
    pub(crate) fn warn_of_sample(&self, heap: &Heap) {
        if heap.sampling.is_some() {
            let trace = self.trace.display();
            super::print_message(&format!("{trace}: the trace is a sample; results cover the sampled blocks only"));
        }
    }

    /// Gives a sink all events of the trace, which is read in a thread of its own if there may be two, and shows how many there were.
    pub(crate) fn read(&self, sink: &mut dyn EventSink) -> Result<()> {
        let mut losses = Losses::default();
        let progress = Progress::new("records");
        let mut counting;
        let sink = if progress.is_watched() {
            counting = WithProgress { sink, progress };
            &mut counting
        } else {
            sink
        };
        let read = if self.threads() == 1 {
            self.open().and_then(|mut trace| trace.give(sink)).map(|lost| losses = lost)
        } else {
            read_beside(|feed| self.open()?.feed(feed).map(|lost| losses = lost), sink)
        };
        read.map_err(|error| super::about(&self.trace, error))?;
        if !self.noted.swap(true, Ordering::Relaxed) {
            warn_of_losses(&format!("{}: an event", self.trace.display()), &losses);
        }
        Ok(())
    }
}

/// A sink, and how many records it was given.
struct WithProgress<'s> {
    sink: &'s mut dyn EventSink,
    progress: Progress,
}

impl EventSink for WithProgress<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.progress.step();
        self.sink.event(event)
    }

    fn coming(&mut self, addresses: &[u64]) {
        self.sink.coming(addresses);
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.sink.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.sink.user_metadata(user_metadata)
    }
}

/// How long tables of stacks are.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct Tables {
    /// Maximum number of rows per table.
    #[arg(long, alias = "top", value_name = "N", default_value_t = Self::default().rows)]
    pub(crate) rows: usize,

    /// Maximum number of lines per stack.
    #[arg(long, value_name = "N", default_value_t = Self::default().depth)]
    pub(crate) depth: usize,
}

impl Default for Tables {
    fn default() -> Self {
        Self { rows: 10, depth: 8 }
    }
}

impl Tables {
    /// Returns them as tables of sites, which are ranked by blocks or by bytes.
    pub(crate) fn by(self, by_blocks: bool) -> SiteTables {
        SiteTables { rows: self.rows, depth: self.depth, by_blocks }
    }
}

/// Says what the form of a trace, or an event, cannot hold.
pub(crate) fn warn_of_losses(form: &str, losses: &Losses) {
    losses
        .iter()
        .for_each(|(loss, count)| super::print_message(&format!("{form} cannot hold {}: {count}", loss.text())));
}

/// Says what the stacks of a trace lack.
pub(crate) fn hint(trace: &Path, stacks: &Stacks) {
    let name = trace.display();
    if stacks.count() == 1 {
        super::print_message(&format!("{name}: the trace has no stacks; record it with hatf record --stacks"));
    } else if !stacks.have_places() {
        super::print_message(&format!(
            "{name}: stacks contain only addresses, because the trace does not describe the modules"
        ));
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
