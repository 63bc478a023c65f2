//! Passes the path of the source to `hatf-host` (`DEP_HATF_RECORD_SOURCE`), which builds its embedded shared object from
//! it.

fn main() -> Result<(), std::env::VarError> {
    let package = std::env::var("CARGO_MANIFEST_DIR")?;
    // By its absolute path, so that cargo runs this again if the checkout has moved.
    println!("cargo::rerun-if-changed={package}/build.rs");
    println!("cargo::metadata=source={package}/src");
    Ok(())
}
