//! One dump of several ranks: which operation made the first NaN or infinity, and how it spread.

pub mod communication;
pub mod elements;
pub mod range;
pub mod rank;
pub mod record;
