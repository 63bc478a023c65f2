//! `--threads`: how many threads work at once.

use clap::builder::RangedU64ValueParser;

#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct ThreadArgs {
    /// Threads that work at once; what comes out is the same for any number [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,
}

impl ThreadArgs {
    /// The number, at least 1.
    pub(crate) fn number(self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}
