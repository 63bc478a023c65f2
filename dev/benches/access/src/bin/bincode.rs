//! bincode 2 with its standard configuration: one message for each event.

use access_bench::{Checksum, Result, events, messages};
use bincode::config::standard;

access_bench::records!(bincode::Encode, bincode::Decode);

fn main() -> Result<()> {
    access_bench::run(write, read, None)
}

fn write(file: &str, count: u64) -> Result<()> {
    messages::write(file, events(count).map(Access::from), |event, out| {
        bincode::encode_into_std_write(event, out, standard())?;
        Ok(())
    })
}

fn read(file: &str, checksum: &mut Checksum) -> Result<()> {
    messages::read(file, |message| {
        let (event, _): (Access, usize) = bincode::decode_from_slice(message, standard())?;
        event.add_to(checksum);
        Ok(())
    })
}
