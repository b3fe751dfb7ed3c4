//! What the user should read about, in the order it happened. The caller has the log.

/// Something to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A record overflowed and was kept.
    Overflow {
        /// The record.
        name: String,
    },
    /// As many overflows as were asked for; collection is over.
    OverflowsReached {
        /// How many.
        count: u64,
    },
    /// A gradient came when no step was open; it belongs nowhere.
    NoStep,
}

impl Notice {
    /// Whether it is a warning rather than information.
    pub fn is_warning(&self) -> bool {
        !matches!(self, Notice::OverflowsReached { .. })
    }

    /// The text of the log line.
    pub fn text(&self) -> String {
        match self {
            Notice::Overflow { name } => format!("msprobe is collecting data on {name}. Overflow detected."),
            Notice::OverflowsReached { count } => {
                format!("[msprobe] Reached the preset overflow times, current overflow times: {count}.")
            }
            Notice::NoStep => "The dump data(None) should be a dict.".to_owned(),
        }
    }
}
