//! Any text, taken for a `config.json`, and what JSON there is in it for the arguments of the constructor.
#![no_main]

use libfuzzer_sys::fuzz_target;
use msprobe_dump::config::{Config, Overrides};
use msprobe_dump::framework::Framework;
use msprobe_dump::names::TensorFormat;

fuzz_target!(|text: &str| {
    let framework = Framework {
        name: "any".to_owned(),
        tensor_type: "any.Tensor".to_owned(),
        size_type: "any.Size".to_owned(),
        tensor_format: TensorFormat::Npy,
        api_prefixes: vec!["Tensor".to_owned()],
        foreign_keys: vec![("device".to_owned(), "another framework".to_owned())],
    };
    let resolved = Config::from_json(text, &Overrides::default(), &framework);
    let again = Config::from_json(text, &Overrides::default(), &framework);
    assert_eq!(resolved.ok(), again.ok(), "the same text gives the same configuration");

    let value = serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::from(text));
    let given = |name: &str| value.get(name).unwrap_or(&value).clone();
    let overrides = Overrides {
        task: given("task"),
        dump_path: given("dump_path"),
        level: given("level"),
        step: given("step"),
    };
    let _ = Config::from_json("{}", &overrides, &framework);
});
