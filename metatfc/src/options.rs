//! Options shared by several commands (`--threads`, `--memory`, `--class`, `--order`).

use metatf::container::{Class, Order};

#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct ThreadArgs {
    /// Number of threads; does not affect the output [default: the number of cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = metatf_cli::number(1..=1024_usize))]
    threads: Option<usize>,
}

impl ThreadArgs {
    /// Returns the number of threads, which is at least 1.
    pub(crate) fn number(self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct MemoryArgs {
    /// Memory for records being sorted, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, allow_negative_numbers = true, value_parser = metatf_cli::number(1..=1_usize << 20))]
    memory: usize,
}

impl MemoryArgs {
    /// Returns the number of bytes.
    pub(crate) fn bytes(self) -> usize {
        self.memory << 20
    }
}

/// Parses `--class`.
pub(crate) fn parse_class(text: &str) -> Result<Class, String> {
    text.parse().ok().and_then(Class::from_number).ok_or_else(|| "expected 1 (32-bit) or 2 (64-bit)".to_owned())
}

/// Parses `--order`.
pub(crate) fn parse_order(text: &str) -> Result<Order, String> {
    match text {
        "little" => Ok(Order::Little),
        "big" => Ok(Order::Big),
        _ => Err("expected `little` or `big`".to_owned()),
    }
}
