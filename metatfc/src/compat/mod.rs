//! `compat`: lists the changes between two versions of a DTD, and checks that the version number reflects the changes.

mod change;
mod compare;
mod fields;
mod page;
mod reads;
mod version;

use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, usage};
use crate::{input, output};
use change::{Change, Kind, Place};
use metatf_cli::OutputArgs;
use metatf_parser::schema::{Dtd, Version};
use reads::Reads;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use version::Level;

const MORE: &str = "\
A version consists of three numbers: major.median.minor. A DTD declares its
version with an annotation at the top level, such as tag.version = \"1.2.0\". The
version of a trace is the version of its DTD.

Each change is printed on one line, with its level:
  major   the file format as a whole changes
  median  the format or the meaning of an existing record changes
  minor   a section, a record or a named value is added
Records and fields are matched by name, including earlier names (`was`). After
the changes, the command prints the lowest version allowed for the new DTD. It
then reports whether programs can read the traces of the other version by name:
  old readers, new traces    programs built from OLD, traces written with NEW
  new readers, old traces    programs built from NEW, traces written with OLD
A change is a break if a reader rejects the trace or misinterprets its values, or
if it returns 0 or nothing for a field missing from the trace. A record that
never appears is not a break. If the version number increases by more than the
changes require, the meaning of an existing record has changed, which is also a
break.

Exit status:
  0  no break, and the version is high enough
  1  a break, a version that is too low, or an invalid file
  2  usage error

Examples:
  metatfc compat v1.dtd v2.dtd
  metatfc compat old.mtf v2.dtd                  compare with the DTD of a trace
  metatfc compat --allow-breaks v1.dtd v2.dtd    check only the version
  metatfc compat --format json v1.dtd v2.dtd | jq -r .level";

/// Compare two versions of a DTD and report the changes, their compatibility and the required version number
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The older DTD or trace; `-` reads a DTD from standard input
    old: PathBuf,
    /// The newer DTD or trace; `-` reads a DTD from standard input
    new: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// Version to assume for OLD, overriding its own
    #[arg(long, value_name = "VERSION", value_parser = Version::parse)]
    old_version: Option<Version>,
    /// Version to assume for NEW, overriding its own
    #[arg(long, value_name = "VERSION", value_parser = Version::parse)]
    new_version: Option<Version>,
    /// Exit with status 0 despite a break if the version is high enough
    #[arg(long)]
    allow_breaks: bool,
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

/// Returns a change of meaning if the version number increases by more than the other changes require.
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

pub(crate) fn run(args: &Args) -> Result<()> {
    if input::is_standard(&args.old) && input::is_standard(&args.new) {
        return usage("only one of the DTDs can be read from standard input");
    }
    let report = Report::new(Side::new(&args.old, args.old_version)?, Side::new(&args.new, args.new_version)?);
    output::report(&report, &args.output)?;
    let breaks = report.forward.is_break || report.backward.is_break;
    if report.is_enough && (args.allow_breaks || !breaks) { Ok(()) } else { Err(Failure::Printed) }
}
