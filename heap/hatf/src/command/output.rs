//! Output of commands.

use hatf_trace::{Error, Result};
use metatf_cli::OutputArgs;
use metatf_page::Report;

/// Prints a report to the output that the options specify.
pub(crate) fn show(report: &impl Report, options: &OutputArgs) -> Result<()> {
    metatf_cli::print(report, options).map_err(Error::system(options.place()))
}
