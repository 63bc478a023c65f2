//! Fuzz target for the experiments on heap traces, with arbitrary and mostly invalid calls.

#[allow(dead_code, reason = "of a test of the command")]
#[path = "../../heap/hatf/tests/it/common/nonsense.rs"]
mod nonsense;

use hatf_host::replay::{Compiler, Cut};
use hatf_lab::allocator::by_name;
use hatf_lab::fragmentation::{self, Held, Moment, PAGES, map};
use hatf_lab::history::Place;
use hatf_lab::leaks::Leaks;
use hatf_lab::profile::{HeapInfo, Merged, Profiler, ProfilerSettings, Sizes};
use hatf_lab::simulate::{Grid, Simulation};
use hatf_lab::sites::{Measure, folded};
use hatf_lab::{Heap, HeapTracker, ObjectEvent, Observer, Result};
use hatf_research::model::{self, Choice, Clock, Fitter, Generator, Kind, Limits, Model, Unfreed};
use hatf_research::regions::infer::{Costs, Enclosing, WithRegions};
use hatf_research::regions::{Inter, Intra, Oversize, Settings, Simulation as RegionSimulation};
use hatf_research::scoped::{Names, RegionWriter, ScopeEvents, ScopeKind, contexts};
use hatf_trace::event::{Call, Event, EventKind, EventSink, Function, UNKNOWN_SIZE, UserMetadata};
use hatf_trace::stacks::Location;
use hatf_view::analysis::{Ending, ReportBuilder};
use hatf_view::calls::{Folding, GroupBy, Groups, Places, function_pairs};
use hatf_view::compare::{Comparison, Counting};
use hatf_view::page::{Collected, HeapPage, Section, Side};
use hatf_view::report::{Difference, Leaks as LeaksReport, LeaksOf, SiteTables, Startup};
use hatf_view::suppress::Suppressions;
use hatf_view::verdict::Facts;
use metatf_page::{Flame, Form, Page, Report, Unit, render};

use crate::sharing::share;
use crate::sharing::taken::Taken;

/// Maximum number of calls read from an input: each check of a complete heap traverses all of it.
const CALLS: usize = 500;

/// Passes each event to every experiment.
struct All {
    grid: Grid,
    held: Held,
    fitter: Fitter,
    profiler: Profiler<Vec<HeapInfo>>,
}

impl Observer for All {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.grid.event(event)?;
        self.held.event(event)?;
        self.fitter.event(event)?;
        self.profiler.event(event)
    }
}

/// Decodes a call from four bytes: its kind, the block, and the size as mantissa and exponent.
fn call([kind, block, mantissa, exponent]: [u8; 4]) -> EventKind<'static> {
    // Few blocks, so that the same ones recur; some are at the end of the address space.
    let address = match block {
        0..240 => u64::from(block) * 48,
        240..250 => u64::from(block) << 56,
        _ => u64::MAX - u64::from(255 - block),
    };
    let size = if exponent == u8::MAX { UNKNOWN_SIZE } else { u64::from(mantissa) << (exponent % 64) };
    let call = Call { size, address, ..Call::new(Function::Realloc) };
    match kind % 16 {
        0..6 => EventKind::Call(Call { function: Function::Malloc, ..call }),
        6..10 => EventKind::Free { address },
        10 => EventKind::Call(Call { old: u64::from(mantissa) * 48, ..call }),
        11 => EventKind::Call(Call { old: address, address: 0, ..call }),
        12 => EventKind::ReallocBegin { old: address },
        13 => EventKind::ReallocEnd(call),
        14 => EventKind::DestroyHeap,
        _ => EventKind::Image { process: 1, path: b"next" },
    }
}

/// Returns a fitter of every model and of a mixture, with settings chosen by the input.
fn fitter(input: &[u8]) -> Fitter {
    let at = |n: usize| input.get(n).copied().unwrap_or(0);
    // The last model cannot be part of a mixture.
    let choice = |n: usize| Choice::ALL[usize::from(at(n)) % (Choice::ALL.len() - 1)].name();
    let mixture = format!("mix:size={},iat={},ht={}", choice(0), choice(1), choice(2)).parse();
    let clock = [Clock::Events, Clock::Bytes, Clock::Time][usize::from(at(3) % 3)];
    let timed = |choice: &&Choice| clock == Clock::Events || **choice != Choice::Outline;
    let kinds = Choice::ALL.iter().filter(timed).map(|choice| Kind::same(*choice)).chain(mixture).collect();
    let unfreed = if at(4) % 2 == 0 { Unfreed::End } else { Unfreed::Drop };
    // A first pass would determine the end of the clock. Any value will do here.
    let end = u64::from(at(5)) << (at(6) % 57);
    Fitter::new(model::Settings { kinds, clock, unfreed, buckets: 1 + u64::from(at(7)) }, Some(end))
        .expect("settings are right")
}

/// Checks that every model survives a round trip, and that the trace it generates ends and stays consistent.
fn generate(models: &[Model]) {
    for model in models {
        let mut written = Vec::new();
        model.write(&mut written).expect("memory takes it");
        assert_eq!(&Model::read(&written[..]).expect("it was just written"), model);
        let names = ["bsd", "best"];
        let simulation = |name: &str| Simulation::new(name, by_name(name).expect("a known name")).with_invariants(64);
        let mut grid = Grid::new(names.map(simulation).into(), 1).expect("one thread needs no other");
        let limits = Limits { events: Some(100), live: None };
        let totals = Generator::new(model, 1, 0, limits).run(&mut grid).expect("no invariant breaks");
        assert_eq!((totals.events, totals.never_freed <= totals.max_objects), (100, true));
        grid.finish().expect("no invariant breaks");
    }
}

/// Passes each event to a function.
struct Each<F>(F);

impl<F: FnMut(&Event<'_>)> EventSink for Each<F> {
    fn event(&mut self, event: &Event<'_>) -> hatf_trace::Result<()> {
        (self.0)(event);
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> hatf_trace::Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> hatf_trace::Result<()> {
        Ok(())
    }
}

/// Builds tables, pictures and comparisons, and checks that an input does not differ from itself. The input may be a
/// sample.
fn look(input: &[u8]) {
    let bytes = u64::from(input.first().copied().unwrap_or(0));
    let about =
        serde_json::json!({"sampling": (bytes > 127).then(|| serde_json::json!({"bytes": bytes << (bytes % 32)}))});
    let about = about.as_object().expect("it is one");
    let mut analysis = HeapTracker::new((ReportBuilder::new(), (Collected::new(), Leaks::new()))).with_sizes_only();
    let mut countings = [(); 2].map(|()| HeapTracker::new(Counting::new()));
    let mut compiler = Compiler::new(Cut { repair: true, ..Cut::default() }).expect("a temporary file");
    analysis.user_metadata(about).expect("it takes all");
    for counting in &mut countings {
        counting.user_metadata(about).expect("it takes all");
    }
    let each = &mut Each(|event: &Event<'_>| {
        analysis.event(event).expect("it takes all");
        // An event that cannot be replayed is an error.
        let _ = compiler.event(event);
        for counting in &mut countings {
            counting.event(event).expect("it takes all");
        }
    });
    nonsense::give(input, each).expect("it takes all");
    let _ = compiler.finish();
    let mut out = Vec::new();
    let (heap, (report, (collected, leaks))) = analysis.into_parts();
    let (counts, over_time, report) = (report.site_counts(), report.live_by_site(), report.report(&heap));
    printed(&report, &mut out);
    let folding = Folding { skip: vec!["n".to_owned()], whole: bytes % 3 == 0, ..Folding::default() };
    let places = Places::new(&heap.stacks, &folding, GroupBy::Function);
    let groups = Groups::new(&places, &counts);
    let leaked = leaks.report(&heap);
    let of_sites = leaked.sites();
    for (site, counts) in (0..).zip(&counts) {
        let found = of_sites.get(&site).copied().unwrap_or_default();
        // Saturated sums do not include what was added after they reached the maximum.
        let is_same = found.bytes == counts.leaked.bytes || counts.allocated.bytes == u64::MAX;
        assert!(is_same && found.blocks == counts.leaked.blocks, "{site}: {found:?} {counts:?}");
    }
    let suppressions = &Suppressions::known();
    let startup = Startup { end: Place { tick: bytes, ..Place::default() }, is_guess: bytes % 2 == 0 };
    let of = LeaksOf {
        name: "input",
        heap: &heap,
        leaked: &leaked,
        is_end: true,
        ending: Ending::Killed { signal: bytes },
        places: &places,
        startup,
        suppressions,
        known: suppressions,
    };
    printed(&LeaksReport::new(of, SiteTables { rows: 5, depth: 5, by_blocks: bytes % 2 == 0 }), &mut out);
    let below = &[Section::report(report.page())];
    let live = heap.objects.live().collect();
    let names = fragmentation::Names { site: &|_| String::new(), function: &|_| String::new() };
    let held = Moment::new(live, (heap.totals().events, 0), fragmentation::Settings::default(), names);
    let summed = collected.sum_up(&heap.objects).expect("sites are few");
    let mut recorded = summed.recorded("input".to_owned(), &heap, &report, counts.clone());
    recorded.add_pages("end", &held);
    let side = Side { recorded: &recorded, places: &places, groups: &groups };
    let sides = &[side, side];
    let sides = if bytes % 8 == 1 { &sides[..1] } else { &sides[..] };
    let facts = Facts { report: &report, places: &places, groups: &groups, counts: &counts, live: &over_time };
    let sentences = facts.sentences();
    if bytes % 4 == 1 {
        let page = HeapPage { title: "input", sides, sentences, has_functions: bytes % 3 != 1, below, threads: 1 };
        page.write(&mut out).expect("memory takes it");
    }
    let [before, after] = countings.map(|counting| {
        let (heap, counting) = counting.into_parts();
        counting.finish(heap)
    });
    let comparison = Comparison::new(&before, &after);
    let tables = SiteTables { rows: 5, depth: 5, by_blocks: bytes % 2 == 0 };
    let measures = Measure::ALL.to_vec();
    let places = Places::of_two([&before.stacks, &after.stacks], &folding);
    let groups = [Groups::new(&places[0], &before.sites), Groups::new(&places[1], &after.sites)];
    let functions = function_pairs((&places[0], &groups[0]), (&places[1], &groups[1]));
    assert!(functions.iter().all(|function| function.before == function.after));
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0_u64, u64::saturating_add);
    let of_functions = sum(&mut functions.iter().map(|function| function.before.allocated.blocks));
    assert_eq!(of_functions, sum(&mut before.sites.iter().map(|site| site.allocated.blocks)));
    let wrappers = places[1].wrappers_sentence();
    let title = String::new();
    printed(&Difference { title, comparison: &comparison, functions, folded: wrappers, measures, tables }, &mut out);
    assert!(comparison.all.before == comparison.all.after);
    assert!(comparison.sites.iter().all(|site| site.before == site.after));
    let mut graph = Flame::new("all", Unit::Bytes);
    for (site, counts) in (0..).zip(&before.sites) {
        graph.add(before.stacks.get(site).flat_map(Location::names), counts.allocated.bytes);
    }
    folded(&graph, &mut out).expect("memory takes it");
    in_every_form(&Page { figures: vec![graph.into()], ..Page::default() }, &mut out);
}

/// Prints a report in each of its formats.
fn printed(report: &impl Report, out: &mut Vec<u8>) {
    in_every_form(&report.page(), out);
    serde_json::to_writer(out, report).expect("memory takes it");
}

fn in_every_form(page: &Page, out: &mut Vec<u8>) {
    for form in [Form::text(None), Form::text(Some(60)), Form::Markdown, Form::Html] {
        render(page, form, out).expect("memory takes it");
    }
}

/// Infers regions for the calls of this input. Each object must be in one region, and each region must be left.
fn infer(input: &[u8]) {
    let pass = |observer: &mut dyn FnMut(&ObjectEvent) -> Result<()>| {
        let mut calls = HeapTracker::new(|event: &ObjectEvent| observer(event));
        for (time, bytes) in (0..).zip(input.as_chunks::<4>().0.iter().take(CALLS)) {
            let stack = [u64::from(bytes[1] % 3), u64::from(bytes[2] % 3), u64::from(bytes[3] % 2)];
            let stack = &stack[..usize::from(bytes[0] / 64)];
            let event =
                Event { time, thread: u64::from(bytes[3] / 128), stack: stack.into(), ..Event::new(call(*bytes)) };
            calls.event(&event).expect("no trace is refused");
        }
        let (Heap { objects, stacks, .. }, _) = calls.into_parts();
        (objects, stacks)
    };
    let (_, stacks) = pass(&mut |_| Ok(()));
    let mut enclosing = Enclosing::new(contexts(&stacks).expect("few stacks"));
    let (objects, _) = pass(&mut |event| enclosing.event(event));
    let mut costs = Costs::new(enclosing.finish(objects.live().map(|object| object.site)));
    pass(&mut |event| costs.event(event));
    let (enclosed, found) = costs.finish(input.len() as u64);
    let settings = Settings { block: 64, intra: Intra::First, inter: Inter::Capture, oversize: Oversize::Grow };
    let simulation = RegionSimulation::new([settings]).expect("a block has bytes");
    let mut trace = Vec::new();
    let writer = RegionWriter::new(simulation, Some(&mut trace), &Names::of_stacks(stacks), &enclosed.contexts, &found);
    let mut with = WithRegions::new(enclosed.contexts, found.clone(), writer.expect("memory takes it"));
    pass(&mut |event| with.event(event));
    let (peaks, writer) = with.finish().expect("memory takes it");
    assert!(peaks.after >= peaks.before);
    let regions = writer.finish().expect("memory takes it").finish(&[]).stacks;
    let objects: u64 = found.iter().map(|candidate| candidate.objects).sum();
    assert_eq!((regions.objects, regions.captured, regions.not_exited), (objects, objects, 0));
}

/// Does the same with functions and phases that begin and end anywhere.
fn infer_by_scopes(input: &[u8]) {
    fn give<O: Observer>(observer: O, input: &[u8]) -> (Heap, O) {
        let mut sink = HeapTracker::new(observer);
        for (time, bytes) in (0..).zip(input.as_chunks::<4>().0.iter().take(CALLS)) {
            let (thread, name) = (u64::from(bytes[3] / 128), &bytes[1..2 + usize::from(bytes[2] % 2)]);
            let kind = match bytes[0] / 16 {
                0 | 1 => EventKind::Enter { function: u64::from(bytes[1] % 4) << (bytes[2] % 64) },
                2 | 3 => EventKind::Leave,
                4 => EventKind::PhaseBegin { name },
                5 => EventKind::PhaseEnd { name },
                6 => EventKind::Mark { name },
                7 if bytes[1] % 8 == 0 => EventKind::ThreadEnd,
                7 if bytes[1] % 8 == 1 => EventKind::Recording { on: bytes[2] % 2 == 0 },
                _ => call(*bytes),
            };
            let stack = &[u64::from(bytes[1] % 3)][..usize::from(bytes[2] / 128)];
            sink.event(&Event { time, thread, stack: stack.into(), ..Event::new(kind) }).expect("no trace is refused");
        }
        sink.into_parts()
    }
    for by in [ScopeKind::Functions, ScopeKind::Phases] {
        let (heap, learns) = give(ScopeEvents::learn(by), input);
        let names = learns.finish(heap.stacks);
        let table = names.scopes().expect("these are scopes").clone();
        let enclosing = Enclosing::new(table.contexts().expect("few contexts"));
        let (heap, enclosing) = give(ScopeEvents::new(table.clone(), by, enclosing), input);
        let (live, enclosing) = enclosing.into_parts(&heap);
        let costs = Costs::new(enclosing.finish(live.into_iter()));
        let (heap, costs) = give(ScopeEvents::new(table.clone(), by, costs), input);
        let (enclosed, found) = costs.into_parts(&heap).1.finish(input.len() as u64);
        assert!(names.contradictions().count() <= enclosed.sites.len());
        let settings = Settings { block: 64, intra: Intra::First, inter: Inter::Capture, oversize: Oversize::Grow };
        let simulation = RegionSimulation::new([settings]).expect("a block has bytes");
        let mut trace = Vec::new();
        let writer = RegionWriter::new(simulation, Some(&mut trace), &names, &enclosed.contexts, &found);
        let with = WithRegions::new(enclosed.contexts, found.clone(), writer.expect("memory takes it"));
        let (heap, with) = give(ScopeEvents::new(table, by, with), input);
        let (peaks, writer) = with.into_parts(&heap).1.finish().expect("memory takes it");
        assert!(peaks.after >= peaks.before);
        let regions = writer.finish().expect("memory takes it").finish(&[]).stacks;
        let objects: u64 = found.iter().map(|candidate| candidate.objects).sum();
        assert_eq!((regions.objects, regions.captured, regions.not_exited), (objects, objects, 0));
    }
}

/// Runs arbitrary calls. No allocator invariant may break, the clock must count every event, wasted bytes must be
/// attributed, and every model must generate a trace.
///
/// # Panics
/// Panics if one of these checks fails.
pub fn experiment(input: &[u8]) {
    let names = [
        "bsd",
        "first",
        "best",
        "cache",
        "first:word=1:least=4:grow=8",
        "cache:entries=1:round=1",
        "glibc",
        "glibc:tcache=0:mmap=4096:trim=0",
        "jemalloc",
        "jemalloc:tcache=0:decay=0",
        "mimalloc",
        "tcmalloc",
        "tlsf",
        "buddy",
        "bump",
    ];
    let simulation = |name: &str| Simulation::new(name, by_name(name).expect("a known name")).with_invariants(64);
    let grid = Grid::new(names.map(simulation).into(), 1).expect("one thread needs no other");
    let table = if input.len().is_multiple_of(2) { "1x1" } else { "3x2" }.parse().expect("a table has entries");
    let settings = ProfilerSettings { table, ..ProfilerSettings::default() };
    let profiler = Profiler::new(settings, Sizes::default(), Vec::new()).expect("settings are right");
    let mut calls = HeapTracker::new(All { grid, held: Held::new(), fitter: fitter(input), profiler });
    for (time, bytes) in (0..).zip(input.as_chunks::<4>().0.iter().take(CALLS)) {
        let (thread, heap) = (u64::from(bytes[3] % 3), u64::from(bytes[2] % 2));
        let stack = &[u64::from(bytes[1] % 4)][..usize::from(bytes[0] / 128)];
        let event = Event { time, thread, heap, stack: stack.into(), ..Event::new(call(*bytes)) };
        calls.event(&event).expect("no invariant breaks");
    }
    let (heap, all) = calls.into_parts();
    let totals = heap.totals();
    let Heap { objects, stacks, .. } = heap;
    for outcome in all.grid.finish().expect("no invariant breaks") {
        assert_eq!((outcome.events, outcome.objects), (totals.events, totals.objects));
    }
    match all.fitter.finish(&totals, None) {
        Ok(fitted) => generate(&fitted.models()),
        // There is no object, or nothing that the clock counts.
        Err(error) => assert!(error.to_string().starts_with("the trace "), "{error}"),
    }
    let profiled = all.profiler.finish(objects.live()).expect("memory takes it");
    let infos = profiled.sink.into_iter().collect::<Merged>().finish();
    assert_eq!(infos.len(), profiled.contexts.len());
    assert_eq!(infos.iter().map(|info| info.alloc_count).sum::<u64>(), totals.objects);
    look(input);
    let mut taken = Taken::default();
    nonsense::give(input, &mut taken).expect("it takes all");
    share(input, &taken.events);
    infer(input);
    infer_by_scopes(input);
    let held = all.held.report();
    assert_eq!((held.tick, objects.live().count() as u64), (totals.events, totals.never_freed));
    for page in PAGES {
        let live = objects.live().collect();
        let settings = fragmentation::Settings { page, pin: None };
        let name = |site| format!("{:?}", stacks.get(site).collect::<Vec<_>>());
        let names = fragmentation::Names { site: &name, function: &name };
        let moment = Moment::new(live, (held.tick, held.time), settings, names);
        for shares in [&moment.threads, &moment.sizes] {
            let wasted: u64 = shares.iter().map(|share| share.wasted).sum();
            assert_eq!(wasted, moment.pages[0].wasted);
            let on_pages: u64 = moment.on_pages.iter().map(|on| on.wasted).sum();
            assert_eq!(on_pages, moment.pages[0].wasted);
        }
        let mut out = Vec::new();
        let mut page = Page::new("now");
        moment.describe("now", &mut page);
        page.figure(map("now".to_owned(), &moment));
        in_every_form(&page, &mut out);
    }
}
