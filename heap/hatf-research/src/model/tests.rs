//! Tests of the paper's worked example and of invariants of all models.

use proptest::prelude::*;

use super::*;
use hatf_lab::{Change, HeapTracker, ObjectEvent, Totals};
use hatf_trace::{Event, EventSink as _};

/// A call, which allocates a size or frees an earlier allocation.
#[derive(Clone, Copy, Debug)]
enum Call {
    Allocate(u64),
    Free(u64),
}

fn give(calls: &[(u64, Call)], observer: &mut impl hatf_lab::Observer) -> Totals {
    let give = |event: &ObjectEvent| observer.event(event);
    let (mut tracker, mut address) = (HeapTracker::new(give), 0);
    for (time, call) in calls.iter().copied() {
        match call {
            Call::Allocate(size) => {
                address += 1;
                tracker.event(&Event { time, ..Event::malloc(address, size) }).unwrap();
            }
            Call::Free(address) => tracker.event(&Event { time, ..Event::free(address) }).unwrap(),
        }
    }
    tracker.heap().totals()
}

fn fitted(calls: &[(u64, Call)], settings: Settings) -> Fitted {
    let mut clock = Running::new(settings.clock);
    give(calls, &mut clock);
    let mut fitter = Fitter::new(settings, Some(clock.end().unwrap())).unwrap();
    let totals = give(calls, &mut fitter);
    fitter.finish(&totals, None).unwrap()
}

/// Figure 1, with words replaced by bytes.
fn figure_1() -> Vec<(u64, Call)> {
    use Call::{Allocate, Free};
    vec![
        (1, Allocate(3)),
        (2, Allocate(3)),
        (3, Free(1)),
        (4, Allocate(2)),
        (5, Allocate(1)),
        (6, Free(4)),
        (8, Allocate(1)),
        (9, Allocate(2)),
        (11, Free(5)),
        (12, Free(2)),
        (12, Free(3)),
        (12, Free(6)),
    ]
}

/// The paper's models and variants.
fn of_paper() -> impl Iterator<Item = Kind> {
    Choice::ALL.iter().filter(|choice| **choice != Choice::Outline).map(|choice| Kind::same(*choice))
}

fn example(buckets: u64) -> Fitted {
    let kinds = of_paper().collect();
    fitted(&figure_1(), Settings { clock: Clock::Time, buckets, ..Settings::new(kinds) })
}

/// Sections 3.1 to 3.5 and Tables 1 and 2 as exact fractions.
#[test]
fn the_worked_example() {
    let fitted = example(3);
    let row = *fitted.row();
    assert_eq!((row.end, row.objects, row.bytes, row.max_objects, row.max_bytes), (12, 6, 12, 4, 8));
    assert_eq!((row.size_classes, row.interarrival_classes, row.holding_classes, row.never_freed), (3, 3, 5, 0));
    let model = |choice| fitted.model(Kind::same(choice));
    // 3.1: mean size 2, mean IAT 1.6, mean HT 4.5.
    let parts = model(Choice::Mean).parts().clone();
    let means = [parts.moments.size, parts.moments.iat, parts.moments.ht].map(|moments| moments.fraction());
    assert_eq!(means, [Some((2, 1)), Some((8, 5)), Some((9, 2))]);
    // 3.2: one third of the objects have each size.
    let parts = model(Choice::Cdf).parts().clone();
    assert_eq!(parts.histograms.size.unwrap().pairs(), [(1, 2), (2, 2), (3, 2)]);
    assert_eq!(reduced(4, 6), Some((2, 3)));
    assert_eq!(parts.histograms.ht.unwrap().pairs(), [(1, 1), (2, 1), (3, 2), (8, 1), (10, 1)]);
    assert_eq!(parts.histograms.iat.unwrap().pairs(), [(1, 3), (2, 1), (3, 1)]);
    // 3.3: mean HT 2, 5.5 and 6, mean IAT 6.
    let classes = model(Choice::Size).parts().classes.clone().unwrap();
    let of_class = |class: &super::file::Class| {
        (class.size, class.ht.fraction().unwrap(), reduced(row.end.into(), class.count.into()).unwrap())
    };
    let expected = [(1, (2, 1), (6, 1)), (2, (11, 2), (6, 1)), (3, (6, 1), (6, 1))];
    assert_eq!(classes.iter().map(of_class).collect::<Vec<_>>(), expected);
    // 3.4: mean HT 6.7, 2 and 3, mean IAT 1.3, 2 and 4, mean size 2.6, 1 and 2.
    let buckets = model(Choice::Time).parts().buckets.clone().unwrap();
    let of_bucket = |bucket: &super::file::Bucket| {
        let iat = reduced(u128::from(row.end) / 3, bucket.count.into());
        [bucket.ht.fraction(), iat, bucket.size.fraction()].map(Option::unwrap)
    };
    let expected = [[(20, 3), (4, 3), (8, 3)], [(2, 1), (2, 1), (1, 1)], [(3, 1), (4, 1), (2, 1)]];
    assert_eq!(buckets.iter().map(of_bucket).collect::<Vec<_>>(), expected);
    // Tables 1 and 2: count, mean HT, mean IAT.
    let cells = model(Choice::Trans).parts().transitions.clone().unwrap();
    assert_eq!(cells.first, 3);
    let of_cell = |cell: &super::file::Cell| {
        (cell.before, cell.size, cell.count, cell.ht.fraction().unwrap(), cell.iat.fraction().unwrap())
    };
    let expected = [
        (1, 1, 1, (3, 1), (3, 1)),
        (1, 2, 1, (3, 1), (1, 1)),
        (2, 1, 1, (1, 1), (1, 1)),
        (3, 2, 1, (8, 1), (2, 1)),
        (3, 3, 1, (10, 1), (1, 1)),
    ];
    assert_eq!(cells.cells.iter().map(of_cell).collect::<Vec<_>>(), expected);
}

/// "If a single bucket is chosen, this model degenerates into a mean-value model" (3.4). The interarrival time is an
/// exception.
#[test]
fn one_bucket() {
    let buckets = example(1).model(Kind::same(Choice::Time)).parts().buckets.clone().unwrap();
    let [bucket] = &buckets[..] else { panic!("{buckets:?}") };
    assert_eq!((bucket.size.fraction(), bucket.ht.fraction()), (Some((2, 1)), Some((9, 2))));
    assert_eq!(reduced(12, bucket.count.into()), Some((2, 1)));
}

/// Table 8's formulas, applied to the example.
#[test]
fn words() {
    let fitted = example(3);
    let words = |name: &str| {
        let Words { words, at_worst } = Words::of(&fitted.model(name.parse().unwrap()));
        (words, at_worst)
    };
    assert_eq!(words("mean"), (3, None));
    assert_eq!(words("cdf"), (3 + 3 + 5, None));
    assert_eq!(words("size"), (9, None));
    assert_eq!(words("time"), (9, None));
    assert_eq!(words("trans"), (3 + 3 * 5, Some(3 + 3 * 9)));
    assert_eq!(words("mix:size=cdf,iat=time,ht=mean"), (3 + 3 + 1, None));
}

#[test]
fn clocks_and_objects_never_freed() {
    let mut calls = figure_1();
    calls.truncate(9);
    let settings = |clock, unfreed| Settings { clock, unfreed, ..Settings::new(vec![Kind::same(Choice::Mean)]) };
    let hts = |clock, unfreed| {
        let parts = fitted(&calls, settings(clock, unfreed)).model(Kind::same(Choice::Cdf)).parts().clone();
        parts.histograms.ht.unwrap().pairs().to_vec()
    };
    // Allocations are at ticks 1 2 4 5 7 8, and frees at ticks 3 6 9.
    assert_eq!(hts(Clock::Events, Unfreed::Drop), [(1, 1), (2, 2)]);
    assert_eq!(hts(Clock::Events, Unfreed::End), [(1, 2), (2, 2), (5, 1), (7, 1)]);
    // The bytes at allocations are 3 6 8 9 10 12.
    assert_eq!(hts(Clock::Bytes, Unfreed::Drop), [(0, 1), (2, 1), (3, 1)]);
    let mut fitter = Fitter::new(settings(Clock::Time, Unfreed::End), None).unwrap();
    let totals = give(&[(0, Call::Allocate(1))], &mut fitter);
    assert!(fitter.finish(&totals, None).unwrap_err().to_string().contains("has no timestamps"));
    let fitter = Fitter::new(settings(Clock::Events, Unfreed::End), None).unwrap();
    assert!(fitter.finish(&Totals::default(), None).unwrap_err().to_string().contains("has no events"));
}

fn events(model: &Model, seed: u64, stream: u64, limits: Limits) -> Vec<(Change, u64, u64)> {
    let mut events = Vec::new();
    let mut note = |event: &ObjectEvent| {
        assert_eq!(event.tick, events.len() as u64 + 1);
        events.push((event.change, event.object.number, event.object.size));
        Ok(())
    };
    Generator::new(model, seed, stream, limits).run(&mut note).unwrap();
    events
}

/// TIME is deterministic, so its events can be computed by hand.
#[test]
fn time_by_hand() {
    let model = example(3).model(Kind::same(Choice::Time));
    let (a, f) = (Change::Allocated, Change::Freed);
    // Allocations at 4/3, 8/3 and 4 (freed at 8, 9 1/3, 10 2/3), 6 and 8 (freed at 8, 10), and 12 (freed at 15, after
    // the end).
    let expected = [
        (a, 0, 3),
        (a, 1, 3),
        (a, 2, 3),
        (a, 3, 1),
        (f, 0, 3),
        (f, 3, 1),
        (a, 4, 1),
        (f, 1, 3),
        (f, 4, 1),
        (f, 2, 3),
        (a, 5, 2),
    ];
    assert_eq!(events(&model, 1, 0, Limits::default()), expected);
    // To reach a requested number of events, the model starts over: 13 1/3, 14 2/3, 15 (the free), 16.
    let more = events(&model, 1, 0, Limits { events: Some(15), live: None });
    assert_eq!(more[..11], expected);
    assert_eq!(more[11..], [(a, 6, 3), (a, 7, 3), (f, 5, 2), (a, 8, 3)]);
}

/// A model and a seed produce the same events in every version and on every machine.
#[test]
fn events_are_pinned() {
    let fitted = example(3);
    let limits = Limits { events: Some(1000), live: None };
    let sum = |kind| {
        let mut sum = 0_u64;
        let mut add = |event: &ObjectEvent| {
            let ObjectEvent { change, time, object, .. } = event;
            for value in [u64::from(*change == Change::Allocated), object.number, object.size, *time] {
                sum = (sum ^ value).wrapping_mul(0x0100_0000_01b3);
            }
            Ok(())
        };
        Generator::new(&fitted.model(kind), 7, 0, limits).run(&mut add).unwrap();
        sum
    };
    let sums: Vec<u64> = of_paper().map(sum).collect();
    // TRANS and TRANS-MEAN coincide here because no pair of sizes has a variance.
    let expected: [u64; 12] = [
        773_760_507_729_476_074,
        9_553_330_004_480_907_094,
        412_959_385_691_256_539,
        12_385_450_977_529_189_056,
        2_217_313_853_091_785_312,
        14_503_515_430_741_483_099,
        9_058_676_850_310_745_597,
        6_390_125_251_871_473_560,
        11_383_205_864_791_787_035,
        9_537_205_571_365_242_601,
        16_051_436_926_514_079_283,
        2_217_313_853_091_785_312,
    ];
    assert_eq!(sums, expected);
}

/// Equal seeds produce equal traces. A different seed or stream produces a different trace.
#[test]
fn seeds() {
    let fitted = example(3);
    let limits = Limits { events: Some(200), live: None };
    for choice in of_paper() {
        let model = fitted.model(choice);
        let first = events(&model, 1, 0, limits);
        assert_eq!(first.len(), 200, "{choice:?}");
        assert_eq!(first, events(&model, 1, 0, limits), "{choice:?}");
        let certain = model.kind().is_certain();
        assert_eq!(first == events(&model, 2, 0, limits), certain, "{choice:?}");
        assert_eq!(first == events(&model, 1, 1, limits), certain, "{choice:?}");
    }
    let kinds =
        ["mix:size=cdf,iat=time,ht=size", "mix:size=size,iat=cdf,ht=trans", "mix:size=time,iat=mean,ht=trans-mean"];
    let settings = Settings { clock: Clock::Time, buckets: 5, ..Settings::new(Vec::new()) };
    let kinds: Vec<Kind> = kinds.iter().map(|kind| kind.parse().unwrap()).collect();
    let fitted = super::tests::fitted(&figure_1(), Settings { kinds: kinds.clone(), ..settings });
    for kind in kinds {
        assert_eq!(events(&fitted.model(kind), 1, 0, limits).len(), 200, "{kind}");
    }
}

#[test]
fn limits() {
    let model = example(3).model(Kind::same(Choice::Mean));
    let run = |limits| Generator::new(&model, 1, 0, limits).run(&mut |_: &ObjectEvent| Ok(()));
    let error = run(Limits { events: Some(1000), live: Some(3) }).unwrap_err();
    assert!(matches!(error, hatf_lab::Error::Memory(3)), "{error}");
    // A trace that exceeds the maximum number of events is rejected.
    let mut long = Generator::new(&model, 1, 0, Limits::default());
    long.most = 6;
    let error = long.run(&mut |_: &ObjectEvent| Ok(())).unwrap_err();
    assert!(error.to_string().contains("does not end within 6 events"), "{error}");
    // A model whose trace would take years is rejected after a million allocations, unless a number of events is
    // requested.
    let text = String::from_utf8(written(&model)).unwrap();
    let endless = text.replacen(&format!("\"end\":{}", model.end()), "\"end\":1000000000000000000", 1);
    let endless = Model::read(endless.as_bytes()).unwrap();
    let mut given = 0_u64;
    let mut count = |_: &ObjectEvent| {
        given += 1;
        Ok(())
    };
    let error = Generator::new(&endless, 1, 0, Limits::default()).run(&mut count).unwrap_err();
    assert!(error.to_string().contains("limit the trace with --events N"), "{error}");
    assert!(given < 1 << 22, "{given} events before the model was rejected");
    assert_eq!(events(&endless, 1, 0, Limits { events: Some(100), live: None }).len(), 100);
    // A model whose clock is stuck.
    let model = Model::read(text.replace("\"iat\":[5,8,16]", "\"iat\":[5,0,0]").as_bytes()).unwrap();
    let error = Generator::new(&model, 1, 0, Limits::default()).run(&mut |_: &ObjectEvent| Ok(())).unwrap_err();
    assert!(error.to_string().contains("does not advance"), "{error}");
}

fn written(model: &Model) -> Vec<u8> {
    let mut out = Vec::new();
    model.write(&mut out).unwrap();
    out
}

#[test]
fn models_are_read_back() {
    let fitted = example(3);
    let mixture = "mix:size=cdf,iat=time,ht=size".parse().unwrap();
    for kind in of_paper().chain([mixture]) {
        let model = fitted.model(kind);
        assert_eq!(Model::read(&written(&model)[..]).unwrap(), model, "{kind}");
    }
}

#[test]
fn wrong_models_are_refused() {
    let fitted = example(3);
    for (choice, from, to, message) in [
        (Choice::Mean, "{", "[", "not a model: expected"),
        (Choice::Mean, "hatf model", "other", "expected format `hatf model`, found `other`"),
        (Choice::Mean, "\"version\":1", "\"version\":2", "expected version 1, found version 2"),
        (Choice::Mean, "\"end\":12,\"trace\"", "\"end\":0,\"trace\"", "its clock ends at 0"),
        (Choice::Mean, "\"clock\"", "\"cluck\"", "unknown field `cluck`"),
        (Choice::Mean, "\"mean\"", "\"median\"", "model `median` is not one of"),
        (Choice::Mean, "\"mean\"", "\"cdf\"", "the histogram of size is missing"),
        (Choice::Mean, "[6,12,28]", "[0,12,28]", "the moments of size have a sum but no count"),
        (Choice::Mean, "[6,12,28]", "[0,0,0]", "it contains no objects"),
        (Choice::Mean, "[6,12,28]", "[6,-1,28]", "number out of range"),
        (Choice::Cdf, "[3,2]", "[3,18446744073709551615]", "the histogram of size"),
        (Choice::Cdf, "[3,2]", "[2,2]", "the histogram of size"),
        (Choice::CdfP2, "[1.0,1.0,2.0", "[1.0,-1.0,2.0", "the markers of size"),
        (Choice::Size, "[2,2,[", "[3,2,[", "size classes"),
        (Choice::Size, "\"classes\"", "\"buckets\"", "invalid"),
        (Choice::Time, "[3,[3,8,", "[4,[3,8,", "time buckets are missing"),
        (Choice::Trans, "[1,2,1,", "[1,2,0,", "size transitions are missing"),
    ] {
        let text = String::from_utf8(written(&fitted.model(Kind::same(choice)))).unwrap();
        assert!(text.contains(from), "{from}: {text}");
        let error = Model::read(text.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(message), "{from}: {error}");
    }
}

fn calls() -> impl Strategy<Value = Vec<(u64, Call)>> {
    let size = prop_oneof![8 => 0..50_u64, 1 => 0..100_000_u64, 1 => Just(u64::MAX)];
    let call = prop_oneof![3 => size.prop_map(Call::Allocate), 2 => (1..60_u64).prop_map(Call::Free)];
    let calls = prop::collection::vec((0..5_u64, call), 0..60);
    calls.prop_map(|calls| {
        let first = (1, Call::Allocate(1));
        let mut now = 1;
        let later = calls.into_iter().map(|(step, call)| {
            now += step;
            (now, call)
        });
        std::iter::once(first).chain(later).collect()
    })
}

/// A heap that is built up, used and torn down, with a spike and large objects.
fn phases() -> Vec<(u64, Call)> {
    let (mut calls, mut made, mut random) = (Vec::new(), 0, Random::new(5, 0));
    let mut allocate = |calls: &mut Vec<_>, size| {
        calls.push((0, Call::Allocate(size)));
        made += 1;
        made
    };
    let mut kept: Vec<u64> = (0..4000).map(|n| allocate(&mut calls, 16 + n % 48)).collect();
    for n in 0..8000 {
        let large = if n % 1000 == 0 { 20_000 + n } else { 100 };
        let temporary = [allocate(&mut calls, 24), allocate(&mut calls, large)];
        calls.extend(temporary.iter().rev().map(|address| (0, Call::Free(*address))));
        if n == 5555 {
            let spike: Vec<u64> = (0..900).map(|_| allocate(&mut calls, 200)).collect();
            calls.extend(spike.iter().map(|address| (0, Call::Free(*address))));
        }
        let at = usize::try_from(random.bits() % kept.len() as u64).unwrap();
        let replaced = std::mem::replace(&mut kept[at], allocate(&mut calls, 16 + n % 48));
        calls.push((0, Call::Free(replaced)));
    }
    calls.extend(kept.iter().skip(100).map(|address| (0, Call::Free(*address))));
    calls
}

/// The outline file is small, and its trace reproduces the peaks of every window, including spikes.
#[test]
fn outlines_follow_the_heap() {
    let kind = Kind::same(Choice::Outline);
    let calls = phases();
    let model = fitted(&calls, Settings::new(vec![kind])).model(kind);
    let text = written(&model);
    assert!(text.len() <= 64 << 10, "{}", text.len());
    let model = Model::read(&text[..]).unwrap();
    let mut tracking = evaluate::Tracking::default();
    let totals = give(&calls, &mut tracking);
    let actual = tracking.windows(&totals);
    for seed in 1..4 {
        let mut tracking = evaluate::Tracking::default();
        let synthetic = Generator::new(&model, seed, 0, Limits::default()).run(&mut tracking).unwrap();
        assert_eq!((synthetic.events, synthetic.objects), (totals.events, totals.objects));
        assert_eq!(synthetic.never_freed, totals.never_freed);
        for (at, (synthetic, actual)) in tracking.windows(&synthetic).iter().zip(&actual).enumerate() {
            let off = [0, 1].map(|n| synthetic[n].abs_diff(actual[n]));
            let most = [totals.max_bytes, totals.max_objects].map(|most| most / 50);
            assert!(off[0] <= most[0] && off[1] <= most[1], "window {at}: {synthetic:?}, {actual:?}");
        }
    }
    // After the last frame, playing continues with the first.
    let limits = Limits { events: Some(2 * totals.events), live: None };
    let twice = Generator::new(&model, 1, 0, limits).run(&mut |_: &ObjectEvent| Ok(())).unwrap();
    assert_eq!(twice.events, 2 * totals.events);
    let wrong = Settings { clock: Clock::Bytes, ..Settings::new(vec![kind]) };
    assert!(Fitter::new(wrong, Some(1)).unwrap_err().to_string().contains("--clock events"));
}

/// Even if there are nearly as many sizes as objects, of all magnitudes, the file does not grow and the peaks remain
/// close.
#[test]
fn outlines_of_all_sizes() {
    let kind = Kind::same(Choice::Outline);
    for powers in [8, 20, 44] {
        let (mut calls, mut live, mut random) = (Vec::new(), Vec::new(), Random::new(powers, 0));
        for address in 1..60_000 {
            let (power, bits) = (random.bits() % powers, random.bits());
            calls.push((0, Call::Allocate(1 << power | bits & ((1 << power) - 1))));
            live.push(address);
            // Grow, shrink and grow again.
            while live.len() as u64 > 200 + 1000 * (address / 10_000 % 2) {
                let at = usize::try_from(random.bits() % live.len() as u64).unwrap();
                calls.push((0, Call::Free(live.swap_remove(at))));
            }
        }
        let model = fitted(&calls, Settings::new(vec![kind])).model(kind);
        let text = written(&model);
        assert!((30_000..=64 << 10).contains(&text.len()), "{powers}: {}", text.len());
        let mut tracking = evaluate::Tracking::default();
        let totals = give(&calls, &mut tracking);
        let model = Model::read(&text[..]).unwrap();
        let synthetic = Generator::new(&model, 1, 0, Limits::default()).run(&mut |_: &ObjectEvent| Ok(())).unwrap();
        assert_eq!((synthetic.events, synthetic.objects), (totals.events, totals.objects), "{powers}");
        let off = synthetic.max_bytes.abs_diff(totals.max_bytes);
        assert!(off <= totals.max_bytes / 4, "{powers}: {} of {}", synthetic.max_bytes, totals.max_bytes);
    }
}

/// A number that may or may not be valid in a model.
fn token() -> impl Strategy<Value = String> {
    let whole =
        prop_oneof![0..20_u64, any::<u64>(), Just(u64::MAX), Just(1 << 53)].prop_map(|number| number.to_string());
    let other = ["-1", "0.5", "1e308", "-0.0", "340282366920938463463374607431768211455", "null", "[]", "\"x\""];
    prop_oneof![4 => whole, 1 => prop::sample::select(other.to_vec()).prop_map(str::to_owned)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A corrupt model file is rejected, or a trace can be generated from it.
    #[test]
    fn any_file(choice in 0..of_paper().count(), changes in prop::collection::vec((any::<prop::sample::Index>(), token()), 1..4)) {
        let mut text = String::from_utf8(written(&example(3).model(of_paper().nth(choice).unwrap()))).unwrap();
        for (place, token) in changes {
            // Replaces a number with another token.
            let digit = |at: &usize| text.as_bytes()[*at].is_ascii_digit();
            let starts: Vec<usize> = (1..text.len()).filter(|at| digit(at) && !digit(&(at - 1))).collect();
            let start = starts[place.index(starts.len())];
            let end = (start..text.len()).find(|at| !digit(at)).unwrap();
            text.replace_range(start..end, &token);
        }
        if let Ok(model) = Model::read(text.as_bytes()) {
            let limits = Limits { events: Some(200), live: Some(1 << 20) };
            for stream in 0..3 {
                let _ = Generator::new(&model, 1, stream, limits).run(&mut |_: &ObjectEvent| Ok(()));
            }
        }
    }

    /// The same for an outline, whose numbers are packed.
    #[test]
    fn any_outline(changes in prop::collection::vec((any::<prop::sample::Index>(), "[A-Za-z0-9_-]{1,3}"), 1..4)) {
        let kind = Kind::same(Choice::Outline);
        let model = fitted(&figure_1(), Settings::new(vec![kind])).model(kind);
        let mut text = String::from_utf8(written(&model)).unwrap();
        let begin = text.find("\"outline\":{").unwrap() + 10;
        for (place, change) in changes {
            let packed: Vec<usize> = (begin..text.len()).filter(|at| text.as_bytes()[*at].is_ascii_alphanumeric()).collect();
            let at = packed[place.index(packed.len())];
            text.replace_range(at..=at, &change);
        }
        if let Ok(model) = Model::read(text.as_bytes()) {
            let limits = Limits { events: Some(200), live: Some(1 << 20) };
            let _ = Generator::new(&model, 1, 0, limits).run(&mut |_: &ObjectEvent| Ok(()));
        }
    }

    /// Any model of any trace survives a round trip and generates a valid trace.
    #[test]
    fn any_trace(calls in calls(), clock in prop_oneof![Just(Clock::Events), Just(Clock::Time), Just(Clock::Bytes)],
                 drop in any::<bool>(), picks in any::<[prop::sample::Index; 3]>()) {
        let [size, iat, ht] = picks.map(|pick| of_paper().nth(pick.index(of_paper().count())).unwrap().size);
        let mixture = format!("mix:size={},iat={},ht={}", size.name(), iat.name(), ht.name()).parse::<Kind>();
        let mut kinds: Vec<Kind> = of_paper().collect();
        kinds.extend((clock == Clock::Events).then(|| Kind::same(Choice::Outline)));
        kinds.extend(mixture);
        let unfreed = if drop { Unfreed::Drop } else { Unfreed::End };
        let fitted = fitted(&calls, Settings { clock, unfreed, buckets: 7, ..Settings::new(kinds) });
        for model in fitted.models() {
            prop_assert_eq!(&Model::read(&written(&model)[..]).unwrap(), &model);
            let (mut live, mut last) = (std::collections::HashSet::new(), 0);
            let mut check = |event: &ObjectEvent| {
                assert!(event.time >= last && event.object.slot < 300);
                last = event.time;
                match event.change {
                    Change::Allocated => assert!(live.insert(event.object.number)),
                    Change::Freed => assert!(live.remove(&event.object.number)),
                }
                Ok(())
            };
            let limits = Limits { events: Some(300), live: None };
            let totals = Generator::new(&model, 1, 0, limits).run(&mut check).unwrap();
            prop_assert_eq!((totals.events, totals.never_freed), (300, live.len() as u64));
        }
    }
}
