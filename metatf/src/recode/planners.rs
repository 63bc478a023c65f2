//! Who plans the leaves of a block: the caller's thread, or several. Leaves are planned apart, so nothing depends on it.

#[cfg(feature = "parallel")]
use rayon::prelude::*;

/// Plans leaves.
pub(super) struct Planners {
    #[cfg(feature = "parallel")]
    pool: Option<rayon::ThreadPool>,
    /// Used again from leaf to leaf.
    scratch: Vec<u8>,
}

impl Planners {
    /// So many threads; 0 or 1: the caller's, which is also what plans where the system has none to give.
    #[cfg_attr(not(feature = "parallel"), allow(unused_variables, reason = "threads come with the feature"))]
    pub(super) fn new(threads: usize) -> Self {
        Self {
            #[cfg(feature = "parallel")]
            pool: (threads > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()).flatten(),
            scratch: Vec::new(),
        }
    }

    /// What `plan` makes of each leaf, in their order.
    pub(super) fn each<L: Send, T: Send>(
        &mut self,
        leaves: Vec<L>,
        plan: impl Fn(L, &mut Vec<u8>) -> T + Sync + Send,
    ) -> Vec<T> {
        #[cfg(feature = "parallel")]
        if let Some(pool) = &self.pool {
            let leaves = leaves.into_par_iter().with_max_len(1);
            return pool.install(|| leaves.map_init(Vec::new, |scratch, leaf| plan(leaf, scratch)).collect());
        }
        leaves.into_iter().map(|leaf| plan(leaf, &mut self.scratch)).collect()
    }
}
