//! The policy file of `hatf agent`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser as _;
use clap::error::ErrorKind;
use hatf_trace::{Error, Result};
use hatf_view::suppress::Wildcards::StarAndQuestion;
use hatf_view::suppress::matches;
use metatf_page::units::{parse_bytes, parse_nanoseconds};
use serde::{Deserialize, Deserializer};

use super::find::Found;
use crate::command::Cli;

/// Maximum size of a policy file.
const FILE_MAX: u64 = 1 << 20;

/// A policy file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    /// Directory for traces.
    pub(super) directory: PathBuf,
    /// Interval between two searches for new processes.
    #[serde(default = "five_seconds", deserialize_with = "time")]
    pub(super) scan: Duration,
    /// Address (`127.0.0.1:9464`) or path of the Unix socket that serves the counters.
    pub(super) metrics: Option<String>,
    #[serde(default)]
    pub(super) budget: Budget,
    #[serde(default)]
    pub(super) finish: Finish,
    /// Rules in order. The first matching rule decides.
    #[serde(rename = "rule")]
    pub(super) rules: Vec<Rule>,
}

/// Limits for all recordings together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Budget {
    /// CPU time in percent of a core, averaged over ten seconds.
    pub(super) cpu: u32,
    #[serde(deserialize_with = "bytes")]
    pub(super) memory: u64,
    /// Size of all files in the directory.
    #[serde(deserialize_with = "bytes")]
    pub(super) disk: u64,
    /// Number of recordings at the same time.
    pub(super) recordings: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { cpu: 100, memory: 1 << 30, disk: 4 << 30, recordings: 32 }
    }
}

/// Actions on a complete trace.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Finish {
    /// Formats into which `hatf convert` also writes the trace.
    pub(super) convert: Vec<String>,
    /// Command that uploads a file, whose path replaces `{file}`.
    pub(super) upload: Vec<String>,
    /// Maximum duration of a command.
    #[serde(deserialize_with = "time")]
    pub(super) timeout: Duration,
    /// Delay before the first retry, which doubles with each failure, up to an hour.
    #[serde(deserialize_with = "time")]
    pub(super) retry: Duration,
    /// Whether to delete uploaded files.
    pub(super) delete: bool,
}

impl Default for Finish {
    fn default() -> Self {
        let (timeout, retry) = (Duration::from_secs(600), Duration::from_secs(30));
        Self { convert: Vec::new(), upload: Vec::new(), timeout, retry, delete: false }
    }
}

/// An action for the processes that match all given conditions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// Pattern for the file name of the executable.
    name: Option<String>,
    /// Pattern for the command line, with spaces between the arguments.
    command: Option<String>,
    /// Pattern for the path of the cgroup.
    cgroup: Option<String>,
    /// Name or number of the user.
    user: Option<String>,
    pub(super) action: Action,
    /// Mean number of allocated bytes per sampled block.
    sample: Option<String>,
    /// Maximum duration of a recording.
    #[serde(default, deserialize_with = "some_time")]
    pub(super) time: Option<Duration>,
    /// Further options of `hatf record`.
    #[serde(default)]
    options: Vec<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Off,
    Sampled,
    Full,
}

impl Action {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Sampled => "sampled",
            Self::Full => "full",
        }
    }
}

impl Rule {
    pub(super) fn matches(&self, found: &Found) -> bool {
        let is = |pattern: &Option<String>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| matches(pattern, text, StarAndQuestion))
        };
        is(&self.name, &found.name)
            && is(&self.command, &found.command)
            && is(&self.cgroup, &found.cgroup)
            && self.user.as_ref().is_none_or(|user| *user == found.user || *user == found.uid.to_string())
    }

    /// Returns the options of `hatf record` for this rule.
    pub(super) fn arguments(&self) -> Vec<String> {
        let sample = (self.action == Action::Sampled)
            .then(|| format!("--sample={}", self.sample.as_deref().unwrap_or("512KiB")));
        sample.into_iter().chain(self.options.iter().cloned()).collect()
    }

    /// Checks the options of `hatf record`.
    fn check(&self) -> std::result::Result<(), String> {
        if self.sample.is_some() && self.action != Action::Sampled {
            return Err("`sample` requires action = \"sampled\"".to_owned());
        }
        let words = ["hatf", "record", "--quiet", "--agent=1", "--pid=1", "--output=x"].map(str::to_owned);
        Cli::try_parse_from(words.into_iter().chain(self.arguments())).map(drop).map_err(|error| {
            // The parser treats an unknown option as the name of a program.
            if error.kind() == ErrorKind::ArgumentConflict {
                return format!(
                    "expected options of hatf record that can be combined with --pid and -o, found `{}`",
                    self.options.join(" ")
                );
            }
            let text = error.to_string();
            text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
    }
}

impl Policy {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let length = fs::metadata(path).map_err(Error::system(name.clone()))?.len();
        if length > FILE_MAX {
            return Err(Error::Trace(format!("{name}: a policy file is at most 1 MiB").into()));
        }
        let text = fs::read_to_string(path).map_err(Error::system(name.clone()))?;
        Self::parse(&text).map_err(|why| Error::Trace(format!("{name}: {why}").into()))
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        let policy: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            format!("line {line}: {}", with_suggestion(error.message()))
        })?;
        if policy.scan < Duration::from_millis(100) {
            return Err("`scan` must be at least 100ms".to_owned());
        }
        for (place, rule) in policy.rules.iter().enumerate() {
            rule.check().map_err(|why| format!("rule {}: {why}", place + 1))?;
        }
        let file = |word: &String| word.contains("{file}");
        if !policy.finish.upload.is_empty() && !policy.finish.upload.iter().any(file) {
            return Err("`upload` must contain {file}, which the path of the file replaces".to_owned());
        }
        let is_format = |name: &String| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if let Some(name) = policy.finish.convert.iter().find(|name| !is_format(name)) {
            return Err(format!("`convert`: expected the name of a format, such as pprof, found `{name}`"));
        }
        Ok(policy)
    }

    /// Returns the number of the first matching rule, counted from 0, and the rule.
    pub(super) fn rule(&self, found: &Found) -> Option<(usize, &Rule)> {
        self.rules.iter().enumerate().find(|(_, rule)| rule.matches(found))
    }
}

/// Adds the most similar known key to a message about an unknown key.
fn with_suggestion(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| message.starts_with("unknown "));
    let known: BTreeSet<_> = quoted.collect();
    let similar = unknown.and_then(|unknown| {
        let distance = |known: &&str| strsim::damerau_levenshtein(unknown, known);
        known.into_iter().min_by_key(distance).filter(|known| distance(known) <= 2)
    });
    match similar {
        Some(known) => format!("{message}; did you mean `{known}`?"),
        None => message.to_owned(),
    }
}

fn five_seconds() -> Duration {
    Duration::from_secs(5)
}

fn time<'d, D: Deserializer<'d>>(from: D) -> std::result::Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let parsed = parse_nanoseconds(&text).filter(|time| *time > 0).map(Duration::from_nanos);
    parsed.ok_or_else(|| serde::de::Error::custom(format!("expected a time, such as \"10min\", found `{text}`")))
}

fn some_time<'d, D: Deserializer<'d>>(from: D) -> std::result::Result<Option<Duration>, D::Error> {
    time(from).map(Some)
}

fn bytes<'d, D: Deserializer<'d>>(from: D) -> std::result::Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    let parsed = parse_bytes(&text).filter(|bytes| *bytes >= 1 << 20);
    parsed
        .ok_or_else(|| serde::de::Error::custom(format!("expected at least 1MiB, such as \"256MiB\", found `{text}`")))
}
