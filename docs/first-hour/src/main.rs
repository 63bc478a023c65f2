//! Writes a log of requests, and reads it again.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::time::Duration;

use metatf::container::WriteOptions;

// region: include
mod requests {
    include!(concat!(env!("OUT_DIR"), "/requests.rs"));
}
mod requests2 {
    include!(concat!(env!("OUT_DIR"), "/requests2.rs"));
}
// endregion

const PATHS: [&str; 4] = ["/", "/style.css", "/search", "/account"];

/// The n-th request: time, path, status, how long it took.
fn request(n: u64) -> (u64, &'static str, requests::Status, u64) {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let status = match mixed % 50 {
        0 => requests::Status::NotFound,
        1 => requests::Status::Failed,
        _ => requests::Status::Ok,
    };
    (n * 25 + mixed % 25, PATHS[mixed as usize % PATHS.len()], status, 50 + mixed % 900)
}

// region: write
/// Writes requests to a file; `pause` is from one to the next.
fn write(path: &str, count: u64, pause: Option<Duration>) -> Result<(), Box<dyn Error>> {
    // If the program is killed, at most the last second is lost.
    let options = WriteOptions::default().flush_every(Duration::from_secs(1));
    let mut log = requests::Writer::with_options(BufWriter::new(File::create(path)?), &options)?;
    for n in 0..count {
        let (time, path, status, took) = request(n);
        let path = log.paths().intern(path.as_bytes())?;
        log.request(&requests::Request { time, path, status, took })?;
        if let Some(pause) = pause {
            std::thread::sleep(pause);
        }
    }
    log.finish()?;
    Ok(())
}
// endregion

// region: read
/// Reads requests: how many there are, and how long they took together.
fn read(path: &str) -> Result<(u64, u64), Box<dyn Error>> {
    let mut log = requests::Trace::open(path)?;
    let paths = log.paths();
    let (mut count, mut sum) = (0, 0);
    while let Some(record) = log.next()? {
        let requests::Record::Log(requests::Log::Request(found)) = record;
        let (time, path, status, took) = request(count);
        assert_eq!((found.time, found.status, found.took), (time, status, took));
        assert_eq!(paths.get(found.path)?.vfield, path.as_bytes());
        count += 1;
        sum += found.took;
    }
    Ok((count, sum))
}
// endregion

// region: evolved
/// Reads the same file by the second version of the format.
fn read_by_second_version(path: &str) -> Result<(u64, u64), Box<dyn Error>> {
    let mut log = requests2::Trace::read_file(path)?;
    if let Some(unmatched) = log.unmatched().filter(|unmatched| !unmatched.is_empty()) {
        eprintln!("warning: {unmatched}");
    }
    let (mut count, mut sum) = (0, 0);
    while let Some(record) = log.next()? {
        let requests2::Record::Log(requests2::Log::Request(found)) = record;
        assert_eq!(found.user, 0);
        count += 1;
        sum += found.duration;
    }
    Ok((count, sum))
}
// endregion

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", path, count] => write(path, count.parse()?, None)?,
        ["serve", path] => write(path, u64::MAX, Some(Duration::from_micros(100)))?,
        ["read", path] => println!("{:?}", read(path)?),
        ["read2", path] => println!("{:?}", read_by_second_version(path)?),
        _ => return Err("requests write FILE COUNT | serve FILE | read FILE | read2 FILE".into()),
    }
    Ok(())
}
