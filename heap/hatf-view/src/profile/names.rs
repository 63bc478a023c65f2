//! Symbolization of frames with a module file supplied by the user.

use std::path::Path;

use super::heap_profile::HeapProfile;
use crate::symbolize::{Answer, Files, Image, Missing, Symbolizer, build_id, functions};
use hatf_trace::stacks::Location;
use hatf_trace::{Error, Result};

/// Symbolizes the frames in a program or shared object that a profile identifies only by build ID.
///
/// # Errors
/// The file has no build ID, its build ID does not occur in the profile, or the file cannot be used.
pub fn name_frames(profile: &mut HeapProfile, file: &Path, files: &Files) -> Result<()> {
    let about = |why: &str| Error::Trace(format!("{}: {why}", file.display()).into());
    let path = file.canonicalize().map_err(Error::system(file.display().to_string()))?;
    let id = build_id(&path).ok_or_else(|| about("not a program or shared object with a build id"))?;
    let path = path.display().to_string();
    let known = profile.modules.iter_mut().filter(|module| module.build_id == id);
    if known.map(|module| module.path.clone_from(&path)).count() == 0 {
        return Err(about(&format!("no module in the profile has the build id {id}")));
    }
    let mut places: Vec<&mut Location> =
        profile.locations.iter_mut().filter(|location| location.build_id == id).collect();
    let addresses: Vec<u64> = places.iter().map(|location| location.offset).collect();
    let image = Image { path, build_id: id.clone() };
    let Answer { frames, missing } = Symbolizer::new(files.clone()).symbolize(&image, &addresses);
    if let Some(Missing::File(why) | Missing::Image(why)) = missing {
        return Err(about(&why));
    }
    for (location, frames) in places.iter_mut().zip(frames) {
        location.module.clone_from(&image.path);
        location.functions = functions(frames);
    }
    Ok(())
}
