//! Task `overflow_check`: how many overflowing records were kept, and when that is enough.

use msprobe_dump::config::OverflowNums;

use crate::notices::Notice;

/// Counts overflowing records over the whole run.
#[derive(Debug)]
pub(crate) struct Overflows {
    limit: OverflowNums,
    count: u64,
}

impl Overflows {
    pub(crate) fn new(limit: OverflowNums) -> Overflows {
        Overflows { limit, count: 0 }
    }

    /// Another record overflowed.
    pub(crate) fn add(&mut self, name: &str, notices: &mut Vec<Notice>) {
        self.count += 1;
        if self.is_enough() {
            notices.push(Notice::OverflowsReached { count: self.count });
        }
        notices.push(Notice::Overflow { name: name.to_owned() });
    }

    /// Whether collection is over.
    pub(crate) fn is_enough(&self) -> bool {
        match self.limit {
            OverflowNums::Unlimited => false,
            OverflowNums::Times(limit) => self.count >= limit.get(),
        }
    }
}
