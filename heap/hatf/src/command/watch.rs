//! `hatf watch`: shows the heap of a running program live.
//!
//! A separate process, `hatf record`, records the program, and this command displays the growing trace. Leaving the
//! screen therefore does not affect the program. A program that is already being recorded is watched in the same way.

mod started;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyEventKind};
use hatf::watch::{
    Action, End, Finder, Followed, Functions, Screen, Shown, Snapshot, Snapshots, Sort, State, View, draw, follow,
    give_back,
};
use hatf_host::record::Ongoing;
use hatf_trace::{Error, Result};
use metatf_cli::{Style, number, print_into, stderr, stderr_width, stdout_is_terminal};
use metatf_page::{Column, Facts, Note, Page, Report, Table, Value};
use serde::Serialize;

use super::sites::Folded;
use super::symbols::Symbols;
use started::Started;

/// Watch a program's heap live on the terminal: bytes over time, and which of its functions hold them.
///
/// The program is recorded by a separate process, as with `hatf record --stacks`, and the trace is read as it grows;
/// the display is at most one second behind. Pressing q leaves the screen while the program and its recording continue;
/// `hatf watch TRACE` returns to it. The program is not connected to the terminal: its output goes to a file next to
/// the trace, and the key o shows the end of that file.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf watch ./server --port 8080
  hatf watch -o gcc.mtf -- gcc -O2 -c big.c
  hatf watch --pid 1234                 a running process, recorded already or not
  hatf watch server.mtf                 a trace that hatf record is writing, or a complete one

Keys: s sort, p pause, m set a mark, w write an HTML report, o output, t sizes and threads, ? help,
q leave, Ctrl-C interrupt the program.

The exit status is the program's status if the program ended while being watched, otherwise 0.")]
pub(crate) struct Watch {
    /// Trace to write [default: PROGRAM.mtf, or PROGRAM.1.mtf and so on]. The program's output is in TRACE.out.
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,

    /// PID of a running process. If it is not being recorded yet, it is recorded until it ends or until Ctrl-C; after
    /// that, it continues unrecorded.
    #[arg(long, value_name = "PID", value_parser = number(1..=u32::MAX), conflicts_with = "command")]
    pid: Option<u32>,

    #[command(flatten)]
    folded: Folded,

    #[command(flatten)]
    symbols: Symbols,

    /// Program and its arguments, or a single trace whose name ends with .mtf.
    #[arg(
        required_unless_present = "pid",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM|TRACE"
    )]
    command: Vec<OsString>,
}

/// Maximum interval between two frames, and between two snapshots.
const DRAW: Duration = Duration::from_millis(200);
/// Interval at which the recording is notified that it is being watched.
const WATCH: Duration = Duration::from_secs(1);
/// Maximum number of rows in the summary.
const ROWS: usize = 5;

/// The trace being watched.
struct Watched {
    trace: PathBuf,
    /// The recording, if this command started it.
    started: Option<Started>,
}

pub(crate) fn run(options: &Watch) -> Result<u8> {
    if !stdout_is_terminal() {
        let why = "hatf watch requires a terminal, but standard output is not one: use hatf run PROGRAM, or hatf record and hatf report";
        return Err(Error::Usage(why.to_owned()));
    }
    let mut watched = begin(options)?;
    let followed = follow(&watched.trace)?;
    let (shown, ended, page) = show(options, &mut watched, &followed)?;
    if let State::Damaged(why) = &shown.snapshot.state
        && shown.snapshot.glance.totals.records == 0
    {
        return Err(Error::Trace(format!("{}: {why}", watched.trace.display()).into()));
    }
    let mut summary = Summary { page: summary(&watched, &shown) };
    if let Some((_, path)) = page {
        let path = Value::text(path.display().to_string());
        summary.page.push(Note::new("{} is still being written").with([path]));
    }
    print_into(&summary, stderr_width(), &mut stderr(Style::Text))?;
    Ok(ended.unwrap_or(0))
}

/// Starts a recording or finds an existing trace.
fn begin(options: &Watch) -> Result<Watched> {
    if let Some(process) = options.pid {
        if let Some((_, trace)) = Ongoing::of_process(process) {
            return Ok(Watched { trace, started: None });
        }
        hatf_host::record::command_of_process(process)?;
        return started(Started::process(process, options.output.as_deref())?);
    }
    if let [trace] = options.command.as_slice()
        && Path::new(trace).extension().is_some_and(|ending| ending == "mtf")
    {
        let trace = PathBuf::from(trace);
        if options.output.is_some() {
            return Err(Error::Usage(format!(
                "{}: -o cannot be used when watching an existing trace",
                trace.display()
            )));
        }
        started::check_trace(&trace)?;
        return Ok(Watched { trace, started: None });
    }
    started(Started::program(&options.command, options.output.as_deref())?)
}

fn started(started: Started) -> Result<Watched> {
    Ok(Watched { trace: started.trace.clone(), started: Some(started) })
}

/// Latest results of the threads, for the screen.
#[derive(Default)]
struct Latest {
    snapshot: Mutex<Arc<Snapshot>>,
    functions: Mutex<Arc<Functions>>,
    ongoing: Mutex<Option<Ongoing>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the screen until the user leaves it. Returns the last contents and, if the program has ended, its status.
fn show(options: &Watch, watched: &mut Watched, followed: &Arc<Followed>) -> Result<(Shown, Option<u8>, Written)> {
    let latest = Arc::new(Latest::default());
    // These threads are not joined, because symbolization may take a long time. They end with this process.
    let numbers = (Arc::clone(&latest), Snapshots::new(Arc::clone(followed)), watched.trace.clone());
    spawn("hatf-numbers", {
        let followed = Arc::clone(followed);
        move || make_snapshots(numbers, &followed)
    })?;
    let names = (Arc::clone(&latest), Finder::new(options.folded.folding()), options.symbols.clone());
    spawn("hatf-names", {
        let followed = Arc::clone(followed);
        move || find_functions(names, &followed)
    })?;
    metatf_cli::before_memory_ends(give_back);
    let mut screen = Screen::take()?;
    let (mut view, mut shown, mut page) = (View::default(), Shown::default(), None);
    let mut ended = None;
    loop {
        if !view.paused {
            shown.snapshot = Arc::clone(&lock(&latest.snapshot));
            shown.functions = Arc::clone(&lock(&latest.functions));
            shown.output = watched.started.as_ref().and_then(Started::output);
        }
        if let Some(started) = &mut watched.started {
            ended = started.ended()?;
        }
        let is_useless =
            |snapshot: &Snapshot| matches!(snapshot.state, State::Damaged(_)) && snapshot.glance.totals.records == 0;
        if is_useless(&shown.snapshot) {
            break;
        }
        tend_page(&mut page, &mut view);
        screen.draw(|frame| draw(frame, &shown, &view))?;
        let Some(action) = next_action(&mut view)? else { continue };
        match action {
            Action::None => {}
            Action::Leave => break,
            Action::Redraw => screen.redraw()?,
            Action::Suspend => screen.suspend(),
            Action::Interrupt => match &watched.started {
                Some(started) if ended.is_none() => view.message = Some(started.interrupt()),
                _ => break,
            },
            Action::Mark(name) => view.message = Some(mark(&latest, &name, view.marks)),
            Action::Page => view.message = Some(begin_page(&watched.trace, &mut page)),
        }
    }
    if view.paused {
        shown.snapshot = Arc::clone(&lock(&latest.snapshot));
        shown.functions = Arc::clone(&lock(&latest.functions));
    }
    Ok((shown, ended, page))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map(drop).map_err(Error::system("a thread"))
}

/// Waits for the next user action, but no longer than until the next redraw.
fn next_action(view: &mut View) -> Result<Option<Action>> {
    let problem = || Error::system("the terminal");
    let come = match event::poll(DRAW) {
        // A signal arrived, such as for a resized window.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
        come => come.map_err(problem())?,
    };
    if !come {
        return Ok(None);
    }
    Ok(match event::read().map_err(problem())? {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(view.key(key)),
        _ => None,
    })
}

/// Repeatedly takes snapshots and notifies the recording, which then flushes its trace.
fn make_snapshots((latest, mut snapshots, trace): (Arc<Latest>, Snapshots, PathBuf), followed: &Followed) {
    let mut told: Option<Instant> = None;
    loop {
        let mut ongoing = lock(&latest.ongoing);
        if told.is_none_or(|told| told.elapsed() >= WATCH) {
            if ongoing.is_none() {
                *ongoing = Ongoing::of_trace(&trace, &followed.about().user_metadata);
            }
            // The recording may end at any time.
            let _ = ongoing.as_ref().map(Ongoing::watch);
            told = Some(Instant::now());
        }
        let is_recorded = ongoing.as_ref().is_some_and(Ongoing::is_recorded);
        if !is_recorded {
            *ongoing = None;
        }
        let state = ongoing.as_ref().map(Ongoing::state);
        drop(ongoing);
        *lock(&latest.snapshot) = Arc::new(snapshots.snapshot(state));
        std::thread::sleep(DRAW);
    }
}

/// Continuously updates the list of functions that hold memory, using at most a quarter of the time.
fn find_functions((latest, mut finder, symbols): (Arc<Latest>, Finder, Symbols), followed: &Followed) {
    let begun = Instant::now();
    let mut name_at = Duration::ZERO;
    loop {
        let now = begun.elapsed();
        finder.look(followed);
        if finder.unnamed() > 0 && now >= name_at {
            // Show the functions known so far before symbolizing further frames.
            *lock(&latest.functions) = Arc::new(finder.functions());
            finder.name(|stacks, from| symbols.name_quietly(stacks, from));
            let took = begun.elapsed().saturating_sub(now);
            name_at = begun.elapsed() + (took * 3).max(DRAW * 2);
        }
        *lock(&latest.functions) = Arc::new(finder.functions());
        let took = begun.elapsed().saturating_sub(now);
        std::thread::sleep((took * 3).clamp(DRAW, Duration::from_secs(5)));
    }
}

/// Sets a mark and returns a message.
fn mark(latest: &Latest, name: &str, number: u64) -> String {
    match lock(&latest.ongoing).as_ref().map(|ongoing| ongoing.mark(name, number)) {
        Some(Ok(())) => format!("mark {name}"),
        Some(Err(error)) => format!("cannot set a mark: {error}"),
        None => "cannot set a mark: the program is not being recorded".to_owned(),
    }
}

/// An HTML report being written.
type Written = Option<(Child, PathBuf)>;

/// Starts a separate process that writes an HTML report of the current state, and returns a message.
fn begin_page(trace: &Path, page: &mut Written) -> String {
    if page.is_some() {
        return "an HTML report is already being written".to_owned();
    }
    let numbered = |number: u32| trace.with_extension(format!("now{number}.html"));
    let Some(path) = (1..=u32::MAX).map(numbered).find(|path| !path.exists()) else { return String::new() };
    let started = std::env::current_exe().and_then(|program| {
        let mut report = Process::new(program);
        report.arg("report").arg(trace).arg("--html").arg(&path);
        report.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    });
    match started {
        Ok(child) => {
            let message = format!("writing {}", path.display());
            *page = Some((child, path));
            message
        }
        Err(error) => format!("could not write the HTML report: {error}"),
    }
}

/// Sets a message when the HTML report is complete.
fn tend_page(page: &mut Written, view: &mut View) {
    let Some((child, path)) = page else { return };
    let Ok(Some(_)) = child.try_wait() else { return };
    // The exit status is ignored, because it only shows that the trace is incomplete.
    view.message = Some(if path.is_file() {
        format!("wrote {}", path.display())
    } else {
        format!(
            "could not write the HTML report; for the reason, run hatf report {} --html",
            path.with_extension("").with_extension("mtf").display()
        )
    });
    *page = None;
}

/// The output printed at the end.
#[derive(Serialize)]
struct Summary {
    #[serde(skip)]
    page: Page,
}

impl Report for Summary {
    fn page(&self) -> Page {
        self.page.clone()
    }
}

/// Builds the output printed at the end: a short form of the last screen, and suggestions on how to continue.
fn summary(watched: &Watched, shown: &Shown) -> Page {
    let (snapshot, functions) = (&shown.snapshot, &shown.functions);
    let glance = &snapshot.glance;
    let mut page = Page::new(snapshot.program.clone());
    let has_ended = matches!(snapshot.state, State::Ended(Some(_)));
    let (live, blocks) = (Value::Bytes(glance.live.bytes), Value::Count(glance.live.blocks));
    let in_blocks = Note::new("in {} blocks").with([blocks]);
    let at = Note::new("{} after the start").with([Value::Time(glance.peak.time)]);
    let facts = Facts::new()
        .and_said(if has_ended { "never freed" } else { "live" }, live, in_blocks)
        .and_said("peak", Value::Bytes(glance.peak.bytes), at)
        .and("events", Value::Count(glance.totals.records))
        .and("lost", Value::Count(glance.totals.lost));
    page.push(facts);
    let sort = if glance.sizes_only { Sort::Allocated } else { Sort::Live };
    let mut table = Table::new([Column::new("live"), Column::new("allocated"), Column::key("function")]);
    for function in functions.sorted(sort).into_iter().take(ROWS) {
        let (live, allocated) = (function.live.bytes, function.allocated.bytes);
        table.row([Value::Bytes(live), Value::Bytes(allocated), Value::text(function.name.clone())]);
    }
    if functions.has_stacks {
        page.push(table);
    }
    let trace = watched.trace.display().to_string();
    let mut note = |text: &'static str| page.push(Note::new(text).with([Value::text(trace.clone())]));
    match snapshot.state {
        State::Ended(Some(End::Exit(_) | End::Killed(_)) | None) => note("for more details, run hatf report {}"),
        State::Abandoned => note("to complete the trace, run hatf recover {}"),
        _ => note("still running; to return, run hatf watch {}"),
    }
    if let Some(output) = watched.started.as_ref().and_then(Started::output_file) {
        page.push(Note::new("the program's output is in {}").with([Value::text(output.display().to_string())]));
    }
    page
}
