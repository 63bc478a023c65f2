//! A line on standard error that says how far the work is: only on a terminal, and only after a second.

use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use metatf::container::Sink;

/// A sink that shows how many bytes went into it.
pub(crate) struct Shown {
    sink: Box<dyn Sink>,
    started: Instant,
    bytes: u64,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Shown {
    /// `printing`: the sink is standard output, beside which nothing is shown where that is a terminal.
    pub(crate) fn new(sink: Box<dyn Sink>, printing: bool) -> Self {
        let wanted = io::stderr().is_terminal() && !(printing && io::stdout().is_terminal());
        Self { sink, started: Instant::now(), bytes: 0, wanted, bar: None }
    }

    fn show(&mut self) {
        let elapsed = self.started.elapsed();
        if !self.wanted || elapsed < Duration::from_secs(1) {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner().with_elapsed(elapsed);
            bar.set_draw_target(ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {bytes} written in {elapsed} ({bytes_per_sec})")
            {
                bar.set_style(style);
            }
            bar
        });
        bar.set_position(self.bytes);
    }
}

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.bytes += written as u64;
        self.show();
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl Sink for Shown {
    fn mark(&mut self) -> Option<u64> {
        self.sink.mark()
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.sink.overwrite(at, bytes)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
