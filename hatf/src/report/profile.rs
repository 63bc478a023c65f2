//! Heap profiles, for people and programs.

use std::cmp::Reverse;
use std::io::{self, Write};

use hatf_lab::profile::{Advice, Column, HeapInfo, Reads, Thresholds};
use metatf_page::units::{bytes, count};
use serde_json::{Map, Value, json};

use super::sites::{frame_reports, stack_lines};
use crate::profile::{HeapProfile, ProfileContext};

/// How a table of contexts is printed.
#[derive(Clone, Debug)]
pub struct ProfileTable {
    /// What it is sorted by.
    pub by: Column,
    /// Puts the least first.
    pub reverse: bool,
    /// Its columns; none: some that the profile knows.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: usize,
    /// Lines of a stack.
    pub depth: usize,
}

/// The columns of a table, where the profile knows them.
const COLUMNS: [&str; 9] = [
    "alloc_count",
    "total_size",
    "average_size",
    "average_lifetime",
    "max_lifetime",
    "num_lifetime_overlaps",
    "total_access_count",
    "average_lifetime_access_density",
    "num_migrated_cpu",
];

impl ProfileTable {
    fn columns(&self, infos: &[HeapInfo]) -> Vec<Column> {
        if !self.columns.is_empty() {
            return self.columns.clone();
        }
        let known = |column: &Column| infos.iter().any(|info| column.get(info).is_some());
        let mut columns: Vec<Column> = COLUMNS.iter().filter_map(|name| name.parse().ok()).filter(known).collect();
        if !columns.contains(&self.by) {
            columns.insert(0, self.by);
        }
        columns
    }

    /// Sorts heap info blocks: what is not known comes last.
    fn sorted<'i>(&self, infos: &'i [HeapInfo]) -> Vec<&'i HeapInfo> {
        let mut sorted: Vec<&HeapInfo> = infos.iter().collect();
        match self.reverse {
            true => sorted.sort_by_key(|info| self.by.get(info).map_or((true, 0), |value| (false, value))),
            false => sorted.sort_by_key(|info| Reverse(self.by.get(info))),
        }
        sorted
    }
}

/// Prints a merged profile: its totals, and its contexts as a table.
///
/// # Errors
/// The output's.
pub fn profile_text(profile: &HeapProfile, table: &ProfileTable, out: &mut dyn Write) -> io::Result<()> {
    let infos = &profile.infos;
    let sum = |get: fn(&HeapInfo) -> u64| infos.iter().map(get).fold(0, u64::saturating_add);
    writeln!(
        out,
        "  {} blocks of {} contexts, {}; a tick is {} ns",
        count(sum(|info| info.alloc_count)),
        count(infos.len() as u64),
        bytes(sum(|info| info.size.total)),
        count(profile.tick)
    )?;
    let present = [
        ("times", infos.iter().any(|info| info.lifetimes.is_some())),
        ("accesses", infos.iter().any(|info| info.access_count.is_some())),
        ("utilization", infos.iter().any(|info| info.percent_utilized.is_some())),
        ("processors", infos.iter().any(|info| info.cpus.is_some())),
    ];
    let absent: Vec<_> = present.iter().filter(|(_, is)| !is).map(|(name, _)| *name).collect();
    if !absent.is_empty() {
        writeln!(out, "  not known: {}", absent.join(", "))?;
    }

    if profile.about.contains_key("sampling") {
        writeln!(out, "  a sample: numbers are of the sample's blocks alone")?;
    }

    let columns = table.columns(infos);
    let width = |column: &Column| column.name().len().max(12);
    write!(out, "\nCONTEXTS by {}\n ", table.by.name())?;
    columns.iter().try_for_each(|column| write!(out, " {:>1$}", column.name(), width(column)))?;
    writeln!(out)?;
    let sorted = table.sorted(infos);
    let (first, rest) = sorted.split_at(table.rows.min(sorted.len()));
    for info in first {
        let mut start = " ".to_owned();
        for column in &columns {
            let value = column.get(info).map_or_else(|| "-".to_owned(), count);
            start.push_str(&format!(" {value:>0$}", width(column)));
        }
        start.push_str("  ");
        context(&start, profile, info.context, table.depth, out)?;
    }
    if !rest.is_empty() {
        writeln!(out, "  and {} other contexts", count(rest.len() as u64))?;
    }
    Ok(())
}

/// Prints a context behind `start`.
fn context(start: &str, profile: &HeapProfile, number: u64, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    match profile.contexts.get(&number) {
        Some(ProfileContext::Stack(frames)) if !frames.is_empty() => {
            stack_lines(start, profile.stack(number), depth, out)
        }
        _ => writeln!(out, "{start}{}", profile.name(number, depth)),
    }
}

/// Prints hot and cold contexts of a merged profile, those with most bytes first, and how many are neither.
///
/// # Errors
/// The output's.
pub fn advice_text(
    profile: &HeapProfile,
    thresholds: &Thresholds,
    table: &ProfileTable,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Thresholds { cold_density, cold_lifetime, hot_density } = thresholds;
    let advised: Vec<_> = profile.infos.iter().map(|info| (thresholds.advise(info, profile.tick), info)).collect();
    let titles = [
        (Advice::Hot, format!("HOT (more than {hot_density} accesses to a byte in a second of lifetime)")),
        (
            Advice::Cold,
            format!(
                "COLD (fewer than {cold_density} accesses to a byte in a second, {cold_lifetime} s of lifetime or more)"
            ),
        ),
        (Advice::LongLived, format!("LONG-LIVED ({cold_lifetime} s of lifetime or more; accesses are not known)")),
    ];
    for (advice, title) in titles {
        let mut of: Vec<&HeapInfo> = advised.iter().filter(|(is, _)| *is == advice).map(|(_, info)| *info).collect();
        of.sort_by_key(|info| Reverse(info.size.total));
        writeln!(out, "\n{title}: {} of {} contexts", count(of.len() as u64), count(advised.len() as u64))?;
        let (first, rest) = of.split_at(table.rows.min(of.len()));
        for info in first {
            let start = format!("  {:>14} bytes in {:>12} blocks  ", count(info.size.total), count(info.alloc_count));
            context(&start, profile, info.context, table.depth, out)?;
        }
        if !rest.is_empty() {
            writeln!(out, "  and {} other contexts", count(rest.len() as u64))?;
        }
    }
    let number = |advice| count(advised.iter().filter(|(is, _)| *is == advice).count() as u64);
    writeln!(
        out,
        "\nNEITHER: {}. Accesses or lifetimes are not known: {}",
        number(Advice::NotCold),
        number(Advice::Unknown)
    )
}

/// Prints contexts of a merged profile whose blocks are not read, those with most bytes first, and how many are not known.
///
/// # Errors
/// The output's.
pub fn unread_text(profile: &HeapProfile, table: &ProfileTable, out: &mut dyn Write) -> io::Result<()> {
    let titles = [
        (Reads::NeverAccessed, "NEVER ACCESSED"),
        (Reads::OnlyWritten, "WRITTEN AND NEVER READ"),
        (Reads::SomeUnread, "SOME BLOCKS NEVER READ"),
    ];
    let all = count(profile.infos.len() as u64);
    for (reads, title) in titles {
        let mut of: Vec<&HeapInfo> = profile.infos.iter().filter(|info| Reads::of(info) == reads).collect();
        of.sort_by_key(|info| Reverse(info.size.total));
        writeln!(out, "\n{title}: {} of {all} contexts", count(of.len() as u64))?;
        let (first, rest) = of.split_at(table.rows.min(of.len()));
        for info in first {
            let unread = info.loads.map_or(0, |loads| loads.unread_count);
            let (blocks, bytes) = (count(info.alloc_count), count(info.size.total));
            let start = format!("  {bytes:>14} bytes in {blocks:>12} blocks, {:>12} never read  ", count(unread));
            context(&start, profile, info.context, table.depth, out)?;
        }
        if !rest.is_empty() {
            writeln!(out, "  and {} other contexts", count(rest.len() as u64))?;
        }
    }
    let number = |reads| count(profile.infos.iter().filter(|info| Reads::of(info) == reads).count() as u64);
    writeln!(out, "\nREAD: {}. Not known: {}", number(Reads::Read), number(Reads::Unknown))
}

/// Makes what is printed as JSON. What a profile does not know is not there.
#[must_use]
pub fn profile_json(profile: &HeapProfile, thresholds: &Thresholds) -> Value {
    let contexts: Vec<Value> = profile.infos.iter().map(|info| info_json(profile, info, thresholds)).collect();
    let module = |module: &crate::stacks::Module| json!({"path": module.path, "build_id": module.build_id, "start": module.start, "end": module.end, "bias": module.bias});
    json!({
        "tick_ns": profile.tick,
        "trace": Value::Object(profile.about.clone()),
        "thresholds": thresholds,
        "modules": profile.modules.iter().map(module).collect::<Vec<_>>(),
        "contexts": contexts,
    })
}

fn info_json(profile: &HeapProfile, info: &HeapInfo, thresholds: &Thresholds) -> Value {
    let mut object = Map::new();
    for column in Column::all() {
        if let Some(value) = column.get(info) {
            object.insert(column.name().to_owned(), value.into());
        }
    }
    if let Some(histogram) = &info.access_histogram {
        object.insert("access_histogram".to_owned(), histogram.clone().into());
    }
    object.insert("reads".to_owned(), json!(Reads::of(info)));
    object.insert("advice".to_owned(), json!(thresholds.advise(info, profile.tick)));
    match profile.contexts.get(&info.context) {
        Some(ProfileContext::Size { exponent, thread }) => {
            object.insert("size_class_exponent".to_owned(), (*exponent).into());
            object.insert("thread".to_owned(), (*thread).into());
        }
        _ => {
            object.insert("stack".to_owned(), json!(frame_reports(profile.stack(info.context))));
        }
    }
    Value::Object(object)
}
