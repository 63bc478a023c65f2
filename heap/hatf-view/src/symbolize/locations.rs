//! Symbolization of the frames that a trace does not name, after the trace has been read.

use std::collections::{BTreeMap, HashMap};

use super::answer::Image;
use super::files::Files;
use super::find::{Problem, Question, in_images, in_perf_map};
use crate::calls::passing_locations;
use hatf_trace::stacks::{Function, Location, Stacks, is_python};

/// The functions of locations.
#[derive(Clone, Debug, Default)]
pub struct NamedLocations {
    /// Functions by location number.
    pub functions: Vec<(usize, Vec<Function>)>,
    /// Problems of modules.
    pub problems: Vec<Problem>,
}

/// Symbolizes locations without functions, using the files of their modules or their process's map of generated
/// functions. Skips positions in Python code and locations with numbers below `from`.
#[must_use]
pub fn find_locations(locations: &[Location], from: usize, files: &Files) -> NamedLocations {
    let mut found = NamedLocations::default();
    let (mut of_image, mut of_process) = (BTreeMap::<Image, Vec<usize>>::new(), BTreeMap::<u64, Vec<usize>>::new());
    let wanted = |location: &Location| location.functions.is_empty() && !is_python(location.address);
    for (number, location) in locations.iter().enumerate().skip(from).filter(|(_, location)| wanted(location)) {
        if location.module.is_empty() {
            of_process.entry(location.process).or_default().push(number);
        } else {
            let image = Image { path: location.module.clone(), build_id: location.build_id.clone() };
            of_image.entry(image).or_default().push(number);
        }
    }
    let all = |numbers: &[usize], value: fn(&Location) -> u64| -> Vec<u64> {
        numbers.iter().filter_map(|number| locations.get(*number)).map(value).collect()
    };
    for (process, numbers) in of_process {
        let process = (process != 0).then_some(process);
        match in_perf_map(process, &all(&numbers, |location| location.address), files) {
            None => {}
            Some(Ok(functions)) => found.functions.extend(numbers.into_iter().zip(functions)),
            Some(Err(problem)) => found.problems.push(problem),
        }
    }
    let (questions, numbers): (Vec<_>, Vec<_>) = of_image
        .into_iter()
        .map(|(image, numbers)| (Question { image, addresses: all(&numbers, |location| location.offset) }, numbers))
        .unzip();
    for (numbers, (functions, problem)) in numbers.into_iter().zip(in_images(&questions, files)) {
        found.problems.extend(problem);
        found.functions.extend(numbers.into_iter().zip(functions));
    }
    found
}

/// Symbolizes the locations of stacks that have no functions; see [`find_locations`]. Returns the problems.
pub fn name_stacks(stacks: &mut Stacks, from: usize, files: &Files) -> Vec<Problem> {
    let NamedLocations { functions, problems } = find_locations(stacks.locations(), from, files);
    stacks.name_locations(functions);
    problems
}

/// Keeps only problems that matter for stacks: the nameless frames of the module account for more than 1% of the total
/// weight. A stack counts for the module of its innermost frame outside allocators and the C and C++ libraries, if this
/// frame has no name.
#[must_use]
pub fn of_weight(
    problems: Vec<Problem>,
    stacks: &Stacks,
    numbers: impl IntoIterator<Item = u64>,
    weight: impl Fn(u64) -> u64,
) -> Vec<Problem> {
    if problems.is_empty() {
        return problems;
    }
    let passes = passing_locations(stacks);
    let (mut nameless, mut total) = (HashMap::<&str, u64>::new(), 0_u64);
    for number in numbers {
        let weight = weight(number);
        total = total.saturating_add(weight);
        let frames = stacks.frames(number);
        let own = frames.iter().find(|frame| passes.get(**frame as usize) == Some(&false)).or(frames.first());
        let location = own.and_then(|frame| stacks.locations().get(*frame as usize));
        if let Some(location) = location.filter(|location| location.functions.is_empty()) {
            let sum = nameless.entry(&location.module).or_default();
            *sum = sum.saturating_add(weight);
        }
    }
    let matters = |problem: &Problem| {
        let nameless = nameless.get(if problem.is_map { "" } else { &problem.path }).copied().unwrap_or(0);
        u128::from(nameless) * 100 > u128::from(total)
    };
    // A problem without frames concerns only line numbers. A failure may concern any stack.
    problems.into_iter().filter(|problem| problem.frames == 0 || problem.is_failure || matters(problem)).collect()
}

/// Keeps only problems that concern displayed frames, and sets their frame counts to the numbers of displayed frames
/// without names.
#[must_use]
pub fn of_shown<'l>(problems: Vec<Problem>, shown: impl IntoIterator<Item = &'l Location>) -> Vec<Problem> {
    let mut nameless = HashMap::<&str, usize>::new();
    for location in shown {
        *nameless.entry(&location.module).or_default() += usize::from(location.functions.is_empty());
    }
    let of_module = |problem: Problem| {
        let frames = *nameless.get(if problem.is_map { "" } else { &problem.path })?;
        // A problem without frames concerns only line numbers. A failure may concern any stack.
        (frames > 0 || problem.frames == 0).then_some(Problem { frames, ..problem })
    };
    problems.into_iter().filter_map(of_module).collect()
}
