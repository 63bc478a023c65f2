//! Functions of frames whose module's file is given.

use std::path::Path;

use super::heap_profile::HeapProfile;
use crate::stacks::{Location, Module};
use crate::symbolize::{Files, build_id, in_module};
use crate::{Error, Result};

/// Looks up the functions of a profile's frames that lie in a program or shared object, which it knows by its build id alone.
///
/// # Errors
/// The file has no build id, or none that the profile knows, or cannot be used.
pub fn name_frames(profile: &mut HeapProfile, file: &Path, files: &Files) -> Result<()> {
    let about = |why: &str| Error::Trace(format!("{}: {why}", file.display()).into());
    let path = file.canonicalize().map_err(Error::system(file.display().to_string()))?;
    let id = build_id(&path).ok_or_else(|| about("not a program or shared object with a build id"))?;
    let path = path.display().to_string();
    let mut module = None;
    for known in profile.modules.iter_mut().filter(|module| module.build_id == id) {
        known.path.clone_from(&path);
        module.get_or_insert_with(|| Module { bias: 0, start: 0, end: u64::MAX, ..known.clone() });
    }
    let Some(module) = module else {
        return Err(about(&format!("no module of the profile has its build id, {id}")));
    };
    let mut places: Vec<&mut Location> =
        profile.locations.iter_mut().filter(|location| location.build_id == id).collect();
    let frames: Vec<u64> = places.iter().map(|location| location.offset).collect();
    let functions = in_module(&module, &frames, files).map_err(|why| about(&why))?;
    for (location, functions) in places.iter_mut().zip(functions) {
        location.module.clone_from(&path);
        location.functions = functions;
    }
    Ok(())
}
