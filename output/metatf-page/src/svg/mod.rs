//! Pictures in SVG, each with a title and a description for screen readers.

mod chart;
mod flame;
mod intervals;
mod map;

use std::io::{self, Write};

pub(super) use crate::axis::float;
use crate::escape::markup;
use crate::{Block, Page};

/// Colors that are distinguishable with color blindness (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
/// Maximum number of letters in a title; longer titles are truncated.
const TITLE: usize = 200;

/// Draws the first picture of a page.
pub(crate) fn page(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    let is_picture = |block: &&Block| {
        matches!(block, Block::Chart(_) | Block::Flame(_) | Block::Intervals(_) | Block::AddressMap(_))
    };
    match page.blocks.iter().chain(&page.figures).find(is_picture) {
        Some(block) => picture(block, out),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "this report has no picture")),
    }
}

/// Draws a block if it is a picture.
pub(crate) fn picture(block: &Block, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Block::Chart(chart) => chart::draw(chart, out),
        Block::Flame(flame) => flame::draw(flame, out),
        Block::Intervals(intervals) => intervals::draw(intervals, out),
        Block::AddressMap(map) => map::draw(map, out),
        _ => Ok(()),
    }
}

/// Begins a picture. To be readable at a width of 600 pixels and on paper, letters are 14 of 860 units high, and black
/// on white.
fn begin(title: &str, about: &str, size: (f64, f64), out: &mut dyn Write) -> io::Result<()> {
    let title = cut(title, TITLE);
    let (title, about) = (markup(&title), markup(about));
    let (width, height) = size;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"14\">\n<title>{title}</title>\n<desc>{about}</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"12\" y=\"24\" font-size=\"17\">{title}</text>"
    )
}

/// Truncates text that is longer than `most` characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(2)).chain("..".chars()).collect()
}

fn colour(number: usize) -> &'static str {
    COLOURS.get(number % COLOURS.len()).copied().unwrap_or_default()
}

/// Returns the attribute that distinguishes a line from other lines of the same color. Lines in the first round of
/// colors are solid.
fn dash(number: usize) -> &'static str {
    match number / COLOURS.len() {
        0 => "",
        1 => r#" stroke-dasharray="6 3""#,
        _ => r#" stroke-dasharray="2 3""#,
    }
}

/// Returns the attributes of a dot, which is hollow if its line is dashed.
fn dot(number: usize) -> String {
    let colour = colour(number);
    match dash(number) {
        "" => format!(r#"fill="{colour}""#),
        dash => format!(r#"fill="white" stroke="{colour}" stroke-width="2"{dash}"#),
    }
}
