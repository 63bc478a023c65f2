//! Tests with children that run `sh` scripts, which send a response or die.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

use super::*;

fn sh(script: &str) -> ChildCommand {
    ChildCommand::new("/bin/sh".into(), vec!["-c".into(), script.into()])
}

fn death(script: &str) -> Death {
    let mut child = sh(script).start().unwrap();
    child.send(b"request").unwrap();
    child.receive().unwrap_err()
}

#[test]
fn answers_arrive_as_they_were_sent() {
    let mut child = sh(r"printf 'a\003\000\000\000one'; printf 'b\000\000\000\000'").start().unwrap();
    assert_eq!(child.receive().unwrap(), Message { kind: b'a', content: b"one".into() });
    assert_eq!(child.receive().unwrap(), Message { kind: b'b', content: Vec::new() });
    assert!(matches!(child.receive(), Err(Death::Ended(status)) if status.success()));
}

#[test]
fn a_death_says_why() {
    for (script, why) in [
        ("kill -ABRT $$", "takes too much memory for a file of its size"),
        ("kill -XCPU $$", "takes too long for a file of its size"),
        ("kill -ALRM $$", "takes too long for a file of its size"),
        ("exit 101", "failed in its child process: exit status: 101"),
        // A message whose content is shorter than the announced length.
        (r"printf 'a\377\377\377\177one'; exit 7", "failed in its child process: exit status: 7"),
    ] {
        assert_eq!(death(script).to_string(), why, "{script}");
    }
    let missing = ChildCommand::new("/nowhere/program".into(), Vec::new()).start().unwrap_err().to_string();
    assert!(missing.starts_with("failed because its child process could not be started: No such file"), "{missing}");
}

/// Sends a request that exceeds the capacity of a pipe.
#[test]
fn a_child_that_reads_no_request_is_not_waited_for() {
    let mut child = sh("exit 3").start().unwrap();
    child.send(&[0; 1 << 20]).unwrap();
    assert!(matches!(child.receive(), Err(Death::Ended(status)) if status.code() == Some(3)));
}

#[test]
fn requests_are_served_until_the_last() {
    let (mut input, mut output) = (Vec::new(), Vec::new());
    for request in [&b"one"[..], b"", b"three"] {
        write_message(&mut input, REQUEST, request).unwrap();
    }
    serve(&mut &*input, &mut output, |request, messages| messages.send(b'l', &[request.len() as u8])).unwrap();
    let mut output = &*output;
    for length in [3, 0, 5] {
        assert_eq!(read_message(&mut output).unwrap(), Some(Message { kind: b'l', content: vec![length] }));
    }
    assert_eq!(read_message(&mut output).unwrap(), None);
}

/// A pipe that cannot be read, as after a system fault.
struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(libc::EIO))
    }
}

#[test]
fn an_error_of_a_pipe_is_an_error() {
    let code = |error: io::Error| error.raw_os_error();
    assert_eq!(read_message(&mut Failing).map_err(code), Err(Some(libc::EIO)));
    assert_eq!(both(Some(Failing), None::<Failing>).map_err(code), Err(Some(libc::EIO)));
    assert_eq!(both(Some(&b"out"[..]), Some(Failing)).map_err(code), Err(Some(libc::EIO)));
    assert_eq!(both(Some(&b"out"[..]), Some(&b"err"[..])).unwrap(), (b"out".to_vec(), b"err".to_vec()));
}

#[test]
fn both_outputs_of_a_program() {
    // Write more than the capacity of a pipe to both outputs.
    let script = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; exit 4";
    let output = output_of(Command::new("sh").args(["-c", script]).stderr(Stdio::piped())).unwrap();
    assert_eq!((output.stdout.len(), output.stderr.len(), output.status.code()), (300_000, 300_000, Some(4)));
}
