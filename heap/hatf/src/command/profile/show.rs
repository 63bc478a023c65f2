//! `hatf profile show`: prints profiles.

use std::path::PathBuf;

use hatf_lab::profile::{Column, Thresholds};
use hatf_trace::Result;
use hatf_view::report::{ProfileReport, ProfileTable, Shows};
use metatf_cli::OutputArgs;

use super::read;
use crate::command::lab::Tables;
use crate::command::output::show;
use crate::command::symbols::Symbols;

/// Print the contexts of a profile, sorted by any column, or only the hot and cold ones.
///
/// Heap info blocks of the same context are merged first. Lifetimes and timestamps are in ticks; `-` marks values
/// missing from the profile.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf profile show perl.prof.mtf
  hatf profile show perl.prof.mtf --by num_lifetime_overlaps --rows 20
  hatf profile show perl.prof.mtf --columns alloc_count,min_size,max_size
  hatf profile show app.prof.mtf --unread
  hatf profile show app.prof.mtf --advice --cold-lifetime 60
  hatf profile show perl.prof.mtf --format json | jq '.contexts[0]'

Columns: context, alloc_count, alloc_timestamp, dealloc_timestamp, num_lifetime_overlaps,
alloc_cpu_id, dealloc_cpu_id, num_migrated_cpu, num_same_alloc_cpu, num_same_dealloc_cpu,
first_alloc_timestamp, first_alloc_cpu_id, first_dealloc_cpu_id, data_type_id, total_load_count,
total_store_count, unread_count, unknown_count, reached_count,
peak_count, peak_size, end_count, end_size; and total_, min_, max_ and average_ of size,
lifetime, access_count, percent_utilized, access_density, lifetime_access_density.")]
pub(super) struct Show {
    /// Profile to read; `-` is standard input.
    profile: PathBuf,

    /// Sort by this column, in descending order.
    #[arg(long, value_name = "COLUMN", default_value = "total_size")]
    by: Column,

    /// Sort in ascending order.
    #[arg(long)]
    reverse: bool,

    /// Columns to print [default: a selection of those in the profile].
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Vec<Column>,

    #[command(flatten)]
    tables: Tables,

    /// Print only contexts whose blocks are never read. Requires a program built with `hatf cc`.
    #[arg(long, conflicts_with = "advice")]
    unread: bool,

    /// Print only hot and cold contexts. Requires a profile with accesses.
    #[arg(long)]
    advice: bool,

    /// Cold contexts have fewer than this many accesses per byte per second of lifetime.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().cold_density)]
    cold_density: f64,

    /// Blocks of cold contexts live for at least this many seconds on average.
    #[arg(long, value_name = "SECONDS", default_value_t = Thresholds::default().cold_lifetime)]
    cold_lifetime: f64,

    /// Hot contexts have more than this many accesses per byte per second of lifetime.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().hot_density)]
    hot_density: f64,

    #[command(flatten)]
    symbols: Symbols,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(options: &Show) -> Result<u8> {
    let profile = read(&options.profile)?;
    let entries = profile.infos.len();
    let mut profile = profile.merged();
    options.symbols.name_locations(&mut profile.locations)?;
    let Show { cold_density, cold_lifetime, hot_density, .. } = *options;
    let thresholds = Thresholds { cold_density, cold_lifetime, hot_density };
    let Show { by, reverse, tables: Tables { rows, depth }, .. } = *options;
    let table = ProfileTable { by, reverse, columns: options.columns.clone(), rows, depth };
    let shows = match (options.advice, options.unread) {
        (true, _) => Shows::Advice,
        (_, true) => Shows::Unread,
        _ => Shows::All,
    };
    let title = options.profile.display().to_string();
    show(&ProfileReport { title, entries, profile: &profile, thresholds, shows, table }, &options.output)?;
    Ok(0)
}
