//! The document's Figures 5 and 6.

use std::io::{self, Write};

use super::outcome::Outcome;
use crate::chart::{COLOURS, begin, escape, float};
use metatf_page::units::count;
use metatf_page::{Chart, Shape, Unit};

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 90.0;
const TOP: f64 = 40.0;

/// Makes Figure 5: intra-region fragmentation, in percent of all blocks, over allocations; the most in each stretch.
#[must_use]
pub fn over_time(title: String, outcomes: &[Outcome]) -> Chart {
    let mut chart = Chart::new(title, Unit::Count, Unit::Percent);
    chart.x_name = "allocations".into();
    for curves in outcomes.iter().filter_map(|outcome| outcome.curve.as_ref()) {
        for line in &curves.lines {
            chart.stretches(line.name.clone(), Shape::Steps, curves.step, line.most.iter().copied());
        }
    }
    chart
}

/// Draws Figure 6: the least, mean and most of the regions' fragmentation, in percent, over block sizes. Regions without
/// allocations are left out.
///
/// # Errors
/// The output's.
pub fn over_block_sizes(title: &str, outcomes: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
    let mut strategies: Vec<&str> = Vec::new();
    let mut blocks: Vec<u64> = outcomes.iter().map(|outcome| outcome.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    for outcome in outcomes {
        if !strategies.contains(&strategy(outcome)) {
            strategies.push(strategy(outcome));
        }
    }
    let most = outcomes.iter().map(|outcome| outcome.used_regions.max).fold(1.0, f64::max);
    let bottom = TOP + HEIGHT;
    begin(title, LEFT + WIDTH + 30.0, bottom + 44.0 + 18.0 * float(strategies.len() as u64), out)?;
    let y = |percent: f64| bottom - HEIGHT * percent / most;
    for quarter in 0..=4_u64 {
        let value = most * float(quarter) / 4.0;
        writeln!(
            out,
            r##"<path d="M{LEFT} {0:.1}h{WIDTH}" stroke="#ddd"/><text x="{1}" y="{2:.1}" text-anchor="end">{value:.1} %</text>"##,
            y(value),
            LEFT - 8.0,
            y(value) + 4.0
        )?;
    }
    let group = WIDTH / float(blocks.len().max(1) as u64);
    for (n, block) in blocks.iter().enumerate() {
        let left = LEFT + group * float(n as u64);
        let middle = left + group / 2.0;
        writeln!(out, r#"<text x="{middle}" y="{}" text-anchor="middle">{}</text>"#, bottom + 20.0, count(*block))?;
        for outcome in outcomes.iter().filter(|outcome| outcome.block == *block) {
            let place = strategies.iter().position(|known| *known == strategy(outcome)).unwrap_or(0);
            let x = left + group * float(place as u64 + 1) / float(strategies.len() as u64 + 1);
            let (of, colour) = (outcome.used_regions, colour(place));
            writeln!(
                out,
                r#"<path d="M{x:.1} {:.1}V{:.1}" stroke="{colour}" stroke-width="2"/><circle cx="{x:.1}" cy="{:.1}" r="4" fill="{colour}"/>"#,
                y(of.min),
                y(of.max),
                y(of.average)
            )?;
        }
    }
    for (n, strategy) in strategies.iter().enumerate() {
        let y = bottom + 44.0 + 18.0 * float(n as u64);
        writeln!(
            out,
            r#"<path d="M{LEFT} {y}h24" stroke="{}" stroke-width="3"/><text x="{}" y="{}">{}</text>"#,
            colour(n),
            LEFT + 32.0,
            y + 4.0,
            escape(strategy)
        )?;
    }
    writeln!(out, "</svg>")
}

/// The name of the settings, without the block size.
fn strategy(outcome: &Outcome) -> &str {
    outcome.name.split_once(' ').map_or("", |(_, strategy)| strategy)
}

fn colour(n: usize) -> &'static str {
    COLOURS.get(n % COLOURS.len()).copied().unwrap_or_default()
}
