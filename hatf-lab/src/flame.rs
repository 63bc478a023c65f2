//! Flame graphs: how a total is shared among call stacks. In the form of Brendan Gregg's: folded lines, and a picture.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::chart::{COLOURS, begin, escape, float};
use metatf_page::units::{count, percent};

const WIDTH: f64 = 1180.0;
const MARGIN: f64 = 10.0;
const TOP: f64 = 40.0;
const ROW: f64 = 17.0;
/// Boxes that are narrower are left out.
const NARROW: f64 = 0.3;
/// Average width of a letter.
const LETTER: f64 = 6.6;
/// Frames that are kept of a stack, from the outermost.
const DEPTH: usize = 256;

/// A function on top of those that called it.
#[derive(Clone, Debug, Default)]
struct Node {
    total: u64,
    calls: BTreeMap<String, Self>,
}

/// A flame graph.
#[derive(Clone, Debug, Default)]
pub struct Flame {
    root: Node,
    /// Weights by stack.
    folded: BTreeMap<Vec<String>, u64>,
}

impl Flame {
    /// Starts with nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a weight for a stack, outermost function first.
    pub fn add(&mut self, stack: impl IntoIterator<Item = String>, weight: u64) {
        if weight == 0 {
            return;
        }
        let stack: Vec<String> = stack.into_iter().take(DEPTH).collect();
        let mut node = &mut self.root;
        node.total = node.total.saturating_add(weight);
        for name in &stack {
            node = node.calls.entry(name.clone()).or_default();
            node.total = node.total.saturating_add(weight);
        }
        let total = self.folded.entry(stack).or_default();
        *total = total.saturating_add(weight);
    }

    /// Returns the sum of all weights.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.root.total
    }

    /// Prints a line for each stack: its functions, outermost first, with semicolons between them, and its weight.
    ///
    /// # Errors
    /// The output's.
    pub fn folded(&self, out: &mut dyn Write) -> io::Result<()> {
        for (stack, weight) in &self.folded {
            let names: Vec<_> = stack.iter().map(|name| name.replace([';', '\n'], ",")).collect();
            writeln!(out, "{} {weight}", names.join(";"))?;
        }
        Ok(())
    }

    /// Draws the stacks: a box for each function, as wide as its weight, on those that called it. `unit` is what is counted.
    ///
    /// # Errors
    /// The output's.
    pub fn svg(&self, title: &str, unit: &str, out: &mut dyn Write) -> io::Result<()> {
        let rows = rows(&self.root, WIDTH, self.root.total);
        let height = TOP + ROW * float(rows);
        begin(title, WIDTH + 2.0 * MARGIN, height + MARGIN, out)?;
        let mut picture = Picture { unit, total: self.root.total, bottom: height, out };
        picture.node("all", &self.root, MARGIN, WIDTH, 0)?;
        writeln!(out, "</svg>")
    }
}

/// Returns how many rows of boxes there are.
fn rows(node: &Node, width: f64, total: u64) -> u64 {
    let of = |child: &Node| width * float(child.total) / float(total.max(1));
    let wide = node.calls.values().filter(|child| of(child) >= NARROW);
    1 + wide.map(|child| rows(child, width, total)).max().unwrap_or(0)
}

struct Picture<'p> {
    unit: &'p str,
    total: u64,
    bottom: f64,
    out: &'p mut dyn Write,
}

impl Picture<'_> {
    fn node(&mut self, name: &str, node: &Node, x: f64, width: f64, row: u64) -> io::Result<()> {
        let y = self.bottom - ROW * float(row + 1);
        let shown = escape(name);
        let share = percent(node.total, self.total);
        // The same function has the same colour everywhere.
        let colour = name.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        let colour = COLOURS.get(colour % COLOURS.len()).copied().unwrap_or_default();
        writeln!(
            self.out,
            r#"<g><title>{shown}: {} {}, {share}</title><rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{:.1}" fill="{colour}" fill-opacity="0.45" stroke="white" stroke-width="0.5"/>"#,
            count(node.total),
            self.unit,
            ROW - 1.0
        )?;
        let letters = width / LETTER - 1.0;
        let fits = name.chars().enumerate().take_while(|(number, _)| float(*number as u64) < letters).count();
        if fits >= 3 {
            let all = name.chars().count() == fits;
            let text: String = name.chars().take(if all { fits } else { fits - 2 }).collect();
            let end = if all { "" } else { ".." };
            let (x, y) = (x + 3.0, y + ROW - 5.0);
            writeln!(self.out, r#"<text x="{x:.1}" y="{y:.1}" font-size="11">{}{end}</text>"#, escape(&text))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn weights_of_stacks() {
        let mut flame = Flame::new();
        flame.add(stack(&["main", "parse<a; b>"]), 30);
        flame.add(stack(&["main"]), 10);
        flame.add(stack(&["main", "parse<a; b>"]), 5);
        flame.add(stack(&["nothing"]), 0);
        flame.add(stack(&[]), 5);
        assert_eq!(flame.total(), 50);
        let mut out = Vec::new();
        flame.folded(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), " 5\nmain 10\nmain;parse<a, b> 35\n");
        let mut out = Vec::new();
        flame.svg("a < b", "bytes", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("<title>parse&lt;a; b&gt;: 35 bytes, 70.0%</title>"), "{text}");
        assert_eq!(text.matches("<rect").count(), 4);
    }

    /// As deep as a stack may be, and wider than there are numbers.
    #[test]
    fn extremes() {
        let mut flame = Flame::new();
        flame.add((0..100_000).map(|_| "f".to_owned()), u64::MAX);
        flame.add(stack(&["g"]), u64::MAX);
        assert_eq!(flame.total(), u64::MAX);
        let mut out = Vec::new();
        flame.svg("", "", &mut out).unwrap();
        Flame::new().svg("", "", &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().matches("</svg>").count(), 2);
    }
}
