//! A fuzz target over the analyses of heaps: what is well formed and makes no sense is counted, and never fails.

#[allow(dead_code, reason = "of a test of the command")]
#[path = "../../hatf/tests/it/common/nonsense.rs"]
mod nonsense;

use hatf::analysis::ReportBuilder;
use hatf::calls::{Folding, GroupBy, Groups, Places};
use hatf::event::{EventSink, UserMetadata};
use hatf::page::{Collected, HeapPage};
use hatf_lab::churn::{Churns, Settings as ChurnSettings};
use hatf_lab::compare::{Tables, pairs};
use hatf_lab::fragmentation::{Held, Moment, Settings};
use hatf_lab::growth::Growths;
use hatf_lab::kept::{Highest, Kept, Point};
use hatf_lab::model::{Fitter, Kind, Running, Settings as FitSettings};
use hatf_lab::profile::{Merged, Profiler, ProfilerSettings, Sizes};
use hatf_lab::simulate::Grid;
use hatf_lab::sites::{Amount, Measure, Sites};
use hatf_lab::whatif;
use hatf_lab::{Heap, HeapTracker, Observer};
use metatf_page::{Form, Report as _, render};
use std::path::Path;

/// Gives the events of the bytes to an observer; returns it, and the heap. None for a trace that is refused.
fn observed<O: Observer>(bytes: &[u8], observer: O) -> Option<(Heap, O)> {
    let mut tracker = HeapTracker::new(observer);
    if bytes.first().is_some_and(|first| first % 8 == 7) {
        let sampled: UserMetadata = serde_json::from_str(r#"{"sampling":{"bytes":512}}"#).unwrap();
        tracker.user_metadata(&sampled).unwrap();
    }
    nonsense::give(bytes, &mut tracker).ok()?;
    Some(tracker.into_parts())
}

/// Whatever stands in a trace, each analysis ends, and they count the same.
///
/// # Panics
/// They do not.
pub fn analyses(input: &[u8]) {
    let Some((heap, (report, (collected, (sites, held))))) =
        observed(input, (ReportBuilder::new(), (Collected::new(), (Sites::new(), Held::new()))))
    else {
        return;
    };
    let (counts, made) = (report.site_counts(), report.report(&heap));
    assert_eq!(counts, sites.report(), "the report counts sites as `hatf sites` does");
    let places = Places::new(&heap.stacks, &Folding::default(), GroupBy::Function);
    let groups = Groups::new(&places, &counts);
    for (measure, by_blocks) in Measure::ALL.into_iter().flat_map(|measure| [(measure, false), (measure, true)]) {
        let of = |amount: Amount| if by_blocks { amount.blocks } else { amount.bytes };
        let all = counts.iter().fold(0_u64, |sum, site| sum.saturating_add(of(site.get(measure))));
        let functions = groups.ranked(measure, false, by_blocks);
        let grouped = functions.iter().fold(0_u64, |sum, (_, amount)| sum.saturating_add(of(*amount)));
        assert_eq!(all, grouped, "{measure:?}: functions have between them what all stacks have");
    }
    let below = made.page();
    for form in [Form::text(Some(60)), Form::text(None), Form::Markdown, Form::Html] {
        let mut out = Vec::new();
        render(&below, form, &mut out).unwrap();
    }
    let page = HeapPage {
        title: "nonsense",
        heap: &heap,
        counts: &counts,
        collected: &collected,
        places: &places,
        groups: &groups,
        report: &made,
        below: &below,
    };
    let mut html = Vec::new();
    page.write(&mut html).unwrap();
    assert!(!String::from_utf8_lossy(&html).contains("</script>\")"), "names end no script");
    for settings in [Settings { page: 4096, pin: None }, Settings { page: 2 << 20, pin: Some(u64::MAX) }] {
        let moment =
            Moment::new(heap.objects.live().collect(), (held.report().tick, 0), settings, &|site| site.to_string());
        assert_eq!(moment.blocks, heap.objects.live().count() as u64);
    }

    let highest = observed(input, Highest::new()).unwrap().1.tick();
    for (from, to) in [(Point::Start, Point::Peak), (Point::Time(1000), Point::Tick(highest))] {
        let _ = observed(input, Kept::new(from.with_peak(highest), to.with_peak(highest))).unwrap().1.report();
    }
    let churns = observed(input, Churns::new(ChurnSettings::default())).unwrap().1;
    let short = churns.report().len();
    assert!(short <= counts.len(), "{short} sites churn, and there are {}", counts.len());
    assert!(observed(input, Growths::new()).unwrap().1.sites().len() <= counts.len());
    let (_, mine) = observed(input, Tables::new()).unwrap();
    let (_, reversed) = observed(&input.iter().rev().copied().collect::<Vec<_>>(), Tables::new()).unwrap();
    let threads = |counted: hatf_lab::compare::Counted| counted.threads;
    let pairs = pairs(threads(mine.report()), threads(reversed.report()));
    let before = pairs.iter().fold(0_u64, |sum, pair| sum.saturating_add(pair.before.allocated.bytes));
    let all = counts.iter().fold(0_u64, |sum, site| sum.saturating_add(site.allocated.bytes));
    assert_eq!(before, all, "threads have between them what all stacks have");
    let profiler = Profiler::new(ProfilerSettings::default(), Sizes::default(), Merged::new()).unwrap();
    let (heap, profiler) = observed(input, profiler).unwrap();
    let _ = profiler.finish(heap.objects.live());
    for kind in ["mean", "cdf", "outline"] {
        let kind: Kind = kind.parse().unwrap();
        let settings = FitSettings::new(vec![kind]);
        let end = observed(input, Running::new(settings.clock)).and_then(|(_, running)| running.end().ok());
        let Ok(fitter) = Fitter::new(settings, end) else { continue };
        if let Some((heap, fitter)) = observed(input, fitter)
            && let Ok(fitted) = fitter.finish(&heap.totals(), None)
        {
            let _ = fitted.models();
        }
    }
    let grid = Grid::new(whatif::simulations().unwrap(), 1).unwrap();
    if let Some((_, grid)) = observed(input, grid) {
        let _ = grid.finish();
    }
}

/// Heap traces of the vectors as they are, from both ends: any bytes are a trace.
pub fn seeds(path: &Path, bytes: &[u8]) -> Vec<Vec<u8>> {
    let is_heap = path.iter().any(|name| name.to_string_lossy().contains("hatf"));
    let is_trace = path.extension().is_some_and(|extension| extension == "mtf");
    if is_heap && is_trace { vec![bytes.to_vec(), bytes.iter().rev().copied().collect()] } else { Vec::new() }
}
