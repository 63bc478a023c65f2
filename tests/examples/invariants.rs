//! Looks whether traces are as the recorder makes all of them: per thread times do not go back, nothing is behind an end, each block begins and ends
//! once. `dev/scripts/measure programs` runs it on each trace.
//!
//! ```console
//! $ cargo run --release -p metatf-tests --example invariants -- trace.mtf trace.processes/*.mtf
//! ```

#[path = "../../heap/hatf/tests/it/common/invariants.rs"]
mod invariants;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for trace in std::env::args_os().skip(1) {
        for broken in invariants::broken(Path::new(&trace)) {
            println!("{}: {broken}", Path::new(&trace).display());
            code = ExitCode::FAILURE;
        }
    }
    code
}
