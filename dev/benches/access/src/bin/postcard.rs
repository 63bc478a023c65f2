//! postcard: one message for each event.

use access_bench::{Checksum, Result, events, messages};

access_bench::records!(serde::Serialize, serde::Deserialize);

fn main() -> Result<()> {
    access_bench::run(write, read, None)
}

fn write(file: &str, count: u64) -> Result<()> {
    messages::write(file, events(count).map(Access::from), |event, out| {
        *out = postcard::to_extend(&event, std::mem::take(out))?;
        Ok(())
    })
}

fn read(file: &str, checksum: &mut Checksum) -> Result<()> {
    messages::read(file, |message| {
        postcard::from_bytes::<Access>(message)?.add_to(checksum);
        Ok(())
    })
}
