//! JSON that was read, written again.

use msprobe_dump::read::Json;
use msprobe_dump::write::JsonText;

/// Writes a value behind what is there.
pub(crate) fn write_json(json: &mut JsonText, value: &Json<'_>) {
    match value {
        Json::Null => json.null(),
        Json::Bool(value) => json.bool(*value),
        Json::Int(number) => json.int(*number),
        Json::Float(number) => json.float(*number),
        Json::Text(text) => json.string(text),
        Json::List(elements) => {
            json.begin_array();
            for element in elements {
                write_json(json, element);
            }
            json.end_array();
        }
        Json::Map(members) => {
            json.begin_object();
            for (key, value) in members {
                json.key(key);
                write_json(json, value);
            }
            json.end_object();
        }
    }
}

/// A value on one line.
pub(crate) fn one_line(value: &Json<'_>) -> String {
    let mut json = JsonText::on_one_line();
    write_json(&mut json, value);
    json.finish()
}
