//! How a status looks, wherever it is shown: a page, a workbook, a terminal.

/// What a colour says about a row, a curve, a mark or an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing to say.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Worth a look.
    Warning,
    /// Wrong.
    Bad,
    /// Not compared: nobody knows.
    Unknown,
}

impl Tone {
    /// Its name in the data and the style of a page.
    pub fn as_str(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Good => "good",
            Tone::Warning => "warning",
            Tone::Bad => "bad",
            Tone::Unknown => "unknown",
        }
    }

    /// What a terminal is told before a coloured text.
    pub(crate) fn ansi(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Good => "\x1b[32m",
            Tone::Warning => "\x1b[33m",
            Tone::Bad => "\x1b[31m",
            Tone::Unknown => "\x1b[34m",
        }
    }

    /// Background of the row of a sheet, as a colour of a workbook. A row that is as it should be has none.
    pub(crate) fn background(self) -> Option<&'static str> {
        match self {
            Tone::Plain | Tone::Good => None,
            Tone::Bad => Some("FFFF0000"),
            Tone::Warning => Some("FFFFFF00"),
            Tone::Unknown => Some("FFBDD7EE"),
        }
    }
}
