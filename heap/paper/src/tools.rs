//! Files created by other programs, provided that they are installed.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::thread;

use super::column::Packing;
use hatf_trace::Result;

/// Compresses bytes with xz's default settings.
pub(super) fn xz(bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    through("xz", ["-6", "-T1", "-c"], bytes)
}

/// Converts raw records to a Parquet file. The script reads the file back and compares it.
pub(super) fn parquet(raw: &[u8], packing: Packing) -> Result<Option<Vec<u8>>> {
    let level = if packing == Packing::Zstd19 { "19" } else { "3" };
    through("python3", ["-c", include_str!("parquet.py"), level], raw)
}

/// Converts raw records to lines of text using perl.
pub(super) fn perl_ascii(raw: &[u8]) -> Result<Option<Vec<u8>>> {
    through("perl", ["-e", include_str!("ascii.pl"), "write"], raw)
}

/// Reads lines of text using perl. Returns the number of lines, and the exclusive or of each field over all lines.
pub(super) fn perl_fields(text: &[u8]) -> Result<Option<Vec<u8>>> {
    through("perl", ["-e", include_str!("ascii.pl"), "read"], text)
}

/// Returns a command's output for an input. Returns `None` if the command is not installed, prints nothing, or fails. A
/// failing command prints the reason.
fn through<const N: usize>(program: &str, arguments: [&str; N], bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut command = Command::new(program);
    command.args(arguments.map(OsStr::new)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut command) = command.spawn() else { return Ok(None) };
    let (input, output) = (command.stdin.take(), command.stdout.take());
    let made = thread::scope(|scope| -> io::Result<Vec<u8>> {
        // The pipe is closed when `input` is dropped at the end. A command that reads no input produces no output,
        // which is detected below.
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
