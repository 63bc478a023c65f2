//! Prints a trace that `metatf-tracing` wrote: `cargo run -p metatf-tracing --example print -- T.mtf`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("which trace?")?;
    metatf_tracing::print(path.as_ref(), &mut std::io::stdout().lock())?;
    Ok(())
}
