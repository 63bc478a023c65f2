//! Profiles in the format of valgrind's massif. They consist of two snapshots; the peak snapshot contains a tree of
//! stacks.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write as _};

use hatf_lab::profile::HeapInfo;
use serde_json::Value;

use super::{HeapProfile, ProfileForm, valgrind_frame};
use hatf_trace::{Error, Result};

pub(super) static FORM: ProfileForm = ProfileForm {
    name: "massif",
    about: "valgrind's massif, for ms_print: live memory at the peak, as a tree",
    ending: "massif",
    sniff: |_| false,
    open: None,
    create: Some(|profile, _, _, output| {
        let mut out = BufWriter::new(output);
        write(profile, &mut out)?;
        out.flush()?;
        Ok(profile.infos.len())
    }),
};

/// Nodes with less than a hundredth of the total are combined, as in massif.
const THRESHOLD: u64 = 100;
/// Maximum number of frames per stack, counted from the innermost frame. This is massif's own maximum, and it also
/// bounds the recursion here.
const DEPTH: usize = 200;

/// A frame with its callers.
#[derive(Default)]
struct Node {
    bytes: u64,
    callers: BTreeMap<String, Self>,
}

fn write(profile: &HeapProfile, out: &mut dyn std::io::Write) -> Result<()> {
    let mut root = Node::default();
    let mut ends = 0_u64;
    let (mut last, mut known) = (0, false);
    for info in &profile.infos {
        let HeapInfo { context, live, lifetimes, .. } = info;
        let Some(live) = live else { continue };
        known = true;
        ends = ends.saturating_add(live.end.bytes);
        last = last.max(lifetimes.map_or(0, |times| times.dealloc_timestamp));
        if live.peak.bytes == 0 {
            continue;
        }
        let mut node = &mut root;
        node.bytes = node.bytes.saturating_add(live.peak.bytes);
        for frame in valgrind_frame::frames(profile, *context).into_iter().take(DEPTH) {
            node = node.callers.entry(frame).or_default();
            node.bytes = node.bytes.saturating_add(live.peak.bytes);
        }
    }
    if !known {
        return Err(Error::Trace("the profile does not record live memory: create it again from its trace".into()));
    }
    let command = profile.about.get("program").and_then(Value::as_str).unwrap_or("a program");
    writeln!(out, "desc: written by hatf; the time of the peak is unknown\ncmd: {}", command.replace('\n', " "))?;
    writeln!(out, "time_unit: ms")?;
    let tick = profile.tick;
    let time = u64::try_from(u128::from(last) * u128::from(tick) / 1_000_000).unwrap_or(u64::MAX);
    for (number, (time, bytes)) in [(0, 0), (time, root.bytes), (time, ends)].into_iter().enumerate() {
        let tree = if number == 1 { "peak" } else { "empty" };
        writeln!(out, "#-----------\nsnapshot={number}\n#-----------\ntime={time}\nmem_heap_B={bytes}")?;
        writeln!(out, "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree={tree}")?;
        if number == 1 {
            let name = "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.";
            node(&root, name, 0, root.bytes / THRESHOLD, out)?;
        }
    }
    Ok(())
}

/// Writes a node and its descendants, largest first.
fn node(of: &Node, name: &str, depth: usize, least: u64, out: &mut dyn std::io::Write) -> Result<()> {
    let (mut large, small): (Vec<_>, Vec<_>) = of.callers.iter().partition(|(_, node)| node.bytes >= least);
    large.sort_by_key(|(_, node)| std::cmp::Reverse(node.bytes));
    let children = large.len() + usize::from(!small.is_empty());
    writeln!(out, "{:depth$}n{children}: {} {name}", "", of.bytes)?;
    for (name, below) in large {
        node(below, name, depth + 1, least, out)?;
    }
    if !small.is_empty() {
        let bytes = small.iter().fold(0_u64, |sum, (_, node)| sum.saturating_add(node.bytes));
        let (depth, places) = (depth + 1, if small.len() == 1 { "place" } else { "places" });
        let below = "below massif's threshold (1.00%)";
        let count = small.len();
        writeln!(out, "{:depth$}n0: {bytes} in {count} {places}, all {below}", "")?;
    }
    Ok(())
}
