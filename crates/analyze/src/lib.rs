//! One dump of several ranks: which operation made the first NaN or infinity, and how it spread.

mod advice;
pub mod causes;
pub mod communication;
pub mod elements;
pub mod findings;
pub mod flow;
mod left_out;
pub mod links;
mod masks;
pub mod origins;
pub mod outcome;
mod page;
pub mod phases;
pub mod range;
pub mod rank;
pub mod record;
mod relatives;
pub mod rules;
pub mod run;
pub mod values;
