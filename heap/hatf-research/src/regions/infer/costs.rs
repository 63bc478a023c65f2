//! The cost of a region in each call, and the choice of sites for the region.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::calls::{Active, Calls, Seen};
use super::{Context, Enclosed, RegionCandidate, ScopeObserver, index};
use hatf_lab::{Change, Object, ObjectEvent, Observer, Result};

/// The second pass, which computes the cost of a region in each context. The cost is computed for all suitable sites
/// together and for each site alone.
#[derive(Debug)]
pub struct Costs {
    enclosed: Enclosed,
    calls: Calls,
    /// Costs of all sites, by context.
    costs: Vec<Cost>,
    /// The cost of each site in each of its contexts.
    sites: Vec<Vec<Cost>>,
    /// The bytes of each site in each active call, keyed by serial number. Bytes count only in the innermost call that
    /// contains them.
    contents: Contents,
}

/// The cost of a region in one context.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Freed bytes still held by the region.
    idle: u64,
    /// The maximum of `idle`.
    most: u64,
}

impl Cost {
    fn freed(&mut self, size: u64) {
        self.idle = self.idle.saturating_add(size);
        self.most = self.most.max(self.idle);
    }

    /// Ends a call. All objects in the call's region were freed before, so all bytes of the region are idle.
    fn give_back(&mut self, bytes: u64) {
        self.idle = self.idle.saturating_sub(bytes);
    }
}

impl Costs {
    /// Creates an observer with an empty heap.
    #[must_use]
    pub fn new(enclosed: Enclosed) -> Self {
        let costs = vec![Cost::default(); enclosed.contexts.count()];
        let sites = (0..enclosed.sites.len() as u64).map(|site| vec![Cost::default(); enclosed.enclosing(site).len()]);
        let sites = sites.collect();
        Self { enclosed, calls: Calls::default(), costs, sites, contents: HashMap::new() }
    }

    /// Ends the pass. Returns the candidates in descending order of saved frees. For each site, the candidate is the
    /// outermost context whose region costs at most `limit` bytes, because outer contexts depend less on distinguishing
    /// calls.
    ///
    /// A region contains all suitable sites if together they do not exceed the limit. Each remaining site, in order of
    /// saved frees per byte, goes into the outermost context with enough room.
    #[must_use]
    pub fn finish(self, limit: u64) -> (Enclosed, Vec<RegionCandidate>) {
        let Self { enclosed, costs, sites: site_costs, .. } = self;
        let cost = |context: &Context| costs.get(*context as usize).map_or(0, |cost| cost.most);
        let mut candidates: HashMap<Context, RegionCandidate> = HashMap::new();
        let mut take = |context: Context, number: u64, cost: &dyn Fn(u64) -> u64| {
            let Some(site) = enclosed.sites.get(usize::try_from(number).unwrap_or(usize::MAX)) else { return };
            let calls = enclosed.begun.get(context as usize).copied().unwrap_or(0);
            let new = || RegionCandidate { context, calls, ..RegionCandidate::default() };
            let candidate = candidates.entry(context).or_insert_with(new);
            candidate.cost = cost(candidate.cost);
            candidate.sites.push(number);
            candidate.objects += site.objects;
            candidate.bytes = candidate.bytes.saturating_add(site.bytes);
        };
        // For each context, the sites without a sufficiently cheap region, and the cost of each site.
        let mut left: HashMap<Context, Vec<(u64, u64)>> = HashMap::new();
        for (number, _) in (0..).zip(&enclosed.sites).filter(|(_, site)| site.objects > 0) {
            let contexts = enclosed.enclosing(number);
            if let Some(context) = contexts.iter().find(|context| cost(context) <= limit) {
                take(*context, number, &|_| cost(context));
                continue;
            }
            let costs = index(number).and_then(|number| site_costs.get(number)).map_or(&[][..], Vec::as_slice);
            for (context, alone) in contexts.iter().zip(costs).filter(|(_, alone)| alone.most <= limit) {
                left.entry(*context).or_default().push((number, alone.most));
            }
        }
        let mut contexts: Vec<Context> = left.keys().copied().collect();
        contexts.sort_by_key(|context| (enclosed.contexts.depth(*context), *context));
        let mut taken = std::collections::HashSet::new();
        for context in contexts {
            let mut sites = left.remove(&context).unwrap_or_default();
            // The cost in bytes per saved free, as a fixed-point number.
            let price =
                |&(site, cost): &(u64, u64)| u128::from(cost) * (1 << 32) / u128::from(enclosed.objects(site).max(1));
            sites.sort_by_key(|site| (price(site), Reverse(enclosed.objects(site.0)), site.0));
            let mut spent = 0_u64;
            for (site, cost) in sites {
                let sum = spent.saturating_add(cost);
                if sum <= limit && taken.insert(site) {
                    take(context, site, &|before| before.saturating_add(cost));
                    spent = sum;
                }
            }
        }
        let mut candidates: Vec<_> = candidates.into_values().collect();
        candidates.iter_mut().for_each(|candidate| candidate.sites.sort_unstable());
        candidates.sort_by_key(|candidate| (Reverse(candidate.objects), candidate.context));
        (enclosed, candidates)
    }
}

/// Ends a call. The call's region returns its bytes, and its contents now belong to the enclosing call.
fn over(enclosed: &Enclosed, costs: &mut [Cost], sites: &mut [Vec<Cost>], contents: &mut Contents, over: Active) {
    if let Some(cost) = costs.get_mut(over.context as usize) {
        cost.give_back(over.bytes);
    }
    let Some(content) = contents.remove(&over.serial) else { return };
    let depth = enclosed.contexts.depth(over.context);
    for (site, bytes) in &content {
        let costs = index(*site).and_then(|site| sites.get_mut(site));
        if let Some(cost) = costs.and_then(|costs| costs.get_mut(depth.checked_sub(1)?)) {
            cost.give_back(*bytes);
        }
    }
    let Some(parent) = over.parent else { return };
    match contents.entry(parent) {
        std::collections::hash_map::Entry::Vacant(place) => drop(place.insert(content)),
        std::collections::hash_map::Entry::Occupied(mut place) => {
            for (site, bytes) in content {
                let sum = place.get_mut().entry(site).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
    }
}

type Contents = HashMap<u64, HashMap<u64, u64>>;

impl Observer for Costs {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let Object { size, thread, site, .. } = event.object;
        let Self { enclosed, calls, costs, sites, contents } = self;
        let enclosing = enclosed.enclosing(site);
        match event.change {
            Change::Allocated => {
                calls.see(thread, enclosed.contexts.shown(site), |seen| {
                    if let Seen::Over(call) = seen {
                        over(enclosed, costs, sites, contents, call);
                    }
                    Ok(())
                })?;
                if let Some(call) = calls.put(thread, enclosing.len(), size) {
                    let sum = contents.entry(call).or_default().entry(site).or_default();
                    *sum = sum.saturating_add(size);
                }
            }
            Change::Freed => {
                for context in enclosing {
                    if let Some(cost) = costs.get_mut(*context as usize) {
                        cost.freed(size);
                    }
                }
                let alone = index(site).and_then(|site| sites.get_mut(site)).into_iter().flatten();
                alone.for_each(|cost| cost.freed(size));
            }
        }
        Ok(())
    }
}

impl ScopeObserver for Costs {
    fn entered(&mut self, thread: u64, context: Context) -> Result<()> {
        self.calls.begin(thread, context);
        Ok(())
    }

    fn left(&mut self, thread: u64) -> Result<()> {
        if let Some(call) = self.calls.end(thread) {
            over(&self.enclosed, &mut self.costs, &mut self.sites, &mut self.contents, call);
        }
        Ok(())
    }
}
