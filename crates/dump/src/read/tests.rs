use std::fs;

use super::*;

fn members(text: &str) -> Result<Vec<(bool, String, String)>, ReadError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dump.json");
    fs::write(&path, text).unwrap();
    let mut reader = Members::open(&path, "data")?;
    let mut found = Vec::new();
    while let Some(member) = reader.next_member()? {
        found.push((member.inner, member.key.into_owned(), format!("{:?}", member.value)));
    }
    Ok(found)
}

#[test]
fn members_of_data_are_given_one_by_one() {
    let found =
        members(r#" {"task": "statistics", "data" : {"a": {"x": [1, {"y": "}"}]}, "b":null}, "z": 1.5 } "#);
    let found: Vec<_> = found.unwrap().into_iter().map(|(inner, key, _)| (inner, key)).collect();
    assert_eq!(
        found,
        [(false, "task".to_owned()), (true, "a".to_owned()), (true, "b".to_owned()), (false, "z".to_owned())]
    );
}

#[test]
fn an_empty_object_and_data_that_is_none_are_fine() {
    assert_eq!(members("{}").unwrap(), []);
    assert_eq!(members("{\"data\": {}}").unwrap(), []);
    assert_eq!(members("{\"data\": [1]}").unwrap()[0].1, "data");
    assert_eq!(members("{\"data\": {\"data\": {}}}").unwrap()[0], (true, "data".into(), "Map([])".into()));
}

#[test]
fn python_numbers_are_read() {
    let value = |text: &'static str| Json::parse(text.as_bytes()).unwrap();
    assert_eq!(value("-Infinity"), Json::Float(f64::NEG_INFINITY));
    assert!(matches!(value("NaN"), Json::Float(number) if number.is_nan()));
    assert_eq!(value("0.1"), Json::Float(0.1));
    assert_eq!(value("5e-324"), Json::Float(5e-324));
    assert_eq!(value("-12"), Json::Int(-12));
    assert_eq!(value("1e22"), Json::Float(1e22));
    assert!(matches!(value(&"9".repeat(60).leak()[..]), Json::Float(_)));
}

#[test]
fn strings_are_unescaped() {
    let value = Json::parse(br#""a\n\"\u4e2d\ud83d\ude00\ud800x""#).unwrap();
    assert_eq!(value.as_str(), Some("a\n\"中😀\u{fffd}x"));
}

#[test]
fn what_is_no_json_is_an_error_at_its_place() {
    for text in [
        "",
        "[]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":}",
        "{\"a\":1}}",
        "{\"data\": {\"a\": {}}",
        "{\"a\": tru}",
        "{\"a\": \"\\x\"}",
        "{\"a\": [1,,2]}",
        "{\"a\": \"",
        "{,}",
        "{\"a\": ]}",
        "{\"a\": -}",
        "{\"a\": [}",
        "{\"a\": {\"b\"}}",
        "{\"a\": \"\\u12\"}",
    ] {
        assert!(matches!(members(text).unwrap_err().kind, ReadErrorKind::Syntax { .. }), "{text}");
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(4000), "]".repeat(4000));
    assert!(matches!(
        members(&deep).unwrap_err().kind,
        ReadErrorKind::Syntax { what: "nested too deeply", .. }
    ));
}

#[test]
fn members_larger_than_what_is_read_at_a_time_are_whole() {
    let long = "x\\\"".repeat(400_000);
    let found = members(&format!("{{\"data\": {{\"a\": \"{long}\", \"b\": \"{long}\"}}}}")).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].2.len(), found[1].2.len());
}

/// Keys and lengths of values, pulled; values that are no JSON are told.
fn pulled(path: &std::path::Path) -> Vec<(String, Result<usize, &'static str>, u64)> {
    let mut members = Members::open(path, "data").unwrap();
    let mut found = Vec::new();
    loop {
        let mut key = String::new();
        let next = members.next_pulled(|start, pull| {
            key = start.key.clone().into_owned();
            pull.skip().map(|()| pull.position())
        });
        let Some(next) = next.unwrap() else { return found };
        found.push((key, next.result.map_err(|(what, _)| what), next.end));
    }
}

#[test]
fn pulled_members_are_those_that_are_parsed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dump.json");
    // Sizes around what is read at a time, so that values are cut at every sort of place.
    let sizes = [0, 10, 16_000, 17_000, 262_000, 262_100, 262_144, 300_000, 600_000, 5];
    let values: Vec<String> = sizes.iter().map(|size| format!("[\"{}\", 1.5]", "y".repeat(*size))).collect();
    let members: Vec<String> =
        values.iter().enumerate().map(|(index, value)| format!("\"{index}\": {value}")).collect();
    let text = format!("{{\"task\": 12345, \"data\": {{{}}}, \"end\": null}}", members.join(",\n  "));
    std::fs::write(&path, &text).unwrap();
    let found = pulled(&path);
    assert_eq!(found.len(), sizes.len() + 2);
    assert_eq!((found[0].0.as_str(), found[0].1), ("task", Ok(5)));
    for (index, value) in values.iter().enumerate() {
        assert_eq!((found[index + 1].0.clone(), found[index + 1].1), (index.to_string(), Ok(value.len())));
        let end = found[index + 1].2 as usize;
        assert_eq!(&text[end - value.len()..end], value);
    }
}

#[test]
fn a_value_that_cannot_be_read_costs_itself() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dump.json");
    std::fs::write(&path, "{\"data\": {\"a\": {\"x\": ?}, \"b\": [1]}}").unwrap();
    let found = pulled(&path);
    assert_eq!(found[0].1, Err("not a value"));
    assert_eq!((found[1].0.as_str(), found[1].1), ("b", Ok(3)));
}

#[test]
fn a_byte_order_mark_is_no_content() {
    assert_eq!(members("\u{feff}{\"a\": 1}").unwrap()[0].1, "a");
    assert_eq!(members("\u{feff} {\"data\": {\"a\": 1}}").unwrap()[0], (true, "a".into(), "Int(1)".into()));
    // Once, and only before everything.
    for wrong in
        ["\u{feff}", "\u{feff}\u{feff}{}", " \u{feff}{}", "{\u{feff}}", "{\"a\": \u{feff}1}", "{}\u{feff}"]
    {
        assert!(members(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(Json::parse_file("\u{feff}[1]".as_bytes()), Ok(Json::List(vec![Json::Int(1)])));
    assert_eq!(Json::parse_file("\u{feff}?".as_bytes()), Err(("not a value", 3)));
    assert!(Json::parse("\u{feff}1".as_bytes()).is_err());
}

#[test]
fn links_and_pipes_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link, pipe) =
        (dir.path().join("a.json"), dir.path().join("b.json"), dir.path().join("c.json"));
    fs::write(&file, "{}").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = |path: &std::path::Path| Members::open(path, "").err().unwrap().to_string();
    assert!(refused(&link).contains("it is a link"), "{}", refused(&link));
    assert!(refused(&pipe).contains("not an ordinary file"));
}
