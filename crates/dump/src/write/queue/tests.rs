use proptest::prelude::*;

use super::*;

fn set(body: &str) -> Change {
    Change::Set { body: body.into(), room: 0 }
}

fn bytes(queue: &Queue) -> usize {
    queue.ready_bytes + queue.held_bytes + queue.loose_bytes
}

fn is_ready(entry: &Entry) -> bool {
    let settled = |body: &RecordBody| body.clone().unsettled().is_none();
    entry.state == State::Gone || entry.body.as_ref().is_some_and(settled)
}

fn names(batch: &Batch) -> Vec<&str> {
    batch.records.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn one_without_a_body_holds_back_the_others() {
    let mut queue = Queue::default();
    let (a, b, c) = (queue.open("a"), queue.open("b"), queue.open("c"));
    queue.change(b, set("1"));
    assert_eq!((queue.has_ready(), queue.blocker()), (false, Some(a)));
    assert!(queue.take_ready(usize::MAX).records.is_empty());
    queue.change(a, Change::Abandon);
    assert_eq!((queue.has_ready(), queue.blocker(), queue.held_bytes()), (true, None, 0));
    assert_eq!(names(&queue.take_ready(usize::MAX)), ["a", "b"]);
    assert_eq!(queue.open("d"), 3);
    queue.change(3, Change::Close { body: "2".into() });
    assert_eq!(queue.blocker(), Some(c));
    assert_eq!(names(&queue.take_forced()), ["c", "d"]);
    queue.open("e");
    assert!(queue.take_forced().records.is_empty());
    assert_eq!(queue.take_last().records[0].state, State::Gone);
    assert_eq!(bytes(&queue), 0);
}

#[test]
fn changes_of_written_records_are_joined() {
    let mut queue = Queue::default();
    for id in 0..3 {
        queue.open("x");
        queue.change(id, set("1"));
    }
    queue.take_ready(usize::MAX);
    queue.change(0, set("2"));
    queue.change(0, Change::Abandon);
    queue.change(0, set("3"));
    queue.change(1, set("long"));
    queue.change(1, Change::Remove);
    queue.change(2, set("2"));
    queue.change(2, set("3"));
    let batch = queue.take_ready(usize::MAX);
    assert!(matches!(&batch.changes[&0], Change::Close { body } if body.text() == "2"));
    assert!(matches!(&batch.changes[&1], Change::Remove));
    assert!(matches!(&batch.changes[&2], Change::Set { body, .. } if body.text() == "3"));
    assert_eq!((bytes(&queue), queue.has_ready()), (0, false));
}

/// A body that names one file.
fn naming(file: &SavedFile) -> RecordBody {
    let mut body = RecordBody::from("\"x.pt\"");
    body.name_file(0, 6, file.clone());
    body
}

#[test]
fn one_whose_file_is_being_written_holds_back_the_others() {
    let mut queue = Queue::default();
    let (file, promise) = SavedFile::promised();
    let (a, b, c) = (queue.open("a"), queue.open("b"), queue.open("c"));
    queue.change(a, set("1"));
    queue.change(b, Change::Close { body: naming(&file) });
    queue.change(c, set("3"));
    assert_eq!(names(&queue.take_ready(usize::MAX)), ["a"]);
    assert_eq!((queue.has_ready(), queue.blocker(), queue.held_bytes()), (false, None, 0));
    assert!(queue.all_bytes() > 0);
    assert!(queue.take_forced().records.is_empty(), "not even then");
    assert_eq!(queue.unsettled(queue.end()), Some(&file));
    assert_eq!(queue.unsettled(b), None);
    assert_eq!(queue.next_unsettled(), [Some(&file), None]);
    promise.settle(None);
    queue.look();
    assert_eq!(queue.unsettled(u64::MAX), None);
    assert_eq!(names(&queue.take_ready(usize::MAX)), ["b", "c"]);
    assert_eq!(queue.all_bytes(), 0);
}

#[test]
fn one_without_a_body_is_forced_out_before_one_that_waits_for_a_file() {
    let mut queue = Queue::default();
    let (file, _promise) = SavedFile::promised();
    let (a, b) = (queue.open("a"), queue.open("b"));
    queue.change(b, Change::Close { body: naming(&file) });
    assert_eq!(queue.blocker(), Some(a));
    assert_eq!(names(&queue.take_forced()), ["a"]);
    assert_eq!(queue.blocker(), None);
    assert!(queue.take_forced().records.is_empty());
}

#[test]
fn a_new_body_waits_for_its_file_aside() {
    let mut queue = Queue::default();
    let ((first, first_promise), (second, second_promise)) = (SavedFile::promised(), SavedFile::promised());
    let (a, b) = (queue.open("a"), queue.open("b"));
    queue.change(a, set("1"));
    queue.change(b, set("1"));
    // It waits in the queue with a body that can be shown.
    queue.change(a, Change::Set { body: naming(&first), room: 9 });
    assert_eq!(queue.next_unsettled(), [None, Some(&first)]);
    let batch = queue.take_ready(usize::MAX);
    assert_eq!(names(&batch), ["a", "b"]);
    assert_eq!(batch.records[0].body.as_ref().map(RecordBody::text), Some("1"));
    // It was written.
    queue.change(b, Change::Close { body: naming(&second) });
    queue.change(b, set("too late"));
    assert!(queue.take_ready(usize::MAX).changes.is_empty());
    first_promise.settle(None);
    queue.change(a, Change::Abandon);
    let changes = queue.take_ready(usize::MAX).changes;
    assert!(matches!(&changes[&a], Change::Close { body } if body.text() == "\"x.pt\""), "{changes:?}");
    assert_eq!(queue.unsettled(0), Some(&second), "a flush waits for it");
    second_promise.settle(Some("no room"));
    let changes = queue.take_last().changes;
    assert!(matches!(&changes[&b], Change::Close { body } if body.text() == "\"x.pt\""), "{changes:?}");
    assert_eq!((queue.all_bytes(), queue.has_ready()), (0, false));
}

proptest! {
    /// Whatever happens to records and files: none comes out before its files are settled, and each in order.
    #[test]
    fn nothing_comes_out_too_early(
        steps in prop::collection::vec((0u8..9, any::<prop::sample::Index>(), any::<bool>()), 1..120),
    ) {
        let mut queue = Queue::default();
        let (mut opened, mut taken) = (0u64, 0u64);
        let mut promises = Vec::new();
        let check = |batch: &mut Batch| {
            let records = batch.records.iter_mut().all(|entry| entry.unsettled().is_none());
            records && batch.changes.values_mut().all(|change| change.unsettled().is_none())
        };
        for (what, pick, is_final) in steps {
            let id = if opened > 0 { pick.index(opened as usize) as u64 } else { 0 };
            let mut batch = match what {
                0 | 1 => {
                    queue.open("name");
                    opened += 1;
                    continue;
                }
                2..=4 => {
                    let (file, promise) = SavedFile::promised();
                    let body = if what == 2 { RecordBody::from("1") } else { naming(&file) };
                    let change = if is_final { Change::Close { body } } else { Change::Set { body, room: 3 } };
                    queue.change(id, change);
                    promises.push(promise);
                    continue;
                }
                5 => {
                    if !promises.is_empty() {
                        let promise = promises.swap_remove(pick.index(promises.len()));
                        promise.settle(is_final.then_some("no room"));
                    }
                    queue.look();
                    continue;
                }
                6 => {
                    queue.change(id, if is_final { Change::Remove } else { Change::Abandon });
                    continue;
                }
                7 => queue.take_ready(usize::MAX),
                _ => queue.take_forced(),
            };
            prop_assert!(check(&mut batch));
            prop_assert_eq!(batch.first, taken);
            taken += batch.records.len() as u64;
        }
        promises.clear();
        queue.look();
        let mut batch = queue.take_last();
        prop_assert!(check(&mut batch));
        prop_assert_eq!(taken + batch.records.len() as u64, opened);
        prop_assert_eq!((queue.all_bytes(), queue.waiting.len()), (0, 0));
    }

    /// Records come out once and in order, and the sums agree with what is there.
    #[test]
    fn nothing_is_lost_or_counted_wrong(
        steps in prop::collection::vec((0u8..9, any::<prop::sample::Index>(), 0usize..50), 1..80),
    ) {
        let mut queue = Queue::default();
        let (mut opened, mut taken, mut out) = (0u64, 0u64, 0);
        for (what, pick, size) in steps {
            let id = if opened > 0 { pick.index(opened as usize) as u64 } else { 0 };
            let body = "x".repeat(size);
            let batch = match what {
                0..=2 => {
                    prop_assert_eq!(queue.open("name"), opened);
                    opened += 1;
                    continue;
                }
                3 => { queue.change(id, Change::Set { body: body.into(), room: 9 }); continue }
                4 => { queue.change(id, Change::Close { body: body.into() }); continue }
                5 => { queue.change(id, Change::Remove); continue }
                6 => { queue.change(id, Change::Abandon); continue }
                7 => queue.take_ready(size * 20),
                _ => queue.take_forced(),
            };
            prop_assert_eq!(batch.first, taken);
            taken += batch.records.len() as u64;
            out += batch.bytes;
            queue.records.make_contiguous();
            let (ready, held) = queue.records.as_slices().0.split_at(queue.ready);
            prop_assert_eq!(queue.ready_bytes, ready.iter().map(Entry::bytes).sum::<usize>());
            prop_assert_eq!(queue.held_bytes, held.iter().map(Entry::bytes).sum::<usize>());
            prop_assert_eq!(queue.held_bodies, held.iter().filter(|entry| entry.body.is_some()).count());
            prop_assert!(ready.iter().all(is_ready));
            prop_assert!(held.first().is_none_or(|entry| !is_ready(entry)));
            prop_assert_eq!(queue.loose_bytes, 0);
        }
        out += queue.take_last().bytes;
        prop_assert_eq!(bytes(&queue), 0);
        prop_assert!(out as u64 >= opened * ENTRY_BYTES as u64);
    }
}
