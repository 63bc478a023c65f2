//! The events that all programs write, and the checksum of the events that they read.

#[cfg(feature = "messages")]
pub mod messages;

use std::error::Error;

pub type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// A request that a web service answered.
pub struct Access {
    /// Microseconds since 1970.
    pub time: u64,
    /// 1, 2, 3 and so on.
    pub request_id: u64,
    pub path: String,
    pub method: u32,
    pub status: u32,
    pub flags: u32,
    /// Present if bit 0 of `flags` is set.
    pub user: Option<u32>,
    pub took_us: u32,
    pub bytes_out: u32,
    pub score: f64,
    pub spans: Vec<Span>,
}

/// A part of the work for one request.
pub struct Span {
    pub kind: u32,
    pub offset_us: u32,
    pub dur_us: u32,
}

/// Returns the first events of an endless sequence that is the same in each run.
pub fn events(count: u64) -> impl Iterator<Item = Access> {
    let mut state = 88_172_645_463_325_252_u64;
    // Xorshift; the result is less than `limit`.
    let mut random = move |limit: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % u64::from(limit)) as u32
    };
    let mut time = 1_790_000_000_000_000;
    (1..=count).map(move |request_id| {
        time += u64::from(random(2000));
        // Some paths are much more frequent than others.
        let path = format!("/api/v1/item/{}", random(1000) * random(1000) / 1000);
        let flags = random(8);
        Access {
            time,
            request_id,
            path,
            method: random(4),
            status: [200, 200, 200, 404, 500][random(5) as usize],
            flags,
            user: (flags & 1 == 1).then(|| random(100_000)),
            took_us: random(50_000),
            bytes_out: random(100_000),
            score: f64::from(random(1000)) / 8.0,
            spans: (0..random(4)).map(|i| Span { kind: random(3), offset_us: i * 100, dur_us: random(5000) }).collect(),
        }
    })
}

/// Defines the records of a format with these derives, made from the events.
#[macro_export]
macro_rules! records {
    ($($derive:path),*) => {
        #[derive($($derive),*)]
        pub struct Access {
            pub time: u64,
            pub request_id: u64,
            pub path: String,
            pub method: u32,
            pub status: u32,
            pub flags: u32,
            pub user: Option<u32>,
            pub took_us: u32,
            pub bytes_out: u32,
            pub score: f64,
            pub spans: Vec<Span>,
        }

        #[derive($($derive),*)]
        pub struct Span {
            pub kind: u32,
            pub offset_us: u32,
            pub dur_us: u32,
        }

        $crate::conversions!();
    };
}

/// Defines how `Access` follows from an event and counts in a checksum.
#[macro_export]
macro_rules! conversions {
    () => {
        impl From<$crate::Access> for Access {
            fn from(x: $crate::Access) -> Self {
                let $crate::Access { time, request_id, path, method, status, flags, user, .. } = x;
                let $crate::Access { took_us, bytes_out, score, spans, .. } = x;
                let span = |$crate::Span { kind, offset_us, dur_us }| Span { kind, offset_us, dur_us };
                let spans = spans.into_iter().map(span).collect();
                Access { time, request_id, path, method, status, flags, user, took_us, bytes_out, score, spans }
            }
        }

        impl Access {
            fn add_to(&self, checksum: &mut $crate::Checksum) {
                let [method, status, flags, took_us, bytes_out] =
                    [self.method, self.status, self.flags, self.took_us, self.bytes_out].map(u64::from);
                let user = self.user.unwrap_or_default().into();
                let numbers = [self.time, self.request_id, method, status, flags, user, took_us, bytes_out];
                checksum.event(numbers, self.score, self.path.as_bytes());
                self.spans.iter().for_each(|x| checksum.span(x.kind.into(), x.offset_us.into(), x.dur_us.into()));
            }
        }
    };
}

/// A checksum of all fields of all events.
#[derive(Default)]
pub struct Checksum {
    events: u64,
    sum: u64,
}

impl Checksum {
    /// Begins an event with its numbers and its path.
    pub fn event(&mut self, numbers: [u64; 8], score: f64, path: &[u8]) {
        self.events += 1;
        numbers.into_iter().for_each(|number| self.add(number));
        self.add(score.to_bits());
        path.iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    /// Adds a span of the event.
    pub fn span(&mut self, kind: u64, offset_us: u64, dur_us: u64) {
        [kind, offset_us, dur_us].into_iter().for_each(|number| self.add(number));
    }

    fn add(&mut self, number: u64) {
        self.sum = (self.sum.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Runs `PROGRAM write FILE EVENTS`, `PROGRAM read FILE`, which prints the checksum, or `PROGRAM sum FILE`, which reads
/// only `took_us` and prints the sum. Formats that cannot read a single field have no `sum`.
///
/// # Errors
/// Returns the error of the command, or the usage if the arguments are wrong.
pub fn run(
    write: impl Fn(&str, u64) -> Result<()>,
    read: impl Fn(&str, &mut Checksum) -> Result<()>,
    sum: Option<fn(&str) -> Result<u64>>,
) -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", file, events] => write(file, events.parse()?),
        ["read", file] => {
            let mut checksum = Checksum::default();
            read(file, &mut checksum)?;
            println!("{} events, checksum {:016x}", checksum.events, checksum.sum);
            Ok(())
        }
        ["sum", file] => {
            println!("{}", sum.ok_or("this format cannot read a single field")?(file)?);
            Ok(())
        }
        _ => Err("usage: PROGRAM write FILE EVENTS | PROGRAM read FILE | PROGRAM sum FILE".into()),
    }
}
