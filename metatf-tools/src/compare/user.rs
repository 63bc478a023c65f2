//! Compares the DTD text, and user metadata key by key, for the option `metadata`.

use super::{Comparer, Difference, Input, What, Which};
use metatf::container::{Error, Result};
use serde_json::{Map, Value};

impl Comparer<'_, '_, '_> {
    pub(super) fn metadata(&mut self) -> Result<(), (Which, Error)> {
        let [left, right] = &mut self.inputs;
        let left = read(left).map_err(|e| (Which::Left, e))?;
        let right = read(right).map_err(|e| (Which::Right, e))?;
        let mut keys: Vec<&String> = left.user.keys().collect();
        keys.extend(right.user.keys().filter(|key| !left.user.contains_key(*key)));
        for key in keys {
            let values = [left.user.get(key), right.user.get(key)];
            if values[0] != values[1] {
                let what = What::User(key.clone(), values.map(|v| v.map(Value::to_string)));
                self.out.differences.push(Difference { section: None, records: [None, None], what });
            }
        }
        if left.dtd != right.dtd {
            self.out.differences.push(Difference { section: None, records: [None, None], what: What::Dtd });
        }
        Ok(())
    }
}

/// The data of a trace other than its records. Version 0 files contain no such data.
#[derive(Default)]
struct Beside {
    dtd: Option<Vec<u8>>,
    user: Map<String, Value>,
}

/// Returns the text of the embedded DTD and the user metadata. Later metadata is added to earlier metadata or overrides
/// it (spec 5.2).
fn read(input: &mut Input<'_, '_>) -> Result<Beside> {
    let mut reader = (input.open)()?;
    if reader.header().version == 0 {
        return Ok(Beside::default());
    }
    while reader.next_part()?.is_some() {}
    let mut user = Map::new();
    for json in reader.user_metadata() {
        if let Ok(Value::Object(object)) = serde_json::from_slice(json) {
            user.extend(object);
        }
    }
    Ok(Beside { dtd: reader.dtd_text().map(<[u8]>::to_vec), user })
}
