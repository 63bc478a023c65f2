//! The goldens compile in each edition, with warnings as errors, in crates that rename the runtime.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

use std::path::Path;
use std::process::Command;

#[test]
fn editions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut members = Vec::new();
    for edition in ["2018", "2021", "2024"] {
        let member = folder.path().join(format!("e{edition}"));
        std::fs::create_dir_all(member.join("src")).unwrap();
        let runtime = root.join("metatf");
        let manifest = format!(
            "[package]\nname = \"e{edition}\"\nversion = \"0.0.0\"\nedition = \"{edition}\"\n\n[dependencies]\n\
             my_metatf = {{ package = \"metatf\", path = {runtime:?}, default-features = false }}\n"
        );
        std::fs::write(member.join("Cargo.toml"), manifest).unwrap();
        let mut code = "//! A crate of another edition.\n#![deny(missing_docs, warnings)]\n".to_owned();
        for name in ["HATF10", "hostile", "shapes", "string_table"] {
            let dtd = root.join("metatf-codegen/tests/golden").join(name).with_extension("dtd");
            let module = name.to_lowercase();
            let config = metatf_codegen::Config::new().dtd(dtd).runtime("::my_metatf").module(&module);
            config.out_dir(member.join("src")).file_name(format!("{module}.rs")).compile().unwrap();
            code.push_str(&format!("include!(\"{module}.rs\");\n"));
        }
        std::fs::write(member.join("src/lib.rs"), code).unwrap();
        members.push(format!("\"e{edition}\""));
    }
    let workspace = format!("[workspace]\nresolver = \"2\"\nmembers = [{}]\n", members.join(", "));
    std::fs::write(folder.path().join("Cargo.toml"), workspace).unwrap();
    std::fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    // A separate, permanent target directory, so that the dependencies of the crates are built only once.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("editions");
    let status = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--workspace", "--offline"])
        .current_dir(folder.path())
        .env("CARGO_TARGET_DIR", target)
        .env_remove("RUSTFLAGS")
        .status()
        .unwrap();
    assert!(status.success());
}
