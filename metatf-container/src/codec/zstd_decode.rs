//! zstd (RFC 8878), decompressed in Rust, for builds without a C compiler. It cannot compress.

use super::{Decompress, Failure};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder, errors::FrameDecoderError};
use std::io::Read as _;

/// Maximum window size accepted for any content, in bytes, as recommended by RFC 8878 (3.1.1.1.2). A larger window is
/// accepted only if the content is at least as long.
const WINDOW: usize = 8 << 20;
/// Number of bytes to decompress before they are copied to the output.
const STEP: usize = 128 << 10;

const DAMAGED: Failure = Failure::Payload("the zstd frame is corrupt");

#[cfg(not(feature = "zstd"))]
pub(super) const ENGINE: super::Engine =
    super::Engine { compress: None, decompress: || Ok(Box::new(FrameDecoder::new())) };

impl Decompress for FrameDecoder {
    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        let mut rest = payload;
        self.set_max_window_size(out.len().max(WINDOW) as u64);
        self.init(&mut rest).map_err(|error| match error {
            FrameDecoderError::WindowSizeTooBig { .. } => {
                Failure::Payload("the window of the zstd frame exceeds both 8 MiB and its content")
            }
            _ => Failure::Payload("the payload is not a zstd frame"),
        })?;
        let mut filled = 0;
        while !self.is_finished() {
            self.decode_blocks(&mut rest, BlockDecodingStrategy::UptoBytes(STEP)).map_err(|_| DAMAGED)?;
            while self.can_collect() > 0 {
                match self.read(out.get_mut(filled..).unwrap_or_default()) {
                    Ok(0) => return Err(Failure::Length),
                    Ok(read) => filled += read,
                    Err(_) => return Err(DAMAGED),
                }
            }
        }
        if !rest.is_empty() {
            return Err(Failure::Payload("excess bytes follow the zstd frame"));
        }
        if self.get_checksum_from_data().is_some_and(|sum| self.get_calculated_checksum() != Some(sum)) {
            return Err(DAMAGED);
        }
        if filled == out.len() { Ok(()) } else { Err(Failure::Length) }
    }
}

/// Compares the decoder with the C library.
#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::*;
    use crate::codec::zstd::ENGINE as C;
    use proptest::prelude::*;

    /// Generates noise or well-compressible bytes.
    fn contents() -> impl Strategy<Value = Vec<u8>> {
        let repeated = (proptest::collection::vec(any::<u8>(), 1..40), 1..9000_usize)
            .prop_map(|(part, times)| part.iter().copied().cycle().take(part.len() * times).collect());
        let few = proptest::collection::vec(0..4_u8, 0..70_000);
        prop_oneof![proptest::collection::vec(any::<u8>(), 0..3000), few, repeated]
    }

    fn decompressed(engine: &mut dyn Decompress, payload: &[u8], length: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; length];
        engine.decompress(payload, &mut out).ok().map(|()| out)
    }

    proptest! {
        #[test]
        fn what_c_compresses(content in contents(), level in 1..19, more in 1..3_usize) {
            let mut payload = Vec::new();
            let compress = C.compress.unwrap();
            prop_assert!(compress().compress(level, &content, &mut payload).unwrap());
            let mut decoder = FrameDecoder::new();
            prop_assert_eq!(decompressed(&mut decoder, &payload, content.len()), Some(content.clone()));
            // A wrong length, a truncated payload and a payload with excess bytes are errors, after which the decoder
            // is still usable.
            prop_assert!(matches!(decoder.decompress(&payload, &mut vec![0; content.len() + more]), Err(Failure::Length)));
            if content.len() >= more {
                prop_assert!(matches!(decoder.decompress(&payload, &mut vec![0; content.len() - more]), Err(Failure::Length)));
            }
            prop_assert_eq!(decompressed(&mut decoder, &payload[..payload.len() - more], content.len()), None);
            let longer = [payload.as_slice(), &[0]].concat();
            prop_assert_eq!(decompressed(&mut decoder, &longer, content.len()), None);
            prop_assert_eq!(decompressed(&mut decoder, &payload, content.len()), Some(content));
        }

        /// If both decoders accept a corrupt frame, they produce the same bytes.
        #[test]
        fn what_is_damaged(content in contents(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut payload = Vec::new();
            let compress = C.compress.unwrap();
            compress().compress(3, &content, &mut payload).unwrap();
            let at = at.index(payload.len());
            payload[at] = byte;
            let c = decompressed((C.decompress)().ok().unwrap().as_mut(), &payload, content.len());
            let here = decompressed(&mut FrameDecoder::new(), &payload, content.len());
            if let (Some(c), Some(here)) = (&c, &here) {
                prop_assert_eq!(c, here);
            }
        }
    }

    /// Decodes all frames in the golden files. The published package does not contain these files.
    #[test]
    fn golden_files() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/1.0");
        let Ok(files) = std::fs::read_dir(folder) else { return };
        let mut frames = 0;
        for file in files {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            for at in 0..bytes.len() {
                let rest = &bytes[at..];
                let found = rest
                    .starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
                    .then(|| zstd::zstd_safe::find_frame_compressed_size(rest));
                let Some(Ok(length)) = found else { continue };
                let payload = &rest[..length];
                let content = zstd::zstd_safe::get_frame_content_size(payload).ok().flatten().unwrap();
                let length = usize::try_from(content).unwrap();
                let c = decompressed((C.decompress)().ok().unwrap().as_mut(), payload, length);
                assert_eq!(decompressed(&mut FrameDecoder::new(), payload, length), c, "{at}");
                frames += usize::from(c.is_some());
            }
        }
        assert!(frames > 20, "{frames}");
    }

    #[test]
    fn a_large_window_is_refused_unless_the_content_is_as_long() {
        // A frame without content size, with a 64 MiB window and one empty raw block.
        let payload = [0x28, 0xb5, 0x2f, 0xfd, 0, 16 << 3, 1, 0, 0];
        let refused = FrameDecoder::new().decompress(&payload, &mut []);
        assert!(matches!(refused, Err(Failure::Payload(why)) if why.contains("window")));
        // A window of 8 MiB is accepted.
        let payload = [0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3, 1, 0, 0];
        assert_eq!(decompressed(&mut FrameDecoder::new(), &payload, 0), Some(Vec::new()));
    }
}
