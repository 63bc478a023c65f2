//! Who plans the leaves of a block: the caller's thread, or several where there is work for them. Leaves are planned by themselves, so
//! nothing depends on it.

use super::offset_windows::Begin;
use super::plan_step::PlanStep;
#[cfg(feature = "parallel")]
use metatf::container::memory;
#[cfg(feature = "parallel")]
use rayon::prelude::*;
#[cfg(feature = "parallel")]
use std::sync::Mutex;

/// Room that is used again from leaf to leaf.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) steps: Vec<PlanStep>,
    /// For each step and mode the mode before it.
    pub(super) from: Vec<u8>,
    pub(super) begins: Vec<Begin>,
}

/// Steps that take little room, and little time.
#[cfg(feature = "parallel")]
const FEW: usize = 4096;

/// A room for this many steps. None much larger than they need: as it is not there for a leaf that does need it, another one would
/// grow as large.
#[cfg(feature = "parallel")]
fn fitting(idle: &mut Vec<Scratch>, steps: usize) -> Option<Scratch> {
    memory::fitting(idle, steps, steps.saturating_mul(16).max(FEW), |scratch| scratch.steps.capacity())
}

/// Plans leaves.
pub(super) struct Planners {
    #[cfg(feature = "parallel")]
    pool: Option<rayon::ThreadPool>,
    /// Of threads that plan no leaf now.
    #[cfg(feature = "parallel")]
    idle: Mutex<Vec<Scratch>>,
    scratch: Scratch,
}

impl Planners {
    /// With this many threads; 0 or 1: the caller's, which is also what plans where the system has none to give.
    #[cfg_attr(not(feature = "parallel"), allow(unused_variables, reason = "threads come with the feature"))]
    pub(super) fn new(threads: usize) -> Self {
        Self {
            #[cfg(feature = "parallel")]
            pool: (threads > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()).flatten(),
            #[cfg(feature = "parallel")]
            idle: Mutex::default(),
            scratch: Scratch::default(),
        }
    }

    /// Gives up the room that is kept for other leaves.
    pub(super) fn give_up(&mut self) {
        self.scratch = Scratch::default();
        #[cfg(feature = "parallel")]
        if let Ok(mut idle) = self.idle.lock() {
            idle.clear();
        }
    }

    /// What `plan` makes of each leaf, in their order; `steps`: about how many steps it has.
    #[cfg_attr(not(feature = "parallel"), allow(unused_variables, reason = "threads come with the feature"))]
    pub(super) fn each<L: Send, T: Send>(
        &mut self,
        leaves: Vec<L>,
        steps: impl Fn(&L) -> usize + Sync + Send,
        plan: impl Fn(L, &mut Scratch) -> T + Sync + Send,
    ) -> Vec<T> {
        #[cfg(feature = "parallel")]
        if let Some(pool) = &self.pool
            && leaves.iter().filter(|leaf| steps(leaf) > FEW).nth(1).is_some()
        {
            let idle = &self.idle;
            let plan = |leaf| {
                let mut scratch =
                    idle.lock().ok().and_then(|mut idle| fitting(&mut idle, steps(&leaf))).unwrap_or_default();
                let planned = plan(leaf, &mut scratch);
                if let Ok(mut idle) = idle.lock() {
                    idle.push(scratch);
                }
                planned
            };
            let leaves = leaves.into_par_iter().with_max_len(1);
            return pool.install(|| leaves.map(plan).collect());
        }
        leaves.into_iter().map(|leaf| plan(leaf, &mut self.scratch)).collect()
    }
}
