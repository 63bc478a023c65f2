//! Reports on heap profiles.

use std::cmp::Reverse;

use hatf_lab::profile::{Advice, Column, HeapInfo, Reads, Thresholds};
use metatf_page::{Note, Page, Report, Table, Value};
use serde::{Serialize, Serializer};
use serde_json::{Map, json};

use super::sites::{frame_reports, stack};
use crate::profile::{HeapProfile, ProfileContext};

/// Options of a table of contexts.
#[derive(Clone, Debug)]
pub struct ProfileTable {
    /// Column to sort by.
    pub by: Column,
    /// Whether to sort in ascending order.
    pub reverse: bool,
    /// Columns to show. If empty, the default columns that the profile contains.
    pub columns: Vec<Column>,
    /// Maximum number of rows.
    pub rows: usize,
    /// Maximum number of lines per stack.
    pub depth: usize,
}

/// Default columns. Those that the profile does not contain are omitted.
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

    /// Sorts heap info blocks. Unknown values come last.
    fn sorted<'i>(&self, infos: &'i [HeapInfo]) -> Vec<&'i HeapInfo> {
        let mut sorted: Vec<&HeapInfo> = infos.iter().collect();
        match self.reverse {
            true => sorted.sort_by_key(|info| self.by.get(info).map_or((true, 0), |value| (false, value))),
            false => sorted.sort_by_key(|info| Reverse(self.by.get(info))),
        }
        sorted
    }
}

/// Selection of contexts to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// All contexts, in one table.
    All,
    /// Hot and cold contexts.
    Advice,
    /// Contexts whose blocks are not read.
    Unread,
}

/// A merged profile.
///
/// # Examples
///
/// ```
/// use hatf_lab::profile::{Column, HeapInfo, Thresholds};
/// use hatf_lab::sites::Amount;
/// use hatf_view::profile::{HeapProfile, ProfileContext};
/// use hatf_view::report::{ProfileReport, ProfileTable, Shows};
/// use metatf_page::{Form, Report, render};
///
/// let infos = vec![HeapInfo::of_sums(1, Amount { blocks: 2, bytes: 128 }, None)];
/// let contexts = [(1, ProfileContext::Size { exponent: 6, thread: 1 })].into();
/// let profile = &HeapProfile { contexts, infos, ..HeapProfile::default() };
/// let table = ProfileTable { by: Column::default(), reverse: false, columns: Vec::new(), rows: 10, depth: 8 };
/// let (title, thresholds) = ("a profile".to_owned(), Thresholds::default());
/// let report = ProfileReport { title, entries: 1, profile, thresholds, shows: Shows::All, table };
///
/// let mut text = Vec::new();
/// render(&report.page(), Form::text(None), &mut text)?;
/// assert!(String::from_utf8(text)?.contains("2 blocks of 1 contexts, 128 B"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ProfileReport<'p> {
    /// Name of the profile.
    pub title: String,
    /// Number of heap info blocks before merging.
    pub entries: usize,
    /// The profile.
    pub profile: &'p HeapProfile,
    /// Thresholds for hot and cold contexts.
    pub thresholds: Thresholds,
    /// Selection of contexts to show. JSON contains all contexts.
    pub shows: Shows,
    /// Options of the table.
    pub table: ProfileTable,
}

impl Serialize for ProfileReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        profile_json(self.profile, &self.thresholds).serialize(serializer)
    }
}

impl Report for ProfileReport<'_> {
    fn page(&self) -> Page {
        let mut page = Page::new(self.title.clone());
        self.describe(&mut page);
        page
    }
}

impl ProfileReport<'_> {
    /// Adds the selected contexts.
    pub fn describe(&self, page: &mut Page) {
        if self.entries > self.profile.infos.len() {
            page.push(Note::new("merged from {} heap info blocks").with([Value::Count(self.entries as u64)]));
        }
        match self.shows {
            Shows::All => self.all(page),
            Shows::Advice => self.advice(page),
            Shows::Unread => self.unread(page),
        }
    }

    /// Adds the totals and a table of the contexts.
    fn all(&self, page: &mut Page) {
        let (profile, infos) = (self.profile, &self.profile.infos);
        let sum = |get: fn(&HeapInfo) -> u64| infos.iter().map(get).fold(0, u64::saturating_add);
        page.push(Note::new("{} blocks of {} contexts, {}; a tick is {} ns").with([
            Value::Count(sum(|info| info.alloc_count)),
            Value::Count(infos.len() as u64),
            Value::Bytes(sum(|info| info.size.total)),
            Value::Count(profile.tick),
        ]));
        let present = [
            ("times", infos.iter().any(|info| info.lifetimes.is_some())),
            ("accesses", infos.iter().any(|info| info.access_count.is_some())),
            ("utilization", infos.iter().any(|info| info.percent_utilized.is_some())),
            ("CPUs", infos.iter().any(|info| info.cpus.is_some())),
        ];
        let absent: Vec<_> = present.iter().filter(|(_, is)| !is).map(|(name, _)| *name).collect();
        if !absent.is_empty() {
            page.note(format!("missing from the profile: {}", absent.join(", ")));
        }
        if profile.about.contains_key("sampling") {
            page.note("sampled profile; all figures cover the sampled blocks only");
        }
        page.heading(format!("CONTEXTS by {}", self.table.by.name()));
        let columns = self.table.columns(infos);
        let names = columns.iter().map(|column| metatf_page::Column::new(column.name()));
        let mut table = Table::new(names.chain([metatf_page::Column::new("")]));
        let cell = |column: &Column, info: &HeapInfo| column.get(info).map_or(Value::Unknown, Value::Count);
        self.rows(&self.table.sorted(infos), &mut table, |info| {
            columns.iter().map(|column| cell(column, info)).collect()
        });
        page.push(table);
    }

    /// Adds rows for the first contexts to a table. Each row consists of the given cells and the context.
    fn rows(&self, infos: &[&HeapInfo], table: &mut Table, cells: impl Fn(&HeapInfo) -> Vec<Value>) {
        let (first, rest) = infos.split_at(self.table.rows.min(infos.len()));
        for info in first {
            table.row(cells(info).into_iter().chain([self.context(info.context)]));
        }
        if !rest.is_empty() {
            table.rest(Note::new("and {} other contexts").with([Value::Count(rest.len() as u64)]));
        }
    }

    fn context(&self, number: u64) -> Value {
        match self.profile.contexts.get(&number) {
            Some(ProfileContext::Stack(frames)) if !frames.is_empty() => {
                stack(self.profile.stack(number), self.table.depth)
            }
            _ => Value::text(self.profile.name(number, self.table.depth)),
        }
    }

    /// Adds contexts of one kind, sorted by bytes in descending order.
    fn kind(
        &self,
        title: String,
        mut infos: Vec<&HeapInfo>,
        columns: &[&'static str],
        page: &mut Page,
        cells: impl Fn(&HeapInfo) -> Vec<Value>,
    ) {
        infos.sort_by_key(|info| Reverse(info.size.total));
        let numbers = [infos.len(), self.profile.infos.len()].map(|number| Value::Count(number as u64));
        page.heading(Note::new("{}: {} of {} contexts").with([Value::text(title)]).with(numbers));
        if infos.is_empty() {
            return;
        }
        let columns = columns.iter().copied().chain([""]).map(metatf_page::Column::new);
        let mut table = Table::new(columns);
        self.rows(&infos, &mut table, cells);
        page.push(table);
    }

    /// Adds hot and cold contexts, and the number of other contexts.
    fn advice(&self, page: &mut Page) {
        let Thresholds { cold_density, cold_lifetime, hot_density } = &self.thresholds;
        let of = |info: &HeapInfo| self.thresholds.advise(info, self.profile.tick);
        let cold = format!(
            "COLD (fewer than {cold_density} accesses per byte per second, lifetime of {cold_lifetime} s or more)"
        );
        let titles = [
            (Advice::Hot, format!("HOT (more than {hot_density} accesses per byte per second of lifetime)")),
            (Advice::Cold, cold),
            (Advice::LongLived, format!("LONG-LIVED (lifetime of {cold_lifetime} s or more; accesses unknown)")),
        ];
        for (advice, title) in titles {
            let infos = self.profile.infos.iter().filter(|info| of(info) == advice).collect();
            self.kind(title, infos, &["bytes", "blocks"], page, |info| {
                vec![Value::Count(info.size.total), Value::Count(info.alloc_count)]
            });
        }
        let number = |advice| Value::Count(self.profile.infos.iter().filter(|info| of(info) == advice).count() as u64);
        let numbers = [number(Advice::NotCold), number(Advice::Unknown)];
        page.heading(Note::new("NEITHER: {}. Unknown accesses or lifetimes: {}").with(numbers));
    }

    /// Adds contexts whose blocks are not read, and the number of contexts whose accesses are unknown.
    fn unread(&self, page: &mut Page) {
        let titles = [
            (Reads::NeverAccessed, "NEVER ACCESSED"),
            (Reads::OnlyWritten, "WRITTEN AND NEVER READ"),
            (Reads::SomeUnread, "SOME BLOCKS NEVER READ"),
        ];
        for (reads, title) in titles {
            let infos = self.profile.infos.iter().filter(|info| Reads::of(info) == reads).collect();
            self.kind(title.to_owned(), infos, &["bytes", "blocks", "never read"], page, |info| {
                let unread = info.loads.map_or(0, |loads| loads.unread_count);
                [info.size.total, info.alloc_count, unread].map(Value::Count).to_vec()
            });
        }
        let number =
            |reads| Value::Count(self.profile.infos.iter().filter(|info| Reads::of(info) == reads).count() as u64);
        page.heading(Note::new("READ: {}. Unknown: {}").with([number(Reads::Read), number(Reads::Unknown)]));
    }
}

/// Builds the JSON report, omitting values missing from the profile.
fn profile_json(profile: &HeapProfile, thresholds: &Thresholds) -> serde_json::Value {
    let contexts: Vec<serde_json::Value> =
        profile.infos.iter().map(|info| info_json(profile, info, thresholds)).collect();
    let module = |module: &hatf_trace::stacks::Module| json!({"path": module.path, "build_id": module.build_id, "start": module.start, "end": module.end, "bias": module.bias});
    json!({
        "tick_ns": profile.tick,
        "trace": serde_json::Value::Object(profile.about.clone()),
        "thresholds": thresholds,
        "modules": profile.modules.iter().map(module).collect::<Vec<_>>(),
        "contexts": contexts,
    })
}

fn info_json(profile: &HeapProfile, info: &HeapInfo, thresholds: &Thresholds) -> serde_json::Value {
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
    serde_json::Value::Object(object)
}
