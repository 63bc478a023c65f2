use super::*;
use hatf_lab::HeapTracker;
use hatf_trace::event::{Call, EventKind, EventSink as _, Function};

/// A builder for a trace of modules and of blocks with stacks.
struct Trace(HeapTracker<Counting>);

impl Trace {
    fn new() -> Self {
        Self(HeapTracker::new(Counting::new()))
    }

    fn give(mut self, kind: EventKind<'_>, stack: &[u64], thread: u64) -> Self {
        self.0.event(&Event { stack: stack.into(), thread, ..Event::new(kind) }).unwrap();
        self
    }

    fn image(self, path: &str) -> Self {
        self.give(EventKind::Image { process: 1, path: path.as_bytes() }, &[], 1)
    }

    fn module(self, start: u64, name: &str) -> Self {
        let name = name.as_bytes();
        self.give(EventKind::ModuleLoad { bias: start, start, end: start + 0x1000, name }, &[], 1)
    }

    fn symbol(self, frame: u64, line: u64, name: &str) -> Self {
        self.give(EventKind::Source { path: b"a.c" }, &[], 1).give(
            EventKind::Symbol { frame, line, name: name.as_bytes() },
            &[],
            1,
        )
    }

    fn block(self, address: u64, size: u64, stack: &[u64]) -> Self {
        self.by(1, address, size, stack)
    }

    fn by(self, thread: u64, address: u64, size: u64, stack: &[u64]) -> Self {
        self.give(EventKind::Call(Call { size, address, ..Call::new(Function::Malloc) }), stack, thread)
    }

    fn end(self) -> Summary {
        let (heap, counting) = self.0.into_parts();
        counting.finish(heap)
    }
}

/// Returns the sites whose allocated bytes differ, with the change. Names are from the second trace if it contains the
/// site.
fn differing(before: &Summary, after: &Summary) -> Vec<(String, i128)> {
    let comparison = Comparison::new(before, after);
    let rows = hatf_lab::sites::ranked_pairs(&comparison.sites, hatf_lab::sites::Measure::Allocated, false);
    let name = |key: SiteStacks| match (key.after, key.before) {
        (Some(number), _) => after.stacks.name(number, 9).to_string(),
        (_, number) => before.stacks.name(number.unwrap(), 9).to_string(),
    };
    rows.into_iter().map(|(pair, change)| (name(pair.key), change.bytes)).collect()
}

fn pairs_of(rows: &[(&str, i128)]) -> Vec<(String, i128)> {
    rows.iter().map(|(name, change)| ((*name).to_owned(), *change)).collect()
}

/// Builds a trace for a build of a program, with its own address, name, build ID and line numbers.
fn build(base: u64, name: &str, line: u64) -> Trace {
    Trace::new()
        .image(name)
        .module(base, &format!("{line:x} {name}"))
        .symbol(base + 0x10 + line, line, "f")
        .symbol(base + 0x20, line + 1, "main")
        .block(64, 100, &[base + 0x10 + line, base + 0x20])
        .block(128, 10, &[base + 0x20])
}

#[test]
fn builds_are_matched_by_function() {
    let (before, after) = (build(0x1000, "/old/p", 1).end(), build(0x70_0000, "/new/q", 2).end());
    assert_eq!(Comparison::new(&before, &after).matching, Matching::Functions);
    assert_eq!(differing(&before, &after), []);
    let more = build(0x70_0000, "/new/q", 2).block(256, 7, &[0x70_0012, 0x70_0020]).end();
    assert_eq!(differing(&before, &more), pairs_of(&[("f <- main", 7)]));
    assert_eq!(differing(&more, &before), pairs_of(&[("f <- main", -7)]));
}

/// Stacks that differ only in the lines of a function are one site.
#[test]
fn lines_are_summed() {
    let before = build(0x1000, "/p", 1).symbol(0x1030, 9, "f").block(256, 5, &[0x1030, 0x1020]).end();
    let after = build(0x1000, "/p", 1).end();
    assert_eq!(differing(&before, &after), pairs_of(&[("f <- main", -5)]));
}

#[test]
fn functions_of_one_name_in_two_modules() {
    let trace = |path: [&str; 2], sizes: [u64; 2]| {
        let trace = Trace::new().module(0x1000, &format!("- {}", path[0])).module(0x3000, &format!("- {}", path[1]));
        let trace = trace.symbol(0x1010, 1, "f").symbol(0x3010, 1, "f");
        trace.block(64, sizes[0], &[0x1010]).block(128, sizes[1], &[0x3010]).end()
    };
    let changed = pairs_of(&[("f", 90), ("f", -1)]);
    let libraries = ["/a/one.so", "/a/two.so"];
    let before = trace(libraries, [10, 20]);
    assert_eq!(differing(&before, &trace(libraries, [9, 110])), changed);
    // Modules match if only their directories differ.
    assert_eq!(differing(&before, &trace(["/b/one.so", "/b/c/two.so"], [9, 110])), changed);
    // Two modules with the same file name are distinguished by their directories.
    let plugins = ["/a/plugin.so", "/b/plugin.so"];
    let before = trace(plugins, [10, 20]);
    assert_eq!(differing(&before, &trace(plugins, [9, 110])), changed);
    assert_eq!(differing(&before, &trace(["/b/plugin.so", "/a/plugin.so"], [110, 9])), changed);
}

/// A program that replaces another (exec) is matched by its name.
#[test]
fn two_programs_in_a_trace() {
    let trace = |last: &str| {
        let first = build(0x1000, "/bin/sh", 1).image(last).module(0x5000, &format!("- {last}"));
        first.symbol(0x5010, 1, "main").block(512, 50, &[0x5010]).end()
    };
    assert_eq!(differing(&trace("/old/ls"), &trace("/new/ls")), []);
    assert_eq!(differing(&trace("/old/ls"), &trace("/old/cat")), pairs_of(&[("main", -50), ("main", 50)]));
}

#[test]
fn traces_without_symbols_are_matched_by_offset() {
    let trace = |base: u64, build_id: &str, path: &str| {
        let trace = Trace::new().module(base, &format!("{build_id} {path}"));
        // A frame outside of all modules has no name that matches one in another run.
        trace.block(64, 10, &[base + 0x10]).block(128, 5, &[base + 0x2000, base + 0x20]).end()
    };
    let before = trace(0x1000, "ab", "/p");
    assert_eq!(Comparison::new(&before, &before).matching, Matching::Offsets);
    assert_eq!(differing(&before, &trace(0x8000, "ab", "/q")), []);
    let other: Vec<i128> = differing(&before, &trace(0x8000, "cd", "/p")).into_iter().map(|row| row.1).collect();
    assert_eq!(other, [-10, 10, -5, 5]);
    // One trace has symbols and the other has none, but both are of the same build.
    let named = |end: Trace| end.symbol(0x8010, 3, "f").block(64, 10, &[0x8010]).block(128, 5, &[0xa000, 0x8020]).end();
    let after = named(Trace::new().module(0x8000, "ab /p"));
    assert_eq!(Comparison::new(&before, &after).matching, Matching::Offsets);
    assert_eq!(differing(&before, &after), []);
    // Without build IDs, modules are matched by file name.
    assert_eq!(differing(&trace(0x1000, "-", "/a/p"), &trace(0x8000, "-", "/b/p")), []);
}

#[test]
fn empty_traces_and_those_without_stacks() {
    let (empty, full) = (Trace::new().end(), build(0x1000, "/p", 1).end());
    assert_eq!(differing(&empty, &full), pairs_of(&[("f <- main", 100), ("main", 10)]));
    assert_eq!(differing(&full, &empty), pairs_of(&[("f <- main", -100), ("main", -10)]));
    assert_eq!(differing(&empty, &empty), []);
    let without = Trace::new().block(64, 100, &[]).end();
    // Addresses alone cannot be matched with another run.
    let addresses = Trace::new().block(64, 100, &[0x1000]).end();
    for (before, after) in [(&full, &without), (&without, &empty), (&addresses, &addresses)] {
        let comparison = Comparison::new(before, after);
        assert_eq!((comparison.matching, comparison.sites.len()), (Matching::Nothing, 0));
    }
}

#[test]
fn threads_are_matched_in_their_order() {
    let trace = |ids: [u64; 3]| {
        let trace =
            Trace::new().by(ids[0], 64, 1, &[]).give(EventKind::ThreadStart { creator: 1, task: 0 }, &[], ids[1]);
        trace.by(ids[2], 128, 30, &[]).by(ids[1], 192, 200, &[]).end()
    };
    let (before, after) = (trace([1, 2, 3]), trace([100, 7, 50]));
    let comparison = Comparison::new(&before, &after);
    let bytes: Vec<_> =
        comparison.threads.iter().map(|pair| (pair.before.allocated.bytes, pair.after.allocated.bytes)).collect();
    assert_eq!(bytes, [(1, 1), (200, 200), (30, 30)]);
    assert_eq!(after.threads.iter().map(|thread| thread.0).collect::<Vec<_>>(), [100, 7, 50]);
}

#[test]
fn great_counts() {
    let trace = Trace::new().module(0x1000, "ab /p");
    let great = trace.block(64, u64::MAX - 1, &[0x1010]).block(128, u64::MAX - 1, &[0x1010]).end();
    let empty = Trace::new().end();
    assert_eq!(differing(&great, &empty), pairs_of(&[("p+0x10", -i128::from(u64::MAX))]));
}
