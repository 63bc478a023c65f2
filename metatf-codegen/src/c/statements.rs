//! Statements that store values, and other pieces of C.

use super::put::Put;
use crate::emitters::Machine;

/// Returns the type of an argument, which ends in a space or `*`.
pub(super) fn c_type(machine: Machine) -> String {
    match machine {
        Machine::Unsigned(bits) => format!("uint{bits}_t "),
        Machine::Signed(bits) => format!("int{bits}_t "),
        Machine::Bool => "bool ".to_owned(),
        Machine::Id => "uint32_t ".to_owned(),
        Machine::F32 | Machine::Single => "float ".to_owned(),
        Machine::F64 => "double ".to_owned(),
        Machine::Text => "const char *".to_owned(),
        Machine::Bytes | Machine::Array(_) => "const void *".to_owned(),
    }
}

/// Returns the statement that appends a leaf. `given` is the value of its argument, and `own` is the value that
/// telemetry fills in.
pub(super) fn one(put: Put, given: &str, own: &str) -> Option<String> {
    let call = |function: &str, value: &str| format!("at = pfx_put{function}(at, {value});");
    Some(match put {
        Put::Constant(_, 0) | Put::Computed => return None,
        Put::Constant(value, width) => number(value, width),
        Put::Length(index) => {
            let argument = format!("pfx_argument_{index}");
            call("16", &format!("(uint16_t)({argument}.length + {argument}.mark)"))
        }
        Put::Argument(index, machine) => match machine {
            Machine::Unsigned(bits) => call(&bits.to_string(), given),
            Machine::Signed(bits) => call(&bits.to_string(), &format!("(uint{bits}_t){given}")),
            Machine::Id => call("32", given),
            Machine::Bool => call("8", &format!("(uint8_t)({given} ? 1 : 0)")),
            Machine::Single => call("_float", given),
            Machine::F32 | Machine::F64 => call("_double", given),
            Machine::Text | Machine::Bytes => call("_cut", &format!("pfx_argument_{index}")),
            Machine::Array(bytes) => format!("at = pfx_put_bytes(at, {given}, {bytes});"),
        },
        Put::Count(_) | Put::Reference(_) => call("32", &format!("(uint32_t){given}")),
        Put::Clock => call("64", "pfx_now(emitter)"),
        Put::Thread => call("32", "emitter->thread"),
        Put::Process => call("32", "emitter->trace->process"),
        Put::Own => call("64", own),
        Put::OwnId => call("32", own),
        Put::OwnLength => call("16", "(uint16_t)(string.length + string.mark)"),
        Put::OwnText => call("_cut", "string"),
        // The code of these leaves depends on other leaves.
        Put::Measured(_) | Put::Until(..) | Put::Encoded(..) | Put::EncodedLength(..) => return None,
    })
}

/// Writes the code that appends a constant number.
pub(super) fn number(value: u64, width: u8) -> String {
    match width {
        1 | 2 | 4 => format!("at = pfx_put{}(at, 0x{:x});", width * 8, value & u64::MAX >> (64 - 8 * u32::from(width))),
        8 => format!("at = pfx_put64(at, UINT64_C(0x{value:x}));"),
        _ => {
            let bytes = value.to_le_bytes();
            let bytes: String = bytes.iter().take(usize::from(width)).map(|byte| format!("\\{byte:03o}")).collect();
            format!("at = pfx_put_bytes(at, \"{bytes}\", {width});")
        }
    }
}

/// Makes a line safe for a comment, so that it cannot end the comment, start another comment, or end in a line
/// continuation.
pub(super) fn comment(line: &str) -> String {
    let line = line.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?");
    line.trim_end_matches('\\').to_owned()
}
