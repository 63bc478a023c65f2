//! Figures 5 and 6 of the paper.

use metatf_page::units::count;
use metatf_page::{Chart, Intervals, Panel, Shape, Unit};

use super::outcome::Outcome;

/// Draws Figure 5, the intra-region fragmentation as a percentage of all blocks over allocations. Draws the maximum in
/// each interval.
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

/// Draws Figure 6, the minimum, mean and maximum fragmentation of regions in percent over block sizes. Excludes regions
/// without allocations.
#[must_use]
pub fn over_block_sizes(title: String, outcomes: &[Outcome]) -> Intervals {
    let mut strategies: Vec<&str> = Vec::new();
    let mut blocks: Vec<u64> = outcomes.iter().map(|outcome| outcome.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    for outcome in outcomes {
        if !strategies.contains(&strategy(outcome)) {
            strategies.push(strategy(outcome));
        }
    }
    let of = |block: u64, wanted: &str| {
        let of = outcomes.iter().find(|outcome| outcome.block == block && strategy(outcome) == wanted)?.used_regions;
        Some([of.min, of.average, of.max])
    };
    let intervals = blocks.iter().map(|block| strategies.iter().map(|strategy| of(*block, strategy)).collect());
    Intervals {
        title,
        unit: "%".into(),
        x_name: "bytes per block".into(),
        panels: vec![Panel { name: String::new(), intervals: intervals.collect() }],
        groups: blocks.into_iter().map(count).collect(),
        series: strategies.into_iter().map(str::to_owned).collect(),
        ..Intervals::default()
    }
}

/// Returns the name of the settings without the block size.
fn strategy(outcome: &Outcome) -> &str {
    outcome.name.split_once(' ').map_or("", |(_, strategy)| strategy)
}
