//! Heap traces: their tables, and the reports of the `hatf` command.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hatf_lab::fragmentation::PAGES;
use hatf_lab::sites::{Counts, Measure, Sites as Counting};
use hatf_lab::{Heap as Followed, HeapTracker};
use hatf_trace::event::{Event, EventSink, UserMetadata};
use hatf_trace::forms::{self, OpenOptions};
use hatf_trace::pipeline::read_beside;
use hatf_trace::short_name::short_name;
use hatf_trace::stacks::Stacks;
use hatf_view::analyses::{ANALYSES, Analysis, Question};
use hatf_view::analysis::ReportBuilder;
use hatf_view::calls::{Folding, GroupBy, Groups, Place, Places};
use hatf_view::report::{Fragmentation, FragmentationOptions, Grouped, SIZES_ONLY, SiteTables, Sites};
use hatf_view::verdict::Summary;
use metatf_page::units::count;
use metatf_page::{Block, Flame, Unit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::names::{Named, Texts, folding, name};
use crate::page::Page;
use crate::signals::{Signals, Ticks};
use crate::table::Table;

/// One or several heap traces, with tables and reports.
///
/// Tables and reports are read when they are used. Functions that a trace does not name are looked up in the programs
/// and shared objects on this machine.
#[pyclass(frozen, module = "hatf")]
pub(crate) struct Heap {
    paths: Vec<PathBuf>,
    status: Option<i32>,
}

/// Open one or several heap traces in any format that `hatf convert` reads.
///
/// >>> heap = hatf.heap("heap.mtf")
/// >>> print(heap.report().to_dict()["totals"]["allocs"])
/// 2
#[pyfunction]
#[pyo3(signature = (*paths))]
pub(crate) fn heap(paths: Vec<PathBuf>) -> PyResult<Heap> {
    if paths.is_empty() {
        return Err(PyValueError::new_err("expected at least one trace"));
    }
    for path in &paths {
        std::fs::File::open(path).map_err(|problem| error::of_system(path, &problem))?;
    }
    Ok(Heap::new(paths))
}

impl Heap {
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, status: None }
    }

    /// Returns the trace of a program that ended with this status.
    pub(crate) fn recorded(path: PathBuf, status: i32) -> Self {
        Self { status: Some(status), ..Self::new(vec![path]) }
    }

    /// Returns one of the tables of `docs/heap-tables.md`, with names for its stacks.
    fn table(&self, name: &str, folding: Folding) -> PyResult<Table> {
        let tables = hatf_arrow::open(&self.paths).map_err(error::plain)?;
        let table = tables.with_names(Arc::new(Named::new(folding))).get(name);
        let path = if self.paths.len() == 1 { self.paths.first().map(PathBuf::as_path) } else { None };
        table.map(|table| Table::new(table, path)).ok_or_else(|| error::plain(format!("there is no table {name}")))
    }

    /// Returns the only trace, for reports.
    fn one(&self) -> PyResult<&Path> {
        match self.paths.as_slice() {
            [path] => Ok(path),
            paths => Err(PyValueError::new_err(format!("a report requires exactly one trace, found {}", paths.len()))),
        }
    }
}

/// A sink that checks for signals while it receives events.
struct Watched<'s> {
    sink: &'s mut dyn EventSink,
    ticks: Ticks<'s>,
}

impl EventSink for Watched<'_> {
    fn event(&mut self, event: &Event<'_>) -> hatf_trace::Result<()> {
        if self.ticks.tick() {
            return Err(hatf_trace::Error::Usage("interrupted".to_owned()));
        }
        self.sink.event(event)
    }

    fn comment(&mut self, text: &[u8]) -> hatf_trace::Result<()> {
        self.sink.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> hatf_trace::Result<()> {
        self.sink.user_metadata(user_metadata)
    }

    fn coming(&mut self, addresses: &[u64]) {
        self.sink.coming(addresses);
    }
}

/// A trace that is read one or more times in its own thread.
struct Reading<'r> {
    path: &'r Path,
    signals: Signals,
    interrupted: AtomicBool,
}

impl Reading<'_> {
    /// Sends all events of the trace to a sink.
    fn read(&self, sink: &mut dyn EventSink) -> hatf_trace::Result<()> {
        let mut watched = Watched { sink, ticks: Ticks::new(&self.signals, &self.interrupted) };
        read_beside(|feed| forms::open(self.path, &OpenOptions::default())?.feed(feed).map(drop), &mut watched)
    }
}

/// Processes a trace while the interpreter is released.
fn detached<T: Send>(
    py: Python<'_>,
    path: &Path,
    work: impl FnOnce(&Reading<'_>) -> hatf_trace::Result<T> + Send,
) -> PyResult<T> {
    let reading = Reading { path, signals: Signals::of_this_thread(), interrupted: AtomicBool::new(false) };
    let done = py.detach(|| work(&reading));
    if reading.interrupted.load(Ordering::Relaxed) {
        py.check_signals()?;
    }
    done.map_err(|problem| error::of_heap(path, &problem))
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Counts the allocations of each stack.
fn counted(reading: &Reading<'_>) -> hatf_trace::Result<(Followed, Vec<Counts>)> {
    let mut tracker = HeapTracker::new(Counting::new()).with_sizes_only();
    reading.read(&mut tracker)?;
    let (mut heap, counting) = tracker.into_parts();
    name(&mut heap.stacks);
    Ok((heap, counting.report()))
}

/// Returns a measure and its description.
fn measure(name: &str) -> PyResult<(Measure, &'static str)> {
    Ok(match name {
        "peak" => (Measure::Peak, "live at the peak"),
        "leaked" => (Measure::Leaked, "live at the end"),
        "allocated" => (Measure::Allocated, "allocated"),
        "temporary" => (Measure::Temporary, "freed by the next event"),
        "short" => (Measure::Short, "freed within 1 ms and 64 KiB of allocations"),
        other => {
            let message = format!("unknown measure {other:?}: expected peak, leaked, allocated, temporary or short");
            return Err(PyValueError::new_err(message));
        }
    })
}

#[pymethods]
impl Heap {
    /// Paths of the traces.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.paths.iter().map(|path| path.display().to_string()).collect()
    }

    /// Exit status of the program that `hatf.record` ran; None for a trace that was opened.
    #[getter]
    fn status(&self) -> Option<i32> {
        self.status
    }

    /// Return the objects in the order in which they end, with size, times, lifetime, threads, kind of end, and the
    /// hash of the allocating stack.
    fn objects(&self) -> PyResult<Table> {
        self.table("objects", Folding::default())
    }

    /// Return the allocations of each stack: total, live at the peak, live at the end, and short-lived; and the
    /// program's own function in the stack. `project` specifies the code that is your own, `skip` the code that is not;
    /// `whole` uses the innermost function as it is.
    #[pyo3(signature = (*, project=None, skip=None, whole=false))]
    fn sites(&self, project: Option<Texts>, skip: Option<Texts>, whole: bool) -> PyResult<Table> {
        self.table("sites", folding(project, skip, whole))
    }

    /// Return the frames of each stack by its hash, which is the same in all traces of a build.
    fn stacks(&self) -> PyResult<Table> {
        self.table("stacks", Folding::default())
    }

    /// Return the lifetimes of the objects of each stack, grouped by powers of two.
    fn lifetimes(&self) -> PyResult<Table> {
        self.table("lifetimes", Folding::default())
    }

    /// Return the live heap over time: a limited number of points in time, including the exact peak.
    fn timeline(&self) -> PyResult<Table> {
        self.table("timeline", Folding::default())
    }

    /// Return the marks and phases that the program recorded.
    fn marks(&self) -> PyResult<Table> {
        self.table("marks", Folding::default())
    }

    /// Return the processes of the program.
    fn processes(&self) -> PyResult<Table> {
        self.table("processes", Folding::default())
    }

    /// Return the metadata of the traces, with one row per trace.
    fn traces(&self) -> PyResult<Table> {
        self.table("traces", Folding::default())
    }

    /// Report on the heap like `hatf report`: events, peak, sizes, lifetimes, threads, and blocks that were never
    /// freed.
    fn report(&self, py: Python<'_>) -> PyResult<Page> {
        let path = self.one()?;
        let report = detached(py, path, |reading| {
            let mut tracker = HeapTracker::new(ReportBuilder::new()).with_sizes_only();
            reading.read(&mut tracker)?;
            let (mut heap, builder) = tracker.into_parts();
            name(&mut heap.stacks);
            Ok(Summary::new(&builder, &heap, &Folding::default()))
        })?;
        Page::new(path, &report)
    }

    /// Report the functions that hold the most memory, like `hatf sites`. These are the program's own functions:
    /// allocators, the C library and interpreters are folded into their callers. `project` specifies the code that is
    /// your own, and `skip` additional code to fold; `whole` disables folding.
    #[pyo3(signature = (*, project=None, skip=None, whole=false, rows=10))]
    fn functions(
        &self,
        py: Python<'_>,
        project: Option<Texts>,
        skip: Option<Texts>,
        whole: bool,
        rows: usize,
    ) -> PyResult<Page> {
        let path = self.one()?;
        let folding = folding(project, skip, whole);
        let (heap, counts) = detached(py, path, counted)?;
        let places = Places::new(&heap.stacks, &folding, GroupBy::Function);
        let groups = Groups::new(&places, &counts);
        let tables = SiteTables { rows, depth: 8, by_blocks: false };
        let grouped = Some(Grouped { places: &places, groups: &groups, inclusive: false });
        let sites = Sites::all(path.display().to_string(), &heap, &counts, grouped, tables);
        Page::new(path, &sites)
    }

    /// Return a flame graph of the memory of each stack. `by` is peak, leaked, allocated, temporary or short; `blocks`
    /// counts blocks instead of bytes.
    #[pyo3(signature = (by="peak", *, blocks=false, project=None, skip=None, whole=false))]
    fn flame(
        &self,
        py: Python<'_>,
        by: &str,
        blocks: bool,
        project: Option<Texts>,
        skip: Option<Texts>,
        whole: bool,
    ) -> PyResult<Page> {
        let (path, (measure, what)) = (self.one()?, measure(by)?);
        let folding = folding(project, skip, whole);
        let (heap, counts) = detached(py, path, counted)?;
        if !measure.is_known(&heap) && heap.has_sizes_only() {
            return Err(error::of_file(path, format!("the trace was recorded with --sizes-only: {SIZES_ONLY}")));
        }
        let mut graph = Flame::new("", if blocks { Unit::Count } else { Unit::Bytes });
        let places = Places::new(&heap.stacks, &folding, GroupBy::Function);
        let short = |place: &Place| metatf_page::shown(&short_name(&place.name)).to_string();
        let names: Vec<String> = places.keys().iter().map(short).collect();
        for (site, counts) in (0..).zip(&counts) {
            let amount = counts.get(measure);
            let stack = places.own(site).rev().filter_map(|place| names.get(places.group(place) as usize));
            graph.add(stack, if blocks { amount.blocks } else { amount.bytes });
        }
        let mut folded = Vec::new();
        hatf_lab::sites::folded(&graph, &mut folded).map_err(error::plain)?;
        let folded = String::from_utf8_lossy(&folded).into_owned();
        let json = serde_json::json!({ "total": graph.root.total, "folded": folded.lines().collect::<Vec<_>>() });
        let (total, unit) = (count(graph.root.total), if blocks { "blocks" } else { "bytes" });
        graph.title = format!("{}: {total} {unit} {what}", path.display());
        let page = metatf_page::Page {
            title: path.display().to_string(),
            blocks: Vec::new(),
            figures: vec![Block::Flame(graph)],
        };
        Ok(Page::of_picture(page, json.to_string()))
    }

    /// Report the blocks that keep memory pages from being freed, like `hatf fragmentation`, at some points in time:
    /// `peak`, `worst`, `sparsest`, `end`, a time such as `30s`, `mark:NAME`, or an event number. `page` is the page size in bytes: 4096, 65536 or
    /// 2097152.
    #[pyo3(signature = (at=None, *, page=4096))]
    fn fragmentation(&self, py: Python<'_>, at: Option<&Bound<'_, PyAny>>, page: u64) -> PyResult<Page> {
        let path = self.one()?;
        if !PAGES.contains(&page) {
            return Err(PyValueError::new_err(format!(
                "pages of {page} bytes are not supported: expected one of {PAGES:?}"
            )));
        }
        let mut options = FragmentationOptions { page, ..FragmentationOptions::default() };
        if let Some(at) = at {
            let is_one = at.is_instance_of::<pyo3::types::PyString>() || at.is_instance_of::<pyo3::types::PyInt>();
            let moments = if is_one { vec![at.clone()] } else { at.try_iter()?.collect::<PyResult<_>>()? };
            let parsed = moments.iter().map(|moment| moment.str()?.to_str()?.parse().map_err(PyValueError::new_err));
            options.at = parsed.collect::<PyResult<_>>()?;
        }
        let trace = path.display().to_string();
        let report = detached(py, path, |reading| {
            let named = |stacks: &mut Stacks| {
                name(stacks);
                Ok(())
            };
            Fragmentation::read(trace, &options, &mut |sink| reading.read(sink), named).map(|(report, _)| report)
        })?;
        Page::new(path, &report)
    }

    /// Answer a question about the heap with an analysis, like the command of its name: `churn`, `leaks` and others,
    /// which the error for an unknown name lists. Keywords are options of the command, such as `within="100us"`.
    #[pyo3(signature = (analysis, *, rows=10, **options))]
    fn ask(&self, py: Python<'_>, analysis: &str, rows: usize, options: Option<&Bound<'_, PyDict>>) -> PyResult<Page> {
        let path = self.one()?;
        let analysis = Analysis::named(analysis).ok_or_else(|| {
            let names = ANALYSES.iter().map(|analysis| analysis.name).collect::<Vec<_>>().join(", ");
            PyValueError::new_err(format!("unknown analysis {analysis:?}: expected one of {names}"))
        })?;
        let mut words = Vec::new();
        for (name, value) in options.into_iter().flatten() {
            words.push(format!("--{}={}", name.str()?.to_str()?.replace('_', "-"), value.str()?.to_str()?));
        }
        let options = &analysis.options(&words).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let (title, tables) = (path.display().to_string(), SiteTables { rows, ..SiteTables::default() });
        detached(py, path, |reading| {
            let question = Question { analysis, options, threads: threads(), name: &title, tables };
            let look_up = |heap: &mut Followed, _| {
                name(&mut heap.stacks);
                Ok(())
            };
            question.ask(&mut |sink| reading.read(sink), look_up, |answer| Ok(Page::new(path, answer)))
        })?
    }

    fn __repr__(&self) -> String {
        format!("<hatf.Heap {}>", self.paths().join(", "))
    }
}
