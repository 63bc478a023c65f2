//! Files that other programs make, where they are there.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::thread;

use super::column::Packing;
use hatf_trace::Result;

/// Compressed by xz as it does by default.
pub(super) fn xz(bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    through("xz", ["-6", "-T1", "-c"], bytes)
}

/// Raw records as a Parquet file. The script reads it back and compares.
pub(super) fn parquet(raw: &[u8], packing: Packing) -> Result<Option<Vec<u8>>> {
    let level = if packing == Packing::Zstd19 { "19" } else { "3" };
    through("python3", ["-c", include_str!("parquet.py"), level], raw)
}

/// Raw records as lines of text, by perl.
pub(super) fn perl_ascii(raw: &[u8]) -> Result<Option<Vec<u8>>> {
    through("perl", ["-e", include_str!("ascii.pl"), "write"], raw)
}

/// Reads such lines by perl: how many there are, and each field of all of them under exclusive or.
pub(super) fn perl_fields(text: &[u8]) -> Result<Option<Vec<u8>>> {
    through("perl", ["-e", include_str!("ascii.pl"), "read"], text)
}

/// Returns the length of a command's output for an input; `None` if it is not there, prints nothing, or fails (then it prints why).
fn through<const N: usize>(program: &str, arguments: [&str; N], bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut command = Command::new(program);
    command.args(arguments.map(OsStr::new)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut command) = command.spawn() else { return Ok(None) };
    let (input, output) = (command.stdin.take(), command.stdout.take());
    let made = thread::scope(|scope| -> io::Result<Vec<u8>> {
        // Dropped at its end, which closes the pipe. A command that reads nothing makes nothing, either: that is seen below.
        let writing = scope.spawn(move || input.map(|mut input| input.write_all(bytes)));
        let mut made = Vec::new();
        if let Some(mut output) = output {
            output.read_to_end(&mut made)?;
        }
        let _ = writing.join();
        Ok(made)
    })?;
    let well = command.wait()?.success();
    Ok(Some(made).filter(|made| well && !made.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_are_there_or_not() {
        let bytes = vec![7; 1 << 20];
        assert_eq!(through("cat", [], &bytes).unwrap().as_deref(), Some(&*bytes));
        assert_eq!(through("true", [], &bytes).unwrap(), None);
        assert_eq!(through("no-such-command-here", [], &bytes).unwrap(), None);
        assert_eq!(through("sh", ["-c", "cat; exit 1"], &bytes).unwrap(), None);
    }
}
