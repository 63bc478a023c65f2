//! Rules that the oracle can break one at a time. A rule whose violation changes no vector is not tested by the
//! vectors.
//!
//! Memory bounds are not rules: a reader without them returns the same records and only needs more memory.

use std::cell::RefCell;

/// Defines [`Rule`] and [`Chapter`] from the table below: chapters of the specification, each with its rules and their
/// descriptions. A description also names the behavior if the rule is broken, which is a plausible misreading of the
/// specification.
macro_rules! rules {
    ($($chapter:ident = $title:literal { $($rule:ident, $doc:literal;)* })*) => {
        /// Chapter of the rules.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Chapter {
            $(#[doc = $title] $chapter,)*
        }

        impl Chapter {
            /// All chapters.
            pub const ALL: &[Self] = &[$(Self::$chapter),*];

            /// Returns the title, with sections of the specification.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$chapter => $title,)* }
            }

            /// Returns the rules of the chapter.
            #[must_use]
            pub const fn rules(self) -> &'static [Rule] {
                match self { $(Self::$chapter => &[$(Rule::$rule),*],)* }
            }
        }

        /// Rule of the specification.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Rule {
            $($(#[doc = $doc] $rule,)*)*
        }

        impl Rule {
            /// Returns the description of the rule and of its broken variant.
            #[must_use]
            pub const fn says(self) -> &'static str {
                match self { $($(Self::$rule => $doc,)*)* }
            }
        }
    };
}

/// Upper bound on the number of rules.
const MOST: usize = 512;

thread_local! {
    /// Rules that were checked. Breaking any other rule changes nothing.
    static ASKED: RefCell<[bool; MOST]> = const { RefCell::new([false; MOST]) };
}

/// Runs a closure and returns the rules that it checked.
pub(crate) fn asked<T>(run: impl FnOnce() -> T) -> (T, Vec<Rule>) {
    ASKED.set([false; MOST]);
    let result = run();
    let all = Chapter::ALL.iter().flat_map(|chapter| chapter.rules()).copied();
    let asked = ASKED.with_borrow(|asked| all.filter(|rule| asked[*rule as usize]).collect());
    (result, asked)
}

/// All rules except the broken one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules(pub(crate) Option<Rule>);

impl Rules {
    /// Returns whether a rule is intact.
    pub(crate) fn holds(self, rule: Rule) -> bool {
        ASKED.with_borrow_mut(|asked| asked[rule as usize] = true);
        self.0 != Some(rule)
    }

    /// Returns an error if the condition is false and the rule is intact.
    pub(crate) fn demand(self, rule: Rule, so: bool, wrong: &str) -> Result<(), String> {
        if so || !self.holds(rule) { Ok(()) } else { Err(wrong.to_owned()) }
    }
}

rules! {
    Language = "The language (2, 3.1 to 3.4)" {
        CommentsNotNested, "Comments do not nest. Broken: they do.";
        QuotedIsAnnotation, "A quoted name is an annotation. Broken: it is as any.";
        FirstCharacterIsMost, "The first character of a number is its most significant byte. Broken: the least.";
        SignIsComplement, "A number with a sign is two's complement. Broken: the sign is ignored.";
        ProductsFirst, "`*`, `/` and `%` bind tighter than `+` and `-`. Broken: they bind alike.";
        LeftFirst, "Operators go from left to right. Broken: from right to left.";
        TagWidth, "Tags have the width that is given. Broken: always 1.";
        SignedTypesExtend, "A number of type `i8` to `i64` is extended by its sign. Broken: by zeros.";
        LengthIsOfBytes, "The length of `bytes`, `text` and `cstring` is a number of bytes. Broken: up to 8, it makes a number.";
        TypesOfSectionFirst, "The types of a section come before those of the top level. Broken: behind them.";
        TypeOfFieldName, "A type also applies to the fields of its name. Broken: it does not.";
        BlockBeforeType, "The block of the record that lists a field comes before the field's type. Broken: behind it.";
        TagUnlisted, "A tag that is not listed is the first field. Broken: it is none.";
        PredefinedTagsMove, "The tags of predefined records can be given. Broken: they stay.";
        GlobalRecordsVisible, "Global records stand in every section. Broken: in the global one alone.";
        ElementIsNotNested, "The element of a stream section is the record that no other nests. Broken: the first.";
        BlocksFirst, "A block comes before section and top level. Broken: behind them.";
        OuterBlocksFirst, "Of blocks the outermost comes first. Broken: the innermost.";
        SectionsFirst, "A section comes before the top level. Broken: behind it.";
        NamesOfNestedLeaves, "A property of a section names leaves of nested records, too. Broken: it does not.";
        VfieldLooksInBlocks, "The leaves of `vfield` look in blocks alone. Broken: as others do.";
        BothOfAName, "A property applies to both fields of a name. Broken: to the first.";
        CountListedBefore, "A count that is listed before is that field. Broken: it stands in place.";
        PathsFromTheBlock, "A width's paths start at the block's record. Broken: at the leaf's.";
        PathsOutwards, "Paths of counts go on at the records that nest. Broken: they do not.";
        NearestOfSeveral, "Of several leaves the nearest counts. Broken: the first.";
        SharedByName, "`previous = shared` shares by name. Broken: it does not.";
        SharedBySetting, "Leaves that take `delta` or `stride` from one property outside of blocks share. Broken: they do not.";
        OwnIsApart, "`previous = own` keeps a leaf out. Broken: it does not.";
    }
    Header = "The header (5.1, 5.2)" {
        Magic, "A trace begins with `0x7F MTF`. Broken: with anything.";
        ClassKnown, "The class is 1 or 2. Broken: another is as 2.";
        ByteOrderKnown, "The byte order is 1 or 2. Broken: another is as 1.";
        IntOfClass, "An `int` has 4 bytes in class 1, and 8 in class 2. Broken: the other way round.";
        HeaderOrder, "The header has the file's byte order. Broken: the other one.";
        VersionKnown, "`pad[0]` is 0 or 1. Broken: another is as 1.";
        PadZero, "The pad of version 0 is 0. Broken: it may be anything.";
        FeaturesKnown, "Features that are not known are an error. Broken: they are ignored.";
        NoTableInVersion1, "`nsections` of version 1 is 0. Broken: it may be anything.";
        StartBehindHeader, "`start` of version 1 is the end of the header. Broken: it may be behind.";
        StartNotInHeader, "`start` is not in the header. Broken: it may be.";
        StartInFile, "`start` is not past the end of the file. Broken: it may be, and there are no data.";
    }
    Extents = "Version 0 (5.1)" {
        TableSectionKnown, "The sections of the table are those of the DTD. Broken: one that is not there is an error later, or none.";
        GlobalEntryAtStart, "An entry 0 is the first, and begins at `start`. Broken: it may begin anywhere.";
        TableWithoutGap, "The table has no gap. Broken: it may have some.";
        ExtentBehindRecord, "An extent's `section` record stands before it. Broken: anything may.";
        NothingBehindExtents, "Nothing follows the last extent. Broken: anything may.";
        NoSectionInExtent, "No `section` record stands in an extent. Broken: it changes the section there.";
        NotBackToGlobal, "A `section` record does not name 0. Broken: it may.";
        NoStreamWithoutTable, "Without a table a stream section is an error. Broken: its bytes are records.";
    }
    Chunks = "Version 1 (5.2, 5.3)" {
        ChunkSum, "The CRC of a chunk holds. Broken: it need not.";
        SequenceRuns, "Chunks are numbered from 0 without a gap. Broken: they may have any numbers.";
        ChunkOfHeader, "Chunks have the class and the byte order of the header. Broken: they may have others.";
        OtherKindsBare, "Chunks that are not data have section and group 0. Broken: they may have others.";
        KindKnown, "Kinds from 4 to 127 are errors. Broken: they are skipped.";
        OtherFieldsFree, "Kinds from 128 on may have any section, group, codec, filter and so on. Broken: they may not.";
        CodecKnown, "Codecs from 4 on are errors. Broken: they are as 0.";
        FilterKnown, "Filters from 5 on are errors. Broken: they are as 0.";
        FlagsKnown, "Flags from bit 3 on are errors. Broken: they are ignored.";
        RawLength, "A chunk's content has raw_len bytes. Broken: it may have others.";
        NothingBehindStreams, "A payload is one zstd frame or zlib stream. Broken: bytes may stand behind it.";
        Transposes, "Filter 1 is undone. Broken: it is not.";
        TransposedElements, "Filter 1 needs the size of elements, and whole ones. Broken: it does not.";
        BaseRuns, "The base is the content before it. Broken: it may be any number.";
        SharedWholly, "Chunks of a section are all of a shared table, or none. Broken: some may be.";
        SharedFlags, "Chunks of a shared table have flag bit 0, not bit 1, and group 0. Broken: they may have others.";
        GroupStarts, "The first chunk of data begins a group. Broken: it need not.";
        GroupRuns, "Groups are numbered from 0 without a gap. Broken: they may have any numbers.";
        FirstChunkResets, "The first chunk of a section in a group resets it. Broken: it need not.";
        StreamsFirst, "Stream sections come before those that stride through them. Broken: they may come later.";
        WidthOfSingle, "A chunk of a single leaf has its width, 1 to 8. Broken: it may have another.";
        WidthNowhereElse, "Other chunks have a width only with filter 1. Broken: they may have one.";
        WidthOfChunk, "The width of a chunk counts for a single leaf, not the DTD's. Broken: the DTD's does.";
        RecordsCounted, "A chunk has as many records as it says. Broken: it may have others.";
        RecordsAreData, "Only data records count. Broken: comments and metadata count, too.";
        IndexRight, "The index is that of the chunks. Broken: it may be anything.";
        FooterRight, "The footer's place of the index, its CRC and its magic are right. Broken: they may be anything.";
        NothingBehindFooter, "Nothing follows the footer. Broken: anything may.";
        EmbeddedFirst, "The DTD in the trace comes before one that the caller gives. Broken: behind it.";
    }
    Dictionaries = "Filters 2 and 3 (5.2)" {
        DecompressedLength, "Decompressed bytes have the length filtered_len. Broken: they may have another.";
        FilteredLengthZero, "filtered_len is 0 without filter 2 or 3. Broken: it may be anything.";
        LeastGroupFirst, "LEB128 has the least significant bits first. Broken: the most significant.";
        Leb128Of5, "A number in LEB128 has at most 5 bytes. Broken: 9.";
        MostEntries, "There are at most 65,280 numbered entries. Broken: there may be more.";
        EntriesInColumns, "Entries are stored in columns. Broken: one behind the other.";
        TokensOfTwo, "Tokens from `ones` on have a second byte. Broken: none has.";
        SinglesByToken255, "Token 255 is the next of the s others. Broken: it is as other tokens.";
        TokensKnown, "A token has an entry. Broken: it may have none, and is the last one then.";
        SinglesUsedUp, "All of the s others are used. Broken: some may be left.";
        SuffixesByEntry, "Suffixes are sorted by their entries. Broken: they are in the order of the tokens.";
        FilteredUsedUp, "No filtered bytes are left. Broken: some may be.";
    }
    Columns = "Filter 4 (5.2)" {
        FeatureByName, "A feature is known by its number and name. Broken: by its number alone.";
        ColumnsOfData, "Only data chunks have filter 4. Broken: others may have it, too.";
        RatioBounded, "raw_len is at most 65,536 times stored_len. Broken: it may be more.";
        MostColumns, "There are at most 4,096 columns. Broken: there may be more.";
        ColumnWidths, "The width of a column is not 0. Broken: it may be.";
        LabelBounded, "A label has a leaf of at most 255 and a tag of at most 32 bits. Broken: any numbers.";
        MostShapes, "There are at most 256 shapes. Broken: there may be more.";
        MostPieces, "A shape has at most 256 pieces. Broken: it may have more.";
        ColumnsKnown, "Pieces name existing columns. Broken: others name the last one.";
        ShapesKnown, "Rows name existing shapes. Broken: others name the last one.";
        ShapeNotEmpty, "A shape has constant bytes or an element. Broken: it may have only repetitions.";
        RepetitionNotEmpty, "A repetition has a column. Broken: it may have none.";
        CountOfEarlierPiece, "An earlier element of the column is the count. Broken: the next element is.";
        LastElementCounts, "The row's last element of the column is the count. Broken: the first is.";
        CountLittleEndian, "A count is little-endian. Broken: it has the byte order of the trace.";
        CountWidthTo8, "A count has at most 8 bytes. Broken: it may have more.";
        CountsOnly, "A column whose next element is a count has no other use. Broken: it may have one.";
        ColumnsBounded, "Columns have at most twice raw_len bytes. Broken: they may have more.";
        StreamPerByte, "A column of width 2 to 8 has one stream per byte. Broken: it has one.";
        WideInOneStream, "A column of width 9 or more has one stream. Broken: it has one per byte.";
        OneByteRepeats, "A stored stream of one byte repeats it. Broken: it is compressed.";
        StreamsShorter, "A stored stream is not longer than its bytes. Broken: it may be.";
        StreamLength, "A compressed stream has the bytes of its column. Broken: zeros are added, and the rest is left out.";
        PayloadUsedUp, "No byte of the payload is left. Broken: some may be.";
        ElementsUsedUp, "No element is left. Broken: some may be.";
    }
    Salvage = "Salvage (5.2)" {
        LooksForSync, "Salvage looks for the next chunk behind damage. Broken: it ends there.";
        GapsBySequence, "Sequence numbers show what is missing. Broken: what is missing is not noticed.";
        SalvageAfterReset, "A chunk is delivered only if its state was reset since the damage. Broken: always.";
        SalvageWholeStreams, "One that strides is delivered only if no chunk of the group is missing. Broken: always.";
    }
    Raw = "Files without a header (5.4)" {
        LittleFirst, "A start is tried in little-endian order first. Broken: in big-endian order.";
        StartsInOrder, "Starts are tried in the order of the sections. Broken: the other way round.";
        WeakMagicNeedsTwo, "A weak magic needs two whole records. Broken: it needs none.";
        StartsAlone, "Without another section, the file consists of the elements of its only start. Broken: no file begins so.";
        HeaderGivesValues, "Records take values from the header of the file. Broken: the value is 0.";
        RecordsSize, "The records have the size that the prologue says. Broken: all that is left.";
        RecordsSizeInFile, "They do not end behind the file. Broken: they end with it then.";
        TrailerIsStream, "What is behind the records is a stream section. Broken: it is skipped.";
        PrologueConstants, "A prologue with another constant is an error. Broken: it fits not.";
    }
    Records = "Records, counts and expressions (3.2, 3.3, 3.7)" {
        ItemsBounded, "A record has at most 65,536 items more than bytes. Broken: any number, up to what the content has.";
        CatchAllTakesTheRest, "A catch-all record has every tag that is left. Broken: the least alone.";
        NamedTagsFirst, "A record's own tag comes before the catch-all record. Broken: behind it.";
        SumsBounded, "A sum over 64 bits is an error. Broken: it wraps.";
        DifferencesBounded, "A difference below 0 is an error. Broken: it is 0.";
        ProductsBounded, "A product over 64 bits is an error. Broken: it wraps.";
        DivisorNotZero, "A division by 0 is an error. Broken: it gives 0.";
        RemainderDivisorNotZero, "A remainder by 0 is an error. Broken: it gives the left number.";
        ArraysHaveData, "No `comment`, `section` or `metadata` stands in an array. Broken: `comment` may.";
        BitsFromLeast, "Bit 0 is the least significant. Broken: the most significant of a byte.";
        DividesDown, "A division rounds down. Broken: up.";
        RemainderOfLeft, "`%` is the remainder of the left by the right. Broken: of the right by the left.";
        ComparesUnsigned, "Numbers are compared without a sign. Broken: as two's complement.";
        IncludesEqual, "`<=` holds for equal numbers. Broken: it does not.";
        EndIsOutside, "The byte that ends an array is not part of it. Broken: it is.";
        RestLeavesTail, "The fields after `rest` are not part of it. Broken: it ends with the content.";
        UntilIsAfterItem, "A condition is evaluated after an item. Broken: also before the first.";
        UntilBounded, "An array that ends at a byte has at most 65,535 bytes. Broken: any number.";
        AbsentKeepsPrevious, "A leaf that is not there leaves its previous value. Broken: it is 0 then.";
        CountHasIndex, "A computed count has an index. Broken: it has none.";
        CountIsNotSet, "Metadata cannot set a computed count. Broken: it can, to no effect.";
    }
    Values = "Values and state (4)" {
        NoneExtendsWithZeros, "`none` extends with zeros. Broken: with the sign.";
        BaseOffsetExtendsSign, "`baseOffset` extends with the sign. Broken: with zeros.";
        DeltaExtendsSign, "`delta` extends with the sign. Broken: with zeros.";
        RecordInProgress, "A base that is a leaf counts the record in progress. Broken: only those before it.";
        PreviousIsInitial, "The first previous value is the initial one. Broken: it is 0.";
        PreviousAlwaysUpdated, "Every value is the next previous one, whatever the interpretation. Broken: not with those that need none.";
        PreviousShared, "Leaves share a previous value as said. Broken: each has its own.";
        CursorOfSection, "A cursor is that of the section of the records. Broken: all sections share it.";
        CursorOfLeaves, "All leaves of a section that stride through one stream section take turns. Broken: each has a cursor.";
        CursorMovesBySteps, "The cursor moves by the stride. Broken: by 1.";
        CursorsOfGroup, "Cursors begin again in each group. Broken: they go on.";
        ModelCursorsOfGroup, "The cursors of predicted leaves begin again in each group. Broken: they go on.";
        ElementsAreThere, "An element that does not exist is an error. Broken: it is 0.";
        StateContinues, "State continues over chunks and extents without a reset. Broken: each begins again.";
        ResetRestoresWidths, "A reset restores widths. Broken: they stay.";
        ResetRestoresInterpretations, "A reset restores interpretations. Broken: they stay.";
        ResetRestoresPrevious, "A reset restores previous values. Broken: they stay.";
        ResetEmptiesLastValues, "A base that is a leaf is 0 after a reset. Broken: it stays.";
        ResetEmptiesModels, "A reset empties models. Broken: they stay.";
        ResetMovesNoCursor, "A reset moves no cursor. Broken: it rewinds them.";
        ResetMovesNoModelCursor, "A reset moves no cursor of predicted leaves. Broken: it rewinds them.";
        ConstantsChecked, "A constant has its value. Broken: it may have any.";
    }
    Metadata = "Metadata (4.1)" {
        MetadataValuesTo8, "Values of metadata have at most 8 bytes. Broken: more count as 8.";
        MetadataValueWidth, "Bits 4 to 7 are the bytes of a value. Broken: it has always those of the class.";
        MetadataZeroExtends, "Values of metadata extend with zeros. Broken: with the sign.";
        MetadataStrideSigned, "A stride extends with the sign. Broken: with zeros.";
        MetadataOfNone, "Metadata cannot change `section` and `metadata`. Broken: they can.";
        MetadataOfNumbers, "Metadata change numeric leaves alone. Broken: others, too, to no effect.";
        MetadataNotOfConstants, "Metadata change no constant. Broken: they do.";
        MetadataNotOfTags, "Metadata change no tag. Broken: they do, to no effect.";
        CatchAllByAnyTag, "Each tag of a catch-all record names it. Broken: the least alone does.";
        TagIsField0, "The tag is leaf 0. Broken: the leaf behind it is.";
        AllOfAName, "Bit 3 applies a change to all leaves of the name. Broken: to the one.";
        AllOfANameOrNone, "One of them that cannot take it is an error. Broken: it takes it.";
        MetadataWidthTo8, "A width is at most 8. Broken: more is as 8.";
        MetadataStrideAbove0, "A stride through a section is above 0. Broken: it may be 0.";
        MetadataStrideOfNumbers, "It goes through a stream section of one number. Broken: through any.";
        MetadataStreamIsThere, "The section is a stream section. Broken: it may be any.";
        MetadataSetsPrevious, "Setting delta or stride sets the previous value. Broken: it stays.";
        NeverAWidth, "An interpretation that stores needs a width that was. Broken: it is 0.";
        WidthRestored, "Such an interpretation restores the last width that was not 0. Broken: the width stays.";
        Width0NotRemembered, "A width of 0 is not remembered. Broken: it is.";
        WidthKeptUnstored, "A width that is set while nothing is stored is remembered. Broken: it is lost.";
    }
    Models = "Predicted leaves (4.2)" {
        RecentRepeats, "An address that is freed twice stands twice in *recent*. Broken: it moves to the front.";
        RecentLength, "*Recent* has 128 addresses. Broken: 127.";
        RecentKeeps, "*Recent* keeps an address that is allocated again. Broken: it leaves.";
        Forgets, "Freed addresses are forgotten. Broken: none is.";
        ForgetsOverBound, "Addresses are forgotten when more than K are freed. Broken: when K are.";
        ForgetsByLive, "K grows by 4 for each live object. Broken: by 3.";
        ForgetsByMostLive, "m is the most that were live at a time. Broken: those that are.";
        ForgetsOlderHalf, "The last K / 2 frees stay. Broken: one less.";
        ForgottenIsNoCandidate, "What is forgotten is not a candidate. Broken: it is one where *recent* leads to it.";
        ForgottenOlder, "*Older* becomes the older neighbour when it is forgotten. Broken: it stays.";
        ForgottenNewer, "*Newer* becomes the newer neighbour when it is forgotten. Broken: it stays.";
        ForgottenIsRecent, "What is forgotten stays in *recent*. Broken: it leaves.";
        ClosesUp, "The empty slots of a sparse order are taken out. Broken: none is.";
        ClosesUpLength, "An order is closed up where it has more than 1024 slots. Broken: or 1024.";
        ClosesUpShare, "An order is closed up where its slots are more than twice as many as are in use. Broken: or twice.";
        ClosesUpMark, "Closing up renumbers the mark. Broken: it stays.";
        DropsEmptySlots, "Empty slots at the end are dropped. Broken: they stay.";
        WindowOfNewest, "The window of the newest has 64 slots. Broken: 65.";
        WindowAfterMark, "The window after the mark has 64 slots. Broken: 65.";
        WindowBeforeMark, "The window before the mark has 64 slots. Broken: 65.";
        MarkNotAfter, "The slot of the mark is not in the window after it. Broken: it is.";
        MarkNotBefore, "The slot of the mark is not in the window before it. Broken: it is.";
        MarkPastEnd, "Where the mark is past the end, the window before it ends with the order. Broken: at the mark.";
        ForeignFreeOfOwner, "A free in another context moves no mark. Broken: it moves that of the owner.";
        ForeignFreeOfOther, "A free in another context moves no mark. Broken: it moves that of the context that frees.";
        ForeignFreeMoves, "What another context frees belongs to that one. Broken: it stays in the owner's class.";
        FreshByMiss, "Code 36 sets *fresh*. Broken: it does not.";
        FreshByRecent, "The codes from 38 on set *fresh*. Broken: they do not.";
        FreshNotByBump, "Bumps do not set *fresh*. Broken: they do.";
        FreshNotByCarried, "Code 37 does not set *fresh*. Broken: it does.";
        BumpsNotByFresh, "Code 3 makes no bump. Broken: it does.";
        BumpsToFront, "A bump that is used moves to the front. Broken: it stays in its place.";
        BumpsByMiss, "Code 36 makes a bump. Broken: it does not.";
        BumpsByRecent, "The codes from 38 on make a bump. Broken: they do not.";
        BumpsNotByCarried, "Code 37 teaches nothing about fresh memory. Broken: it makes a bump.";
        LiveAgainLeaves, "A live address that is allocated again leaves its order. Broken: its slot stays in use.";
        LiveAgainNoMark, "The mark stays when a live address is allocated again. Broken: it becomes the slot.";
        Older, "Allocating makes *older* the older neighbour of what was taken. Broken: it stays.";
        Newer, "Allocating makes *newer* the newer neighbour of what was taken. Broken: it stays.";
        LastMissOfAllocations, "*Last miss* is that of an allocation alone. Broken: a free sets it, too.";
        EmptiedByContexts, "Contexts count for the limit of a heap. Broken: they do not.";
        EmptiedByAddresses, "Addresses count for the limit of a heap. Broken: they do not.";
        EmptiedKeepsRule, "An emptied heap keeps its size rule. Broken: it goes by 0.";
        EmptiedForgetsMost, "An emptied heap counts the most live objects from 0. Broken: it remembers.";
        SizeCutOfRule0, "Sizes are cut to 64 bits by size rule 0. Broken: they wrap.";
        SizeCutOfRule1, "Sizes are cut to 64 bits by size rule 1. Broken: they wrap.";
        DoublesAtEquality, "Tables double with as many values as lines, the one just learnt counted. Broken: with one more.";
        MostLines, "A table has at most 65,536 lines. Broken: twice as many.";
        MostNumbers, "The tables of a section have at most 2^22 numbers together. Broken: each of them has.";
        ModelsOfOtherBy, "Leaves that go `by` different leaves share a model. Broken: each has its own.";
        ModelsWithoutBy, "Leaves share no model where one goes `by` a leaf and the other does not. Broken: they do.";
        ByTagOfCatchAll, "The tag of a catch-all record is a value to go `by` like others. Broken: it is one number for all of them.";
        DoublesCopies, "A doubled table has its lines twice. Broken: the new half is empty.";
    }
    Json = "JSON lines (8)" {
        ConstantsHidden, "Constants and tags of data records appear only with `--all`. Broken: always.";
        CatchAllTagShown, "The tag of a catch-all record is a field. Broken: it is hidden.";
        CountsHidden, "A count that is computed does not appear. Broken: it does.";
        SignedShown, "`signed` is negative with the top bit. Broken: it is as any number.";
        FloatsShown, "`f64` is the number of the bits. Broken: it is as any number.";
        SinglesShown, "`f32` is the number of the bits. Broken: it is as any number.";
        FloatsWithoutForm, "An `f64` that JSON has not is its bits in hex. Broken: null.";
        TextShown, "`utf8` is a string. Broken: it is hex.";
        TextValid, "Text that is not UTF-8 is in hex. Broken: it has replacement characters.";
        CStringsCut, "`cstring` is the text before the first 0. Broken: it is as `utf8`.";
        CStringTail, "Its tail appears where it is not one 0. Broken: never.";
        ArraysShown, "A byte array of a section is an array of objects. Broken: it is hex.";
        VfieldIsData, "A `vfield` is its data alone. Broken: it is an object.";
        NestedIsObject, "Another nested record is an object. Broken: its fields stand in the record.";
        ItemsNamed, "The key of a repeated record is its name, that of a group is the count and `_items`. Broken: it is `items`.";
        RepetitionNamed, "The key of a repetition is the name that the DTD gives it. Broken: it is the name of what is repeated.";
        SecondNames, "A second field of a name has a number. Broken: it has the same key.";
        OptionalAbsent, "What is not there has no key. Broken: it is an empty array.";
        OptionalSingle, "What is there is no array. Broken: it is one.";
        SectionOfOffset, "An `@offset` of version 0 counts from the file's beginning. Broken: it is missing.";
        SharedMarked, "Elements of shared tables have `@shared`. Broken: they have not.";
        GroupsMarked, "Groups from the second on have a line. Broken: they have none.";
    }
}
