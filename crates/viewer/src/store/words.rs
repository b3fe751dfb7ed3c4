//! What nodes are, in the words of stores, of answers and of colours.

use msprobe_report::Tone;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Module,
    Api,
    Collection,
    Multi,
}

impl Kind {
    /// Of the number in files. What is not known is a module, as in the reference.
    pub(crate) fn of(number: &str) -> Kind {
        match number {
            "1" => Kind::Api,
            "9" => Kind::Collection,
            "8" => Kind::Multi,
            _ => Kind::Module,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Module => "module",
            Kind::Api => "api",
            Kind::Collection => "collection",
            Kind::Multi => "multi",
        }
    }

    pub(crate) fn is_collection(self) -> bool {
        matches!(self, Kind::Collection | Kind::Multi)
    }

    pub(crate) fn from_bits(bits: u8) -> Kind {
        match bits & 3 {
            0 => Kind::Module,
            1 => Kind::Api,
            2 => Kind::Collection,
            _ => Kind::Multi,
        }
    }
}

/// How alarming a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Overflow {
    Medium = 1,
    High = 2,
    Critical = 3,
}

impl Overflow {
    pub(crate) const ALL: [Overflow; 3] = [Overflow::Medium, Overflow::High, Overflow::Critical];

    pub(crate) fn of(word: &str) -> Option<Overflow> {
        Overflow::ALL.into_iter().find(|level| level.as_str() == word)
    }

    pub(crate) fn from_bits(bits: u8) -> Option<Overflow> {
        Overflow::ALL.into_iter().find(|level| *level as u8 == bits & 3)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Overflow::Medium => "medium",
            Overflow::High => "high",
            Overflow::Critical => "critical",
        }
    }

    pub(crate) fn tone(self) -> Tone {
        if self == Overflow::Critical { Tone::Bad } else { Tone::Warning }
    }
}

/// What the answer says of a node, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Equal = 1,
    EqualInNumbers,
    NotJudged,
    WithinTolerance,
    NotCompared,
    Unmatched,
    Inherited,
    Introduced,
}

impl Verdict {
    pub(crate) const ALL: [Verdict; 8] = [
        Verdict::Equal,
        Verdict::EqualInNumbers,
        Verdict::NotJudged,
        Verdict::WithinTolerance,
        Verdict::NotCompared,
        Verdict::Unmatched,
        Verdict::Inherited,
        Verdict::Introduced,
    ];

    /// Of the words in our table, which are those of reports.
    pub(crate) fn of(words: &str) -> Option<Verdict> {
        Verdict::ALL.into_iter().find(|verdict| {
            let known = verdict.as_str().bytes().map(|byte| if byte == b'_' { b' ' } else { byte });
            words.bytes().eq(known)
        })
    }

    pub(crate) fn from_bits(bits: u8) -> Option<Verdict> {
        Verdict::ALL.into_iter().find(|verdict| *verdict as u8 == bits)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Verdict::Equal => "equal",
            Verdict::EqualInNumbers => "equal_in_numbers",
            Verdict::NotJudged => "not_judged",
            Verdict::WithinTolerance => "within_tolerance",
            Verdict::NotCompared => "not_compared",
            Verdict::Unmatched => "unmatched",
            Verdict::Inherited => "inherited",
            Verdict::Introduced => "introduced",
        }
    }

    pub(crate) fn tone(self) -> Tone {
        match self {
            Verdict::Equal | Verdict::EqualInNumbers | Verdict::WithinTolerance => Tone::Good,
            Verdict::NotJudged => Tone::Plain,
            Verdict::NotCompared | Verdict::Unmatched => Tone::Unknown,
            Verdict::Inherited => Tone::Warning,
            Verdict::Introduced => Tone::Bad,
        }
    }
}

/// How bad a colour is, to find the worst.
pub(crate) fn weight(tone: Tone) -> u8 {
    match tone {
        Tone::Plain => 0,
        Tone::Good => 1,
        Tone::Unknown => 2,
        Tone::Warning => 3,
        Tone::Bad => 4,
    }
}

#[cfg(test)]
mod tests {
    use msprobe_compare::verdict::RowOrigin;

    use super::*;

    #[test]
    fn verdicts_of_the_engine_are_known() {
        for origin in [
            RowOrigin::Equal,
            RowOrigin::Tolerated,
            RowOrigin::Introduced,
            RowOrigin::Inherited,
            RowOrigin::Aside,
            RowOrigin::NotJudged,
            RowOrigin::NotCompared,
        ] {
            assert!(Verdict::of(origin.as_str()).is_some(), "{origin:?}");
        }
        for verdict in Verdict::ALL {
            assert_eq!(Verdict::from_bits(verdict as u8), Some(verdict));
        }
        assert_eq!(Verdict::of("within tolerance"), Some(Verdict::WithinTolerance));
        assert_eq!(Verdict::of("nonsense"), None);
    }
}
