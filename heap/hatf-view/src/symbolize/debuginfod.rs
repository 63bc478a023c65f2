//! Files from other machines, fetched by the debuginfod client of elfutils. The client queries the servers in
//! `DEBUGINFOD_URLS`.
//!
//! The client caches files in a directory shared with debuggers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use metatf_cli::output_of;

/// The name of the client program.
pub const CLIENT: &str = "debuginfod-find";

/// Default limits of a query, which environment variables override. The limits are seconds with too little progress,
/// total seconds, and bytes.
const LIMITS: [(&str, &str); 3] =
    [("DEBUGINFOD_TIMEOUT", "20"), ("DEBUGINFOD_MAXTIME", "300"), ("DEBUGINFOD_MAXSIZE", "2147483648")];

/// Returns whether the user specified debuginfod servers, and thus whether to query them.
#[must_use]
pub fn is_debuginfod_asked() -> bool {
    std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty())
}

/// A debuginfod client.
#[derive(Clone, Debug)]
pub struct Debuginfod {
    program: PathBuf,
    shows_progress: bool,
}

impl Debuginfod {
    /// Searches `PATH` for the client.
    #[must_use]
    pub fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(CLIENT)).find(|program| program.is_file()).map(Self::new)
    }

    /// Creates a client from a program.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self { program, shows_progress: false }
    }

    /// Makes the client show its progress on standard error, because downloads may take minutes.
    #[must_use]
    pub fn with_progress(self, shows_progress: bool) -> Self {
        Self { shows_progress, ..self }
    }

    /// Returns the debug information file with a build ID, or `None` if no server provides it.
    pub(super) fn debug_information(&self, build_id: &str) -> Option<PathBuf> {
        self.ask("debuginfo", build_id)
    }

    /// Returns the program or shared object with a build ID.
    pub(super) fn executable(&self, build_id: &str) -> Option<PathBuf> {
        self.ask("executable", build_id)
    }

    fn ask(&self, kind: &str, build_id: &str) -> Option<PathBuf> {
        // The client interprets anything else as a file path.
        if !(8..=128).contains(&build_id.len()) || !build_id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut command = Command::new(&self.program);
        command.args([kind, build_id]).stderr(Stdio::null());
        if self.shows_progress {
            command.env("DEBUGINFOD_PROGRESS", "1").stderr(Stdio::inherit());
        }
        let unset = LIMITS.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
        let output = output_of(command.envs(unset)).ok().filter(|output| output.status.success())?;
        let path = String::from_utf8(output.stdout).ok()?;
        Some(Path::new(path.trim_end_matches('\n')).to_owned()).filter(|path| path.is_absolute())
    }
}
