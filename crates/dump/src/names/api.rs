//! Names of API calls.

use std::fmt;
use std::str::FromStr;

use super::{Direction, NameError, all_digits, parse_index};

/// Prefixes an end of a scope can have. Custom prefixes and `MindSpeed` are not among them.
pub const SCOPE_PREFIXES: [&str; 11] = [
    "Distributed",
    "Functional",
    "Torch",
    "Tensor",
    "Mint",
    "MintFunctional",
    "Primitive",
    "Aten",
    "VF",
    "NPU",
    "Jit",
];

/// Whether a scope can start or end with an API of this name: `^({prefix})\..*\.\d+\.(forward|backward)$`. Wider
/// than [`ApiName`], which holds only names that calls have.
pub fn is_api_scope_end(name: &str) -> bool {
    let parts = || {
        let (prefix, rest) = name.split_once('.')?;
        let (rest, direction) = rest.rsplit_once('.')?;
        let (_, index) = rest.rsplit_once('.')?;
        Some((prefix, index, direction))
    };
    parts().is_some_and(|(prefix, index, direction)| {
        SCOPE_PREFIXES.contains(&prefix)
            && all_digits(index)
            && Direction::from_word(direction).is_some()
            && !name.contains('\n')
    })
}

/// One pass of one call of an API: `Functional.linear.0.forward`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ApiName {
    prefix: String,
    api: String,
    index: u64,
    direction: Direction,
}

impl ApiName {
    /// A name from its parts. A prefix may contain dots (custom APIs are called after their module), the API is an
    /// attribute's name and may not.
    pub fn new(
        prefix: impl Into<String>,
        api: impl Into<String>,
        index: u64,
        direction: Direction,
    ) -> Result<ApiName, NameError> {
        let name = ApiName { prefix: prefix.into(), api: api.into(), index, direction };
        if name.prefix.is_empty() || name.api.is_empty() || name.api.contains('.') {
            return Err(not_an_api(name.to_string()));
        }
        Ok(name)
    }

    /// Where the API lives: `Torch`, `Tensor`, `Functional`, or what a script registered.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The function.
    pub fn api(&self) -> &str {
        &self.api
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
    pub fn with_direction(mut self, direction: Direction) -> ApiName {
        self.direction = direction;
        self
    }
}

fn not_an_api(text: String) -> NameError {
    NameError { text, what: "the name of an API call", form: "Prefix.api.0.forward" }
}

impl fmt::Display for ApiName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}", self.prefix, self.api, self.index, self.direction)
    }
}

impl FromStr for ApiName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<ApiName, NameError> {
        let parts = || {
            let (rest, direction) = text.rsplit_once('.')?;
            let (rest, index) = rest.rsplit_once('.')?;
            let (prefix, api) = rest.rsplit_once('.')?;
            Some((prefix, api, parse_index(index)?, Direction::from_word(direction)?))
        };
        let (prefix, api, index, direction) = parts().ok_or_else(|| not_an_api(text.to_owned()))?;
        ApiName::new(prefix, api, index, direction)
    }
}
