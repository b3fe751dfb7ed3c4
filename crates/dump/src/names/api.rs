//! Names of API calls.

use std::fmt;

use super::{Direction, all_digits, parse_index};

/// The prefix of calls that several ranks make together.
const COMMUNICATION: &str = "Distributed";

/// Whether a name starts like one of a call that several ranks make together.
pub fn is_of_communication(name: &str) -> bool {
    name.split_once('.').is_some_and(|(prefix, _)| prefix == COMMUNICATION)
}

/// Whether a scope can start or end with an API of this name: `^({prefix})\..*\.\d+\.(forward|backward)$`, with one of the
/// prefixes of the framework. Wider than [`ApiName`], which holds only names that calls have.
pub fn is_api_scope_end(name: &str, prefixes: &[String]) -> bool {
    let parts = || {
        let (prefix, rest) = name.split_once('.')?;
        let (rest, direction) = rest.rsplit_once('.')?;
        let (_, index) = rest.rsplit_once('.')?;
        Some((prefix, index, direction))
    };
    parts().is_some_and(|(prefix, index, direction)| {
        prefixes.iter().any(|known| known == prefix)
            && all_digits(index)
            && Direction::from_word(direction).is_some()
            && !name.contains('\n')
    })
}

/// One pass of one call of an API: `Functional.linear.0.forward`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiName<'a> {
    stem: &'a str,
    index: u64,
    direction: Direction,
}

impl<'a> ApiName<'a> {
    /// The name of a call of the API `stem`: `Functional.linear`.
    pub fn new(stem: &'a str, index: u64, direction: Direction) -> ApiName<'a> {
        ApiName { stem, index, direction }
    }

    /// A name as it is written; nothing if it is none of an API call.
    pub fn parse(text: &'a str) -> Option<ApiName<'a>> {
        let (rest, direction) = text.rsplit_once('.')?;
        let direction = Direction::from_word(direction)?;
        let (stem, index) = rest.rsplit_once('.')?;
        let (prefix, api) = stem.rsplit_once('.')?;
        let index = parse_index(index)?;
        (!prefix.is_empty() && !api.is_empty()).then_some(ApiName { stem, index, direction })
    }

    /// The API without the number of the call: `Functional.linear`.
    pub fn stem(&self) -> &'a str {
        self.stem
    }

    /// Where the API lives: `Tensor`, `Functional`, or what a script registered. It may contain dots: custom APIs
    /// are called after their module.
    pub fn prefix(&self) -> &'a str {
        self.stem.rsplit_once('.').map_or("", |(prefix, _)| prefix)
    }

    /// The function: an attribute's name, without dots.
    pub fn api(&self) -> &'a str {
        self.stem.rsplit_once('.').map_or(self.stem, |(_, api)| api)
    }

    /// The number of the call, from 0 for each prefix and API.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Forward or backward.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The same call in another direction.
    #[must_use]
    pub fn with_direction(self, direction: Direction) -> ApiName<'a> {
        ApiName { direction, ..self }
    }
}

impl fmt::Display for ApiName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.stem, self.index, self.direction.as_str())
    }
}
