//! Lists the changes between two versions of a DTD, and checks that the version number reflects the changes (`diff`).

mod change;
mod compare;
mod fields;
mod page;
mod reads;
mod version;

use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result};
use crate::{input, output};
use change::{Change, Kind, Place};
use metatf_cli::OutputArgs;
use metatf_parser::schema::{Dtd, Version};
use reads::Reads;
use serde::{Serialize, Serializer};
use std::path::Path;
use std::sync::Arc;
use version::Level;

/// Options for comparing two versions of a DTD.
#[derive(clap::Args)]
pub(crate) struct VersionArgs {
    /// Version to assume for the older DTD, overriding its own
    #[arg(long, value_name = "VERSION", value_parser = Version::parse)]
    old_version: Option<Version>,
    /// Version to assume for the newer DTD, overriding its own
    #[arg(long, value_name = "VERSION", value_parser = Version::parse)]
    new_version: Option<Version>,
    /// Exit with status 0 despite a break if the version of the newer DTD is high enough
    #[arg(long)]
    allow_breaks: bool,
}

impl VersionArgs {
    /// Returns whether any of the options is set.
    pub(crate) fn is_given(&self) -> bool {
        self.old_version.is_some() || self.new_version.is_some() || self.allow_breaks
    }
}

/// One of the DTDs.
#[derive(Serialize)]
struct Side {
    #[serde(rename = "file")]
    name: String,
    #[serde(skip)]
    dtd: Arc<Dtd>,
    #[serde(serialize_with = "as_text")]
    version: Option<Version>,
}

impl Side {
    fn new(path: &Path, version: Option<Version>) -> Result<Self> {
        let (name, dtd) = (input::name(path).into_owned(), dtd::of(path, &DtdArgs::default())?);
        let version = match version {
            Some(version) => Some(version),
            None => dtd.version().map_err(|error| Failure::Failed(format!("{name}: {error}")))?,
        };
        Ok(Self { name, dtd, version })
    }
}

/// The result of a comparison.
#[derive(Serialize)]
struct Report {
    old: Side,
    new: Side,
    changes: Vec<Change>,
    level: Option<Level>,
    /// The lowest allowed version of the new DTD, or `None` if the old DTD has no version.
    #[serde(rename = "least_version", serialize_with = "as_text")]
    least: Option<Version>,
    #[serde(rename = "version_is_enough")]
    is_enough: bool,
    #[serde(rename = "old_readers_new_traces")]
    forward: Reads,
    #[serde(rename = "new_readers_old_traces")]
    backward: Reads,
}

impl Report {
    fn new(old: Side, new: Side) -> Self {
        let mut changes = compare::compare(&old.dtd, &new.dtd);
        changes.extend(meaning(&changes, &old, &new));
        let forward = Reads::new(&old.dtd, &new.dtd, &changes);
        let backward = Reads::new(&new.dtd, &old.dtd, &changes);
        let level = level(&changes);
        let least = old.version.map(|old| version::after(old, level));
        let is_enough = least.is_none_or(|least| new.version.is_some_and(|new| new >= least));
        Self { old, new, changes, level, least, is_enough, forward, backward }
    }
}

/// Serializes a version as a string, as in the DTD.
#[expect(clippy::ref_option, reason = "serde gives a member by reference")]
fn as_text<S: Serializer>(version: &Option<Version>, to: S) -> std::result::Result<S::Ok, S::Error> {
    version.map(|version| version.to_string()).serialize(to)
}

fn level(changes: &[Change]) -> Option<Level> {
    changes.iter().map(|change| change.level).max()
}

/// Returns a [`Kind::Meaning`] change if the version step is larger than the other changes require.
fn meaning(changes: &[Change], old: &Side, new: &Side) -> Option<Change> {
    let (before, after) = (old.version?, new.version?);
    let step = version::step(before, after).filter(|step| *step >= Level::Median && Some(*step) > level(changes))?;
    let text = format!("the meaning of existing records changed, implied by the step from version {before} to {after}");
    let change = Change::new(Kind::Meaning, Place::default(), text).misread_if(true);
    Some(Change { level: step, old: Some(before.to_string()), new: Some(after.to_string()), ..change })
}

/// Returns the reasons why records of a trace have a different meaning, or lack values, if they are read by name with
/// another DTD.
pub(crate) fn problems(reader: &Arc<Dtd>, trace: &Arc<Dtd>) -> Vec<String> {
    let side = |dtd: &Arc<Dtd>| {
        let version = dtd.version().ok().flatten();
        Side { name: String::new(), dtd: Arc::clone(dtd), version }
    };
    let (old, new) = (side(trace), side(reader));
    let mut changes = compare::compare(trace, reader);
    let meant = meaning(&changes, &old, &new).or_else(|| meaning(&changes, &new, &old));
    changes.extend(meant);
    Reads::new(reader, trace, &changes).problems()
}

/// Compares the DTDs at these paths, which may be the DTDs of traces, and prints the report if there are output options.
pub(crate) fn run(old: &Path, new: &Path, args: &VersionArgs, output: Option<&OutputArgs>) -> Result<()> {
    let report = Report::new(Side::new(old, args.old_version)?, Side::new(new, args.new_version)?);
    if let Some(options) = output {
        output::report(&report, options)?;
    }
    let breaks = report.forward.is_break || report.backward.is_break;
    if report.is_enough && (args.allow_breaks || !breaks) { Ok(()) } else { Err(Failure::Printed) }
}
