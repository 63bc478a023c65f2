//! The threads that plan the leaves of a block. These are the caller's thread or, if there is enough work, several
//! threads. Leaves are planned independently, so the result is the same.

use super::offset_windows::Begin;
use super::plan_step::PlanStep;
#[cfg(feature = "parallel")]
use metatf::container::memory;
#[cfg(feature = "parallel")]
use rayon::prelude::*;
#[cfg(feature = "parallel")]
use std::sync::Mutex;

/// Memory that is reused from leaf to leaf.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) steps: Vec<PlanStep>,
    /// The preceding mode for each step and mode.
    pub(super) from: Vec<u8>,
    pub(super) begins: Vec<Begin>,
}

/// Number of steps that take little memory and time.
#[cfg(feature = "parallel")]
const FEW: usize = 4096;

/// Takes scratch memory that is large enough for this many steps but not much larger. Otherwise, another thread with a
/// larger leaf would have to grow a second scratch memory to the same size.
#[cfg(feature = "parallel")]
fn fitting(idle: &mut Vec<Scratch>, steps: usize) -> Option<Scratch> {
    memory::fitting(idle, steps, steps.saturating_mul(16).max(FEW), |scratch| scratch.steps.capacity())
}

/// Plans leaves.
pub(super) struct Planners {
    #[cfg(feature = "parallel")]
    pool: Option<rayon::ThreadPool>,
    /// The scratch memory of idle threads.
    #[cfg(feature = "parallel")]
    idle: Mutex<Vec<Scratch>>,
    scratch: Scratch,
}

impl Planners {
    /// Creates planners with this many threads. If `threads` is 0 or 1, or if the system cannot create threads, the
    /// caller's thread plans all leaves.
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

    /// Releases the scratch memory kept for reuse.
    pub(super) fn give_up(&mut self) {
        self.scratch = Scratch::default();
        #[cfg(feature = "parallel")]
        if let Ok(mut idle) = self.idle.lock() {
            idle.clear();
        }
    }

    /// Returns the result of `plan` for each leaf, in order. `steps` returns the approximate number of steps of a leaf.
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
