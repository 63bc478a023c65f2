//! Says where the source is: `hatf` builds the shared object that it carries from it (`DEP_HATF_RECORD_SOURCE`).

fn main() -> Result<(), std::env::VarError> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=source={}/src", std::env::var("CARGO_MANIFEST_DIR")?);
    Ok(())
}
