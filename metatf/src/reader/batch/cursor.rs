//! Where the next record of a type is noted, and how long it is.

use super::layout::Extent;
use super::types::Type;
use crate::formula::eight;
use crate::streams::Streams;

/// What is needed to note a record and to find the one behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeCursor {
    pub(super) tag: u32,
    pub(super) position: u16,
    pub(super) extent: Extent,
    /// The slot of `places` that the next record is noted in, and how far apart they are.
    pub(super) next: usize,
    pub(super) step: usize,
}

/// What noting a record needs besides its bytes.
pub(super) struct Rest<'s> {
    pub(super) types: &'s mut [Type],
    pub(super) streams: &'s mut Streams,
    /// Of byte arrays at the ends of records.
    pub(super) bytes: &'s mut usize,
    /// Positions of the types that there are records of.
    pub(super) met: &'s mut Vec<u16>,
    /// The position of the type whose record cannot be noted because of it.
    pub(super) stopped_by: Option<u16>,
}

impl TypeCursor {
    /// Meets no record: no tag is so large, and should one be, no record is so long.
    pub(super) const NONE: Self = Self {
        tag: u32::MAX,
        position: u16::MAX,
        extent: Extent { fixed: usize::MAX >> 1, ..Extent::NONE },
        next: 0,
        step: 1,
    };

    /// Notes the record at a place. Gives its entry in the order, and where the next one is; none where that is too near to the end,
    /// which is eight bytes before the data's, or elements of streams are not at hand.
    #[allow(clippy::cast_possible_truncation, reason = "slots are allotted up to 32 bits")]
    #[inline(always)]
    pub(super) fn note<const ROWS: bool>(
        &mut self,
        data: &[u8],
        end: usize,
        at: usize,
        places: &mut [u64],
        rest: &mut Rest<'_>,
    ) -> Option<(u32, usize)> {
        let Extent { fixed, length, mask, streamed } = self.extent;
        let (slot, mut next) = (self.next, at + fixed);
        if next > end {
            return None;
        }
        let place = places.get_mut(slot)?;
        let length = u64::from_le_bytes(eight(data, at + length)?) & mask;
        // A branch that is predicted well: most often there is nothing.
        if length | streamed != 0 {
            next += rest.pass(self.position, length, end - next)?;
        }
        *place = at as u64;
        self.next = slot + self.step;
        Some((if ROWS { slot as u32 } else { self.position.into() }, next))
    }
}

impl Rest<'_> {
    /// Goes over what a record has besides: bytes at its end, `most` at most, and elements of streams. Gives how many bytes there
    /// are.
    #[inline(never)]
    fn pass(&mut self, position: u16, length: u64, most: usize) -> Option<usize> {
        let length = usize::try_from(length).ok().filter(|&length| length <= most)?;
        let known = self.types.get_mut(usize::from(position))?;
        if !known.take_elements(self.streams) {
            return None;
        }
        known.has_bytes |= length > 0;
        *self.bytes += length;
        Some(length)
    }
}
