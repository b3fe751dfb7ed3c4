//! What the user should read about, in the order it happened. The caller has the log.

/// Something to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A record overflowed and was kept.
    Overflow {
        /// The record.
        name: String,
        /// What it was given.
        given: GivenHealth,
    },
    /// As many overflows as were asked for; collection is over.
    OverflowsReached {
        /// How many.
        count: u64,
    },
    /// The flight recorder wrote what it held, and says why.
    Flight {
        /// The whole text.
        text: String,
        /// Whether something went wrong, rather than somebody asked.
        is_warning: bool,
    },
    /// A gradient came when no step was open; it belongs nowhere.
    NoStep,
}

/// Whether a call that overflowed was given what is not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenHealth {
    /// All of its input is finite.
    Finite,
    /// So is its input, but its parameters are not.
    FiniteButParameters,
    /// Some of its input is NaN or infinite: it was so before.
    NotFinite,
    /// Its input is not recorded, or was not measured.
    Unknown,
}

impl GivenHealth {
    fn sentence(self) -> &'static str {
        match self {
            GivenHealth::Finite => " Its input was finite.",
            GivenHealth::FiniteButParameters => " Its input was finite, its parameters were not.",
            GivenHealth::NotFinite => " Its input was already not finite, so look for an earlier call.",
            GivenHealth::Unknown => "",
        }
    }
}

impl Notice {
    /// Whether it is a warning rather than information.
    pub fn is_warning(&self) -> bool {
        !matches!(self, Notice::OverflowsReached { .. } | Notice::Flight { is_warning: false, .. })
    }

    /// The text of the log line.
    pub fn text(&self) -> String {
        match self {
            Notice::Overflow { name, given } => {
                format!("msprobe is collecting data on {name}. Overflow detected.{}", given.sentence())
            }
            Notice::OverflowsReached { count } => {
                format!("[msprobe] Reached the preset overflow times, current overflow times: {count}.")
            }
            Notice::Flight { text, .. } => text.clone(),
            Notice::NoStep => "The dump data(None) should be a dict.".to_owned(),
        }
    }
}
