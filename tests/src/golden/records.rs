//! Records of the files `every.*`: some of each kind, in groups, with comments, metadata, resets and a growing table.
//! Plain arithmetic generates them, so they do not depend on a random number library.

use std::fmt::Write as _;

/// Records per section and group.
const RECORDS: u64 = 60;
/// Number of groups.
const GROUPS: u64 = 3;

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Returns the lines (spec 8).
pub(super) fn lines() -> String {
    let mut out = Lines { text: String::new(), numbers: Numbers(1), time: 1000, id: 0, offset: 0, live: Vec::new() };
    for group in 0..GROUPS {
        if group > 0 {
            out.line(&format!("{{\"@group\":{group}}}"));
            out.id = 0;
        }
        let names = out.table(group);
        // One section at a time: a trace that preserves the order starts a new chunk at each change of section.
        for n in 0..RECORDS {
            out.plain(n);
            match n {
                // From here on `near` has four bytes, `level` is 1 where it is stored, and `y` of `start` is a
                // difference.
                11 => {
                    out.metadata("plain", 5, 3, 16, &[4]);
                    out.metadata("plain", 4, 3, 0x1c, &[1]);
                    out.metadata("plain", 4, 6, 0x23, &[1000]);
                }
                15 => {
                    out.line("{\"@reset\":\"plain\"}");
                    out.id = 0;
                }
                _ => {}
            }
        }
        for _ in 0..RECORDS {
            out.split(&names);
        }
        for n in 0..RECORDS {
            out.predicted(n);
            if n == 20 {
                out.line("{\"@reset\":\"predicted_values\"}");
            }
        }
        for n in 0..RECORDS {
            out.heap(n);
            if n == 30 {
                out.line("{\"@section\":\"heap\",\"@record\":\"comment\",\"text\":\"most of the \\\"group\\\" ✓\"}");
                out.line("{\"@reset\":\"heap\"}");
            }
        }
    }
    out.text
}

struct Lines {
    text: String,
    numbers: Numbers,
    time: u64,
    /// ID of the next `start`, as `stride 0 1` counts it.
    id: u64,
    /// Offset of the next name in the table.
    offset: u64,
    /// Live heap blocks: size and address.
    live: Vec<(u64, u64)>,
}

impl Lines {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn record(&mut self, section: &str, record: &str, fields: &str) {
        self.line(&format!("{{\"@section\":\"{section}\",\"@record\":\"{record}\",{fields}}}"));
    }

    fn metadata(&mut self, section: &str, record: u64, field: u64, property: u64, values: &[u64]) {
        let mut fields = format!("\"record\":{record},\"field\":{field},\"property\":{property}");
        for (value, name) in values.iter().zip(["value", "value_2"]) {
            let _ = write!(fields, ",\"{name}\":{value}");
        }
        self.record(section, "metadata", &fields);
    }

    /// Writes some names and returns their offsets.
    fn table(&mut self, group: u64) -> Vec<u64> {
        let mut offsets = Vec::new();
        for n in 0..3 {
            let name = format!("name {group}.{n}{}", "x".repeat(usize::try_from(n * group).unwrap_or(0)));
            self.record("names", "name_item", &format!("\"vfield\":\"{name}\",\"@shared\":true"));
            offsets.push(self.offset);
            self.offset += 1 + name.len() as u64;
        }
        offsets
    }

    fn time(&mut self) -> u64 {
        self.time += self.numbers.below(500);
        self.time
    }

    fn plain(&mut self, n: u64) {
        let time = self.time();
        let r = self.numbers.next();
        match n % 6 {
            0 => {
                self.id += 1;
                let id = self.id;
                let (level, x, y) = (r % 3, (r % 100).wrapping_sub(50).cast_signed(), r % 2000);
                let level = if (12..15).contains(&n) { 1 } else { level };
                let fields = format!(
                    "\"time\":{time},\"id\":{id},\"level\":{level},\"state\":7,\"point\":{{\"x\":{x},\"y\":{y}}}"
                );
                self.record("plain", "start", &fields);
            }
            1 | 2 => {
                let far = r.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let ratio = f64::from(u32::try_from(r % 1000).unwrap_or(0)) / 8.0;
                let fields = format!(
                    "\"time\":{time},\"id\":{},\"near\":{},\"far\":{far},\"ratio\":{ratio:?},\"flags\":{},\"six\":\"{far:016x}{r:016x}\"",
                    self.id + r % 5,
                    (r % 60) * if n > 11 { 100_000 } else { 1 },
                    r % 256,
                );
                self.record("plain", "step", &fields);
            }
            // Two-byte characters, plus a one-byte character if the number of bytes is odd.
            3 => {
                let items: Vec<String> = (0..r % 4)
                    .map(|i| format!("{{\"a\":{},\"b\":{}}}", (r + i) % 90, (r * (i + 1)) % 0xff_ffff))
                    .collect();
                let four: Vec<String> = (0..4).map(|i| (r % 1000 * i).to_string()).collect();
                let bit = r / 7 % 2;
                let rest =
                    if bit == 1 { "\"d\":513".to_owned() } else { format!("\"point\":{{\"x\":-1,\"y\":{}}}", r % 9) };
                let pad = "00".repeat((4 - items.len() % 4) % 4);
                let fields = format!(
                    "\"time\":{time},\"text\":{{\"length\":{},\"letters\":\"{}\"}},\"n\":{},\"n_items\":[{}],\"four\":4,\"c\":[{}],\"flags\":{},{rest},\"pad\":\"{pad}\"",
                    r % 20,
                    "é".repeat(usize::try_from(r % 20 / 2).unwrap_or(0)) + if r % 2 == 1 { "!" } else { "" },
                    items.len(),
                    items.join(","),
                    four.join(","),
                    8 * bit + r % 8,
                );
                self.record("plain", "list", &fields);
            }
            4 => {
                let value = "v".repeat(usize::try_from(r % 5).unwrap_or(0));
                let option = |code: u64, value: &str| {
                    format!("{{\"@record\":\"option\",\"code\":{code},\"size\":{},\"value\":\"{value}\"}}", value.len())
                };
                let size = 4 + value.len();
                let options = format!("{},{}", option(r % 200, &value), option(0, ""));
                self.record("plain", "block", &format!("\"size\":{size},\"options\":[{options}]"));
            }
            _ => {
                let fields = format!("\"tag\":{},\"time\":{time},\"vfield\":\"{:04x}\"", 1000 + r % 50, r % 65536);
                self.record("plain", "unknown", &fields);
                self.record("plain", "note", &format!("\"vfield\":\"note {n}\""));
            }
        }
    }

    fn split(&mut self, names: &[u64]) {
        let time = self.time();
        let r = self.numbers.next();
        let name = names[usize::try_from(r).unwrap_or(0) % names.len()];
        let address = 0x4000_0000 + r % 64 * 4096;
        let fields =
            format!("\"time\":{time},\"name\":{name},\"address\":{address},\"address_2\":{}", address + 64 * (r % 7));
        self.record("split", "load", &fields);
    }

    fn predicted(&mut self, n: u64) {
        let r = self.numbers.next();
        let fields = format!(
            "\"key\":{},\"last\":{},\"step\":{},\"follow\":{},\"change\":{},\"several\":{}",
            n % 3,
            r % 4 * 1000,
            100 + n * 8 * (n % 3 + 1),
            [5, 17, 17, 99, 4_000_000_000_u64][usize::try_from(n % 5).unwrap_or(0)],
            n * n,
            if r.is_multiple_of(5) { r } else { n / 4 * 3 },
        );
        self.record("predicted_values", "sample", &fields);
    }

    /// Allocates like a free list: the block of a size freed last is reused first.
    fn heap(&mut self, n: u64) {
        let r = self.numbers.next();
        let thread = 1 + r % 2;
        if n % 3 == 2 && !self.live.is_empty() {
            let place = usize::try_from(r / 2).unwrap_or(0) % self.live.len();
            let (_, address) = self.live[place];
            self.record("heap", "touch", &format!("\"thread\":{thread},\"address\":{address}"));
            self.live.remove(place);
            self.record("heap", "free", &format!("\"thread\":{thread},\"address\":{address}"));
            return;
        }
        let size = [24, 40, 200, 1000][usize::try_from(r / 16 % 4).unwrap_or(0)];
        let address = (1..).map(|i| 0x5555_0000_0000 + i * 0x10 + size * 0x1_0000).find(|address| {
            self.live.iter().all(|(held, other)| address + size + 8 <= *other || other + held + 8 <= *address)
        });
        let address = address.unwrap_or(0);
        self.live.push((size, address));
        self.record("heap", "malloc", &format!("\"thread\":{thread},\"size\":{size},\"address\":{address}"));
    }
}
