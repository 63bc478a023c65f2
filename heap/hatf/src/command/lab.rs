//! Code shared by the analysis commands.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use hatf_lab::{Heap, HeapTracker, Observer, Totals};
use hatf_trace::event::{EventSink, EventSource as _, UserMetadata};
use hatf_trace::forms::{self, Form, RereadInput, TraceReader};
use hatf_trace::loss::Losses;
use hatf_trace::pipeline::read_beside;
use hatf_trace::stacks::Stacks;
use hatf_trace::{Error, Event, Result};
use hatf_view::report::SiteTables;
use hatf_view::threads::both;
use metatf_cli::{OutputFile, Progress};
use metatf_page::{Block, Form as Printed, Page, render};

/// The input trace and the number of threads.
#[derive(clap::Args)]
pub(crate) struct Source {
    /// Trace, in any format that `hatf convert` reads; `-` is standard input.
    pub(crate) trace: PathBuf,

    /// Format of the trace [default: detected from its first bytes or its name].
    #[arg(long, value_name = "FORMAT", value_parser = super::form())]
    pub(crate) from: Option<&'static Form>,

    /// Number of worker threads; the result does not depend on it [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) threads: Option<usize>,

    /// The input prepared for reading more than once, if a command has requested this.
    #[arg(skip)]
    reread: OnceLock<RereadInput>,

    /// Whether messages about the trace have been printed.
    #[arg(skip)]
    noted: AtomicBool,
}

impl Source {
    pub(crate) fn new(trace: PathBuf, from: Option<&'static Form>, threads: Option<usize>) -> Self {
        Self { trace, from, threads, reread: OnceLock::new(), noted: AtomicBool::new(false) }
    }

    /// Prepares for reading the trace more than once by copying input from a pipe to a temporary file.
    pub(crate) fn reread(&self) -> Result<()> {
        let input = RereadInput::new(&self.trace, self.from)?;
        self.reread.get_or_init(|| input);
        Ok(())
    }

    /// Opens the trace. Prints messages about the trace when it is first opened.
    pub(crate) fn open(&self) -> Result<TraceReader> {
        let note: fn(&str) = if self.noted.load(Ordering::Relaxed) { |_: &str| () } else { super::print_warning };
        let options = super::open_options(self.from, note);
        match self.reread.get() {
            Some(input) => forms::read(input.open()?, &options),
            None => forms::open(&self.trace, &options),
        }
    }

    /// Returns the clock resolution of the trace in nanoseconds. The trace must be prepared for [reading more than
    /// once](Self::reread).
    pub(crate) fn resolution(&self) -> Result<u64> {
        self.open_quietly().map(|trace| trace.resolution())
    }

    /// Opens the trace without printing messages about it.
    pub(crate) fn open_quietly(&self) -> Result<TraceReader> {
        let options = super::open_options(self.from, |_| ());
        match self.reread.get() {
            Some(input) => forms::read(input.open()?, &options),
            None => forms::open(&self.trace, &options),
        }
    }

    /// Returns the default output file of a command, which is the trace's name with this extension.
    pub(crate) fn sibling(&self, ending: &str) -> Result<PathBuf> {
        if self.trace == Path::new("-") {
            return Err(Error::Usage("the trace is standard input: specify an output file with -o".to_owned()));
        }
        Ok(self.trace.with_extension(ending))
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(super::cores)
    }

    /// Runs two tasks, in parallel if two threads are allowed.
    pub(crate) fn both<A: Send, B>(
        &self,
        there: impl FnOnce() -> A + Send,
        here: impl FnOnce() -> B,
    ) -> Result<(A, B)> {
        both(self.threads(), there, here).map_err(Error::system("a thread"))
    }

    /// Follows the heap of the trace for a command that requires every block, and warns if the trace is a sample.
    pub(crate) fn observe<O: Observer>(&self, tracker: &mut HeapTracker<O>) -> Result<()> {
        let read = self.read(tracker);
        self.warn_of_sample(tracker.heap());
        read
    }

    /// Prints the contradictions in a trace, for commands that print no totals.
    pub(crate) fn warn_of_contradictions(&self, totals: &Totals) {
        let trace = self.trace.display();
        totals.oddities.contradictions.lines().for_each(|line| super::print_after_answer(format!("{trace}: {line}")));
    }

    /// Prints a message if the trace is a sample.
    pub(crate) fn warn_of_sample(&self, heap: &Heap) {
        if heap.sampling.is_some() {
            let trace = self.trace.display();
            super::print_after_answer(format!("{trace}: the trace is a sample; results cover the sampled blocks only"));
        }
    }

    /// Passes all events of the trace to a sink and shows progress. Reads the trace in a separate thread if two threads
    /// are allowed.
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

/// A sink that counts records to show progress.
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

/// Size limits of stack tables.
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
    /// Returns the options for site tables, ranked by blocks or by bytes.
    pub(crate) fn by(self, by_blocks: bool) -> SiteTables {
        SiteTables { rows: self.rows, depth: self.depth, by_blocks }
    }
}

/// Prints a message for each kind of value that a format or an event cannot represent.
pub(crate) fn warn_of_losses(form: &str, losses: &Losses) {
    losses
        .iter()
        .for_each(|(loss, count)| super::print_message(&format!("{form} cannot represent {}: {count}", loss.text())));
}

/// Prints a message if the trace lacks stacks or modules.
pub(crate) fn hint(trace: &Path, stacks: &Stacks) {
    let name = trace.display();
    if stacks.count() == 1 {
        super::print_after_answer(format!("{name}: the trace has no stacks; record it with hatf record --stacks"));
    } else if !stacks.have_places() {
        super::print_after_answer(format!(
            "{name}: stacks contain only addresses, because the trace does not describe the modules"
        ));
    }
}

/// Writes a chart to an SVG file.
pub(crate) fn draw(path: &Path, picture: impl Into<Block>) -> Result<()> {
    let page = Page { figures: vec![picture.into()], ..Page::default() };
    let drawn = || {
        let (file, mut out) = OutputFile::create(path)?;
        render(&page, Printed::Svg, &mut out)?;
        file.keep(out)
    };
    drawn().map_err(Error::system(path.display().to_string()))
}
