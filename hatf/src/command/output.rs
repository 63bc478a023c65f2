//! What commands print.

use hatf::{Error, Result};
use metatf_cli::OutputArgs;
use metatf_page::Report;

/// Prints a report where the options say.
pub(crate) fn show(report: &impl Report, options: &OutputArgs) -> Result<()> {
    metatf_cli::print(report, options).map_err(Error::system(options.place()))
}
