//! Symbolizes addresses in images.

use super::answer::{Answer, Image, Missing};
use super::files::{self, Fetched, Files};
use super::helper::Helper;
use super::in_process::answer;

/// A symbolizer for addresses in images. If [`Files::helper`] specifies a child process, one child serves many images.
///
/// # Examples
///
/// This process symbolizes one of its own functions:
///
/// ```
/// use hatf_view::symbolize::{Files, Image, Symbolizer};
///
/// fn parse() {}
///
/// let path = std::env::current_exe()?.display().to_string();
/// let maps = std::fs::read_to_string("/proc/self/maps")?;
/// let start = maps.lines().find(|line| line.ends_with(&path)).and_then(|line| line.split('-').next());
/// let bias = u64::from_str_radix(start.ok_or("the program is not mapped")?, 16)?;
/// let return_address = parse as *const () as u64 - bias + 1;
///
/// let image = Image { path, build_id: String::new() };
/// let answer = Symbolizer::new(Files::default()).symbolize(&image, &[return_address]);
/// assert!(answer.frames[0].iter().any(|frame| frame.function.contains("parse")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Symbolizer {
    files: Files,
    helper: Helper,
}

impl Symbolizer {
    /// Creates a symbolizer that searches these locations for images and their debug information.
    #[must_use]
    pub fn new(files: Files) -> Self {
        Self { files, helper: Helper::default() }
    }

    /// Returns the frames of each return address in an image. Addresses are those in the image's file, without the load
    /// bias. Each call opens the files of the image, so all addresses of an image should be passed in one call.
    ///
    /// If [`Files::debuginfod`] is set, files that are missing on this machine are requested from debuginfod.
    #[must_use]
    pub fn symbolize(&mut self, image: &Image, addresses: &[u64]) -> Answer {
        let mut fetched = Fetched::default();
        let mut answer = self.ask(image, addresses, &fetched);
        let Some(client) = self.files.debuginfod.clone() else { return answer };
        if let Some(Missing::File(_)) = answer.missing
            && let Some(file) = client.executable(&image.build_id)
        {
            fetched.image = Some(file);
            answer = self.ask(image, addresses, &fetched);
        }
        if answer.missing == Some(Missing::DebugInformation)
            && let Some(file) = client.debug_information(&image.build_id)
        {
            fetched.debug_information = Some(file);
            answer = self.ask(image, addresses, &fetched);
        }
        answer
    }

    /// Symbolizes addresses of an image, in the child process if one is configured. If the image file is missing,
    /// returns without starting a child process.
    fn ask(&mut self, image: &Image, addresses: &[u64], fetched: &Fetched) -> Answer {
        if let Err(missing) = files::candidates_of(image, &self.files, fetched) {
            return Answer::without(addresses.len(), missing);
        }
        let files = (&self.files, fetched);
        let Some(command) = &self.files.helper else { return answer(image, addresses, files, |_| ()) };
        let answered = self.helper.ask(command, image, addresses, files);
        answered.unwrap_or_else(|why| Answer::without(addresses.len(), Missing::Image(why)))
    }
}
