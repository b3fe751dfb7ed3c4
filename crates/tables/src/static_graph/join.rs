//! Records of the same kernel on both sides, paired by the order in which they were made.

use std::collections::HashMap;

/// When a record was made: the time stamp and what tells records of the same instant apart.
pub(super) type Time = (u128, u64);

/// Something recorded about a kernel. Several records may have one key.
pub(super) struct Keyed<T> {
    /// Kernel, task, input or output, and slot.
    pub key: String,
    /// When it was made.
    pub time: Time,
    /// What was recorded.
    pub item: T,
}

/// Pairs the n-th record of a key on one side, by time, with the n-th on the other. What is left over stands alone.
/// The order is that of the target; records of the golden alone follow in theirs.
pub(super) fn outer_join<T>(target: Vec<Keyed<T>>, golden: Vec<Keyed<T>>) -> Vec<(Option<T>, Option<T>)> {
    let golden_numbers = numbers(&golden);
    let mut places = HashMap::with_capacity(golden.len());
    let mut waiting = Vec::with_capacity(golden.len());
    for (place, (record, number)) in golden.into_iter().zip(golden_numbers).enumerate() {
        places.insert((record.key, number), place);
        waiting.push(Some(record.item));
    }
    let target_numbers = numbers(&target);
    let mut rows: Vec<(Option<T>, Option<T>)> = target
        .into_iter()
        .zip(target_numbers)
        .map(|(record, number)| {
            let place = places.get(&(record.key, number));
            (Some(record.item), place.and_then(|&place| waiting.get_mut(place)?.take()))
        })
        .collect();
    rows.extend(waiting.into_iter().filter(Option::is_some).map(|item| (None, item)));
    rows
}

/// For each record, how many of its key are older.
fn numbers<T>(records: &[Keyed<T>]) -> Vec<usize> {
    let mut by_time: Vec<usize> = (0..records.len()).collect();
    by_time.sort_by_key(|&place| records[place].time);
    let mut seen: HashMap<&str, usize> = HashMap::with_capacity(records.len());
    let mut numbers = vec![0; records.len()];
    for place in by_time {
        let count = seen.entry(&records[place].key).or_default();
        numbers[place] = *count;
        *count += 1;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str, time: u128) -> Keyed<String> {
        Keyed { key: key.into(), time: (time, 0), item: format!("{key}{time}") }
    }

    #[test]
    fn records_pair_by_their_number_in_time() {
        let target = vec![record("a", 9), record("b", 1), record("a", 2)];
        let golden = vec![record("c", 3), record("a", 50), record("a", 70), record("a", 60)];
        let rows: Vec<String> = outer_join(target, golden)
            .into_iter()
            .map(|(target, golden)| [target, golden].map(|item| item.unwrap_or("-".into())).concat())
            .collect();
        assert_eq!(rows, ["a9a60", "b1-", "a2a50", "-c3", "-a70"]);
    }
}
