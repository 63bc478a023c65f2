//! The table of analyses of a heap trace.
//!
//! A row consists of a name, the question that the analysis answers, its options, and an observer that computes the
//! answer. Every list of analyses is derived from [`ANALYSES`]: the commands of `hatf` and their help, `hatf report
//! --with`, the HTML report, `heap.ask` in Python, and the tables of questions in the README and the book.
//!
//! ```
//! use hatf_trace::Event;
//! use hatf_view::analyses::{Analysis, Question};
//! use hatf_view::report::SiteTables;
//! use metatf_page::{Form, Report as _, render};
//!
//! let analysis = Analysis::named("churn").unwrap();
//! let options = &analysis.options(["--within=100us"])?;
//! let question = Question { analysis, options, threads: 1, name: "a trace", tables: SiteTables::default() };
//! let page = question.ask(
//!     &mut |sink| {
//!         sink.event(&Event::malloc(0x1000, 64))?;
//!         sink.event(&Event::free(0x1000))
//!     },
//!     |_, _| Ok(()),
//!     |answer| Ok(answer.page()),
//! )?;
//! let mut text = Vec::new();
//! render(&page, Form::text(None), &mut text)?;
//! assert!(String::from_utf8(text)?.contains("SHORT-LIVED: 1 of 1 block"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ask;
mod churn;
mod fragmentation;
mod leaks;
mod profile;
mod sites;
mod whatif;

pub use ask::Question;
pub use profile::{context, in_memory};

use clap::{ArgMatches, Command};
use hatf_lab::fragmentation::Moment;
use hatf_lab::sites::Counts;
use hatf_lab::{Heap, ObjectEvent, Observer};
use hatf_trace::event::{Event, EventKind, UserMetadata};
use hatf_trace::{Error, Result};
use metatf_page::Page;
use metatf_page::units::{parse_bytes, parse_nanoseconds};
use serde::Serialize;

use crate::report::{Grouped, ReadTrace, SiteTables};

/// All analyses, in the order in which they are listed and printed.
pub const ANALYSES: &[Analysis] = &[sites::ROW, leaks::ROW, churn::ROW, fragmentation::ROW, profile::ROW, whatif::ROW];

/// An analysis of a heap trace.
#[derive(Clone, Copy, Debug)]
pub struct Analysis {
    /// The name of the analysis and of its command.
    pub name: &'static str,
    /// The question that the analysis answers.
    pub question: &'static str,
    /// The content that the analysis adds to a report.
    pub adds: &'static str,
    /// The page of the book about the analysis.
    pub page: &'static str,
    /// The properties of the analysis and of its answer.
    pub traits: Traits,
    arguments: fn(Command) -> Command,
    start: fn(&ArgMatches, usize) -> Result<Box<dyn Running>>,
}

/// Properties of an analysis and of its answer.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Whether the command has its own source file, because it offers more than the analysis, such as several passes.
    pub own_command: bool,
    /// Whether the answer shows stacks. The command then has options for the table size and for finding functions.
    /// Implement [`Running::shown`], so that functions are looked up only for these stacks.
    pub stacks: bool,
    /// Whether the answer needs [`View::counts`] and [`View::functions`].
    pub functions: bool,
    /// Whether the analysis also works for traces that contain the sizes of blocks but not their ends. A report accepts
    /// such a trace if all its analyses do.
    pub sizes_only: bool,
}

impl Traits {
    pub(crate) const NONE: Self = Self { own_command: false, stacks: false, functions: false, sizes_only: false };
}

/// The options of an analysis. The doc comment of the implementing type is the help text of the command.
pub(crate) trait Options: clap::Args {
    /// Starts the analysis with these options and this number of threads.
    fn start(self, threads: usize) -> Result<Box<dyn Running>>;
}

impl Analysis {
    pub(crate) const fn new<O: Options>(
        name: &'static str,
        question: &'static str,
        adds: &'static str,
        page: &'static str,
    ) -> Self {
        let start = |matches: &ArgMatches, threads: usize| {
            O::from_arg_matches(matches).map_err(|error| Error::Usage(error.to_string()))?.start(threads)
        };
        Self { name, question, adds, page, traits: Traits::NONE, arguments: O::augment_args, start }
    }

    pub(crate) const fn with(self, traits: Traits) -> Self {
        Self { traits, ..self }
    }

    /// Returns the analysis with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        ANALYSES.iter().find(|analysis| analysis.name == name)
    }

    /// Adds the options and the help text of the analysis to a command.
    #[must_use]
    pub fn arguments(&self, command: Command) -> Command {
        (self.arguments)(command)
    }

    /// Parses options, such as `--within=100us`. Options that are not given have their defaults.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown option or an invalid value.
    pub fn options<S: Into<std::ffi::OsString> + Clone>(
        &self,
        options: impl IntoIterator<Item = S>,
    ) -> Result<ArgMatches> {
        let command = self.arguments(Command::new(self.name).no_binary_name(true).disable_help_flag(true));
        command.try_get_matches_from(options).map_err(|error| Error::Usage(error.to_string().trim_end().to_owned()))
    }

    /// Starts the analysis with options from [`options`](Self::options) or from a command with these
    /// [`arguments`](Self::arguments). Analyses that can use several threads use at most `threads`.
    ///
    /// # Errors
    /// [`Error::System`] if a thread cannot be created.
    pub fn start(&self, options: &ArgMatches, threads: usize) -> Result<Box<dyn Running>> {
        (self.start)(options, threads)
    }
}

/// A running analysis. It observes the events of a trace; then [`end`](Self::end) is called, and finally
/// [`answer`](Self::answer).
pub trait Running: Observer {
    /// Returns the stacks that the answer will show, or `None` for all stacks. These stacks are symbolized before
    /// [`end`](Self::end).
    fn shown(&self, view: &View<'_>) -> Option<Vec<u64>> {
        let _ = view;
        None
    }

    /// Computes the answer from the heap at the end of the trace.
    ///
    /// # Errors
    /// The analysis failed.
    fn end(&mut self, heap: &Heap) -> Result<()> {
        let _ = heap;
        Ok(())
    }

    /// Returns the answer.
    ///
    /// # Errors
    /// [`Error::Usage`] if the trace does not contain the data that the analysis requires.
    fn answer<'v>(&'v self, view: &View<'v>) -> Result<Box<dyn Answer + 'v>>;

    /// Returns the named points in time at which an HTML report shows the pages.
    ///
    /// # Errors
    /// The trace cannot be read again.
    fn moments(&self, view: &View<'_>, read: &mut ReadTrace<'_>) -> Result<Vec<(String, Moment)>> {
        let _ = (view, read);
        Ok(Vec::new())
    }

    /// Returns the error to report if `error` ended the pass. By default, this is `error` itself.
    fn cause(self: Box<Self>, error: Error) -> Error {
        error
    }
}

/// The context of an answer.
#[derive(Clone, Copy, Debug)]
pub struct View<'v> {
    /// The name of the trace.
    pub name: &'v str,
    /// The heap at the end of the trace.
    pub heap: &'v Heap,
    /// The size limits of tables.
    pub tables: SiteTables,
    /// The allocations of each stack, indexed by its number. Only analyses with [`Traits::functions`] may rely on them.
    pub counts: &'v [Counts],
    /// The functions of stacks. Only analyses with [`Traits::functions`] may rely on them.
    pub functions: Option<Grouped<'v>>,
}

impl<'v> View<'v> {
    /// Creates a view with the default table size and without functions.
    #[must_use]
    pub fn new(name: &'v str, heap: &'v Heap) -> Self {
        Self { name, heap, tables: SiteTables::default(), counts: &[], functions: None }
    }
}

/// The answer of an analysis, which serializes to JSON.
pub trait Answer: erased_serde::Serialize {
    /// Adds the findings to a page, without the totals of the trace.
    fn describe(&self, page: &mut Page);

    /// Adds the content that only an HTML report shows.
    fn describe_in_html(&self, page: &mut Page) {
        let _ = page;
    }
}

erased_serde::serialize_trait_object!(Answer);

/// An answer together with the totals of its trace.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Alone<'v> {
    /// The name of the trace.
    #[serde(skip)]
    pub name: &'v str,
    /// The heap at the end of the trace.
    #[serde(skip)]
    pub heap: &'v Heap,
    /// The answer.
    pub answer: Box<dyn Answer + 'v>,
}

impl metatf_page::Report for Alone<'_> {
    fn page(&self) -> Page {
        let mut page = Page::new(self.name);
        self.heap.totals().note(&mut page);
        self.answer.describe(&mut page);
        page
    }
}

/// Analyses that follow a trace in the same pass. They receive allocations and frees as object events only; all other
/// records are also passed to [`Observer::record`].
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_trace::{Event, EventSink};
/// use hatf_view::analyses::{Analysis, Together, View};
/// use metatf_page::{Form, Page, render};
///
/// let mut together = Together::default();
/// for name in ["churn", "fragmentation"] {
///     let analysis = Analysis::named(name).ok_or("no such analysis")?;
///     together.0.push(analysis.start(&analysis.options([""; 0])?, 1)?);
/// }
/// let mut tracker = HeapTracker::new(together);
/// tracker.event(&Event::malloc(0x1000, 64))?;
/// tracker.event(&Event::free(0x1000))?;
///
/// let (heap, mut together) = tracker.into_parts();
/// let mut page = Page::new("a trace");
/// for running in &mut together.0 {
///     running.end(&heap)?;
///     running.answer(&View::new("a trace", &heap))?.describe(&mut page);
/// }
/// let mut text = Vec::new();
/// render(&page, Form::text(None), &mut text)?;
/// let text = String::from_utf8(text)?;
/// assert!(text.contains("SHORT-LIVED: 1 of 1 block") && text.contains("END, after event 2: 0 blocks, 0 B live"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Together(pub Vec<Box<dyn Running>>);

impl Observer for Together {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        self.0.iter_mut().try_for_each(|running| running.event(event))
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        if let EventKind::Call(_) | EventKind::ReallocEnd(_) | EventKind::Free { .. } = record.kind {
            return Ok(());
        }
        self.0.iter_mut().try_for_each(|running| running.record(record, heap))
    }

    fn sampled(&mut self, mean: u64) {
        self.0.iter_mut().for_each(|running| running.sampled(mean));
    }

    fn comment(&mut self, text: &str) {
        self.0.iter_mut().for_each(|running| running.comment(text));
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.0.iter_mut().for_each(|running| running.user_metadata(user_metadata));
    }
}

/// Parses a duration such as `100us` or `1 ms` into nanoseconds.
///
/// # Errors
/// A message with the expected form.
pub fn time(text: &str) -> std::result::Result<u64, String> {
    parse_nanoseconds(text).ok_or_else(|| "expected a duration, such as 100us, 1ms or 2.5s".to_owned())
}

/// Parses a number of bytes such as `64KiB`. The number may be 0.
///
/// # Errors
/// A message with the expected form.
pub fn size(text: &str) -> std::result::Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "expected bytes, such as 4096 or 64KiB".to_owned())
}
