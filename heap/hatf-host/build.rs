//! Builds the preloaded recorder, which the library embeds.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

fn main() -> ExitCode {
    match build_recorder() {
        Ok(library) => {
            println!("cargo::rustc-env=HATF_RECORDER={}", library.display());
            ExitCode::SUCCESS
        }
        Err(message) => {
            println!("cargo::error={}", message.replace('\n', " | "));
            ExitCode::FAILURE
        }
    }
}

/// Runs cargo again to build the shared object, with the feature that the rlib in this program must not have, and with
/// its own settings, independent of the outer build (clippy, a sanitizer, coverage).
///
/// It builds the source of `hatf-record` wherever cargo has put it. That location must not be written to, so the
/// manifest is created here.
fn build_recorder() -> Result<PathBuf, String> {
    let source = PathBuf::from(variable("DEP_HATF_RECORD_SOURCE")?);
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed=build.rs");

    let target = variable("TARGET")?;
    let out = Path::new(&variable("OUT_DIR")?).join("recorder");
    let manifest = out.join("Cargo.toml");
    let text = MANIFEST.replace("SOURCE", &format!("{:?}", source.join("lib.rs")));
    let text = DEPENDENCIES
        .iter()
        .fold(text, |text, (name, series)| text.replace(&name.to_uppercase(), &pinned(name, series)));
    fs::create_dir_all(&out)
        .and_then(|()| fs::write(&manifest, text))
        .map_err(|error| format!("{}: {error}", manifest.display()))?;
    // First without a network, because everything needed was fetched for the outer build.
    let offline = run_cargo(&manifest, &target, &out, true);
    offline.or_else(|_| run_cargo(&manifest, &target, &out, false))?;
    let library = out.join(&target).join("release/libhatf_record.so");
    if library.is_file() { Ok(library) } else { Err(format!("{} was not created", library.display())) }
}

/// Dependencies of the recorder; any version in these series is acceptable.
const DEPENDENCIES: [(&str, &str); 2] = [("libc", "0.2"), ("gimli", "0.34")];

/// Returns the version of a dependency in the lock file of the workspace, or else of the package, as used in the tests.
/// Thus the recorder is the same wherever it is built, and requires nothing that the outer build has not fetched.
/// Without a lock file, any version in the series is acceptable.
fn pinned(name: &str, series: &str) -> String {
    let manifest = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let places = [Path::new(&manifest).join("Cargo.lock"), Path::new(&manifest).join("../../Cargo.lock")];
    let versions = places.iter().filter_map(|lock| {
        let text = fs::read_to_string(lock).ok()?;
        println!("cargo::rerun-if-changed={}", lock.display());
        version_in(&text, name, series)
    });
    versions.map(|version| format!("={version}")).next().unwrap_or_else(|| series.to_owned())
}

/// Returns the version of a package in a lock file, within this series.
fn version_in(lock: &str, name: &str, series: &str) -> Option<String> {
    let mut packages = lock.split("[[package]]").filter(|package| package.contains(&format!("name = \"{name}\"\n")));
    packages.find_map(|package| {
        let version = package.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))?;
        version.strip_prefix(series)?.starts_with('.').then(|| version.to_owned())
    })
}

const MANIFEST: &str = r#"[package]
name = "hatf-recorder"
version = "0.0.0"
edition = "2024"

[lib]
name = "hatf_record"
path = SOURCE
crate-type = ["cdylib"]

[features]
preload = ["hooks"]
hooks = []

[dependencies]
libc = "LIBC"
gimli = { version = "GIMLI", default-features = false, features = ["read-core"] }

[workspace]

[profile.release]
panic = "abort"
opt-level = 3
lto = true
codegen-units = 1
debug = false
strip = "debuginfo"
overflow-checks = false
debug-assertions = false
"#;

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}

fn run_cargo(manifest: &Path, target: &str, out: &Path, offline: bool) -> Result<(), String> {
    let mut cargo = Command::new(variable("CARGO")?);
    cargo.args(["build", "--quiet", "--release", "--lib", "--features", "preload"]);
    cargo.arg("--manifest-path").arg(manifest);
    cargo.arg("--target-dir").arg(out);
    cargo.args(["--target", target]);
    if offline {
        cargo.arg("--offline");
    }
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let foreign = text.starts_with("CARGO_PROFILE_")
            || text.starts_with("CARGO_BUILD_")
            || text.starts_with("CARGO_TARGET_")
            || text.starts_with("CARGO_FEATURE_")
            || text.starts_with("CARGO_CFG_")
            || text.starts_with("CARGO_PKG_")
            || text.starts_with("RUSTFLAGS")
            || text.starts_with("RUSTDOCFLAGS")
            || matches!(
                &*text,
                "CARGO_ENCODED_RUSTFLAGS"
                    | "RUSTC_WRAPPER"
                    | "RUSTC_WORKSPACE_WRAPPER"
                    | "RUSTC_LINKER"
                    | "CLIPPY_ARGS"
                    | "CLIPPY_CONF_DIR"
                    | "CARGO_INCREMENTAL"
                    | "CARGO_MANIFEST_DIR"
                    | "CARGO_MANIFEST_PATH"
                    | "LD_PRELOAD"
            );
        if foreign {
            cargo.env_remove(&name);
        }
    }
    // The linker of the outer build, which may target another machine or an older C library.
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        cargo.env(format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_")), linker);
    }
    // This name identifies a recorder that a previously recorded process has already loaded. References to its own
    // functions resolve to these even if the program defines functions with the same names. It exports only functions,
    // and zig's linker does not support -Bsymbolic-functions.
    let mut flags = vec!["-Clink-arg=-Wl,-soname,libhatf_record.so,-Bsymbolic".to_owned()];
    // Paths of the build machine stay out of the recorder if they stay out of the program.
    let outer = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    flags.extend(outer.split('\x1f').filter(|flag| flag.starts_with("--remap-path-prefix=")).map(str::to_owned));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    let output = cargo.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("the recorder (hatf-record) could not be built: {}", String::from_utf8_lossy(&output.stderr)))
}
