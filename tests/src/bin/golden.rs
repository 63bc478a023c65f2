//! Regenerates the golden files of `tests/golden/1.0`, for `dev/scripts/golden`.

fn main() -> Result<(), String> {
    let sums = metatf_tests::golden::make_all()?;
    let bytes: usize = sums.files.iter().map(|(_, [file, ..])| file.count).sum();
    println!("{} files, {bytes} bytes", sums.files.len());
    Ok(())
}
