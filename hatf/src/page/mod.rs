//! A page about a heap that answers by itself: one HTML file, which needs no network and no program but a browser.
//!
//! It shows live bytes over time. Whatever range is chosen there sets all that is below: a picture of calls, and a table of functions.
//! Below these stands the report, as tables. The page of two traces is the same, of what one has more than the other.

mod collect;
mod functions;
mod grid;
mod overview;
mod payload;
mod tree;

use std::io::{self, Write};

use hatf_lab::sites::Measure;
use metatf_page::{Block, Page, html_blocks};
use serde::Serialize;

pub use collect::{Collected, Recorded, Summed};
pub use overview::{Sentence, of_changes, sentences};

use crate::calls::{Groups, Places};
use functions::Functions;
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

/// A trace of a page.
#[derive(Clone, Copy, Debug)]
pub struct Side<'p> {
    /// What was collected.
    pub recorded: &'p Recorded,
    /// The functions that stacks lead through.
    pub places: &'p Places<'p>,
    /// What each function allocated.
    pub groups: &'p Groups,
}

/// A page about a heap, or about what two have more or less than each other.
#[derive(Clone, Debug)]
pub struct HeapPage<'p> {
    /// The name of the trace, or of both.
    pub title: &'p str,
    /// The trace, or that before a change and that after it.
    pub sides: &'p [Side<'p>],
    /// What stands out.
    pub sentences: Vec<Sentence>,
    /// Whether functions are known, and those of two traces are matched.
    pub has_functions: bool,
    /// What stands below: the report's page, and those of other analyses.
    pub below: &'p Page,
    /// Threads that make it at once.
    pub threads: usize,
}

/// What the script reads beside numbers.
#[derive(Serialize)]
struct Words<'p> {
    sides: Vec<SideWords<'p>>,
    measures: &'p [Measure],
    /// Name, place in the source, and module of each function.
    functions: Vec<[String; 3]>,
    sentences: &'p [Sentence],
    /// Nodes are left that have one of this many shares of something.
    shares: u64,
    nodes: usize,
    all_nodes: usize,
    stacks: u64,
}

/// What it reads of a trace.
#[derive(Serialize)]
struct SideWords<'p> {
    #[serde(flatten)]
    words: &'p collect::Words,
    grids: Vec<&'p grid::About>,
}

impl HeapPage<'_> {
    /// Writes the page.
    ///
    /// # Errors
    /// The output's.
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
            shares: payload.shares,
            nodes: payload.tree.nodes.len(),
            all_nodes: whole.nodes.len(),
            stacks: sides.iter().map(|side| side.places.stacks().count() - 1).sum(),
        };
        let words = serde_json::to_string(&words)?;
        let mut below = Vec::new();
        // The page draws what is over time itself.
        let blocks = self.below.blocks.iter().filter(|block| !matches!(block, Block::Chart(_)));
        html_blocks(blocks.chain(&self.below.figures), &mut below)?;
        let below = String::from_utf8_lossy(&below);
        let [words, numbers] = payload.encode(&words);
        let parts = [
            ("{title}", metatf_page::markup(self.title)),
            ("{style}", STYLE.to_owned()),
            ("{title}", metatf_page::markup(self.title)),
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
