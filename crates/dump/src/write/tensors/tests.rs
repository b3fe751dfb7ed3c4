use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use msprobe_tensor::files::TensorFile;
use msprobe_tensor::{Endian, ViewError};

use super::*;

const PT: TensorFormat = TensorFormat::Pt;

/// What a file holds: dtype, shape and elements.
fn load(path: &Path) -> (DType, Vec<usize>, Vec<u8>) {
    let file = TensorFile::open(path).unwrap();
    let view = file.view(0).unwrap();
    let mut bytes = vec![0; view.size_bytes()];
    view.copy_to(&mut bytes);
    (view.dtype(), view.shape().to_vec(), bytes)
}

fn names(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn tensors_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let pool = TensorPool::new(2, 1 << 20).unwrap();
    let data: Vec<u8> = (0..24).collect();
    let transposed = TensorView::new(DType::I16, vec![3, 4], vec![1, 3], &data, 0, Endian::Little).unwrap();
    pool.save(at("transposed.pt"), &transposed, PT);
    pool.save(at("empty.pt"), &TensorView::contiguous(DType::F64, vec![0, 2], &[]).unwrap(), PT);
    pool.save(at("scalar.pt"), &TensorView::contiguous(DType::BF16, vec![], &data).unwrap(), PT);
    let codes = [0x38, 0xb8, 0x40];
    pool.save(at("float8.pt"), &TensorView::contiguous(DType::F8E4M3FN, vec![3], &codes).unwrap(), PT);
    pool.drain().unwrap();
    assert_eq!(names(dir.path()), 4, "no partial file is left");
    assert_eq!(fs::metadata(at("empty.pt")).unwrap().mode() & 0o7777, 0o640);
    let halves: Vec<u8> = [0x3fc0_u16, 0xc040].iter().flat_map(|value| value.to_le_bytes()).collect();
    let halves = TensorView::contiguous(DType::BF16, vec![2], &halves).unwrap();
    pool.save(at("halves.npy"), &halves, TensorFormat::Npy);
    pool.drain().unwrap();
    let wide: Vec<u8> = [1.5f32, -3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(load(&at("halves.npy")), (DType::F32, vec![2], wide));
    let (dtype, shape, bytes) = load(&at("transposed.pt"));
    assert_eq!((dtype, shape), (DType::I16, vec![3, 4]));
    assert_eq!(bytes[..4], [0, 1, 6, 7]);
    assert_eq!(load(&at("empty.pt")), (DType::F64, vec![0, 2], vec![]));
    assert_eq!(load(&at("scalar.pt")), (DType::BF16, vec![], vec![0, 1]));
    let floats: Vec<u8> = [1.0f32, -1.0, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(load(&at("float8.pt")), (DType::F32, vec![3], floats));
}

#[test]
fn memory_stays_within_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let budget_bytes = 256 << 10;
    let pool = TensorPool::new(2, budget_bytes).unwrap();
    let data = vec![7u8; 1 << 20];
    let used = || {
        let state = pool.shared.lock();
        assert_eq!(state.free_bytes, state.free.iter().map(Vec::len).sum::<usize>());
        state.free_bytes + state.busy_bytes
    };
    for index in 0..400usize {
        let bytes = (index * 7919) % 100_000;
        let view = TensorView::contiguous(DType::U8, vec![bytes], &data).unwrap();
        pool.save(dir.path().join(format!("{index}.pt")), &view, PT);
        // A buffer may be larger than what it holds by an eighth and a page.
        assert!(used() <= budget_bytes + budget_bytes / 8 + 4096, "{}", used());
    }
    let large = TensorView::contiguous(DType::U8, vec![1 << 20], &data).unwrap();
    pool.save(dir.path().join("large.pt"), &large, PT);
    pool.drain().unwrap();
    assert!(used() <= budget_bytes, "what was too large is not kept");
    assert_eq!(load(&dir.path().join("large.pt")).2, data);
    assert_eq!(load(&dir.path().join("399.pt")).2.len(), (399 * 7919) % 100_000);
    assert_eq!(names(dir.path()), 401);
    // What is dropped is written.
    pool.save(dir.path().join("last.pt"), &large, PT);
    drop(pool);
    assert_eq!(load(&dir.path().join("last.pt")).2, data);
}

#[test]
fn the_first_failure_is_told_once_and_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let pool = TensorPool::new(2, 1 << 20).unwrap();
    let view = TensorView::contiguous(DType::U8, vec![3], &[1, 2, 3]).unwrap();
    pool.drain().unwrap();
    assert_eq!(pool.failure(), None);
    pool.save(dir.path().join("missing/x.pt"), &view, PT);
    let error = pool.drain().unwrap_err();
    assert_eq!((error.path, error.kind), (dir.path().join("missing/x.pt"), io::ErrorKind::NotFound));
    pool.save(dir.path().join("y.pt"), &view, PT);
    pool.drain().unwrap();
    assert!(pool.failure().unwrap().contains("missing/x.pt"));
    assert_eq!(names(dir.path()), 0);
}
struct Kept(Vec<u8>);

impl HostTensor for Kept {
    fn view(&self) -> Result<TensorView<'_>, ViewError> {
        TensorView::contiguous(DType::U8, vec![self.0.len()], &self.0)
    }
}

#[test]
fn one_thread_writes_in_order_and_files_bear_their_time() {
    let dir = tempfile::tempdir().unwrap();
    let pool = TensorPool::new(1, 16 << 10).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for index in 0..50usize {
        let at = |name: &str| Target {
            path: dir.path().join(format!("{index}.{name}")),
            modified: Some(long_ago),
        };
        let note = |seen: &Arc<Mutex<Vec<usize>>>, what| {
            let seen = Arc::clone(seen);
            move || seen.lock().unwrap().push(what)
        };
        let fill = |note: Box<dyn FnOnce() + Send>| {
            move |file: &mut File, view: &TensorView<'_>| {
                note();
                file.write_all(view.as_bytes().unwrap())
            }
        };
        let bytes = vec![7u8; index * 500];
        let view = TensorView::contiguous(DType::U8, vec![bytes.len()], &bytes).unwrap();
        pool.save_copy(at("copy"), &view, fill(Box::new(note(&seen, 3 * index))));
        let kept = Box::new(Kept(bytes.clone()));
        pool.save_held(at("held"), kept, bytes.len(), fill(Box::new(note(&seen, 3 * index + 1))));
        let last = note(&seen, 3 * index + 2);
        pool.save_text(at("text"), move || {
            last();
            "text".to_owned()
        });
    }
    pool.drain().unwrap();
    assert_eq!(*seen.lock().unwrap(), (0..150).collect::<Vec<_>>());
    assert_eq!(names(dir.path()), 150);
    for name in ["20.copy", "20.held"] {
        assert_eq!(fs::read(dir.path().join(name)).unwrap(), vec![7; 10_000]);
    }
    let meta = fs::metadata(dir.path().join("49.text")).unwrap();
    assert_eq!((meta.modified().unwrap(), meta.mode() & 0o7777), (long_ago, 0o640));
}

#[test]
fn files_say_what_became_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let pool = TensorPool::new(2, 1 << 20).unwrap();
    let view = TensorView::contiguous(DType::U8, vec![3], &[1, 2, 3]).unwrap();
    let good = pool.save(dir.path().join("a.pt"), &view, PT);
    pool.wait();
    assert!(good.is_written());
    let bad = pool.save(dir.path().join("missing/x.pt"), &view, PT);
    pool.wait();
    assert!(bad.reason().unwrap().contains("No such file"), "{bad:?}");
    let late = pool.save(dir.path().join("b.pt"), &view, PT);
    assert!(late.reason().unwrap().contains("earlier failure: No such file"), "{late:?}");
    // Files that have not begun are given up when the pool is ended from elsewhere.
    let pool = TensorPool::new(1, 1 << 20).unwrap();
    let go = hold_up(&pool, dir.path().join("c.txt"));
    let waiting = pool.save(dir.path().join("d.pt"), &view, PT);
    assert!(!waiting.is_settled());
    let ending = pool.ending();
    let error = WriteError::new(dir.path(), &io::ErrorKind::StorageFull.into());
    let thread = thread::spawn(move || ending.end(error));
    while pool.is_open() {
        thread::yield_now();
    }
    go.send(()).unwrap();
    thread.join().unwrap();
    assert!(waiting.reason().is_some() && !dir.path().join("d.pt").exists());
}

#[test]
fn the_last_of_two_files_of_one_name_stays() {
    let dir = tempfile::tempdir().unwrap();
    let pool = TensorPool::new(4, 64 << 20).unwrap();
    let large = vec![1u8; 4 << 20];
    for round in 0..20u8 {
        let path = dir.path().join(format!("{round}.pt"));
        let view = TensorView::contiguous(DType::U8, vec![large.len()], &large).unwrap();
        pool.save(path.clone(), &view, PT);
        let last = [round; 3];
        pool.save(path.clone(), &TensorView::contiguous(DType::U8, vec![3], &last).unwrap(), PT);
        pool.drain().unwrap();
        assert_eq!(load(&path).2, last);
    }
}

#[test]
fn a_tensor_that_memory_is_refused_for_ends_the_pool() {
    let dir = tempfile::tempdir().unwrap();
    let pool = TensorPool::new(1, 1 << 20).unwrap();
    let view = TensorView::contiguous(DType::U8, vec![3], &[1, 2, 3]).unwrap();
    let good = pool.save(dir.path().join("a.pt"), &view, PT);
    // More than any machine has, of a tensor that is one element again and again.
    let shape = vec![1 << 46];
    let huge = TensorView::new(DType::U8, shape, vec![0], &[7], 0, Endian::Little).unwrap();
    let bad = pool.save(dir.path().join("huge.pt"), &huge, PT);
    assert_eq!(bad.reason(), Some("nothing is written after an earlier failure: out of memory"));
    let error = pool.drain().unwrap_err();
    assert_eq!((error.kind, &error.path), (io::ErrorKind::OutOfMemory, &dir.path().join("huge.pt")));
    assert!(error.to_string().contains("hint: "), "{error}");
    assert!(good.is_written());
}

/// Holds up the only thread of a pool until the sender is used or dropped.
fn hold_up(pool: &TensorPool, path: PathBuf) -> std::sync::mpsc::Sender<()> {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (began, begin) = std::sync::mpsc::channel::<()>();
    pool.save_text(Target { path, modified: None }, move || {
        let _ = began.send(());
        let _ = wait.recv();
        String::new()
    });
    begin.recv().unwrap();
    go
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

#[test]
fn the_same_elements_are_one_file_with_several_names() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let pool = TensorPool::new(1, 1 << 20).unwrap();
    let data: Vec<u8> = (0..24).collect();
    let view = |dtype, shape| TensorView::contiguous(dtype, shape, &data).unwrap();
    let go = hold_up(&pool, at("busy.txt"));
    let first = pool.save(at("a.pt"), &view(DType::F32, vec![2, 3]), PT);
    let waiting = pool.save(at("b.pt"), &view(DType::F32, vec![2, 3]), PT);
    pool.save(at("other_shape.pt"), &view(DType::F32, vec![6]), PT);
    pool.save(at("other_dtype.pt"), &view(DType::I32, vec![2, 3]), PT);
    assert!(!first.is_settled() && !waiting.is_settled());
    go.send(()).unwrap();
    pool.wait();
    assert!(first.is_written() && waiting.is_written());
    let at_once = pool.save(at("c.pt"), &view(DType::F32, vec![2, 3]), PT);
    assert!(at_once.is_written());
    assert_eq!((inode(&at("a.pt")), inode(&at("a.pt"))), (inode(&at("b.pt")), inode(&at("c.pt"))));
    for other in ["other_shape.pt", "other_dtype.pt"] {
        assert_ne!(inode(&at("a.pt")), inode(&at(other)));
    }
    for name in ["a.pt", "b.pt", "c.pt"] {
        assert_eq!(load(&at(name)), (DType::F32, vec![2, 3], data.clone()));
        assert_eq!(fs::metadata(at(name)).unwrap().mode() & 0o7777, 0o640);
    }
    // Later steps have files of their own.
    pool.drain().unwrap();
    pool.save(at("later.pt"), &view(DType::F32, vec![2, 3]), PT);
    pool.drain().unwrap();
    assert_ne!(inode(&at("a.pt")), inode(&at("later.pt")));
    assert!(pool.shared.lock().to_come.is_empty() && pool.shared.lock().writing.is_empty());
}

#[test]
fn a_file_that_was_changed_or_is_gone_gets_no_more_names() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let pool = TensorPool::new(2, 1 << 20).unwrap();
    let view = TensorView::contiguous(DType::U8, vec![3], &[1, 2, 3]).unwrap();
    pool.save(at("a.pt"), &view, PT);
    pool.wait();
    fs::write(at("a.pt"), "something else").unwrap();
    pool.save(at("b.pt"), &view, PT);
    pool.wait();
    fs::remove_file(at("b.pt")).unwrap();
    pool.save(at("c.pt"), &view, PT);
    // There is such a file, which is replaced.
    fs::write(at("d.pt"), "something else").unwrap();
    pool.wait();
    pool.save(at("d.pt"), &view, PT);
    pool.drain().unwrap();
    assert_eq!(load(&at("c.pt")).2, [1, 2, 3]);
    assert_eq!(load(&at("d.pt")).2, [1, 2, 3]);
    assert_eq!(fs::read(at("a.pt")).unwrap(), b"something else");
}

#[test]
fn of_two_files_of_one_name_the_last_stays_also_where_elements_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let pool = TensorPool::new(1, 1 << 20).unwrap();
    let (one, two) = ([1u8; 3], [2u8; 3]);
    let view = |data| TensorView::contiguous(DType::U8, vec![3], data).unwrap();
    let go = hold_up(&pool, at("busy.txt"));
    pool.save(at("one.pt"), &view(&one), PT);
    pool.save(at("two.pt"), &view(&two), PT);
    // As further names of files under way, and of one after the other.
    pool.save(at("a.pt"), &view(&one), PT);
    pool.save(at("a.pt"), &view(&two), PT);
    pool.save(at("b.pt"), &view(&[3; 3]), PT);
    pool.save(at("b.pt"), &view(&one), PT);
    go.send(()).unwrap();
    pool.wait();
    pool.save(at("a.pt"), &view(&one), PT);
    pool.drain().unwrap();
    assert_eq!((load(&at("a.pt")).2, load(&at("b.pt")).2), (vec![1; 3], vec![1; 3]));
    assert_eq!((load(&at("one.pt")).2, load(&at("two.pt")).2), (vec![1; 3], vec![2; 3]));
}

#[test]
fn further_names_of_a_file_that_fails_fail_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let pool = TensorPool::new(1, 1 << 20).unwrap();
    let view = TensorView::contiguous(DType::U8, vec![3], &[1, 2, 3]).unwrap();
    let go = hold_up(&pool, at("busy.txt"));
    let first = pool.save(at("missing/a.pt"), &view, PT);
    let further = pool.save(at("b.pt"), &view, PT);
    go.send(()).unwrap();
    pool.wait();
    for file in [first, further] {
        assert!(file.reason().unwrap().contains("No such file"), "{file:?}");
    }
    assert!(!at("b.pt").exists() && pool.shared.lock().to_come.is_empty());
}
