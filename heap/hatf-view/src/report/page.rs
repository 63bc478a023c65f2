//! Sections of the heap report.

use hatf_lab::sites::Measure;
use metatf_page::{Chart, Column, Facts, Mark, Note, Page, Report as Paged, Shape, Table, Unit, Value};

use super::site_tables::title;
use super::sites::SIZES_ONLY;
use crate::analysis::{Estimate, Grown, GrownBy, Level, Off, PageCalls, PagesReport, Quantiles, Report, SitesReport};

/// Maximum number of rows in a long table.
const SHOWN: usize = 20;

impl Paged for Report {
    fn page(&self) -> Page {
        let mut page = Page::default();
        for comment in &self.comments {
            page.note(comment.clone());
        }
        if let Some(estimate) = &self.estimate {
            sample(estimate, self.sizes_only, &mut page);
        }
        events(self, &mut page);
        if let Some(pages) = &self.pages {
            self::pages(pages, self, &mut page);
        }
        over_time(self, &mut page);
        sizes(self, &mut page);
        lifetimes(self, &mut page);
        if !self.sizes_only {
            reallocs(self, &mut page);
        }
        threads(self, &mut page);
        phases(self, &mut page);
        marks(self, &mut page);
        if !self.sizes_only {
            still_live(self, &mut page);
        }
        if let Some(sites) = &self.sites {
            self::sites(sites, self.sizes_only, &mut page);
        }
        page
    }
}

impl Report {
    /// Returns a point in time or a duration, or `Unknown` if the trace has no times.
    fn time(&self, nanoseconds: u64) -> Value {
        if self.duration == 0 { Value::Unknown } else { Value::Time(nanoseconds) }
    }

    /// Returns a value about live blocks, or `Unknown` if the trace does not record when blocks end.
    fn live(&self, value: Value) -> Value {
        if self.sizes_only { Value::Unknown } else { value }
    }
}

/// Adds estimates for all blocks of a sampled trace.
fn sample(estimate: &Estimate, sizes_only: bool, page: &mut Page) {
    page.heading("SAMPLE");
    page.push(
        Note::new("One block per {} was recorded on average. Estimates for all blocks:")
            .with([Value::Bytes(estimate.mean)]),
    );
    let amounts =
        [("allocated", estimate.allocated), ("live at the peak", estimate.peak), ("live at the end", estimate.leaked)];
    let amounts = amounts.into_iter().take(if sizes_only { 1 } else { 3 });
    page.push(amounts.fold(Facts::new(), |facts, (what, amount)| {
        facts.and_said(what, Value::Bytes(amount.bytes), Note::new("in {} blocks").with([Value::Count(amount.blocks)]))
    }));
    page.note("Figures below describe the sample, except for those by stack.");
}

/// Appends the counts of the items to a note, omitting zeros.
fn list(named: &[(&'static str, u64)], mut before: Note) -> Note {
    let met: Vec<_> = named.iter().filter(|(_, times)| *times > 0).collect();
    let mut text = String::new();
    for (number, (name, times)) in met.iter().enumerate() {
        text.push_str(if number == 0 { "" } else { ", " });
        text.push_str(&format!("{} {name}", Value::Count(*times)));
    }
    if met.is_empty() {
        text.push_str("none");
    }
    before = before.with([Value::text(text)]);
    before
}

fn events(report: &Report, page: &mut Page) {
    let (totals, calls) = (&report.totals, &report.calls);
    page.heading("EVENTS");
    let named = [
        ("malloc", calls.malloc),
        ("calloc", calls.calloc),
        ("aligned", calls.aligned),
        ("realloc", calls.realloc),
        ("realloc(NULL)", calls.realloc_of_null),
        ("free", calls.free),
        ("failed", calls.failed),
    ];
    page.push(list(&named, Note::new("{} records: {}").with([Value::Count(totals.records)])));
    // This line begins like Valgrind's, so that users can compare the two.
    let sums = [totals.allocs, totals.frees, totals.bytes].map(Value::Count);
    let counted = if calls.realloc > 0 { " (counting each realloc in full)" } else { "" };
    page.push(
        Note::new(format!("total heap usage: {{}} allocs, {{}} frees, {{}} bytes allocated{counted}")).with(sums),
    );
    totals.contradictions.lines().for_each(|line| page.note(line));
    if let Some(off) = &report.off {
        paused(report, off, page);
    }
    if let Some(usable) = &report.usable {
        let more = usable.usable.saturating_sub(usable.asked);
        let values = [Value::Bytes(more), Value::Part(more, usable.asked), Value::Bytes(usable.spare_at_peak)];
        let note = if report.sizes_only {
            "blocks are {} larger than requested ({})"
        } else {
            "blocks are {} larger than requested ({}); blocks live at the peak are {} larger"
        };
        page.push(Note::new(note).with(values));
    }
    if totals.lost > 0 {
        page.push(Note::new("{} events were lost while recording").with([Value::Count(totals.lost)]));
    }
    if totals.heaps > 1 {
        let note = Note::new("{} heaps: each program started by exec has its own heap");
        page.push(note.with([Value::Count(totals.heaps)]));
    }
    if report.sizes_only {
        return page.note(format!("sizes only: {SIZES_ONLY}"));
    }
    peak(report, page);
}

fn peak(report: &Report, page: &mut Page) {
    let peak = &report.peak;
    page.heading("PEAK");
    let live = [Value::Bytes(peak.bytes), Value::Count(peak.blocks_then)];
    let where_it_is = [Value::Count(peak.record), Value::Count(peak.blocks)];
    page.push(if report.duration == 0 {
        Note::new("{} live in {} blocks (record {}); at most {} blocks").with(live).with(where_it_is)
    } else {
        let note = Note::new("{} live in {} blocks, {} after the start (record {}); at most {} blocks").with(live);
        note.with([Value::Time(peak.time)]).with(where_it_is)
    });
}

/// Adds notes on the limitations caused by pauses in the recording.
fn paused(report: &Report, off: &Off, page: &mut Page) {
    let duration = report.time(off.duration);
    page.push(match off.times {
        1 => Note::new("recording was off once, for {} in total").with([duration]),
        times => Note::new("recording was off {} times, for {} in total").with([Value::Count(times), duration]),
    });
    if off.frees > 0 {
        let note = Note::new("{} frees of blocks allocated while recording was off, or earlier");
        page.push(note.with([Value::Count(off.frees)]));
    }
    if off.forgotten_blocks > 0 {
        let text = "{} blocks ({}) were live when recording stopped and are not counted after that, because they may have been freed";
        page.push(Note::new(text).with([Value::Count(off.forgotten_blocks), Value::Bytes(off.forgotten_bytes)]));
    }
    if off.at_end {
        page.note("recording was off at the end: blocks reported as live may have been freed since it stopped");
    }
}

/// Adds the kernel's statistics about pages and the calls that requested pages.
fn pages(pages: &PagesReport, report: &Report, page: &mut Page) {
    page.heading("PAGES");
    let mut table =
        Table::new([Column::key(""), Column::new("at most"), Column::new("after"), Column::new("at the end")]);
    let mut row = |what: &'static str, level: &Level| {
        table.row([Value::text(what), Value::Bytes(level.peak), report.time(level.time), Value::Bytes(level.end)]);
    };
    if !report.sizes_only {
        let Report { peak, still_live, .. } = report;
        row("live blocks", &Level { peak: peak.bytes, time: peak.time, end: still_live.bytes });
    }
    let PageCalls { mmap, munmap, mremap, brk, madvise } = pages.calls;
    let named = [("mmap", mmap), ("munmap", munmap), ("mremap", mremap), ("brk", brk), ("madvise", madvise)];
    let has_calls = named.iter().any(|(_, count)| *count > 0) || pages.held.peak > 0;
    if has_calls {
        row("anonymous, requested by calls", &pages.held);
    }
    if pages.samples > 0 {
        row("resident and private", &pages.private);
        row("resident", &pages.resident);
        row("private and writable", &pages.data);
    }
    page.push(table);
    pages.grown.iter().for_each(|grown| page.push(self::grown(*grown)));
    if !has_calls {
        let text = "kernel samples: {}; to record the calls that request pages too, use hatf record --pages";
        page.push(Note::new(text).with([Value::Count(pages.samples)]));
        return;
    }
    page.push(list(&named, Note::new("calls: {}; kernel samples: {}")).with([Value::Count(pages.samples)]));
}

/// Describes whether and why memory grows.
fn grown(Grown { private, live, by }: Grown) -> Note {
    let [pages, blocks] = [private, live].map(|growth| Value::Bytes(growth.rounded_rate()));
    match by {
        GrownBy::Nothing => Note::new("private pages do not keep growing"),
        GrownBy::Program => Note::new(
            "private pages grow by {}/s. The program causes the growth: its live blocks grow by {}/s (see hatf leaks)",
        )
        .with([pages, blocks]),
        GrownBy::Other => Note::new(
            "private pages grow by {}/s, but the program's live blocks do not keep growing as fast. Either the allocator keeps pages (see hatf fragmentation), or other code maps memory (see hatf record --pages)",
        )
        .with([pages]),
        GrownBy::Both => Note::new(
            "private pages grow by {}/s. Live blocks account for {}/s (see hatf leaks); pages that the allocator keeps or other code maps account for the rest (see hatf fragmentation)",
        )
        .with([pages, blocks]),
    }
}

/// Adds a chart of live bytes over time, with resident pages if they were recorded.
fn over_time(report: &Report, page: &mut Page) {
    if report.timeline.points.len() < 2 || report.timeline.points.iter().all(|point| point.most == 0) {
        return;
    }
    page.heading("LIVE BYTES OVER TIME");
    let command = report.comments.iter().find_map(|comment| comment.strip_prefix("command: "));
    let title =
        format!("{}: live bytes over time, peak {}", command.unwrap_or("heap trace"), Value::Bytes(report.peak.bytes));
    let mut chart = Chart::new(title, Unit::Time, Unit::Bytes);
    chart.end = report.duration;
    let most = report.timeline.points.iter().map(|point| point.most);
    chart.stretches("live", Shape::Area, report.timeline.step, most);
    if let Some(pages) = report.pages.as_ref().filter(|pages| pages.samples > 0) {
        let most = pages.timeline.points.iter().map(|point| point.most);
        chart.stretches("resident and private pages", Shape::Steps, pages.timeline.step, most);
    }
    // The last interval extends past the end of the trace.
    for point in chart.series.iter_mut().filter_map(|series| series.points.last_mut()) {
        point.0 = point.0.min(report.duration.max(1));
    }
    chart.marks.push(Mark { at: report.peak.time, name: "peak".to_owned() });
    page.push(chart);
}

fn sizes(report: &Report, page: &mut Page) {
    page.heading("SIZES");
    let mut table = Table::new([Column::key("size"), Column::new("blocks"), Column::new("bytes"), Column::new("")]);
    let most = report.sizes.buckets().map(|bucket| bucket.count).max().unwrap_or(0);
    for bucket in report.sizes.buckets() {
        let range =
            if bucket.from == bucket.to { bucket.from.to_string() } else { format!("{}..{}", bucket.from, bucket.to) };
        table.row([
            Value::text(range),
            Value::Count(bucket.count),
            Value::Bytes(bucket.bytes),
            Value::Bar(bucket.count, most),
        ]);
    }
    page.push(table);
}

fn lifetimes(report: &Report, page: &mut Page) {
    if report.lifetimes.count() == 0 {
        return;
    }
    page.heading("LIFETIMES of freed blocks (quantiles, at most 0.8% too high)");
    let columns = ["", "50 %", "90 %", "99 %"].map(Column::new);
    let mut table = Table::new(columns);
    let mut row = |name: &'static str, Quantiles { p50, p90, p99 }: Quantiles, unit: fn(u64) -> Value| {
        table.row([Value::text(name), unit(p50), unit(p90), unit(p99)]);
    };
    if report.duration > 0 {
        row("in time", report.lifetime_quantiles, Value::Time);
    }
    row("in bytes allocated meanwhile", report.lifetime_in_bytes_quantiles, Value::Bytes);
    page.push(table);
}

fn reallocs(report: &Report, page: &mut Page) {
    let calls = &report.calls;
    if calls.realloc == 0 {
        return;
    }
    page.heading("REALLOC");
    let values = [
        Value::Count(calls.realloc),
        Value::Count(calls.reallocs_grown),
        Value::Count(calls.reallocs_shrunk),
        Value::Part(calls.reallocs_in_place, calls.realloc),
        Value::Bytes(calls.realloc_bytes_copied),
    ];
    let text = "{} reallocations of blocks: {} grew, {} shrank, {} stayed in place; moves copied {}";
    page.push(Note::new(text).with(values));
}

fn threads(report: &Report, page: &mut Page) {
    if report.threads.len() < 2 {
        return;
    }
    page.heading("THREADS");
    let columns = ["allocs", "bytes", "frees", "began", "ended", "system", "name"].map(Column::new);
    let mut table = Table::new([Column::key("thread")].into_iter().chain(columns));
    for thread in report.threads.iter().take(SHOWN) {
        let time = |at: Option<u64>| at.map_or(Value::Unknown, |at| report.time(at));
        // Thread IDs are shown without digit grouping.
        let task = thread.task.map_or(Value::Unknown, |task| Value::text(task.to_string()));
        table.row([
            Value::text(thread.thread.to_string()),
            Value::Count(thread.allocs),
            Value::Count(thread.bytes),
            Value::Count(thread.frees),
            time(thread.began),
            time(thread.ended),
            task,
            thread.name.clone().map_or(Value::Unknown, Value::text),
        ]);
    }
    and_more(report.threads.len(), &mut table);
    page.push(table);
}

fn and_more(rows: usize, table: &mut Table) {
    if let Some(more @ 1..) = rows.checked_sub(SHOWN) {
        table.rest(Note::new("and {} more (--format json lists all)").with([Value::Count(more as u64)]));
    }
}

fn phases(report: &Report, page: &mut Page) {
    if report.phases.is_empty() {
        return;
    }
    page.heading("PHASES");
    let columns = ["times", "time", "allocs", "bytes", "peak", "change", ""].map(Column::new);
    let mut table = Table::new([Column::key("phase")].into_iter().chain(columns));
    for phase in report.phases.iter().take(SHOWN) {
        let not_ended = match phase.not_ended {
            0 => Value::Blank,
            times => Value::text(format!("{} not ended", Value::Count(times))),
        };
        table.row([
            Value::text(phase.name.clone()),
            Value::Count(phase.times),
            report.time(phase.duration),
            Value::Count(phase.allocs),
            Value::Bytes(phase.bytes),
            report.live(Value::Bytes(phase.peak)),
            report.live(Value::BytesChange(i128::from(phase.change))),
            not_ended,
        ]);
    }
    and_more(report.phases.len(), &mut table);
    page.push(table);
}

fn marks(report: &Report, page: &mut Page) {
    if !report.marks.is_empty() {
        page.heading("MARKS");
        let columns = ["times", "first", "last", "live then"].map(Column::new);
        let mut table = Table::new([Column::key("mark")].into_iter().chain(columns));
        for mark in report.marks.iter().take(SHOWN) {
            table.row([
                Value::text(mark.name.clone()),
                Value::Count(mark.times),
                report.time(mark.first),
                report.time(mark.last),
                report.live(Value::Bytes(mark.live)),
            ]);
        }
        and_more(report.marks.len(), &mut table);
        page.push(table);
    }
    if report.marks_and_phases_left_out > 0 {
        let note = Note::new("{} marks and phases were omitted because there were too many names");
        page.push(note.with([Value::Count(report.marks_and_phases_left_out)]));
    }
}

fn still_live(report: &Report, page: &mut Page) {
    let live = &report.still_live;
    page.heading("STILL LIVE at the end");
    page.push(Note::new("{} bytes in {} blocks").with([Value::Count(live.bytes), Value::Count(live.blocks)]));
    if live.replaced_blocks > 0 {
        let note = Note::new("and {} bytes in {} blocks that were live when exec replaced their program");
        page.push(note.with([Value::Count(live.replaced_bytes), Value::Count(live.replaced_blocks)]));
    }
    if live.blocks == 0 {
        return;
    }
    page.note("the largest:");
    // Without times, omit the third column.
    let columns = if report.duration == 0 { 2 } else { 3 };
    let mut table = Table::new(["bytes", "address", "allocated at"].map(Column::new).into_iter().take(columns));
    for block in &live.largest {
        table.row([Value::Count(block.size), Value::Address(block.address), Value::Time(block.time)]);
    }
    page.push(table);
}

/// Adds the stacks that allocated the most, one per line.
fn sites(report: &SitesReport, sizes_only: bool, page: &mut Page) {
    page.heading(
        Note::new("SITES: {} stacks; to print all of them in full, run hatf sites").with([Value::Count(report.stacks)]),
    );
    for measure in Measure::ALL {
        if sizes_only && measure != Measure::Allocated {
            continue;
        }
        let total = report.total.get(measure);
        let values = [Value::text(title(measure)), Value::Bytes(total.bytes), Value::Count(total.blocks)];
        page.heading(Note::new("{}: {} in {} blocks").with(values));
        let mut table = Table::new(["bytes", "", "blocks", ""].map(Column::new));
        for site in report.get(measure) {
            let name = if site.functions.is_empty() { "unknown stack".to_owned() } else { site.name.clone() };
            let (bytes, share) = (Value::Count(site.bytes), Value::Part(site.bytes, total.bytes));
            table.row([bytes, share, Value::Count(site.blocks), Value::text(name)]);
        }
        if !table.is_empty() {
            page.push(table);
        }
    }
}
