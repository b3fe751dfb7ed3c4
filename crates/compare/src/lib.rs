//! Two dumps next to each other: pairs, metrics, and the verdict about them.

pub mod pairing;
pub mod python_text;
pub mod side;
pub mod statistics;
pub mod tensor_pair;
pub mod verdict;

use msprobe_report::{console, error};
