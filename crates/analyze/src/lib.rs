//! One dump of several ranks: which operation made the first NaN or infinity, and how it spread.

pub mod communication;
pub mod context;
pub mod phases;
pub mod rank;
pub mod record;
