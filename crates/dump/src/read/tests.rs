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
