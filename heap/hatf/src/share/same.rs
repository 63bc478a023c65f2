//! Checks that an anonymized trace contains no names and that all figures are unchanged.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use hatf_lab::allocator::{PAPER, by_name};
use hatf_lab::fragmentation::{Held, Moment, Names, Settings};
use hatf_lab::simulate::{Grid, Simulation};
use hatf_lab::{Heap, HeapTracker};
use metatf::container::Reader;
use metatf_page::{Note, Page, Value as Shown};
use serde::Serialize;
use serde_json::Value;

use super::anonymize::{KEYS, Kept, STAMPS, file_name};
use hatf_host::replay::{Compiler, Cut};
use hatf_trace::event::{Event, EventKind, EventSink, Tee, UserMetadata};
use hatf_trace::forms::TraceReader;
use hatf_trace::{Error, Result};
use hatf_view::analysis::ReportBuilder;

/// Minimum number of letters of a word to search for in strings.
const WORD: usize = 4;
/// Minimum number of letters of a word to search for in all bytes. Shorter words occur by chance in numbers.
const LONG_WORD: usize = 8;
/// Maximum number of found words to show.
const SHOWN: usize = 10;

/// A figure that was compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// The name of the figure.
    pub name: &'static str,
    /// The number of values in the figure.
    pub numbers: u64,
    /// The position of the first difference, with the values before and after. `None` if all values are equal.
    pub differs: Option<String>,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The number of distinct words with 4 or more letters in the original trace.
    pub words: u64,
    /// Words of the original trace that occur in the new trace, at most ten.
    pub found: Vec<String>,
    /// The number of searched bytes in the new trace, after decompression.
    pub bytes: u64,
    /// The compared figures.
    pub figures: Vec<Figure>,
}

impl Checked {
    /// Returns whether no word was found and all figures agree.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.found.is_empty() && self.figures.iter().all(|figure| figure.differs.is_none())
    }

    /// Builds a page with the result and this title.
    #[must_use]
    pub fn page(&self, title: String) -> Page {
        let mut page = Page::new(title);
        let words = [Shown::Count(self.words), Shown::Bytes(self.bytes)];
        let text = if self.found.is_empty() {
            "none of the {} words of the original occurs in the {} of the new trace"
        } else {
            "some of the {} words of the original occur in the {} of the new trace"
        };
        page.push(Note::new(text).with(words));
        if !self.found.is_empty() {
            page.note(format!("found: {}", self.found.join(", ")));
        }
        for Figure { name, numbers, differs } in &self.figures {
            match differs {
                None => page.push(
                    Note::new(format!("{name}: all {{}} values match the original")).with([Shown::Count(*numbers)]),
                ),
                Some(where_) => page.note(format!("{name} differs: {where_}")),
            }
        }
        page
    }
}

/// Compares a trace with its anonymized version. `original` and `made` open the traces, and `path` is the file of the
/// anonymized trace.
///
/// # Errors
/// Returns an error if a trace could not be read.
pub fn check(
    original: &dyn Fn() -> Result<TraceReader>,
    made: &dyn Fn() -> Result<TraceReader>,
    path: &Path,
    kept: &Kept,
    threads: usize,
) -> Result<Checked> {
    let mut words = Words { kept: kept.clone(), ..Words::default() };
    original()?.give(&mut words)?;
    let Words { secret, mut allowed, .. } = words;
    let secret: HashSet<Vec<u8>> = secret.difference(&allowed).cloned().collect();
    let mut texts = Words::default();
    made()?.give(&mut texts)?;
    // The format's metadata keys occur in the bytes of a trace but not among its strings.
    KEYS.iter().for_each(|key| note(&mut allowed, key.as_bytes()));
    let longest = secret.iter().map(Vec::len).max().unwrap_or(0);
    let mut found: Vec<String> = Vec::new();
    let mut search = |run: &[u8], least: usize| {
        if allowed.contains(run) {
            return;
        }
        for word in parts(run, least, longest).filter(|word| secret.contains(*word)) {
            let word = String::from_utf8_lossy(word).into_owned();
            if found.len() < SHOWN && !found.contains(&word) {
                found.push(word);
            }
        }
    };
    texts.secret.iter().chain(&texts.allowed).for_each(|run| search(run, WORD));
    let bytes = all_bytes(path, &mut |run| search(run, LONG_WORD))?;
    let (before, after) = (Figures::of(original, threads)?, Figures::of(made, threads)?);
    Ok(Checked { words: secret.len() as u64, found, bytes, figures: before.compare(after)? })
}

/// The words in a trace's strings.
#[derive(Default)]
struct Words {
    kept: Kept,
    /// Words that must not remain. `allowed` contains the words in kept names.
    secret: HashSet<Vec<u8>>,
    allowed: HashSet<Vec<u8>>,
}

/// Collects the words of a string, which are runs of letters. All non-ASCII characters count as letters.
fn note(words: &mut HashSet<Vec<u8>>, text: &[u8]) {
    for run in runs(text).filter(|run| run.len() >= WORD && !words.contains(*run)).collect::<Vec<_>>() {
        words.insert(run.to_vec());
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte >= 0x80
}

fn runs(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !is_letter(*byte))
}

/// Returns all substrings of a run of letters whose length is between `least` and `most`.
fn parts(run: &[u8], least: usize, most: usize) -> impl Iterator<Item = &[u8]> {
    (0..run.len()).flat_map(move |from| {
        let rest = run.get(from..).unwrap_or_default();
        (least..=most.min(rest.len())).filter_map(move |length| rest.get(..length))
    })
}

impl Words {
    fn name(&mut self, name: &[u8], is_kept: bool) {
        note(if is_kept { &mut self.allowed } else { &mut self.secret }, name);
    }

    fn path(&mut self, path: &[u8]) {
        let name = file_name(path);
        let is_kept = !name.is_empty() && self.kept.has(name);
        self.name(name, is_kept);
        self.name(path.get(..path.len() - name.len()).unwrap_or_default(), false);
    }

    fn value(&mut self, key: &str, value: &Value) {
        match value {
            Value::String(text) if matches!(key, "program" | "trace") => self.path(text.as_bytes()),
            Value::String(text) => {
                let is_kept =
                    key == "recorder" || key == "stamps" && STAMPS.contains(&&**text) || self.kept.has(text.as_bytes());
                self.name(text.as_bytes(), is_kept);
            }
            Value::Array(all) => all.iter().for_each(|one| self.value(key, one)),
            Value::Object(object) => self.object(object),
            _ => {}
        }
    }

    fn object(&mut self, object: &UserMetadata) {
        for (key, value) in object {
            // Writers add the clock and the format themselves.
            if !matches!(&**key, "clock" | "format") {
                self.value(key, value);
            }
            if !KEYS.contains(&&**key) {
                self.name(key.as_bytes(), false);
            }
        }
    }
}

impl EventSink for Words {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match event.kind {
            EventKind::ThreadName { name } => self.name(name, false),
            EventKind::Symbol { name, .. } => self.name(name, self.kept.has(name)),
            EventKind::Mark { name } | EventKind::PhaseBegin { name } | EventKind::PhaseEnd { name } => {
                self.name(name, self.kept.marks);
            }
            EventKind::Image { path, .. } | EventKind::Source { path } => self.path(path),
            EventKind::ModuleLoad { name, .. } => {
                let space = name.iter().position(|byte| *byte == b' ').map_or(0, |at| at + 1);
                let (id, path) = name.split_at_checked(space).unwrap_or_default();
                self.name(id, false);
                self.path(path);
            }
            _ => {}
        }
        self.name(event.attributes, false);
        Ok(())
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.name(text, false);
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.object(user_metadata);
        Ok(())
    }
}

/// Passes all runs of letters in the decompressed content of a trace to `give`. Returns the size of the content in
/// bytes.
fn all_bytes(path: &Path, give: &mut dyn FnMut(&[u8])) -> Result<u64> {
    let failed = |error: metatf::Error| Error::Trace(format!("{}: {error}", path.display()).into());
    let mut reader = Reader::read(path).map_err(failed)?;
    let mut bytes = 0;
    while let Some(part) = reader.next_part().map_err(failed)? {
        let content = reader.bytes(&part.content);
        bytes += content.len() as u64;
        runs(content).filter(|run| run.len() >= LONG_WORD).for_each(&mut *give);
    }
    Ok(bytes)
}

/// The figures of a trace.
struct Figures {
    reports: Vec<(&'static str, Value)>,
    /// The operations for a replay.
    replay: Option<BufReader<File>>,
}

impl Figures {
    fn of(open: &dyn Fn() -> Result<TraceReader>, threads: usize) -> Result<Self> {
        let mut tracker = HeapTracker::new(ReportBuilder::new()).with_sizes_only();
        open()?.give(&mut tracker)?;
        let (heap, report) = tracker.into_parts();
        let mut reports = vec![("report", json(&report.report(&heap))?), ("sites", json(&report.site_counts())?)];
        if heap.has_sizes_only() || heap.totals().events == 0 {
            return Ok(Self { reports, replay: None });
        }
        let simulations = PAPER.iter().map(|name| Ok(Simulation::new(*name, by_name(name)?)));
        let grid = Grid::new(simulations.collect::<hatf_lab::Result<_>>()?, threads)?;
        let mut tracker = HeapTracker::new((Held::new(), grid));
        let mut compiler = Compiler::new(Cut { repair: true, ..Cut::default() })?;
        open()?.give(&mut Tee(&mut tracker, &mut compiler))?;
        let (heap, (held, grid)) = tracker.into_parts();
        let held = held.report();
        let moment = moment(&heap, (held.tick, held.time));
        let operations = compiler.finish()?;
        reports.push(("fragmentation", json(&(held, moment))?));
        reports.push(("simulate", json(&grid.finish()?)?));
        reports.push(("replay", json(&operations.summary)?));
        let file = File::open(operations.path()).map_err(Error::temporary_file())?;
        Ok(Self { reports, replay: Some(BufReader::new(file)) })
    }

    fn compare(self, after: Self) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        for ((name, before), (_, after)) in self.reports.iter().zip(&after.reports) {
            let mut figure = Figure { name, numbers: 0, differs: None };
            compare(name.to_string(), before, after, &mut figure);
            figures.push(figure);
        }
        if self.reports.len() != after.reports.len() {
            figures.push(Figure {
                name: "analyses",
                numbers: 0,
                differs: Some("the traces have different numbers of reports".to_owned()),
            });
        }
        if let (Some(before), Some(after)) = (self.replay, after.replay) {
            figures.push(operations(before, after)?);
        }
        Ok(figures)
    }
}

/// Computes the page usage at the end of a trace.
fn moment(heap: &Heap, when: (u64, u64)) -> Moment {
    let number = &|site: u64| site.to_string();
    Moment::new(heap.objects.live().collect(), when, Settings::default(), Names { site: number, function: number })
}

fn json(report: &impl Serialize) -> Result<Value> {
    // Convert the report to JSON text first, because a JSON value cannot be built directly from sums that exceed 2^64.
    let text = serde_json::to_vec(report).map_err(|error| Error::Trace(error.into()))?;
    serde_json::from_slice(&text).map_err(|error| Error::Trace(error.into()))
}

/// Compares all numbers in two reports. Strings, addresses and kernel thread IDs are expected to differ.
fn compare(place: String, before: &Value, after: &Value, figure: &mut Figure) {
    let mut differs = |what: String| {
        figure.differs.get_or_insert(what);
    };
    match (before, after) {
        (Value::String(_), Value::String(_)) => {}
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                compare(format!("{place}[{index}]"), before, after, figure);
            }
        }
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in
                before.iter().filter(|(key, _)| !matches!(key.as_str(), "comments" | "address" | "task"))
            {
                compare(format!("{place}.{key}"), value, after.get(key).unwrap_or(&Value::Null), figure);
            }
        }
        _ if before == after => figure.numbers += 1,
        _ => differs(format!("{place} was {before} and is {after}")),
    }
}

/// Compares the operations of two replays byte by byte. The rest of a replay file is not compared, because it contains
/// names, and its figures are compared elsewhere.
fn operations(mut before: BufReader<File>, mut after: BufReader<File>) -> Result<Figure> {
    let failed = Error::temporary_file;
    let mut lengths = [0_u64; 2];
    for (file, length) in [&mut before, &mut after].into_iter().zip(&mut lengths) {
        use std::io::{Seek as _, SeekFrom};
        let end = file.seek(SeekFrom::End(-8)).map_err(failed())?;
        let mut summary = [0; 8];
        file.read_exact(&mut summary).map_err(failed())?;
        *length = end.saturating_sub(u64::from_le_bytes(summary));
        file.rewind().map_err(failed())?;
    }
    let mut figure = Figure { name: "calls of a replay", numbers: lengths[0] / 16, differs: None };
    if lengths[0] != lengths[1] {
        figure.differs = Some(format!("{} bytes of operations instead of {}", lengths[1], lengths[0]));
        return Ok(figure);
    }
    let (mut before, mut after) = (before.take(lengths[0]), after.take(lengths[1]));
    loop {
        let (here, there) = (before.fill_buf().map_err(failed())?, after.fill_buf().map_err(failed())?);
        let length = here.len().min(there.len());
        if length == 0 {
            return Ok(figure);
        }
        if here.get(..length) != there.get(..length) {
            figure.differs = Some("a call differs".to_owned());
            return Ok(figure);
        }
        before.consume(length);
        after.consume(length);
    }
}
