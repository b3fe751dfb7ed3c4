//! The page, its style and its program: built from `web/`, committed, so that nobody needs more than cargo to build.

pub(crate) const PAGE: &[u8] = include_bytes!("../assets/index.html");
pub(crate) const STYLE: &[u8] = include_bytes!("../assets/viewer.css");
pub(crate) const PROGRAM: &[u8] = include_bytes!("../assets/viewer.js");
