//! Rules of the configuration, beyond the recorded cases in `tests/config_golden.rs`.

use serde_json::json;

use super::*;

fn resolve_with(file: &Value, overrides: &Overrides) -> Result<Resolved, ConfigError> {
    Config::from_json(&file.to_string(), overrides, &Framework::known())
}

/// A file with the task, level and section given.
fn file(task: &str, level: &str, section: &Value) -> Value {
    json!({ "task": task, "dump_path": "./dump", "level": level, task: section })
}

fn accept(file: &Value) -> Resolved {
    resolve_with(file, &Overrides::default()).unwrap()
}

fn refuse(file: &Value) -> ConfigError {
    resolve_with(file, &Overrides::default()).unwrap_err()
}

/// The error is a bare `MsprobeException`, with this as the only line logged.
fn assert_logged(error: &ConfigError, text: &str) {
    assert_eq!((error.class, error.code, error.message.as_str()), (ErrorClass::Msprobe, Some(0), ""));
    assert_eq!(error.log, [LogLine { level: LogLevel::Error, text: text.to_owned() }]);
    assert_eq!(error.to_string(), text);
}

/// The error is of this class and code and says this, and nothing was logged.
fn assert_raised(error: &ConfigError, class: ErrorClass, code: Option<u8>, message: &str) {
    assert_eq!((error.class, error.code, error.message.as_str()), (class, code, message));
    assert!(error.log.is_empty(), "{:?}", error.log);
    assert_eq!(error.to_string(), message);
}

fn warnings(resolved: &Resolved) -> Vec<&str> {
    assert!(resolved.log.iter().all(|line| line.level == LogLevel::Warning));
    resolved.log.iter().map(|line| line.text.as_str()).collect()
}

#[test]
fn the_least_there_must_be_is_a_dump_path() {
    let Resolved { config, log, .. } = accept(&json!({ "dump_path": "out" }));
    assert!(log.is_empty());
    assert_eq!(
        (config.task, config.file_task, config.level),
        (Task::Statistics, Task::Statistics, Level::L1)
    );
    assert_eq!((config.scope, config.list, config.tensor_list), (Scope::Everything, vec![], Some(vec![])));
    assert_eq!((config.check_mode, config.file_format, config.online), (None, None, None));
    assert!(!config.enable_dataloader && !config.async_dump);
    for missing in [json!({}), json!({ "dump_path": null }), json!({ "dump_path": "" })] {
        assert_raised(&refuse(&missing), ErrorClass::Msprobe, Some(0), "The dump_path not found.");
    }
}

#[test]
fn sketches_are_a_switch_of_statistics() {
    let config = |task: &str, section: Value| accept(&file(task, "L1", &section)).config;
    assert!(config("statistics", json!({ "sketch": true, "summary_mode": "md5" })).sketch);
    for off in [json!({}), json!({ "sketch": false }), json!({ "sketch": null })] {
        assert!(!config("statistics", off).sketch);
    }
    for wrong in [json!(1), json!("true"), json!([])] {
        let error = refuse(&file("statistics", "L1", &json!({ "sketch": wrong })));
        assert_logged(&error, "sketch is invalid, it should be a boolean");
    }
    let elsewhere = accept(&file("tensor", "L1", &json!({ "sketch": true })));
    assert!(!elsewhere.config.sketch);
    assert!(elsewhere.remarks.iter().any(|line| line.text.contains("sketch")), "{:?}", elsewhere.remarks);
}

#[test]
fn what_is_no_json_object_is_refused() {
    for text in ["", "{", "{'task': 1}", "{\"a\": 1,}", &"[".repeat(100_000)] {
        let error = Config::from_json(text, &Overrides::default(), &Framework::known()).unwrap_err();
        assert_eq!((error.class, error.code), (ErrorClass::Runtime, None));
        assert!(!error.message.is_empty());
    }
    let long = format!("{{\"dump_path\": \"{}\"}}", "x".repeat(MAX_TEXT_BYTES));
    let error = Config::from_json(&long, &Overrides::default(), &Framework::known()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Runtime);
    assert!(error.message.contains("more than 33554432"), "{error}");
    let message = "'list' object has no attribute 'get'";
    assert_raised(&refuse(&json!([])), ErrorClass::Attribute, None, message);
    let message = "'NoneType' object has no attribute 'get'";
    assert_raised(&refuse(&file("tensor", "L1", &json!(null))), ErrorClass::Attribute, None, message);
}

#[test]
fn whatever_is_false_in_python_is_no_task_and_no_level() {
    for nothing in [json!(null), json!(""), json!(0), json!(false), json!([]), json!({})] {
        let config = accept(&json!({ "dump_path": "out", "task": nothing, "level": nothing })).config;
        assert_eq!((config.task, config.level), (Task::Statistics, Level::L1));
    }
    for level in [json!("l1"), json!("L3"), json!(1), json!(["L1"])] {
        let text = "level is invalid, it should be one of ['L0', 'L1', 'L2', 'mix', 'debug']";
        assert_logged(&refuse(&json!({ "dump_path": "out", "level": level })), text);
    }
    let tasks =
        "['tensor', 'statistics', 'overflow_check', 'free_benchmark', 'run_ut', 'grad_probe', 'structure']";
    let error = refuse(&json!({ "dump_path": "out", "task": ["tensor"] }));
    assert_logged(&error, &format!("task is invalid, it should be one of {tasks}"));
}

#[test]
fn switches_are_booleans_and_null_is_none() {
    for key in ["enable_dataloader", "async_dump"] {
        for value in [json!(null), json!(0), json!("")] {
            let error = refuse(&json!({ "dump_path": "out", key: value }));
            assert_logged(&error, &format!("{key} is invalid, it should be a boolean"));
        }
    }
    let resolved = accept(&json!({ "dump_path": "out", "enable_dataloader": true }));
    assert!(resolved.config.enable_dataloader);
    assert_eq!(warnings(&resolved), ["The enable_dataloader feature will be deprecated in the future."]);
}

#[test]
fn checks_have_an_order() {
    // Ranks before steps before the task, although the task stands first.
    let all_wrong = json!({
        "task": "foo", "dump_path": 1, "rank": 1, "step": 1, "level": "L9", "enable_dataloader": 1, "async_dump": 1
    });
    let mut file = all_wrong.as_object().unwrap().clone();
    let mut reasons = Vec::new();
    for key in ["rank", "step", "task", "dump_path", "level", "enable_dataloader", "async_dump"] {
        let reason = refuse(&Value::Object(file.clone())).to_string();
        reasons.push(reason.split(' ').next().unwrap().to_owned());
        file.remove(key);
    }
    assert_eq!(reasons, ["rank", "step", "task", "dump_path", "level", "enable_dataloader", "async_dump"]);
    // What was logged before the error stays with it.
    let error = refuse(&json!({ "dump_path": "", "async_dump": true }));
    assert_eq!(error.message, "The dump_path not found.");
    assert_eq!(error.log.len(), 1);
}

#[test]
fn arguments_win_over_the_file() {
    let file = json!({
        "task": "overflow_check", "dump_path": "a", "level": "L0", "step": [1],
        "overflow_check": { "overflow_nums": 0 }, "tensor": { "list": ["x"] },
    });
    let overrides = Overrides {
        task: json!("tensor"),
        dump_path: json!("b"),
        level: json!("mix"),
        step: json!([2, "4-5"]),
    };
    // The section is that of the argument's task, so that the wrong one is not looked at.
    let config = resolve_with(&file, &overrides).unwrap().config;
    assert_eq!((config.task, config.file_task), (Task::Tensor, Task::OverflowCheck));
    assert_eq!((config.dump_path.as_str(), config.level), ("b", Level::Mix));
    assert_eq!((config.step.ranges(), &config.list[..]), (&[(2, 2), (4, 5)][..], &["x".to_owned()][..]));

    let empty = Overrides { dump_path: json!(""), step: json!([]), ..Overrides::default() };
    let config = resolve_with(&json!({ "dump_path": "a", "step": [1] }), &empty).unwrap().config;
    assert_eq!(config.dump_path, "a");
    assert!(config.step.is_empty(), "an empty list of steps is given, and means all");
}

#[test]
fn arguments_are_checked_before_the_file() {
    let check = |overrides: &Overrides, message: &str| {
        let error = Config::from_json("no json", overrides, &Framework::known()).unwrap_err();
        assert_raised(&error, ErrorClass::Msprobe, Some(0), message);
    };
    let levels = "level must be one of ['L0', 'L1', 'L2', 'mix', 'debug']";
    for level in [json!(""), json!("L9"), json!(1), json!([])] {
        check(&Overrides { level, ..Overrides::default() }, levels);
    }
    let wrong = Overrides { level: json!("L9"), dump_path: json!([]), ..Overrides::default() };
    check(&wrong, "dump_path must be a string");

    // The step's turn comes after the sections.
    let wrong = Overrides { step: json!([true]), ..Overrides::default() };
    let error = resolve_with(&json!({}), &wrong).unwrap_err();
    assert_raised(&error, ErrorClass::Msprobe, Some(0), "step element True must be an integer or string.");
}

#[test]
fn data_modes_are_checked() {
    let modes = "['all', 'input', 'output', 'forward', 'backward']";
    for (value, text) in [
        (
            json!(["input", "output", "forward", "backward", "input"]),
            "The number of elements in the data_made cannot exceed 4.".to_owned(),
        ),
        (json!(["both", 1]), format!("The element 'both' of data_mode ['both', 1] is not in {modes}.")),
        (json!(["input", 1]), "data_mode is invalid, it should be a list[str]".to_owned()),
        (json!(""), "data_mode is invalid, it should be a list[str]".to_owned()),
        (json!(["all", "all"]), "'all' cannot be combined with other options in data_mode.".to_owned()),
    ] {
        for task in ["statistics", "tensor"] {
            assert_logged(&refuse(&file(task, "L1", &json!({ "data_mode": value }))), &text);
        }
    }
    let config = accept(&file("tensor", "L1", &json!({ "data_mode": ["output", "output"] }))).config;
    assert_eq!(config.data_mode.members(), [DataMode::Output, DataMode::Output]);
}

#[test]
fn some_tasks_do_not_check_their_section() {
    for task in ["overflow_check", "structure", "free_benchmark"] {
        let members = |value| {
            let config = accept(&file(task, "L0", &json!({ "data_mode": value }))).config;
            config.data_mode.members().to_vec()
        };
        assert_eq!(members(json!(["both", "input", 1])), [DataMode::Input]);
        assert_eq!(members(json!("forward")), [DataMode::Forward]);
        assert_eq!(members(json!("both")), [DataMode::All]);
        assert_eq!(members(json!(0)), [DataMode::All]);
        let section = json!({ "summary_mode": "xor", "list": ["a"], "scope": 0 });
        let config = accept(&file(task, "L0", &section)).config;
        assert_eq!((config.summary_mode, config.tensor_list), (SummaryMode::Statistics, None));
        assert_eq!((config.list, config.scope), (vec!["a".to_owned()], Scope::Everything));

        let scope_error = |section: Value| {
            let error = refuse(&file(task, "L0", &section));
            assert_eq!(error.class, ErrorClass::Scope);
            (error.code, error.message)
        };
        let code = |code, message: &str| (Some(code), message.to_owned());
        assert_eq!(
            scope_error(json!({ "list": "a" })),
            code(0, "api_list参数须配置为列表，实际类型为<class 'str'>.")
        );
        assert_eq!(
            scope_error(json!({ "list": [1] })),
            code(0, "api_list中的元素须配置为字符串，实际类型为<class 'int'>.")
        );
        assert_eq!(
            scope_error(json!({ "scope": 1.5 })),
            code(1, "scope参数须配置为字符串或列表，实际类型为<class 'float'>.")
        );
        assert_eq!(
            scope_error(json!({ "scope": ["a", null] })),
            code(1, "scope列表元素要求类型为字符串，实际类型为<class 'NoneType'>.")
        );
    }
}

#[test]
fn files_and_overflows_have_rules_of_their_own() {
    let plain = |task: &str, section: Value, message: &str| {
        assert_raised(&refuse(&file(task, "L1", &section)), ErrorClass::Exception, None, message);
    };
    plain("tensor", json!({ "file_format": "" }), "file_format is invalid");
    plain("tensor", json!({ "file_format": ["npy"] }), "file_format is invalid");
    plain("overflow_check", json!({ "overflow_nums": 1.0 }), "overflow_num is invalid");
    plain("overflow_check", json!({ "overflow_nums": "1" }), "overflow_num is invalid");
    plain("overflow_check", json!({ "overflow_nums": 0 }), "overflow_nums should be -1 or positive integer");
    plain("overflow_check", json!({ "check_mode": "" }), "check_mode is invalid");

    let config = accept(&file("tensor", "L1", &json!({ "file_format": "bin" }))).config;
    assert_eq!(config.file_format, Some(FileFormat::Bin));
    let section = json!({ "overflow_nums": u64::MAX, "check_mode": "aicore" });
    let config = accept(&file("overflow_check", "mix", &section)).config;
    assert_eq!(config.check_mode, Some(CheckMode::Aicore));
    assert_eq!(config.overflow_nums, OverflowNums::Times(u64::MAX.try_into().unwrap()));
}

#[test]
fn the_online_checker_needs_an_address() {
    let online = |section| accept(&file("tensor", "L1", &section)).config.online.unwrap();
    assert_eq!(online(json!({})), Online::default());
    // Not looked at while it is off.
    let off = online(json!({ "host": 1, "port": 70000, "online_run_ut": 0, "online_run_ut_recompute": 1 }));
    assert_eq!(off, Online::default());
    let section = json!({ "online_run_ut": true, "host": "10.0.0.7", "port": 6000, "tls_path": "" });
    let on = Online { enabled: true, host: "10.0.0.7".into(), port: Some(6000), ..Online::default() };
    assert_eq!(online(section), Online { tls_path: String::new(), ..on });
    let shared =
        online(json!({ "online_run_ut": true, "nfs_path": "/nfs", "online_run_ut_recompute": true }));
    assert!(shared.recompute && shared.port.is_none());

    for (section, message) in [
        (json!({ "online_run_ut": "yes" }), "online_run_ut: yes is invalid."),
        (
            json!({ "online_run_ut": true, "online_run_ut_recompute": 1 }),
            "online_run_ut_recompute: 1 is invalid.",
        ),
        (json!({ "online_run_ut": true, "host": "a.b.c.d" }), "host: a.b.c.d is invalid."),
        (json!({ "online_run_ut": true, "host": "10.0.0.7" }), "port: -1 is invalid, port range 0-65535."),
        (
            json!({ "online_run_ut": true, "host": "10.0.0.7", "port": 65536 }),
            "port: 65536 is invalid, port range 0-65535.",
        ),
    ] {
        assert_raised(&refuse(&file("tensor", "L1", &section)), ErrorClass::Exception, None, message);
    }
}

#[test]
fn asynchronous_tensors_need_a_list() {
    let mut raw = file("tensor", "L1", &json!({}));
    raw["async_dump"] = json!(true);
    let error = refuse(&raw);
    let message = "The parameters async_dump is true in tensor task, the parameters list cannot be empty.";
    assert_eq!((error.class, error.code, error.message.as_str()), (ErrorClass::Msprobe, Some(0), message));

    // At level debug there is nothing to list, and whatever is listed is dropped.
    raw["level"] = json!("debug");
    raw["tensor"] = json!({ "list": ["relu"] });
    assert!(accept(&raw).config.list.is_empty());
    // Without async_dump it is kept, and has no effect.
    raw["async_dump"] = json!(false);
    assert_eq!(accept(&raw).config.list, ["relu"]);
    raw["async_dump"] = json!(true);
    raw["task"] = json!("statistics");
    assert!(accept(&raw).config.async_dump);
}

#[test]
fn structure_is_of_modules() {
    for (level, effective, warned) in [
        ("L0", Level::L0, false),
        ("mix", Level::Mix, false),
        ("L1", Level::Mix, true),
        ("L2", Level::Mix, true),
    ] {
        let resolved = accept(&file("structure", level, &json!({})));
        assert_eq!((resolved.config.level, warnings(&resolved).len()), (effective, usize::from(warned)));
    }
    let resolved = accept(&file("structure", "debug", &json!({})));
    assert_eq!(
        warnings(&resolved),
        ["When the task is set to structure, the level should be one of ['L0', 'mix']. \
          If not, the default level is mix."]
    );
}

#[test]
fn level_debug_has_no_tensor_list() {
    let resolved = accept(&file("statistics", "debug", &json!({ "tensor_list": ["relu"] })));
    assert_eq!(resolved.config.tensor_list, Some(vec![]));
    assert_eq!(warnings(&resolved), ["When level is set to debug, the tensor_list will be invalid."]);
    for empty in [json!([]), json!(null)] {
        let resolved = accept(&file("statistics", "debug", &json!({ "tensor_list": empty })));
        assert!(resolved.log.is_empty());
    }
    let resolved = accept(&file("statistics", "L1", &json!({ "tensor_list": ["relu"] })));
    assert_eq!(resolved.config.tensor_list, Some(vec!["relu".to_owned()]));
}

#[test]
fn level_l2_takes_one_api() {
    let list = |names: Value| accept(&file("tensor", "L2", &json!({ "list": names }))).config.list;
    assert_eq!(list(json!(["Torch.relu.0.forward"])), ["Torch.relu.0.forward"]);
    assert_eq!(list(json!(["Torch.relu.0.backward"])), ["Torch.relu.0.backward", "Torch.relu.0.forward"]);
    let error = refuse(&file("tensor", "L2", &json!({ "list": ["a", "b"] })));
    let message = "When level is set to L2, the list must be configured as a list with one api name.";
    assert_raised(&error, ErrorClass::Msprobe, Some(0), message);
    let error = refuse(&file("overflow_check", "L2", &json!({ "list": "a" })));
    assert_raised(&error, ErrorClass::Msprobe, Some(0), message);
}

#[test]
fn tasks_without_a_collector_are_refused() {
    let run_ut = Overrides { task: json!("run_ut"), ..Overrides::default() };
    let error = resolve_with(&json!({ "dump_path": "out" }), &run_ut).unwrap_err();
    let message = "Processor not found for framework: pytorch, task: run_ut";
    assert_raised(&error, ErrorClass::Value, None, message);
}

#[test]
fn the_gradient_probe_is_chosen_by_file_or_argument() {
    let argument = Overrides { task: json!("grad_probe"), ..Overrides::default() };
    let other = Overrides { task: json!("statistics"), ..Overrides::default() };
    let section = json!({ "dump_path": "out", "grad_probe": { "grad_level": "L2", "list": 5 } });
    let config = resolve_with(&section, &argument).unwrap().config;
    assert_eq!((config.task, config.file_task), (Task::GradProbe, Task::Statistics));
    assert_eq!(config.grad_probe.unwrap().level, GradLevel::L2);
    let file = file("grad_probe", "L2", &json!({ "grad_level": "L0" }));
    assert_eq!(accept(&file).config.grad_probe.unwrap().level, GradLevel::L0);
    assert!(resolve_with(&section, &other).unwrap().config.grad_probe.is_none());
    let error = resolve_with(&json!({ "dump_path": "out", "grad_probe": { "bounds": 1 } }), &argument);
    assert_raised(&error.unwrap_err(), ErrorClass::Exception, None, "bounds must be a list");
}

#[test]
fn a_scope_has_two_ends_of_the_levels_kind() {
    let api = ["Torch.relu.0.forward", "Functional.linear.12.backward"];
    let module = ["Module.a.Linear.forward.0", "Cell.b.Dense.backward.3"];
    let mixed = [module[0], api[1]];
    let scope = |level: &str, ends: &[&str]| {
        resolve_with(&file("statistics", level, &json!({ "scope": ends })), &Overrides::default())
            .map(|resolved| resolved.config.scope)
    };
    let range = |ends: [&str; 2]| Ok(Scope::Range { first: ends[0].to_owned(), last: ends[1].to_owned() });
    assert_eq!(scope("L1", &api), range(api));
    assert_eq!(scope("L0", &module), range(module));
    for ends in [api, module, mixed] {
        assert_eq!(scope("mix", &ends), range(ends));
    }
    assert_eq!(scope("mix", &[]), Ok(Scope::Everything));
    for (level, ends, message) in [
        ("L1", &mixed[..], "scope参数格式错误，要求格式为api完整命名，实际为Module.a.Linear.forward.0."),
        ("L0", &mixed[..], "scope参数格式错误，要求格式为模块完整命名，实际为Functional.linear.12.backward."),
        ("mix", &[api[0], "x"][..], "scope参数格式错误，要求格式为api或模块完整命名，实际为x."),
        (
            "L1",
            &["MindSpeed.f.0.forward", api[0]][..],
            "scope参数格式错误，要求格式为api完整命名，实际为MindSpeed.f.0.forward.",
        ),
        ("mix", &["a", "b", "c"][..], "scope参数指定区间断点，须传入长度为2的列表，实际长度为3."),
        // At level debug the ends have no effect and no form, but are still two and of one kind.
        ("debug", &["a"][..], "scope参数指定区间断点，须传入长度为2的列表，实际长度为1."),
        ("debug", &["a", "Module.b"][..], "scope=['a', 'Module.b']"),
    ] {
        assert_raised(&scope(level, ends).unwrap_err(), ErrorClass::Scope, Some(1), message);
    }
    assert_eq!(scope("debug", &["a", "b"]), range(["a", "b"]));
    // Where the section does not check, one name is as good as a list of one.
    let error = refuse(&file("structure", "mix", &json!({ "scope": "a" })));
    let message = "scope参数指定区间断点，须传入长度为2的列表，实际长度为1.";
    assert_raised(&error, ErrorClass::Scope, Some(1), message);
}

#[test]
fn a_free_benchmark_scope_is_a_list_of_names() {
    let config = accept(&file("free_benchmark", "L1", &json!({ "scope": ["a", "b", "c"] }))).config;
    assert_eq!(config.scope.names(), ["a", "b", "c"]);
    let error = refuse(&file("free_benchmark", "L1", &json!({ "scope": ["a"], "list": ["b"] })));
    let message = "scope和api_list不可以同时配置，实际配置为scope=['a'], api_list=['b'].";
    assert_raised(&error, ErrorClass::Scope, Some(2), message);
}

#[test]
fn ranks_and_steps_are_asked_for_one_by_one() {
    let all = accept(&json!({ "dump_path": "out" })).config;
    assert!(all.wants_step(Step(u64::MAX)) && !all.ends_before(Step(u64::MAX)));
    assert!(all.wants_rank(Rank(None)) && all.wants_rank(Rank(Some(7))));

    let mut raw = json!({ "dump_path": "out", "step": [5, "7-8"], "rank": [0] });
    let some = accept(&raw).config;
    let wanted: Vec<_> = (0..12).filter(|step| some.wants_step(Step(*step))).collect();
    assert_eq!(wanted, [5, 7, 8]);
    assert!(!some.ends_before(Step(8)) && some.ends_before(Step(9)));
    assert!(
        some.wants_rank(Rank(Some(0))) && !some.wants_rank(Rank(Some(1))) && !some.wants_rank(Rank(None))
    );

    raw["level"] = json!("debug");
    assert!(accept(&raw).config.wants_rank(Rank(Some(1))), "level debug has no filter of ranks");
}

#[test]
fn a_byte_order_mark_is_no_content() {
    let text = file("statistics", "L1", &json!({})).to_string();
    let plain = Config::from_json(&text, &Overrides::default(), &Framework::known()).unwrap();
    let marked =
        Config::from_json(&format!("\u{feff}{text}"), &Overrides::default(), &Framework::known()).unwrap();
    assert_eq!(format!("{plain:?}"), format!("{marked:?}"));
}
