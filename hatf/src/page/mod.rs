//! A page about a heap that answers by itself: one HTML file, which needs no network and no program but a browser.
//!
//! It shows live bytes over time. Whatever range is chosen there sets all that is below: a picture of calls, and a table of functions.
//! Below these stands the report, as tables.

mod collect;
mod overview;
mod payload;
mod tree;

use std::collections::HashMap;
use std::io::{self, Write};

use hatf_lab::Heap;
use hatf_lab::sites::{Amount, Counts};
use metatf_page::{Block, Page, html_blocks};
use serde::Serialize;

pub use collect::Collected;
pub use overview::{Sentence, sentences};

use crate::analysis::Report;
use crate::calls::{Groups, Places, title};
use crate::short_name::short_name;
use payload::Payload;
use tree::Tree;

/// The document, with a word in braces where something is put in.
const DOCUMENT: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/page.css");
const DATA: &str = include_str!("assets/data.js");
/// What draws: one script, in files by what they draw.
const VIEW: [&str; 4] = [
    include_str!("assets/chart.js"),
    include_str!("assets/icicle.js"),
    include_str!("assets/tables.js"),
    include_str!("assets/view.js"),
];

/// Lines of a function that its name has.
const LINES: usize = 3;

/// A page about a heap.
#[derive(Clone, Copy, Debug)]
pub struct HeapPage<'h> {
    /// The name of the trace.
    pub title: &'h str,
    /// The heap at the end.
    pub heap: &'h Heap,
    /// What each stack allocated, by its number.
    pub counts: &'h [Counts],
    /// What else was collected.
    pub collected: &'h Collected,
    /// The functions that stacks lead through.
    pub places: &'h Places<'h>,
    /// What each function allocated.
    pub groups: &'h Groups,
    /// The report.
    pub report: &'h Report,
    /// What stands below: the report's page, and those of other analyses.
    pub below: &'h Page,
}

/// What the script reads beside numbers.
#[derive(Serialize)]
struct Words<'p> {
    title: &'p str,
    /// 0: the trace has no times, and moments are counted by events.
    duration: u64,
    peak: u64,
    peak_blocks: u64,
    peak_time: u64,
    sizes_only: bool,
    sampling: Option<u64>,
    /// Name, place in the source, and module of each function.
    functions: Vec<[String; 3]>,
    marks: Vec<(u64, u64, &'p str)>,
    series: Vec<Line>,
    /// The power of two above a size, that of ten above a lifetime, blocks and bytes.
    lifetimes: Vec<(u8, u8, u64, u64)>,
    /// The thread that allocated, the thread that freed, blocks and bytes.
    threads: Vec<(u64, u64, u64, u64)>,
    thread_names: HashMap<u64, &'p str>,
    sentences: Vec<Sentence>,
    /// Nodes are left that have one of this many parts of something.
    parts: u64,
    nodes: usize,
    all_nodes: usize,
    stacks: u64,
}

/// A quantity over time beside that of live bytes.
#[derive(Serialize)]
struct Line {
    name: String,
    points: Vec<(u64, u64)>,
}

impl HeapPage<'_> {
    /// Writes the page.
    ///
    /// # Errors
    /// The output's.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (places, groups) = (self.places, self.groups);
        let whole = Tree::new(places, self.counts);
        let payload = Payload::new(&whole, self.collected.moments.timeline(&self.heap.objects));
        let used = payload.tree.functions();
        let functions = used.iter().map(|group| function(places, groups, *group)).collect();
        let Report { duration, peak, sizes_only, estimate, .. } = self.report;
        // Of a sample, the page has what it stands for.
        let most = estimate.as_ref().map_or(Amount { bytes: peak.bytes, blocks: peak.blocks_then }, |all| all.peak);
        let words = Words {
            title: self.title,
            duration: *duration,
            peak: most.bytes,
            peak_blocks: most.blocks,
            peak_time: peak.time,
            sizes_only: *sizes_only,
            sampling: self.heap.sampling,
            functions,
            marks: self.collected.marks.iter().map(|mark| (mark.time, mark.tick, &*mark.name)).collect(),
            series: self.series(),
            lifetimes: self
                .collected
                .lifetimes
                .iter()
                .map(|((size, time), a)| (*size, *time, a.blocks, a.bytes))
                .collect(),
            threads: self.collected.by_threads().iter().map(|((by, to), a)| (*by, *to, a.blocks, a.bytes)).collect(),
            thread_names: self
                .report
                .threads
                .iter()
                .filter_map(|thread| Some((thread.thread, thread.name.as_deref()?)))
                .collect(),
            sentences: overview::sentences(self.report, places, groups, self.counts),
            parts: payload.parts,
            nodes: payload.tree.nodes.len(),
            all_nodes: whole.nodes.len(),
            stacks: self.heap.stacks.count() - 1,
        };
        let words = serde_json::to_string(&words)?;
        let mut below = Vec::new();
        // The page draws what is over time itself.
        let blocks = self.below.blocks.iter().filter(|block| !matches!(block, Block::Chart(_)));
        html_blocks(blocks.chain(&self.below.figures), &mut below)?;
        let below = String::from_utf8_lossy(&below);
        let parts = [
            ("{title}", metatf_page::markup(self.title)),
            ("{style}", STYLE.to_owned()),
            ("{title}", metatf_page::markup(self.title)),
            ("{below}", below.into_owned()),
            ("{payload}", payload.encode(&words)),
            ("{data}", DATA.to_owned()),
            ("{view}", VIEW.concat()),
        ];
        let mut rest = DOCUMENT;
        for (mark, text) in parts {
            let Some((before, after)) = rest.split_once(mark) else { continue };
            out.write_all(before.as_bytes())?;
            out.write_all(text.as_bytes())?;
            rest = after;
        }
        out.write_all(rest.as_bytes())
    }

    /// Returns what else is known over time.
    fn series(&self) -> Vec<Line> {
        let Some(pages) = self.report.pages.as_ref().filter(|pages| pages.samples > 0) else { return Vec::new() };
        let step = pages.timeline.step;
        let ends = std::iter::successors(Some(step), |end| Some(end.saturating_add(step)));
        let points = ends.zip(pages.timeline.points.iter().map(|point| point.most)).collect();
        vec![Line { name: "resident and private pages".to_owned(), points }]
    }
}

/// Names a function: what it is called, where it is, and its module.
fn function(places: &Places<'_>, groups: &Groups, group: u32) -> [String; 3] {
    let Some(key) = places.keys().get(group as usize) else { return Default::default() };
    let mut lines: Vec<(u64, u64)> = groups.groups.get(group as usize).map_or_else(Vec::new, |group| {
        group.lines.iter().map(|(line, counts)| (counts.allocated.bytes, *line)).collect()
    });
    lines.sort_unstable_by(|a, b| b.cmp(a));
    let lines: Vec<u64> = lines.into_iter().take(LINES).map(|(_, line)| line).collect();
    let whole = title(key, &lines);
    let short = short_name(&key.name);
    let place = whole.strip_prefix(&*short).and_then(|rest| rest.strip_prefix(" at ")).unwrap_or_default();
    let name = if key.name.is_empty() { whole.clone() } else { short.clone().into_owned() };
    [name, place.to_owned(), key.module_name().to_owned()]
}
