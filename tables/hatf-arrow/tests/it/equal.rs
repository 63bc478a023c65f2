//! Compares tables with the output of `hatf report`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use hatf_lab::HeapTracker;
use hatf_lab::sites::Counts;
use hatf_trace::forms::TraceReader;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::stack_hash::StackHashes;
use hatf_trace::{Event, EventSink as _};
use hatf_view::analysis::{Report, ReportBuilder};

use crate::rows::{numbers, read, read_together, sum, trace, words};

/// Returns the report of a trace, and the allocations of its sites by stack hash.
fn report(path: &Path) -> (Report, BTreeMap<i64, Counts>) {
    let mut tracker = HeapTracker::new(ReportBuilder::new());
    TraceReader::open(path).unwrap().give(&mut tracker).unwrap();
    let (heap, builder) = tracker.into_parts();
    let (mut hashes, mut sites) = (StackHashes::default(), BTreeMap::<i64, Counts>::new());
    for (number, counts) in builder.site_counts().into_iter().enumerate() {
        if counts.allocated.blocks > 0 {
            sites.entry(hashes.of(&heap.stacks, number as u64).cast_signed()).or_default().add(&counts);
        }
    }
    (builder.report(&heap), sites)
}

/// Compares all tables of a trace with its report.
pub(crate) fn compare(path: &Path) {
    let (report, sites) = report(path);
    for threads in [1, 2] {
        for (table, batches) in read_together(path, threads) {
            assert_eq!(read(path, table, threads), batches, "{table} alone is as beside others");
        }
        let objects = read(path, "objects", threads);
        let ends = words(&objects, "end_kind");
        let count = |word: &str| ends.iter().filter(|end| *end == word).count() as u64;
        assert_eq!(ends.len() as u64, report.totals.allocs);
        assert_eq!(sum(&objects, "size"), report.totals.bytes);
        assert_eq!(count("free") + count("realloc"), report.totals.frees);
        let leaked = |end: &&String| ["live", "exit"].contains(&end.as_str());
        assert_eq!(ends.iter().filter(leaked).count() as u64, report.still_live.blocks);
        // Each object occurs once, and exactly the freed objects have a lifetime.
        let mut places = numbers(&objects, "object");
        places.sort_unstable();
        assert!(places.into_iter().eq((0..).take(ends.len()).map(Some)));
        let lifetimes = numbers(&objects, "lifetime_ns");
        assert!(
            lifetimes
                .iter()
                .zip(&ends)
                .all(|(life, end)| life.is_some() == ["free", "realloc"].contains(&end.as_str()))
        );
        // The table of lifetimes is the sum over the objects.
        let mut expected = BTreeMap::<(i64, Option<i64>), (i64, i64)>::new();
        let stacks = numbers(&objects, "stack_hash");
        for ((stack, life), size) in stacks.into_iter().zip(&lifetimes).zip(numbers(&objects, "size")) {
            let below = life.map(|life| (0..63).map(|log| 1 << log).find(|below| *below > life).unwrap_or(i64::MAX));
            let (count, bytes) = expected.entry((stack.unwrap(), below)).or_default();
            *count += 1;
            *bytes += size.unwrap();
        }
        let rows = read(path, "lifetimes", threads);
        let counts = numbers(&rows, "objects").into_iter().zip(numbers(&rows, "bytes"));
        let classes = numbers(&rows, "stack_hash").into_iter().zip(numbers(&rows, "below_ns"));
        let found = classes.zip(counts).map(|((s, below), (o, b))| ((s.unwrap(), below), (o.unwrap(), b.unwrap())));
        assert_eq!(found.clone().count(), expected.len());
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
        let mut histogram = [0_u64, 0];
        numbers(&objects, "lifetime_bytes").iter().flatten().for_each(|bytes| histogram[usize::from(*bytes > 0)] += 1);
        assert_eq!(histogram.iter().sum::<u64>(), report.totals.frees);
        // Recompute the peak by ticks.
        let mut changes: Vec<(i64, i64)> = Vec::new();
        let (begins, over) = (numbers(&objects, "alloc_tick"), numbers(&objects, "end_tick"));
        for ((begin, end), size) in begins.into_iter().zip(over).zip(numbers(&objects, "size")) {
            changes.push((begin.unwrap(), size.unwrap()));
            changes.extend(end.map(|end| (end, -size.unwrap())));
        }
        changes.sort_unstable();
        let peak = changes.iter().scan(0, |live, (_, change)| {
            *live += change;
            Some(*live)
        });
        let peak = u64::try_from(peak.max().unwrap_or(0)).unwrap();

        let rows = read(path, "sites", threads);
        let mut by_hash = numbers(&rows, "stack_hash");
        by_hash.sort_unstable();
        assert!(by_hash.into_iter().eq(sites.keys().copied().map(Some)));
        let columns = ["allocations", "peak_bytes", "leaked_bytes", "temporary_allocations", "short_bytes"];
        let columns = columns.map(|column| numbers(&rows, column));
        for (row, hash) in numbers(&rows, "stack_hash").into_iter().enumerate() {
            let Counts { peak, leaked, allocated, temporary, short, .. } = sites[&hash.unwrap()];
            let expected = [allocated.blocks, peak.bytes, leaked.bytes, temporary.blocks, short.bytes];
            assert_eq!(columns.clone().map(|column| column[row].unwrap().cast_unsigned()), expected);
        }
        assert_eq!(sum(&rows, "peak_bytes"), peak);
        let by_stack =
            |stack: i64| numbers(&objects, "stack_hash").iter().filter(|other| **other == Some(stack)).count();
        if let Some((hash, counts)) = sites.iter().max_by_key(|(_, counts)| counts.allocated.blocks) {
            assert_eq!(by_stack(*hash) as u64, counts.allocated.blocks);
        }

        let timeline = read(path, "timeline", threads);
        let peaks: Vec<bool> = timeline
            .iter()
            .flat_map(|batch| {
                batch.column_by_name("is_peak").unwrap().as_boolean().iter().flatten().collect::<Vec<_>>()
            })
            .collect();
        let live = numbers(&timeline, "live_bytes");
        let at_peak: Vec<_> = peaks.iter().zip(&live).filter(|(is, _)| **is).map(|(_, live)| *live).collect();
        assert_eq!(at_peak, [Some(report.peak.bytes.cast_signed())]);
        assert!(live.len() <= 513);
        let allocated = numbers(&timeline, "allocated_bytes");
        assert_eq!(allocated.last().copied().flatten(), Some(report.totals.bytes.cast_signed()));

        let traces = read(path, "traces", threads);
        assert_eq!(sum(&traces, "allocations"), report.totals.allocs);
        let processes = read(path, "processes", threads);
        assert_eq!(sum(&processes, "allocations"), report.totals.allocs);
        assert_eq!(sum(&processes, "allocated_bytes"), report.totals.bytes);
    }
}

#[test]
fn traces_of_the_repository() {
    for name in ["gawk.raw32.zst", "perl_hash.raw32.zst", "python_threads.raw64.zst"] {
        compare(&trace(name));
    }
}

/// Functions named in the trace appear in the table although nothing is looked up.
#[test]
fn names_in_the_trace_are_used() {
    let rows = read(&metatf_test::root().join("docs/samples/sites.jsonl"), "sites", 1);
    let column = |batch: &RecordBatch| batch.column_by_name("own_function").unwrap().as_string::<i32>().clone();
    let names: Vec<String> =
        rows.iter().flat_map(|batch| column(batch).iter().flatten().map(str::to_owned).collect::<Vec<_>>()).collect();
    assert_eq!(names, ["libz.so.1+0x2345", "read_line", "copy"]);
}

/// Several traces form one table with a column that identifies the trace. Only requested columns are returned.
#[test]
fn several_traces_and_some_columns() {
    let paths = [trace("gawk.raw32.zst"), trace("perl_hash.raw32.zst")];
    let tables = hatf_arrow::open(&paths).unwrap();
    let rows: usize = paths.iter().map(|path| sum(&read(path, "traces", 1), "allocations") as usize).sum();
    let table = tables.get("objects").unwrap();
    let place = |name: &str| table.schema().index_of(name).unwrap();
    let columns = Some(vec![place("size"), place("trace")]);
    let batches = table.scan(&metatf_arrow::Scan { columns, ..Default::default() }).unwrap();
    let batches: Vec<_> = batches.map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(arrow_array::RecordBatch::num_rows).sum::<usize>(), rows);
    assert!(batches.iter().all(|batch| batch.num_columns() == 2 && batch.schema().field(0).name() == "size"));
    let none = table.scan(&metatf_arrow::Scan { columns: Some(Vec::new()), ..Default::default() }).unwrap();
    assert_eq!(none.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), rows);
    assert!(table.scan(&metatf_arrow::Scan { columns: Some(vec![99]), ..Default::default() }).is_err());
}

/// If a trace does not show when objects end, the tables do not show it either.
#[test]
fn sizes_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sizes.mtf");
    let mut sink = File::create(&path).unwrap();
    let mut writer = HeapWriter::new(&mut sink, &HeapOptions::default()).unwrap();
    let said = serde_json::json!({ "only": { "sizes": true } });
    writer.user_metadata(said.as_object().unwrap()).unwrap();
    for size in 1..=100 {
        writer.event(&Event::malloc(0, size)).unwrap();
    }
    writer.finish().unwrap();
    let all = read_together(&path, 1);
    let table = |name: &str| &all.iter().find(|(table, _)| *table == name).unwrap().1;
    let objects = table("objects");
    assert_eq!((sum(objects, "size"), words(objects, "end_kind")), (5050, vec!["unknown".to_owned(); 100]));
    for column in ["end_ns", "end_tick", "free_thread", "lifetime_ns", "lifetime_bytes"] {
        assert!(numbers(objects, column).iter().all(Option::is_none), "{column}");
    }
    for (name, column) in [
        ("timeline", "live_bytes"),
        ("timeline", "ended_objects"),
        ("processes", "peak_bytes"),
        ("traces", "peak_bytes"),
        ("traces", "live_objects"),
        ("sites", "leaked_bytes"),
        ("lifetimes", "below_ns"),
    ] {
        let numbers = numbers(table(name), column);
        assert!(!numbers.is_empty() && numbers.iter().all(Option::is_none), "{name}.{column}");
    }
    assert_eq!(numbers(table("traces"), "allocated_bytes"), [Some(5050)]);
}
