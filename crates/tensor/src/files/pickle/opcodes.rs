//! The instruction set of the pickle machine, protocols 0 to 5.

/// One instruction byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[rustfmt::skip]
pub(super) enum Op {
    // Protocol 0 and 1.
    Mark = b'(', Stop = b'.', Pop = b'0', PopMark = b'1', Dup = b'2', Float = b'F', Int = b'I',
    BinInt = b'J', BinInt1 = b'K', Long = b'L', BinInt2 = b'M', None = b'N', PersId = b'P',
    BinPersId = b'Q', Reduce = b'R', String = b'S', BinString = b'T', ShortBinString = b'U',
    Unicode = b'V', BinUnicode = b'X', Append = b'a', Build = b'b', Global = b'c', Dict = b'd',
    EmptyDict = b'}', Appends = b'e', Get = b'g', BinGet = b'h', Inst = b'i', LongBinGet = b'j',
    List = b'l', EmptyList = b']', Obj = b'o', Put = b'p', BinPut = b'q', LongBinPut = b'r',
    SetItem = b's', Tuple = b't', EmptyTuple = b')', SetItems = b'u', BinFloat = b'G',
    // Protocol 2.
    Proto = 0x80, NewObj = 0x81, Ext1 = 0x82, Ext2 = 0x83, Ext4 = 0x84, Tuple1 = 0x85, Tuple2 = 0x86,
    Tuple3 = 0x87, NewTrue = 0x88, NewFalse = 0x89, Long1 = 0x8a, Long4 = 0x8b,
    // Protocol 3.
    BinBytes = b'B', ShortBinBytes = b'C',
    // Protocol 4.
    ShortBinUnicode = 0x8c, BinUnicode8 = 0x8d, BinBytes8 = 0x8e, EmptySet = 0x8f, AddItems = 0x90,
    FrozenSet = 0x91, NewObjEx = 0x92, StackGlobal = 0x93, Memoize = 0x94, Frame = 0x95,
    // Protocol 5.
    ByteArray8 = 0x96, NextBuffer = 0x97, ReadonlyBuffer = 0x98,
}

impl Op {
    #[rustfmt::skip]
    #[allow(clippy::enum_glob_use, reason = "a table of all variants")]
    const ALL: [Op; 68] = {
        use Op::*;
        [
            Mark, Stop, Pop, PopMark, Dup, Float, Int, BinInt, BinInt1, Long, BinInt2, None, PersId, BinPersId,
            Reduce, String, BinString, ShortBinString, Unicode, BinUnicode, Append, Build, Global, Dict,
            EmptyDict, Appends, Get, BinGet, Inst, LongBinGet, List, EmptyList, Obj, Put, BinPut, LongBinPut,
            SetItem, Tuple, EmptyTuple, SetItems, BinFloat, Proto, NewObj, Ext1, Ext2, Ext4, Tuple1, Tuple2,
            Tuple3, NewTrue, NewFalse, Long1, Long4, BinBytes, ShortBinBytes, ShortBinUnicode, BinUnicode8,
            BinBytes8, EmptySet, AddItems, FrozenSet, NewObjEx, StackGlobal, Memoize, Frame, ByteArray8,
            NextBuffer, ReadonlyBuffer,
        ]
    };

    const BY_BYTE: [Option<Op>; 256] = {
        let mut table = [Option::None; 256];
        let mut index = 0;
        while index < Self::ALL.len() {
            table[Self::ALL[index] as usize] = Some(Self::ALL[index]);
            index += 1;
        }
        table
    };

    /// The instruction of a byte, if there is one.
    pub(super) fn from_byte(byte: u8) -> Option<Op> {
        Self::BY_BYTE[byte as usize]
    }
}
