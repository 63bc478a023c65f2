//! Finds the records that allocate and free, and the relevant fields in them, by their names.

use std::fmt;

use metatf::dynamic::Schema;

use crate::event::Function;
use crate::{Error, Result};

/// The effect of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    Allocate,
    Reallocate,
    Free,
}

/// Record names in lowercase, without punctuation.
const RECORDS: [(Does, &[&str]); 3] = [
    (
        Does::Allocate,
        &[
            "malloc",
            "alloc",
            "allocate",
            "allocation",
            "allocated",
            "new",
            "calloc",
            "memalign",
            "posixmemalign",
            "alignedalloc",
            "valloc",
            "pvalloc",
            "poolalloc",
        ],
    ),
    (Does::Reallocate, &["realloc", "reallocate", "reallocation", "reallocated", "reallocarray", "resize"]),
    (Does::Free, &["free", "freed", "dealloc", "deallocate", "deallocation", "delete", "release", "poolfree"]),
];

/// Field names, in order of precedence.
const ADDRESS: &[&str] = &[
    "address",
    "addr",
    "ptr",
    "pointer",
    "block",
    "object",
    "obj",
    "result",
    "ret",
    "preturn",
    "newaddress",
    "newptr",
    "new",
];
const OLD: &[&str] = &["oldaddress", "oldaddr", "oldptr", "oldpointer", "oldblock", "old", "from"];
const SIZE: &[&str] = &["size", "bytes", "nbytes", "length", "len", "newsize"];
const TIME: &[&str] = &["time", "timestamp", "clock", "ts", "when", "tick"];
const THREAD: &[&str] = &["thread", "threadid", "tid"];
const HEAP: &[&str] = &["heap", "heapid", "pool", "arena"];

/// The positions of the relevant fields in the view of a record.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    pub(crate) does: Does,
    /// The C function with the record's name, or else `realloc` or `malloc`, depending on the record's effect.
    pub(crate) function: Function,
    pub(crate) address: usize,
    pub(crate) old: Option<usize>,
    pub(crate) size: Option<usize>,
    /// The position of the time, and the number of nanoseconds in its unit.
    pub(crate) time: Option<(usize, u64)>,
    pub(crate) thread: Option<usize>,
    pub(crate) heap: Option<usize>,
}

/// The roles of a schema's records.
pub(crate) struct Roles {
    /// The roles, indexed by record.
    roles: Vec<Option<Role>>,
    text: String,
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

impl Roles {
    /// Determines the roles of a schema's records.
    ///
    /// # Errors
    /// No record has a known name, or a record with a known name lacks a field.
    pub(crate) fn of(schema: &Schema) -> Result<Self> {
        let (mut roles, mut read, mut passed) = (Vec::new(), Vec::new(), Vec::new());
        for (index, record) in schema.dtd.records.iter().enumerate() {
            let name = plain(&record.name);
            let does = RECORDS.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(does, _)| *does);
            let is_data = record.tag.is_some() && index > usize::from(metatf::format::METADATA);
            let Some(does) = does.filter(|_| is_data) else {
                if is_data {
                    passed.push(record.name.as_str());
                }
                roles.push(None);
                continue;
            };
            // Fields after a repetition have no fixed position.
            let fixed = record.leaves.iter().enumerate().take_while(|(_, leaf)| !leaf.repeated);
            let fields: Vec<_> = fixed.filter(|(_, leaf)| leaf.is_numeric() && !leaf.is_tag()).collect();
            let place = |names: &[&str]| {
                let of =
                    |name: &&str| fields.iter().find(|(_, leaf)| plain(&leaf.key) == *name).map(|(place, _)| *place);
                names.iter().find_map(of)
            };
            let missing = |what: &str, names: &[&str]| {
                let names = names.join(", ");
                Error::Trace(format!("record {} has no field for {what}: expected one of {names}", record.name).into())
            };
            let old = if does == Does::Allocate { None } else { place(OLD) };
            let address = match does {
                Does::Free => place(ADDRESS).or(old),
                _ => place(ADDRESS),
            };
            let address = address.ok_or_else(|| missing("the address", ADDRESS))?;
            if does == Does::Reallocate && old.is_none() {
                return Err(missing("the old address", OLD));
            }
            let size = place(SIZE);
            if does == Does::Allocate && size.is_none() {
                return Err(missing("the size", SIZE));
            }
            let annotated = fields
                .iter()
                .find(|(_, leaf)| leaf.annotations.get("role").is_some_and(|role| role.trim_matches('"') == "time"));
            let time = annotated.map(|(place, _)| *place).or_else(|| place(TIME));
            let time =
                time.map(|place| (place, record.leaves.get(place).and_then(|leaf| leaf.nanoseconds()).unwrap_or(1)));
            let role = Role {
                does,
                function: function(&name, does),
                address,
                old: old.filter(|_| does == Does::Reallocate),
                size,
                time,
                thread: place(THREAD),
                heap: place(HEAP),
            };
            read.push(format!("{} {}", record.name, does.verb()));
            roles.push(Some(role));
        }
        if read.is_empty() {
            let known: Vec<&str> = RECORDS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
            let what = format!(
                "not a heap trace: its DTD is neither heap.dtd nor HATF10.dtd, and no record name ({}) is a known name \
                 for an allocation or a free ({})",
                passed.join(", "),
                known.join(", ")
            );
            return Err(Error::Trace(what.into()));
        }
        let others = if passed.is_empty() { String::new() } else { format!("; skipped: {}", passed.join(", ")) };
        Ok(Self { roles, text: format!("interpreted by record names: {}{others}", read.join(", ")) })
    }

    /// Returns the role of a record.
    #[inline]
    pub(crate) fn role(&self, record: u16) -> Option<&Role> {
        self.roles.get(usize::from(record))?.as_ref()
    }
}

/// Returns the C function with this name. For any other name, returns `realloc` for a reallocation and `malloc`
/// otherwise.
fn function(name: &str, does: Does) -> Function {
    let is_it = |function: &&Function| plain(function.name()) == name;
    let known = Function::ALL.iter().find(is_it).copied();
    known.unwrap_or(if does == Does::Reallocate { Function::Realloc } else { Function::Malloc })
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Does {
    fn verb(self) -> &'static str {
        match self {
            Self::Allocate => "allocates",
            Self::Reallocate => "reallocates",
            Self::Free => "frees",
        }
    }
}
