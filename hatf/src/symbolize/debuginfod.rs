//! Files of other machines, by the client of debuginfod: a program of elfutils, which asks the servers of `DEBUGINFOD_URLS`.
//!
//! It keeps what it got in a folder that debuggers share.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use metatf_cli::output_of;

/// The name of the client.
pub const CLIENT: &str = "debuginfod-find";

/// What a question may take, unless the environment says otherwise: seconds in which too little comes, seconds in all, and bytes.
const LIMITS: [(&str, &str); 3] =
    [("DEBUGINFOD_TIMEOUT", "20"), ("DEBUGINFOD_MAXTIME", "300"), ("DEBUGINFOD_MAXSIZE", "2147483648")];

/// Returns whether servers of debuginfod are to be asked: the user named some.
#[must_use]
pub fn is_debuginfod_asked() -> bool {
    std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty())
}

/// The client of debuginfod.
#[derive(Clone, Debug)]
pub struct Debuginfod {
    program: PathBuf,
    shows_progress: bool,
}

impl Debuginfod {
    /// Finds the client among the programs of this machine.
    #[must_use]
    pub fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(CLIENT)).find(|program| program.is_file()).map(Self::new)
    }

    /// Makes one of a program.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self { program, shows_progress: false }
    }

    /// Has the client show at standard error how far it is: what is fetched may take minutes.
    #[must_use]
    pub fn with_progress(self, shows_progress: bool) -> Self {
        Self { shows_progress, ..self }
    }

    /// Returns the file of debug information of a build id; `None`: no server has it.
    pub(super) fn debug_information(&self, build_id: &str) -> Option<PathBuf> {
        self.ask("debuginfo", build_id)
    }

    /// Returns the program or shared object of a build id.
    pub(super) fn executable(&self, build_id: &str) -> Option<PathBuf> {
        self.ask("executable", build_id)
    }

    fn ask(&self, kind: &str, build_id: &str) -> Option<PathBuf> {
        // The client takes all else for the path of a file.
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
