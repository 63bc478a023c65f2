//! Allocators specified by name and settings, such as `bsd`, `first:grow=4096` or `cache:entries=8:round=16`.

use super::{
    Allocator, Best, Bsd, BsdSettings, Buddy, BuddySettings, Bump, BumpSettings, Cache, CacheSettings, First, Glibc,
    GlibcSettings, Jemalloc, JemallocSettings, Mimalloc, MimallocSettings, TagSettings, Tcmalloc, TcmallocSettings,
    Tlsf, TlsfSettings,
};
use crate::{Error, Result};

/// The names of the allocators.
pub const NAMES: &[&str] =
    &["bsd", "first", "best", "cache", "glibc", "jemalloc", "mimalloc", "tcmalloc", "tlsf", "buddy", "bump"];

/// The four allocators of Zorn and Grunwald's paper.
pub const PAPER: &[&str] = &["bsd", "first", "best", "cache"];

/// Creates an allocator from its name and settings, such as `first:grow=4096`.
///
/// # Errors
/// Fails if the name or a setting is unknown, or if a value is out of range.
pub fn by_name(text: &str) -> Result<Box<dyn Allocator>> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    let mut settings = Settings { text, given: Vec::new() };
    for part in parts {
        let number = part.split_once('=').and_then(|(key, value)| Some((key, value.parse().ok()?)));
        settings.given.push(number.ok_or_else(|| settings.wrong(&format!("expected NAME=NUMBER, found `{part}`")))?);
    }
    let allocator: Box<dyn Allocator> = match name {
        "bsd" => {
            let default = BsdSettings::default();
            let header = settings.take("header", default.header, |header| header <= 4096)?;
            let least = settings.take("least", default.least, power)?;
            let refill = settings.take("refill", default.refill, power)?;
            Box::new(Bsd::new(BsdSettings { header, least, refill }))
        }
        "first" => Box::new(First::new(settings.tags()?)),
        "best" => Box::new(Best::new(settings.tags()?)),
        "cache" => {
            let default = CacheSettings::default();
            let entries = settings.take("entries", default.entries as u64, |entries| (1..=4096).contains(&entries))?;
            let entries = usize::try_from(entries).unwrap_or(default.entries);
            let round = settings.take("round", default.round, |round| (1..=1 << 20).contains(&round))?;
            let oldest = settings.take("oldest", default.oldest.into(), |oldest| oldest <= 1)? == 1;
            Box::new(Cache::new(CacheSettings { entries, round, oldest, first: settings.tags()? }))
        }
        "glibc" => {
            let of = GlibcSettings::default();
            Box::new(Glibc::new(GlibcSettings {
                tcache: settings.take("tcache", of.tcache, |count| count <= 65535)?,
                tcache_max: settings.take("tcache_max", of.tcache_max, |max| (24..=1 << 22).contains(&max))?,
                fast: settings.take("fast", of.fast, |fast| fast <= 160)?,
                arenas: settings.take("arenas", of.arenas, |count| (1..=128).contains(&count))?,
                mmap: settings.take("mmap", of.mmap, |_| true)?,
                trim: settings.take("trim", of.trim, |_| true)?,
                pad: settings.take("pad", of.pad, |pad| pad <= 1 << 36)?,
                rise: settings.take("rise", of.rise, |rise| rise <= 1)?,
            }))
        }
        "jemalloc" => {
            let of = JemallocSettings::default();
            Box::new(Jemalloc::new(JemallocSettings {
                arenas: settings.take("arenas", of.arenas, |count| (1..=128).contains(&count))?,
                tcache: settings.take("tcache", of.tcache, |tcache| tcache <= 1)?,
                tcache_max: settings.take("tcache_max", of.tcache_max, |max| max <= 8 << 20)?,
                decay: settings.take("decay", of.decay, |_| true)?,
                steps: settings.take("steps", of.steps, |steps| power(8 * steps) && steps <= 64)?,
                slab: settings.take("slab", of.slab, |slab| (4096..=1 << 20).contains(&slab))?,
                oversize: settings.take("oversize", of.oversize, |size| (16 << 10..=1 << 36).contains(&size))?,
            }))
        }
        "mimalloc" => {
            let of = MimallocSettings::default();
            Box::new(Mimalloc::new(MimallocSettings {
                purge: settings.take("purge", of.purge, |_| true)?,
                page: settings.take("page", of.page, |page| power(page) && (16 << 10..=1 << 20).contains(&page))?,
                steps: settings.take("steps", of.steps, |steps| power(8 * steps) && steps <= 64)?,
                extend: settings.take("extend", of.extend, |bytes| bytes <= 1 << 20)?,
            }))
        }
        "tcmalloc" => {
            let of = TcmallocSettings::default();
            Box::new(Tcmalloc::new(TcmallocSettings {
                caches: settings.take("caches", of.caches, |_| true)?,
                batch: settings.take("batch", of.batch, |batch| (2..=1024).contains(&batch))?,
                release: settings.take("release", of.release, |rate| rate <= 1000)?,
                aggressive: settings.take("aggressive", of.aggressive, |flag| flag <= 1)?,
                page: settings.take("page", of.page, |page| power(page) && (4096..=256 << 10).contains(&page))?,
            }))
        }
        "tlsf" => {
            let of = TlsfSettings::default();
            Box::new(Tlsf::new(TlsfSettings {
                steps: settings.take("steps", of.steps, |steps| power(8 * steps) && (2..=64).contains(&steps))?,
                header: settings.take("header", of.header, |header| header <= 4096)?,
                grow: settings.take("grow", of.grow, |grow| power(grow) && grow >= 16)?,
            }))
        }
        "buddy" => {
            let of = BuddySettings::default();
            Box::new(Buddy::new(BuddySettings {
                least: settings.take("least", of.least, |least| power(least) && least <= 4096)?,
                region: settings.take("region", of.region, |region| power(region) && region >= 4096)?,
            }))
        }
        "bump" => {
            let of = BumpSettings::default();
            Box::new(Bump::new(BumpSettings {
                arena: settings.take("arena", of.arena, |arena| (4096..=1 << 40).contains(&arena))?,
                align: settings.take("align", of.align, |align| power(align) && align <= 4096)?,
            }))
        }
        _ => {
            let names = NAMES.join(", ");
            return Err(Error::Usage(format!("allocator `{text}`: `{name}` is not one of {names}")));
        }
    };
    match settings.given.first() {
        None => Ok(allocator),
        Some((key, _)) => Err(settings.wrong(&format!("{name} has no setting `{key}`"))),
    }
}

fn power(value: u64) -> bool {
    value.is_power_of_two() && (8..=1 << 30).contains(&value)
}

/// The specified settings that have not been consumed yet.
struct Settings<'t> {
    text: &'t str,
    given: Vec<(&'t str, u64)>,
}

impl Settings<'_> {
    fn wrong(&self, problem: &str) -> Error {
        Error::Usage(format!("allocator `{}`: {problem}", self.text))
    }

    fn take(&mut self, key: &str, default: u64, valid: impl Fn(u64) -> bool) -> Result<u64> {
        let Some(at) = self.given.iter().position(|(given, _)| *given == key) else { return Ok(default) };
        let (_, value) = self.given.remove(at);
        if valid(value) { Ok(value) } else { Err(self.wrong(&format!("{key} cannot be {value}"))) }
    }

    fn tags(&mut self) -> Result<TagSettings> {
        let default = TagSettings::default();
        let word = self.take("word", default.word, |word| word.is_power_of_two() && (1..=64).contains(&word))?;
        // A block must have room for two tags and two links.
        let room = |least: u64| least >= 4 * word && least.is_multiple_of(word) && least <= 1 << 20;
        let least = self.take("least", 4 * word, room)?;
        let grow = self.take("grow", default.grow, power)?;
        if !grow.is_multiple_of(word) {
            return Err(self.wrong("`grow` must be a multiple of `word`"));
        }
        Ok(TagSettings { word, least, grow })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in NAMES {
            let allocator = by_name(name).unwrap();
            assert_eq!(by_name(&allocator.name()).unwrap().name(), allocator.name());
        }
        let name = by_name("cache:round=16:grow=4096:word=4").unwrap().name();
        assert_eq!(name, "cache:entries=5:round=16:oldest=0:word=4:least=16:grow=4096");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("hoard", "`hoard` is not one of bsd, first, best, cache, glibc"),
            ("bsd:grow=1", "bsd has no setting `grow`"),
            ("bsd:least=17", "least cannot be 17"),
            ("first:grow", "expected NAME=NUMBER, found `grow`"),
            ("first:least=8", "least cannot be 8"),
            ("cache:entries=0", "entries cannot be 0"),
        ] {
            let error = by_name(text).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
