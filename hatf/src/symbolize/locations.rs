//! Names for stacks that were read, of frames that have none in the trace.

use std::collections::{BTreeMap, HashMap};

use super::answer::Image;
use super::files::Files;
use super::find::{Problem, Question, in_images, in_perf_map};
use crate::stacks::{Function, Location, Stacks, is_python};

/// The functions of locations.
#[derive(Clone, Debug, Default)]
pub struct NamedLocations {
    /// Functions by the number of the location.
    pub functions: Vec<(usize, Vec<Function>)>,
    /// Modules of which something was missing.
    pub problems: Vec<Problem>,
}

/// Looks up the locations that have no functions: in the files of their modules, or in the map of functions that their process has
/// made at run time. Places in Python's code are left alone, and so are the locations before the number `from`.
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

/// Gives functions to the locations of stacks that have none: see [`find_locations`]. Returns what was missing.
pub fn name_stacks(stacks: &mut Stacks, from: usize, files: &Files) -> Vec<Problem> {
    let NamedLocations { functions, problems } = find_locations(stacks.locations(), from, files);
    stacks.name_locations(functions);
    problems
}

/// Keeps the problems of frames that are shown; each has the number of these.
#[must_use]
pub fn of_shown<'l>(problems: Vec<Problem>, shown: impl IntoIterator<Item = &'l Location>) -> Vec<Problem> {
    let mut nameless = HashMap::<&str, usize>::new();
    for location in shown {
        *nameless.entry(&location.module).or_default() += usize::from(location.functions.is_empty());
    }
    let of_module = |problem: Problem| {
        let frames = *nameless.get(if problem.is_map { "" } else { &problem.path })?;
        // Of a problem without such frames lines alone are missing.
        (frames > 0 || problem.frames == 0).then_some(Problem { frames, ..problem })
    };
    problems.into_iter().filter_map(of_module).collect()
}
