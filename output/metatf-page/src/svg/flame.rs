//! Flame graphs in the style of Brendan Gregg's: a box for each function, on top of its caller, with a width
//! proportional to its total.

use std::io::{self, Write};

use super::{begin, colour, cut, float};
use crate::escape::markup;
use crate::{Flame, Node, Value};

const WIDTH: f64 = 840.0;
const MARGIN: f64 = 10.0;
const TOP: f64 = 40.0;
const ROW: f64 = 21.0;
/// Boxes narrower than this are omitted.
const NARROW: f64 = 0.3;
/// The average width of a letter.
const LETTER: f64 = 7.6;

pub(super) fn draw(flame: &Flame, out: &mut dyn Write) -> io::Result<()> {
    let height = TOP + ROW * float(rows(&flame.root, WIDTH, flame.root.total));
    let about = format!("{} shared among call stacks; main is at the bottom", Value::of(flame.root.total, flame.unit));
    begin(&flame.title, &about, (WIDTH + 2.0 * MARGIN, height + MARGIN), out)?;
    Picture { flame, bottom: height, out }.node("all", &flame.root, MARGIN, WIDTH, 0)?;
    writeln!(out, "</svg>")
}

/// Returns the number of rows of boxes.
fn rows(node: &Node, width: f64, total: u64) -> u64 {
    let of = |child: &Node| width * float(child.total) / float(total.max(1));
    let wide = node.calls.values().filter(|child| of(child) >= NARROW);
    1 + wide.map(|child| rows(child, width, total)).max().unwrap_or(0)
}

struct Picture<'p> {
    flame: &'p Flame,
    bottom: f64,
    out: &'p mut dyn Write,
}

impl Picture<'_> {
    fn node(&mut self, name: &str, node: &Node, x: f64, width: f64, row: u64) -> io::Result<()> {
        let y = self.bottom - ROW * float(row + 1);
        let total = Value::of(node.total, self.flame.unit);
        let exact = total.exact().unwrap_or_else(|| total.to_string());
        let share = Value::Part(node.total, self.flame.root.total);
        // Derive the color from the name, so that a function has the same color everywhere.
        let hash = name.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        writeln!(
            self.out,
            r#"<g><title>{}: {exact}, {share}</title><rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{:.1}" fill="{}" fill-opacity="0.45" stroke="white" stroke-width="0.5"/>"#,
            markup(&cut(name, 200)),
            ROW - 1.0,
            colour(hash)
        )?;
        let fits = letters(width);
        if fits >= 3 {
            let (x, y) = (x + 3.0, y + ROW - 6.5);
            writeln!(self.out, r#"<text x="{x:.1}" y="{y:.1}" font-size="13">{}</text>"#, markup(&cut(name, fits)))?;
        }
        writeln!(self.out, "</g>")?;
        let mut at = x;
        for (name, child) in &node.calls {
            let width = width * float(child.total) / float(node.total.max(1));
            if width >= NARROW {
                self.node(name, child, at, width, row + 1)?;
            }
            at += width;
        }
        Ok(())
    }
}

/// Returns the number of letters that fit in a box.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a box is at most 840 wide")]
fn letters(width: f64) -> usize {
    (width / LETTER - 1.0).max(0.0) as usize
}
