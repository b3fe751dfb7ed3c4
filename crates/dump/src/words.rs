//! Enums whose values are words in files and messages.

/// What [`words!`] declares, for code that serves all of them.
pub(crate) trait Word: Copy + 'static {
    /// Every value, in the order messages list them.
    const VALUES: &'static [Self];

    /// The word files and messages use.
    fn word(self) -> &'static str;

    /// The value of a word.
    fn find(word: &str) -> Option<Self> {
        Self::VALUES.iter().copied().find(|value| value.word() == word)
    }
}

/// Declares an enum with one word per value. The order of the values is the order in which messages list them.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$value_meta:meta])* $value:ident = $word:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$value_meta])* $value,)+
        }

        impl $name {
            /// Every value, in the order messages list them.
            pub const ALL: &'static [$name] = &[$($name::$value),+];

            /// The word files and messages use.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$value => $word,)+
                }
            }

            /// The value of a word; words are case-sensitive.
            pub fn from_word(word: &str) -> Option<$name> {
                $crate::words::Word::find(word)
            }
        }

        impl $crate::words::Word for $name {
            const VALUES: &'static [$name] = $name::ALL;

            fn word(self) -> &'static str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use words;
