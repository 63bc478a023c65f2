//! Passes the path of the source to `hatf` (`DEP_HATF_RECORD_SOURCE`), which builds its embedded shared object from it.

fn main() -> Result<(), std::env::VarError> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=source={}/src", std::env::var("CARGO_MANIFEST_DIR")?);
    Ok(())
}
