//! Any bytes at all, taken for a JSON file of a dump: the three ways to read one must agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use msprobe_dump::read::{Json, Members, Pull};
use msprobe_fuzz::written;

/// The member whose members are given instead of it.
const ENTERED: &str = "data";

fuzz_target!(|file: &[u8]| {
    let path = written("dump.json", file);
    let whole = Json::parse_file(file);
    let read = read_members(&path);
    let skipped = skip_members(&path);
    let Ok(whole) = whole else { return };

    let text = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let mut pull = Pull::new(text);
    pull.skip().expect("what parses can be skipped");
    assert!(text[pull.position()..].trim_ascii().is_empty(), "skipping ends where the value ends");

    let Json::Map(members) = whole else { return };
    let expected = members.iter().flat_map(|(key, value)| match value {
        Json::Map(inner) if key == ENTERED => {
            inner.iter().map(|(key, value)| shown(true, key, value)).collect()
        }
        _ => vec![shown(false, key, value)],
    });
    let expected: Vec<String> = expected.collect();
    assert_eq!(read.expect("what parses can be read member by member"), expected);
    assert_eq!(skipped.expect("what parses can be skipped member by member"), expected.len());
});

/// A member as text: a NaN is not equal to itself, its text is.
fn shown(inner: bool, key: &str, value: &Json<'_>) -> String {
    format!("{inner} {key:?} {value:?}")
}

fn read_members(path: &std::path::Path) -> Option<Vec<String>> {
    let mut members = Members::open(path, ENTERED).ok()?;
    let mut all = Vec::new();
    while let Some(member) = members.next_member().ok()? {
        all.push(shown(member.inner, &member.key, &member.value));
    }
    Some(all)
}

fn skip_members(path: &std::path::Path) -> Option<usize> {
    let mut members = Members::open(path, ENTERED).ok()?;
    let mut count = 0;
    while let Some(pulled) = members.next_pulled(|_, pull| pull.skip()).ok()? {
        pulled.result.ok()?;
        count += 1;
    }
    Some(count)
}
