//! Interactive HTML report on a heap. The report is a single file, which requires a browser but no network.
//!
//! The report shows live bytes over time. The range selected there determines the contents of the call chart and the
//! function table. The content of the text report and of other analyses follows in collapsed sections. A report on two
//! traces has the same structure but shows differences.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_trace::{Event, EventSink};
//! use hatf_view::analysis::ReportBuilder;
//! use hatf_view::calls::{Folding, GroupBy, Groups, Places};
//! use hatf_view::page::{Collected, HeapPage, Section, Side};
//! use hatf_view::verdict::Facts;
//! use metatf_page::Report;
//!
//! let mut tracker = HeapTracker::new((ReportBuilder::new(), Collected::new()));
//! tracker.event(&Event::malloc(0x1000, 64))?;
//! let (heap, (builder, collected)) = tracker.into_parts();
//! let (report, counts) = (builder.report(&heap), builder.site_counts());
//! let recorded = collected.sum_up(&heap.objects)?.recorded("a trace".to_owned(), &heap, &report, counts.clone());
//!
//! let places = Places::new(&heap.stacks, &Folding::default(), GroupBy::Function);
//! let groups = Groups::new(&places, &counts);
//! let (places, groups) = (&places, &groups);
//! let sides = &[Side { recorded: &recorded, places, groups }];
//! let facts = Facts { report: &report, places, groups, counts: &counts, live: &builder.live_by_site() };
//! let sentences = facts.sentences();
//! assert_eq!(sentences[0].text, "At most 64 B were live.");
//! let (title, below) = ("a trace", &[Section::report(report.page())]);
//! let page = HeapPage { title, sides, sentences, has_functions: false, below, threads: 1 };
//! let mut html = Vec::new();
//! page.write(&mut html)?;
//! assert!(String::from_utf8(html)?.contains("<title>a trace</title>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod collect;
mod functions;
mod grid;
mod header;
mod payload;
mod tree;

use std::io::{self, Write};

use hatf_lab::sites::Measure;
use metatf_page::{Block, Page, html_blocks};
use serde::Serialize;

pub use collect::{Collected, Recorded, Summed};

use crate::calls::{Groups, Places};
use crate::verdict::Sentence;
use functions::Functions;
use payload::Payload;
use tree::Tree;

/// The document template. Each part to insert is marked by a word in braces.
const DOCUMENT: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/page.css");
const DATA: &str = include_str!("assets/data.js");
/// The drawing script, split into files by what they draw.
const VIEW: [&str; 4] = [
    include_str!("assets/chart.js"),
    include_str!("assets/icicle.js"),
    include_str!("assets/tables.js"),
    include_str!("assets/view.js"),
];

/// A trace in a report.
#[derive(Clone, Copy, Debug)]
pub struct Side<'p> {
    /// The collected data.
    pub recorded: &'p Recorded,
    /// The functions in the stacks.
    pub places: &'p Places<'p>,
    /// Allocations of each function.
    pub groups: &'p Groups,
}

/// A report on a heap, or on the differences between two heaps. The [module documentation](self) contains an example.
#[derive(Clone, Debug)]
pub struct HeapPage<'p> {
    /// Name of the trace or of both traces.
    pub title: &'p str,
    /// The trace, or the traces before and after a change.
    pub sides: &'p [Side<'p>],
    /// Sentences about the most notable facts.
    pub sentences: Vec<Sentence>,
    /// Whether functions are known and, in a report on two traces, matched.
    pub has_functions: bool,
    /// The content at the bottom, which is the text report and other analyses.
    pub below: &'p [Section],
    /// Number of threads used to build the report.
    pub threads: usize,
}

/// A collapsed section at the bottom of a report.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name of the analysis, or `report`.
    pub name: &'static str,
    /// Heading of the section, which is visible while the section is collapsed.
    pub title: &'static str,
    /// Content of the section.
    pub page: Page,
}

impl Section {
    /// Creates the section for the text report. The [module documentation](self) contains an example.
    #[must_use]
    pub fn report(page: Page) -> Self {
        Self { name: "report", title: "The report as text", page }
    }

    /// Writes the section. Charts over time are drawn by the script, so they are omitted here, as are headings without
    /// content.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let blocks = self.page.blocks.iter().chain(&self.page.figures);
        let blocks: Vec<_> = blocks.filter(|block| !matches!(block, Block::Chart(_))).collect();
        let is_heading = |block: &Block| matches!(block, Block::Heading(_));
        let next = blocks.iter().skip(1).map(Some).chain([None]);
        let shown = blocks.iter().zip(next);
        let shown = shown.filter(|(block, next)| !is_heading(block) || next.is_some_and(|next| !is_heading(next)));
        let (name, title) = (self.name, metatf_page::markup(self.title));
        writeln!(out, "<details id=\"with-{name}\"><summary>{title}</summary>")?;
        html_blocks(shown.map(|(block, _)| *block), out)?;
        writeln!(out, "</details>")
    }
}

/// Returns the name and the question of each analysis.
#[cfg(feature = "native")]
fn analyses() -> Vec<[&'static str; 2]> {
    crate::analyses::ANALYSES.iter().map(|analysis| [analysis.name, analysis.question]).collect()
}

/// Returns no analyses, because a browser cannot run the commands.
#[cfg(not(feature = "native"))]
fn analyses() -> Vec<[&'static str; 2]> {
    Vec::new()
}

/// Non-numeric data for the script.
#[derive(Serialize)]
struct Words<'p> {
    sides: Vec<SideWords<'p>>,
    measures: &'p [Measure],
    /// Name, source location and module of each function.
    functions: Vec<[String; 3]>,
    sentences: &'p [Sentence],
    /// Name and question of each analysis.
    analyses: Vec<[&'static str; 2]>,
    /// Names of the sections at the bottom.
    sections: Vec<&'static str>,
    /// Name of the stacks that are not in the tree.
    others: &'static str,
    /// Denominator of the share for which nodes are kept.
    shares: u64,
    nodes: usize,
    all_nodes: usize,
    stacks: u64,
}

/// Non-numeric data of a trace for the script.
#[derive(Serialize)]
struct SideWords<'p> {
    #[serde(flatten)]
    words: &'p collect::Words,
    grids: Vec<&'p grid::About>,
}

impl HeapPage<'_> {
    /// Returns the paragraph about the functions folded as wrappers, if there are any. In a report on two traces, the
    /// same functions are folded in both.
    fn folded(&self) -> String {
        let folded = self.sides.last().filter(|_| self.has_functions).and_then(|side| side.places.wrappers_sentence());
        folded.map_or_else(String::new, |note| {
            format!("<p class=\"hint\">{}</p>\n", metatf_page::markup(&note.to_string()))
        })
    }

    /// Returns the heading, which is the command if there is one trace whose command is known.
    fn heading(&self) -> &str {
        let command = self
            .sides
            .first()
            .filter(|_| self.sides.len() == 1)
            .and_then(|side| side.recorded.header.command.as_deref());
        command.unwrap_or(self.title)
    }

    /// Writes the report.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let sides = self.sides;
        let functions = if self.has_functions { Functions::new(sides) } else { Functions::default() };
        let whole = Tree::new(sides, &functions);
        let known = |measure: &Measure| sides.iter().all(|side| side.recorded.measures.contains(measure));
        let first = sides.first().map_or_else(Vec::new, |side| side.recorded.measures.clone());
        let measures: Vec<Measure> = first.into_iter().filter(known).collect();
        let payload = Payload::new(&whole, sides, &measures, self.threads)?;
        let words = Words {
            sides: sides
                .iter()
                .map(|Side { recorded, .. }| SideWords {
                    words: &recorded.words,
                    grids: recorded.grids.iter().map(|grid| &grid.about).collect(),
                })
                .collect(),
            measures: &measures,
            functions: payload.tree.functions().iter().map(|number| functions.name(sides, *number)).collect(),
            sentences: &self.sentences,
            analyses: analyses(),
            sections: self.below.iter().map(|section| section.name).collect(),
            others: match (whole.has_more_roots(&payload.tree), whole.has_unknown_stacks) {
                (true, true) => "smaller and unknown stacks",
                (true, false) => "smaller stacks",
                (false, _) => "unknown stack",
            },
            shares: payload.shares,
            nodes: payload.tree.nodes.len(),
            all_nodes: whole.nodes.len(),
            stacks: sides.iter().map(|side| side.places.stacks().count() - 1).sum(),
        };
        let words = serde_json::to_string(&words)?;
        let mut below = Vec::new();
        self.below.iter().try_for_each(|section| section.write(&mut below))?;
        let below = String::from_utf8_lossy(&below);
        let [words, numbers] = payload.encode(&words);
        let parts = [
            ("{title}", metatf_page::markup(self.title)),
            ("{style}", STYLE.to_owned()),
            ("{heading}", metatf_page::markup(self.heading())),
            ("{header}", header::html(sides)?),
            ("{folded}", self.folded()),
            ("{below}", below.into_owned()),
            ("{words}", words),
            ("{numbers}", numbers),
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
}
