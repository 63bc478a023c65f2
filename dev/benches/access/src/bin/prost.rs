//! Protocol Buffers (prost): one message for each event.

use access_bench::{Checksum, Result, events, messages};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Access {
    #[prost(uint64, tag = "1")]
    pub time: u64,
    #[prost(uint64, tag = "2")]
    pub request_id: u64,
    #[prost(string, tag = "3")]
    pub path: String,
    #[prost(uint32, tag = "4")]
    pub method: u32,
    #[prost(uint32, tag = "5")]
    pub status: u32,
    #[prost(uint32, tag = "6")]
    pub flags: u32,
    #[prost(uint32, optional, tag = "7")]
    pub user: Option<u32>,
    #[prost(uint32, tag = "8")]
    pub took_us: u32,
    #[prost(uint32, tag = "9")]
    pub bytes_out: u32,
    #[prost(double, tag = "10")]
    pub score: f64,
    #[prost(message, repeated, tag = "11")]
    pub spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Span {
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    #[prost(uint32, tag = "2")]
    pub offset_us: u32,
    #[prost(uint32, tag = "3")]
    pub dur_us: u32,
}

access_bench::conversions!();

fn main() -> Result<()> {
    access_bench::run(write, read, None)
}

fn write(file: &str, count: u64) -> Result<()> {
    messages::write(file, events(count).map(Access::from), |event, out| Ok(event.encode(out)?))
}

fn read(file: &str, checksum: &mut Checksum) -> Result<()> {
    messages::read(file, |message| {
        Access::decode(message)?.add_to(checksum);
        Ok(())
    })
}
