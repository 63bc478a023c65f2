//! Writes a trace of the example in the paper on scoped memory, following either Figure 1 or Table 2. MC is the
//! argument of the method `m0`, by default 10.
//!
//! `cargo run -p hatf-research --example scoped_memory -- FILE [figure1|table2] [MC]`

use std::error::Error;
use std::fs::File;

use hatf_research::scoped::{Variant, example};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let file = arguments.next().ok_or("expected FILE [figure1|table2] [MC]")?;
    let variant = match arguments.next() {
        None => Variant::Figure1,
        Some(name) if name == "figure1" => Variant::Figure1,
        Some(name) if name == "table2" => Variant::Table2,
        Some(name) => return Err(format!("expected figure1 or table2, found {}", name.display()).into()),
    };
    let mc = match arguments.next() {
        None => 10,
        Some(text) => text.to_string_lossy().parse()?,
    };
    example(variant, mc, File::create(file)?)?;
    Ok(())
}
