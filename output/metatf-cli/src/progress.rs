//! A progress line on standard error, shown only on a terminal and only if the work takes more than a second.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use metatf::container::Sink;
use metatf_page::units::count;

/// The number of steps between two checks of the clock.
const STEPS: u64 = 1 << 14;

/// The duration of work below which nothing is shown.
const QUICK: Duration = Duration::from_secs(1);

/// The interval at which the spinner turns, even if no step is counted in the meantime.
const TICK: Duration = Duration::from_millis(200);

/// A counter that shows the number of steps.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    steps: u64,
    /// The total number of steps, or 0 if unknown.
    total: u64,
    template: &'static str,
    unit: &'static str,
    bar: Option<ProgressBar>,
    /// Whether anything may be shown.
    enabled: bool,
}

impl Progress {
    /// Creates a counter of `unit`, usually records, for work that prints nothing before its end.
    #[must_use]
    pub fn new(unit: &'static str) -> Self {
        Self::with_template(unit, "{spinner} {human_pos} {msg} in {elapsed} ({rate})")
    }

    fn with_template(unit: &'static str, template: &'static str) -> Self {
        let (started, enabled) = (Instant::now(), io::stderr().is_terminal());
        Self { started, steps: 0, total: 0, template, unit, bar: None, enabled }
    }

    /// Sets the total number of steps; 0 means unknown.
    #[must_use]
    pub fn of(mut self, total: u64) -> Self {
        self.total = total;
        if total > 0 {
            self.template = "{spinner} {percent}%, {human_pos} of {human_len} {msg} in {elapsed} ({rate}), {eta} left";
        }
        self
    }

    /// On a terminal, prints a line that explains why the work is slow, and shows progress from the start.
    #[must_use]
    pub fn slow(mut self, why: &str) -> Self {
        if self.enabled {
            let _ = writeln!(io::stderr().lock(), "{why}");
            self.bar();
        }
        self
    }

    /// Declares that the work prints to standard output while it runs. Nothing is shown if standard output is a
    /// terminal.
    #[must_use]
    pub fn printing(mut self) -> Self {
        self.enabled &= !io::stdout().is_terminal();
        self
    }

    /// Returns whether steps may be shown. If not, they need not be counted.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.enabled
    }

    /// Counts one step.
    pub fn step(&mut self) {
        self.steps += 1;
        if self.enabled && self.steps.is_multiple_of(STEPS) {
            self.show();
        }
    }

    /// Counts several steps, usually a few thousand.
    pub fn add(&mut self, steps: u64) {
        self.steps += steps;
        if self.enabled {
            self.show();
        }
    }

    #[cold]
    fn show(&mut self) {
        if self.bar.is_some() || self.started.elapsed() >= QUICK {
            let steps = self.steps;
            self.bar().set_position(steps);
        }
    }

    fn bar(&mut self) -> &ProgressBar {
        self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner().with_elapsed(self.started.elapsed());
            bar.set_draw_target(ProgressDrawTarget::stderr());
            if self.total > 0 {
                bar.set_length(self.total);
            }
            if let Ok(style) = ProgressStyle::with_template(self.template) {
                bar.set_style(style.with_key("rate", rate));
            }
            bar.set_message(self.unit);
            bar.enable_steady_tick(TICK);
            bar
        })
    }
}

/// Prints the steps per second with two significant digits, because more digits would only flicker.
fn rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate that is shown in two digits")]
    let rate = state.per_sec().max(0.0) as u64;
    let _ = write!(out, "{}/s", count(rounded(rate)));
}

/// Rounds to two significant digits.
fn rounded(number: u64) -> u64 {
    let digit = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    number.saturating_add(digit / 2) / digit * digit
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A sink that shows the number of bytes written.
pub struct ProgressSink<S> {
    sink: S,
    progress: Progress,
}

impl<S: Sink> ProgressSink<S> {
    /// Creates the sink. `printing` means that the sink is standard output; nothing is shown if this is a terminal.
    pub fn new(sink: S, printing: bool) -> Self {
        let progress = Progress::with_template("", "{spinner} {bytes} written in {elapsed} ({bytes_per_sec})");
        Self { sink, progress: if printing { progress.printing() } else { progress } }
    }
}

impl<S: Sink> Write for ProgressSink<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.progress.add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl<S: Sink> Sink for ProgressSink<S> {
    fn mark(&mut self) -> Option<u64> {
        self.sink.mark()
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.sink.overwrite(at, bytes)
    }

    fn is_volatile(&self) -> bool {
        self.sink.is_volatile()
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn rates_have_two_digits() {
        let numbers = [0, 9, 99, 104, 105, 123_456, 995_000, u64::MAX].map(rounded);
        assert_eq!(numbers, [0, 9, 99, 100, 110, 120_000, 1_000_000, 18_000_000_000_000_000_000]);
    }
}
