//! Compares the results with those of a search of the complete list of events.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use hatf_lab::{ObjectEvent, Objects};
use hatf_trace::Event;

/// The stacks of sites in functions that call each other. Site 0 has no stack.
const PATHS: [&[u64]; 8] = [&[], &[1], &[1, 2], &[1, 2, 3], &[1, 2, 4], &[1, 3], &[5], &[5, 2]];

fn at(site: u64) -> usize {
    usize::try_from(site).unwrap()
}

fn contexts() -> Contexts {
    let path = |path: &&[u64]| path.iter().map(|&caller| StackCall { caller, function: 0 }).collect();
    Contexts::new(PATHS.iter().map(path)).unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Do {
    Allocate {
        thread: u64,
        site: u64,
        size: u64,
    },
    /// Frees one of the live objects, if there are live objects.
    Free(usize),
}

fn events() -> impl Strategy<Value = Vec<Do>> {
    let allocate = (0..2_u64, 0..PATHS.len() as u64, 1..50_u64);
    let allocate = allocate.prop_map(|(thread, site, size)| Do::Allocate { thread, site, size });
    vec(prop_oneof![allocate, any::<usize>().prop_map(Do::Free)], 0..60)
}

/// An object with the indices of the events at which it begins and ends.
#[derive(Clone, Copy, Debug)]
struct Known {
    thread: u64,
    site: u64,
    size: u64,
    begin: usize,
    end: Option<usize>,
}

fn run(events: &[Do], observer: &mut dyn Observer) -> (Objects, Vec<Known>) {
    let (mut objects, mut known, mut live) = (Objects::new(), Vec::<Known>::new(), Vec::new());
    let give = &mut |event: &ObjectEvent| observer.event(event);
    for (now, event) in events.iter().enumerate() {
        match *event {
            Do::Allocate { thread, site, size } => {
                let address = 16 * (known.len() as u64 + 1);
                objects.follow(&Event { thread, ..Event::malloc(address, size) }, site, give).unwrap();
                live.push(known.len());
                known.push(Known { thread, site, size, begin: now, end: None });
            }
            Do::Free(which) if !live.is_empty() => {
                let object = live.swap_remove(which % live.len());
                let thread = known[object].thread;
                let free = Event { thread, ..Event::free(16 * (object as u64 + 1)) };
                objects.follow(&free, 0, give).unwrap();
                known[object].end = Some(now);
            }
            Do::Free(_) => {}
        }
    }
    (objects, known)
}

/// Returns the end of the call at this depth of an allocation's stack. The call ends with the thread's next allocation
/// whose stack differs up to this depth.
fn over(events: &[Do], object: &Known, depth: usize) -> usize {
    let own = &PATHS[at(object.site)][..depth];
    let other = |event: &Do| match *event {
        Do::Allocate { thread, site, .. } if thread == object.thread && site != 0 => !PATHS[at(site)].starts_with(own),
        _ => false,
    };
    let after = events.iter().enumerate().skip(object.begin + 1);
    after.into_iter().find(|(_, event)| other(event)).map_or(usize::MAX, |(now, _)| now)
}

fn enclosed(events: &[Do]) -> (Enclosed, Vec<Known>) {
    let mut enclosing = Enclosing::new(contexts());
    let (objects, known) = run(events, &mut enclosing);
    (enclosing.finish(objects.live().map(|object| object.site)), known)
}

/// Returns the depth of the innermost call in which all objects of a site end.
fn depth_of(events: &[Do], known: &[Known], site: u64) -> usize {
    let path = PATHS[at(site)];
    let fits = |object: &Known, depth: usize| object.end.is_some_and(|end| end < over(events, object, depth));
    let all = |depth: &usize| known.iter().filter(|object| object.site == site).all(|object| fits(object, *depth));
    (1..=path.len()).rev().find(all).unwrap_or(0)
}

proptest! {
    #[test]
    fn the_innermost_context(events in events()) {
        let (found, known) = enclosed(&events);
        for site in 1..PATHS.len() as u64 {
            let context = found.sites[at(site)].context;
            prop_assert_eq!(found.contexts.depth(context), depth_of(&events, &known, site), "site {}", site);
        }
    }

    #[test]
    fn what_regions_cost(events in events(), limit in 0..200_u64) {
        let (found, known) = enclosed(&events);
        let mut costs = Costs::new(found.clone());
        run(&events, &mut costs);
        let (_, candidates) = costs.finish(limit);
        // Returns the freed bytes that the active regions of a context still hold.
        let idle = |now: usize, depth: usize, of: &dyn Fn(&Known) -> bool| -> u64 {
            let idle = |object: &&Known| object.end.is_some_and(|end| end <= now) && over(&events, object, depth) > now;
            known.iter().filter(|object| of(object)).filter(idle).map(|object| object.size).sum()
        };
        let alone = |site: u64, depth: usize| -> u64 {
            (0..events.len()).map(|now| idle(now, depth, &|object| object.site == site)).max().unwrap_or(0)
        };
        let mut chosen = vec![None; PATHS.len()];
        for candidate in &candidates {
            let depth = found.contexts.depth(candidate.context);
            let inside = |object: &Known| {
                found.contexts.path(object.site).get(depth - 1) == Some(&candidate.context)
                    && depth_of(&events, &known, object.site) >= depth
            };
            let most = (0..events.len()).map(|now| idle(now, depth, &inside)).max().unwrap_or(0);
            let sum = || candidate.sites.iter().map(|site| alone(*site, depth)).sum::<u64>();
            prop_assert_eq!(candidate.cost, if most <= limit { most } else { sum() });
            prop_assert!(candidate.cost <= limit);
            candidate.sites.iter().for_each(|site| chosen[at(*site)] = Some(depth));
        }
        // If a site has no candidate, adding the site to any call in which its objects end would exceed the limit.
        for site in (1..PATHS.len() as u64).filter(|site| chosen[at(*site)].is_none() && found.objects(*site) > 0) {
            for depth in 1..=depth_of(&events, &known, site) {
                let of = |candidate: &&RegionCandidate| candidate.context == found.contexts.path(site)[depth - 1];
                let spent = candidates.iter().find(of).map_or(0, |candidate| candidate.cost);
                prop_assert!(alone(site, depth) + spent > limit, "site {} at {}", site, depth);
            }
        }
        let mut with = WithRegions::new(found.contexts.clone(), candidates, Depths::default());
        run(&events, &mut with);
        let (peaks, depths) = with.finish().unwrap();
        let live = |now: usize| -> u64 {
            let live = |object: &&Known| object.begin <= now && object.end.is_none_or(|end| end > now);
            known.iter().filter(live).map(|object| object.size).sum()
        };
        let after = |now: usize| -> u64 {
            let site = |site: usize| chosen[site].map_or(0, |depth| idle(now, depth, &|object| at(object.site) == site));
            live(now) + (0..PATHS.len()).map(site).sum::<u64>()
        };
        let most = |of: &dyn Fn(usize) -> u64| (0..events.len()).map(of).max().unwrap_or(0);
        prop_assert_eq!(peaks, Peaks { before: most(&live), after: most(&after) });
        prop_assert!(depths.0.values().all(|depth| *depth == 0), "all entered regions should be left");
        let in_regions = known.iter().filter(|object| chosen[at(object.site)].is_some()).count();
        prop_assert_eq!(depths.1, in_regions);
    }
}

/// The number of regions entered by each thread, and the number of objects allocated in regions.
#[derive(Default)]
struct Depths(HashMap<u64, usize>, usize);

impl Scopes for Depths {
    fn enter(&mut self, thread: u64, _: usize) -> Result<()> {
        *self.0.entry(thread).or_default() += 1;
        Ok(())
    }

    fn exit(&mut self, thread: u64) -> Result<()> {
        let depth = self.0.get_mut(&thread).unwrap();
        *depth = depth.checked_sub(1).unwrap();
        Ok(())
    }

    fn allocate(&mut self, thread: u64, _: u64, _: u64) -> Result<()> {
        assert!(self.0[&thread] > 0);
        self.1 += 1;
        Ok(())
    }
}

/// Each of two requests allocates a block that ends during the request, and one request allocates a block that outlives
/// it.
#[test]
fn an_arena_for_a_request() {
    let serve = |site| Do::Allocate { thread: 0, site, size: 10 };
    // Site 2 is called by the server, and sites 3 and 4 by the request that it handles.
    let events = [serve(2), serve(3), serve(4), Do::Free(1), serve(2), serve(3), Do::Free(3)];
    let (found, known) = enclosed(&events);
    assert_eq!(known.iter().filter(|object| object.end.is_some()).count(), 2);
    let depths: Vec<_> = [2, 3, 4].map(|site| found.contexts.depth(found.sites[site].context)).into();
    assert_eq!(depths, [0, 2, 0], "objects that are never freed should not end in a call");
}

/// A step of a program with two threads that records its scopes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(u64, u64),
    Leave(u64),
    Allocate { thread: u64, stack: u64, size: u64 },
    Free(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..2_u64, 0..3_u64).prop_map(|(thread, scope)| Step::Enter(thread, scope)),
        (0..2_u64).prop_map(Step::Leave),
        (0..2_u64, 0..2_u64, 1..50_u64).prop_map(|(thread, stack, size)| Step::Allocate { thread, stack, size }),
        any::<usize>().prop_map(Step::Free),
    ];
    vec(step, 0..80)
}

fn give<O: ScopeObserver>(steps: &[Step], scoped: &mut Scoped<O>) -> Objects {
    let (mut objects, mut count, mut live) = (Objects::new(), 0, Vec::new());
    for step in steps {
        match *step {
            Step::Enter(thread, scope) => scoped.enter(thread, scope).unwrap(),
            Step::Leave(thread) => drop(scoped.leave(thread).unwrap()),
            Step::Allocate { thread, stack, size } => {
                count += 1;
                let malloc = Event { thread, ..Event::malloc(16 * count, size) };
                objects.follow(&malloc, stack, &mut |event| scoped.event(event)).unwrap();
                live.push((thread, 16 * count));
            }
            Step::Free(which) if !live.is_empty() => {
                let (thread, address) = live.swap_remove(which % live.len());
                let free = Event { thread, ..Event::free(address) };
                objects.follow(&free, 0, &mut |event| scoped.event(event)).unwrap();
            }
            Step::Free(_) => {}
        }
    }
    objects
}

/// Computes, for each stack and scope path, how many of the scopes enclose the lifetimes of all objects.
fn by_hand(steps: &[Step]) -> HashMap<(u64, Vec<u64>), usize> {
    /// A live object, with its site and the calls in which it was allocated.
    type Live = ((u64, Vec<u64>), u64, Vec<usize>);
    let mut open: HashMap<u64, Vec<(u64, usize)>> = HashMap::new();
    let (mut live, mut depths) = (Vec::<Live>::new(), HashMap::new());
    for (now, step) in steps.iter().enumerate() {
        match *step {
            Step::Enter(thread, scope) => open.entry(thread).or_default().push((scope, now)),
            Step::Leave(thread) => drop(open.entry(thread).or_default().pop()),
            Step::Allocate { thread, stack, .. } => {
                let (scopes, calls): (Vec<u64>, Vec<usize>) = open.entry(thread).or_default().iter().copied().unzip();
                depths.entry((stack, scopes.clone())).or_insert(scopes.len());
                live.push(((stack, scopes), thread, calls));
            }
            Step::Free(which) if !live.is_empty() => {
                let (site, thread, calls) = live.swap_remove(which % live.len());
                let active = &open[&thread];
                let still = calls.iter().zip(active).take_while(|(call, (_, begun))| *call == begun).count();
                let depth = depths.get_mut(&site).unwrap();
                *depth = still.min(*depth);
            }
            Step::Free(_) => {}
        }
    }
    live.into_iter().for_each(|(site, ..)| _ = depths.insert(site, 0));
    depths
}

proptest! {
    #[test]
    fn exact_with_entries(steps in steps(), limit in 0..200_u64) {
        let mut learn = Scoped::learn();
        give(&steps, &mut learn);
        let table = learn.finish();
        let mut scoped = Scoped::new(table.clone(), Enclosing::new(table.contexts().unwrap()));
        let objects = give(&steps, &mut scoped);
        let live: Vec<u64> = objects.live().map(|object| scoped.site(&object)).collect();
        let found = scoped.into_inner().finish(live.into_iter());
        let mut depths = HashMap::new();
        for (number, site) in (0..).zip(&found.sites).skip(1) {
            prop_assert!(site.objects > 0);
            let innermost = found.contexts.path(number).last().copied().unwrap_or(0);
            let mut scopes: Vec<u64> = table.scopes(innermost).collect();
            scopes.reverse();
            depths.insert((table.stack(number), scopes), found.contexts.depth(site.context));
        }
        prop_assert_eq!(depths, by_hand(&steps));
        let mut costs = Scoped::new(table.clone(), Costs::new(found));
        give(&steps, &mut costs);
        let (enclosed, candidates) = costs.into_inner().finish(limit);
        prop_assert!(candidates.iter().all(|candidate| candidate.cost <= limit));
        let objects: u64 = candidates.iter().map(|candidate| candidate.objects).sum();
        let with = WithRegions::new(enclosed.contexts, candidates, Depths::default());
        let mut scoped = Scoped::new(table, with);
        give(&steps, &mut scoped);
        let (peaks, depths) = scoped.into_inner().finish().unwrap();
        prop_assert!(peaks.after >= peaks.before);
        prop_assert!(depths.0.values().all(|depth| *depth == 0));
        prop_assert_eq!(depths.1 as u64, objects);
    }
}

/// Memory stays bounded even for unlimited call depth, and each end is matched with its call.
#[test]
fn calls_deeper_than_any() {
    let mut steps: Vec<Step> = (0..1000).map(|_| Step::Enter(0, 7)).collect();
    steps.push(Step::Allocate { thread: 0, stack: 1, size: 1 });
    steps.push(Step::Free(0));
    steps.extend((0..2000).map(|_| Step::Leave(0)));
    let mut learn = Scoped::learn();
    give(&steps, &mut learn);
    assert_eq!(learn.innermost(0), None);
    let contexts = learn.finish().contexts().unwrap();
    assert_eq!(contexts.path(1).len(), MOST_DEPTH);
}
