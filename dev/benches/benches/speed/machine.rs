//! A description of the measurement environment for readers of the results.

use std::process::Command;

/// Returns a sentence with the CPU, system, compiler, date, and load average of the last minute.
pub(crate) fn description() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").ok();
    let cpu = cpu.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("model name")));
    let cpu = cpu.map_or("unknown processor", |name| name.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let rustc = first_line("rustc", "--version").unwrap_or_else(|| "unknown compiler".to_owned());
    let date = first_line("date", "+%Y-%m-%d").unwrap_or_else(|| "unknown date".to_owned());
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.as_deref().and_then(|text| text.split(' ').next()).unwrap_or("unknown");
    format!("{cpu}, {cores} cores, {}, {rustc}, {date}, load average {load}.", std::env::consts::OS)
}

fn first_line(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}
