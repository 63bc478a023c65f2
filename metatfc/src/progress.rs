//! A line on standard error that says how far the work is: only on a terminal, and only after a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// Steps between two looks at the clock.
const STEPS: u64 = 1 << 14;

/// Counts steps, records as a rule.
pub(crate) struct Progress {
    started: Instant,
    steps: u64,
    what: &'static str,
    bar: Option<ProgressBar>,
    wanted: bool,
}

impl Progress {
    /// Of work that prints to standard output as it goes: nothing is shown where that is the terminal.
    pub(crate) fn printing(what: &'static str) -> Self {
        let mut progress = Self::silent(what);
        progress.wanted &= !std::io::stdout().is_terminal();
        progress
    }

    /// Of work that prints nothing before its end.
    pub(crate) fn silent(what: &'static str) -> Self {
        Self { started: Instant::now(), steps: 0, what, bar: None, wanted: std::io::stderr().is_terminal() }
    }

    /// One step more.
    pub(crate) fn step(&mut self) {
        self.steps += 1;
        if self.wanted && self.steps.is_multiple_of(STEPS) {
            self.show();
        }
    }

    /// So many steps more, at least a few thousand as a rule.
    pub(crate) fn add(&mut self, steps: u64) {
        self.steps += steps;
        if self.wanted {
            self.show();
        }
    }

    #[cold]
    fn show(&mut self) {
        let elapsed = self.started.elapsed();
        if elapsed < Duration::from_secs(1) {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner().with_elapsed(elapsed);
            bar.set_draw_target(ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} {msg} in {elapsed} ({per_sec})") {
                bar.set_style(style);
            }
            bar.set_message(self.what);
            bar
        });
        bar.set_position(self.steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
