//! The rules that the oracle can break, one at a time: what no vector notices, no vector pins.

/// A rule of the specification's section 4.2, or of counts that are computed (3.2, 3.3, 4.1), by what it says. Broken, it says something that an implementer may well read in its
/// place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// An address that is freed twice stands twice in *recent*. Broken: it moves to the front.
    RecentRepeats,
    /// *Recent* has 128 addresses. Broken: 127.
    RecentLength,
    /// *Recent* keeps an address that is allocated again. Broken: it leaves.
    RecentKeeps,
    /// Freed addresses are forgotten. Broken: none is.
    Forgets,
    /// They are when there are more than K. Broken: when there are K.
    ForgetsOverBound,
    /// K grows by 4 for each live object. Broken: by 3.
    ForgetsByLive,
    /// m is the most that were live at a time. Broken: those that are.
    ForgetsByMostLive,
    /// The last K / 2 frees stay. Broken: one less.
    ForgetsOlderHalf,
    /// What is forgotten is not a candidate. Broken: it is one where *recent* or *last freed* leads to it.
    ForgottenIsNoCandidate,
    /// *Older* and *newer* become the neighbours of what is forgotten. Broken: none.
    ForgetsNeighbours,
    /// The empty slots of a sparse order are taken out. Broken: none is.
    ClosesUp,
    /// Where it has more than 1024 slots. Broken: or 1024.
    ClosesUpLength,
    /// Where these are more than twice as many as are in use. Broken: or twice.
    ClosesUpShare,
    /// The mark is renumbered then. Broken: it stays.
    ClosesUpMark,
    /// Empty slots at the end are dropped. Broken: they stay.
    DropsEmptySlots,
    /// The windows have 64 slots. Broken: one more.
    WindowOfNewest,
    /// As [`WindowOfNewest`](Self::WindowOfNewest).
    WindowAfterMark,
    /// As [`WindowOfNewest`](Self::WindowOfNewest).
    WindowBeforeMark,
    /// The slot of the mark is in no window. Broken: in the one after it, or in the one before it.
    MarkNotAfter,
    /// As [`MarkNotAfter`](Self::MarkNotAfter).
    MarkNotBefore,
    /// Where the mark is past the end, the window before it ends with the order. Broken: at the mark.
    MarkPastEnd,
    /// A free in another context moves no mark. Broken: that of the owner, or that of the context that frees.
    ForeignFreeOfOwner,
    /// As [`ForeignFreeOfOwner`](Self::ForeignFreeOfOwner).
    ForeignFreeOfOther,
    /// What another context frees belongs to that one. Broken: it stays in the owner's class.
    ForeignFreeMoves,
    /// The codes 45, and 47 and up, set *fresh*. Broken: they do not.
    FreshByMiss,
    /// As [`FreshByMiss`](Self::FreshByMiss).
    FreshByRecent,
    /// Bumps do not. Broken: they do.
    FreshNotByBump,
    /// Nor does code 46. Broken: it does.
    FreshNotByCarried,
    /// Code 4 makes no bump. Broken: it does.
    BumpsNotByFresh,
    /// A bump that is used moves to the front. Broken: it stays in its place.
    BumpsToFront,
    /// The codes 45, and 47 and up, make a bump. Broken: they do not.
    BumpsByMiss,
    /// As [`BumpsByMiss`](Self::BumpsByMiss).
    BumpsByRecent,
    /// Code 46 teaches nothing about fresh memory. Broken: it makes a bump.
    BumpsNotByCarried,
    /// What is allocated again is no longer *last freed*. Broken: it is.
    LastFreedCleared,
    /// Of its own context alone. Broken: of all.
    LastFreedOfOwn,
    /// A live address that is allocated again leaves its order. Broken: its slot stays in use.
    LiveAgainLeaves,
    /// The mark stays then. Broken: it becomes the slot.
    LiveAgainNoMark,
    /// Allocating makes *older* and *newer* the neighbours of what was taken. Broken: one of them stays.
    Older,
    /// As [`Older`](Self::Older).
    Newer,
    /// *Last miss* is that of an allocation alone. Broken: a free sets it, too.
    LastMissOfAllocations,
    /// Contexts count for the limit. Broken: they do not.
    EmptiedByContexts,
    /// Addresses do. Broken: they do not.
    EmptiedByAddresses,
    /// An emptied heap keeps its size rule. Broken: it goes by 0.
    EmptiedKeepsRule,
    /// An emptied heap counts the most live objects from 0. Broken: it remembers.
    EmptiedForgetsMost,
    /// Sizes are cut to 64 bits. Broken: they wrap.
    SizeCutOfRule0,
    /// As [`SizeCutOfRule0`](Self::SizeCutOfRule0).
    SizeCutOfRule1,
    /// Tables double with as many values as lines, the one just learnt counted. Broken: with one more.
    DoublesAtEquality,
    /// A table has at most 65,536 lines. Broken: twice as many.
    MostLines,
    /// The tables of a section have at most 2^22 numbers together. Broken: each of them has.
    MostNumbers,
    /// A doubled table has its lines twice. Broken: the new half is empty.
    DoublesCopies,
    /// Bit 0 is the least significant. Broken: the most significant of a byte.
    BitsFromLeast,
    /// A division rounds down. Broken: up.
    DividesDown,
    /// `%` is the remainder of the left by the right. Broken: of the right by the left.
    RemainderOfLeft,
    /// Numbers are compared without a sign. Broken: as two's complement.
    ComparesUnsigned,
    /// `<=` holds for equal numbers. Broken: it does not.
    IncludesEqual,
    /// The byte that ends bytes is not part of them. Broken: it is.
    EndIsOutside,
    /// A leaf that is not there leaves its previous value. Broken: it is 0 then.
    AbsentKeepsPrevious,
    /// A computed count has an index. Broken: it has none.
    CountHasIndex,
    /// Metadata cannot set a computed count. Broken: it can, to no effect.
    CountIsNotSet,
}

impl Rule {
    /// Those of computed counts.
    pub const COUNTS: [Self; 9] = [
        Self::BitsFromLeast,
        Self::DividesDown,
        Self::RemainderOfLeft,
        Self::ComparesUnsigned,
        Self::IncludesEqual,
        Self::EndIsOutside,
        Self::AbsentKeepsPrevious,
        Self::CountHasIndex,
        Self::CountIsNotSet,
    ];

    /// All those of section 4.2.
    pub const ALL: [Self; 50] = [
        Self::RecentRepeats,
        Self::RecentLength,
        Self::RecentKeeps,
        Self::Forgets,
        Self::ForgetsOverBound,
        Self::ForgetsByLive,
        Self::ForgetsByMostLive,
        Self::ForgetsOlderHalf,
        Self::ForgottenIsNoCandidate,
        Self::ForgetsNeighbours,
        Self::ClosesUp,
        Self::ClosesUpLength,
        Self::ClosesUpShare,
        Self::ClosesUpMark,
        Self::DropsEmptySlots,
        Self::WindowOfNewest,
        Self::WindowAfterMark,
        Self::WindowBeforeMark,
        Self::MarkNotAfter,
        Self::MarkNotBefore,
        Self::MarkPastEnd,
        Self::ForeignFreeOfOwner,
        Self::ForeignFreeOfOther,
        Self::ForeignFreeMoves,
        Self::FreshByMiss,
        Self::FreshByRecent,
        Self::FreshNotByBump,
        Self::FreshNotByCarried,
        Self::BumpsNotByFresh,
        Self::BumpsToFront,
        Self::BumpsByMiss,
        Self::BumpsByRecent,
        Self::BumpsNotByCarried,
        Self::LastFreedCleared,
        Self::LastFreedOfOwn,
        Self::LiveAgainLeaves,
        Self::LiveAgainNoMark,
        Self::Older,
        Self::Newer,
        Self::LastMissOfAllocations,
        Self::EmptiedByContexts,
        Self::EmptiedByAddresses,
        Self::EmptiedKeepsRule,
        Self::EmptiedForgetsMost,
        Self::SizeCutOfRule0,
        Self::SizeCutOfRule1,
        Self::DoublesAtEquality,
        Self::MostLines,
        Self::MostNumbers,
        Self::DoublesCopies,
    ];
}
