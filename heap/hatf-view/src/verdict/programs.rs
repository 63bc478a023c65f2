//! Sentences about the programs that a process executed.

use metatf_page::Value;

use crate::analysis::{OwnAllocator, ProgramReport, Programs, UnrecordedProgram};

/// Maximum number of programs named in a sentence.
const NAMED: usize = 3;

/// Describes which programs the process executed, if it executed several, and which of them are missing in the trace.
///
/// # Examples
///
/// ```
/// use hatf_view::analysis::{ProgramReport, Programs};
/// use hatf_view::verdict::programs;
///
/// let program = |path: &str, began, peak| ProgramReport { path: path.to_owned(), began, peak };
/// let recorded = vec![program("/usr/bin/perl", 0, 3 << 20), program("/usr/lib/psql", 95_000_000, 120 << 10)];
/// let sentences = programs(&Programs { recorded, ..Programs::default() });
/// assert_eq!(
///     sentences,
///     ["The process executed 2 programs in turn: perl, whose peak was 3.00 MiB; and, 95.0 ms after the start, psql, whose \
///       peak was 120 KiB."]
/// );
/// ```
#[must_use]
pub fn programs(programs: &Programs) -> Vec<String> {
    let several = in_turn(programs);
    several
        .into_iter()
        .chain(programs.unrecorded.as_ref().map(unrecorded))
        .chain(programs.own_allocator.as_ref().map(own))
        .collect()
}

/// Describes several programs. A process that is created to execute another program often allocates nothing before.
fn in_turn(programs: &Programs) -> Option<String> {
    let first = programs.recorded.iter().position(|program| program.peak > 0)?;
    let all = programs.recorded.get(first..).filter(|all| all.len() > 1)?;
    let mut text = format!("The process executed {} programs in turn", all.len());
    if all.len() > NAMED {
        let highest = all.iter().max_by_key(|program| (program.peak, std::cmp::Reverse(program.began)))?;
        let (peak, began) = (Value::Bytes(highest.peak), Value::Time(highest.began));
        let name = file_name(&highest.path);
        return Some(format!("{text}; the highest peak, {peak}, was that of {name}, which started after {began}."));
    }
    for (number, program) in all.iter().enumerate() {
        let ProgramReport { path, began, peak } = program;
        if number == 0 {
            text += ": ";
        } else {
            let and = if number + 1 == all.len() { "and, " } else { "" };
            text += &format!("; {and}{} after the start, ", Value::Time(*began));
        }
        text += file_name(path);
        if programs.own_allocator.as_ref().is_none_or(|allocator| allocator.path != *path) {
            text += &format!(", whose peak was {}", Value::Bytes(*peak));
        }
    }
    Some(text + ".")
}

impl UnrecordedProgram {
    /// Returns the name of the program in a sentence.
    pub(super) fn name(&self) -> &str {
        self.path.as_deref().map_or("another program", file_name)
    }
}

fn unrecorded(program: &UnrecordedProgram) -> String {
    let name = program.name();
    let reason = match &program.reason {
        Some(reason) => format!("because it {reason}"),
        None => "because it did not load the recorder or could not open the spool".to_owned(),
    };
    let resident = program
        .resident
        .map_or_else(String::new, |bytes| format!("; at most {} of its memory were resident", Value::Bytes(bytes)));
    format!("The process then executed {name}, which was not recorded {reason}{resident}.")
}

fn own(allocator: &OwnAllocator) -> String {
    let OwnAllocator { path, function } = allocator;
    let name = file_name(path);
    format!(
        "Blocks of {name} are missing, because it has a statically linked allocator ({function}), whose calls were not recorded."
    )
}

/// Returns the name of a file without its directory.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &str, began: u64, peak: u64) -> ProgramReport {
        ProgramReport { path: path.to_owned(), began, peak }
    }

    #[test]
    fn a_single_program_is_not_mentioned() {
        assert!(programs(&Programs::default()).is_empty());
        let recorded = vec![program("/bin/sh", 0, 0), program("/usr/bin/cc", 5, 100)];
        assert!(programs(&Programs { recorded, ..Programs::default() }).is_empty());
    }

    #[test]
    fn many_programs_are_counted() {
        let recorded =
            (0..5).map(|number| program(&format!("/bin/p{number}"), number * 1_000_000, number + 1)).collect();
        assert_eq!(
            programs(&Programs { recorded, ..Programs::default() }),
            [
                "The process executed 5 programs in turn; the highest peak, 5 B, was that of p4, which started after 4.00 ms."
            ]
        );
    }

    #[test]
    fn missing_programs_have_a_reason() {
        let said = |unrecorded, own_allocator| {
            programs(&Programs { unrecorded: Some(unrecorded), own_allocator, ..Programs::default() })
        };
        let unknown = said(UnrecordedProgram::default(), None);
        assert_eq!(
            unknown,
            [
                "The process then executed another program, which was not recorded because it did not load the recorder or \
              could not open the spool."
            ]
        );
        let path = Some("/opt/tsc".to_owned());
        let known =
            UnrecordedProgram { path, reason: Some("is statically linked".to_owned()), resident: Some(152 << 20) };
        let own = OwnAllocator { path: "/usr/bin/rustc".to_owned(), function: "malloc".to_owned() };
        assert_eq!(
            said(known, Some(own)),
            [
                "The process then executed tsc, which was not recorded because it is statically linked; at most 152 MiB of its \
              memory were resident.",
                "Blocks of rustc are missing, because it has a statically linked allocator (malloc), whose calls were not \
              recorded."
            ]
        );
    }
}
