//! Names, to text and back.

use proptest::prelude::*;

use super::*;

fn record(text: &str) -> RecordName<'_> {
    let name = RecordName::parse(text);
    assert_eq!(name.to_string(), text);
    name
}

#[test]
fn apis_have_four_parts() {
    let name = ApiName::parse("Functional.linear.12.forward").unwrap();
    assert_eq!((name.prefix(), name.api(), name.index()), ("Functional", "linear", 12));
    assert_eq!(name.direction(), Direction::Forward);
    assert_eq!(name.with_direction(Direction::Backward).to_string(), "Functional.linear.12.backward");
    // Custom APIs are called after their module.
    let name = ApiName::parse("torch.nn.functional.relu.0.backward").unwrap();
    assert_eq!((name.prefix(), name.api()), ("torch.nn.functional", "relu"));
    for text in [
        "",
        ".",
        "relu",
        "relu.0.forward",
        "Torch.relu.forward",
        "Torch.relu.x.forward",
        "Torch.relu.00.forward",
        "Torch.relu.-1.forward",
        "Torch.relu.+1.forward",
        "Torch.relu.18446744073709551616.forward",
        "Torch.relu.0.sideward",
        "Torch.relu.0.forward.",
        "Torch..0.forward",
        ".relu.0.forward",
    ] {
        assert_eq!(ApiName::parse(text), None, "{text}");
    }
    assert_eq!(ApiName::new("Torch.norm", 0, Direction::Forward).to_string(), "Torch.norm.0.forward");
}

#[test]
fn modules_have_a_path_and_a_class() {
    let name = ModuleName::parse("Module.layers.0.fc1.Linear.backward.3").unwrap();
    assert_eq!((name.kind(), name.qualified(), name.class()), (ModuleKind::Module, "layers.0.fc1", "Linear"));
    assert_eq!(name.pass(), ModulePass::Backward(3));
    let gradients = name.with_pass(ModulePass::ParametersGrad(None)).to_string();
    assert_eq!(gradients, "Module.layers.0.fc1.Linear.parameters_grad");
    assert_eq!(ModuleName::parse(&gradients).unwrap().pass(), ModulePass::ParametersGrad(None));
    // As 26 writes them.
    let name = ModuleName::parse("Cell.fc.Dense.parameters_grad.2").unwrap();
    assert_eq!((name.kind(), name.pass()), (ModuleKind::Cell, ModulePass::ParametersGrad(Some(2))));
    assert_eq!(name.path(), "Cell.fc");
    assert_eq!(enclosing_paths("Module.a.b").collect::<Vec<_>>(), ["Module.a", "Module"]);
    // A child of a list of models, and of a Sequential.
    let name = ModuleName::parse("Module.0.1.Tanh.forward.0").unwrap();
    assert_eq!((name.qualified(), name.class()), ("0.1", "Tanh"));
    for text in [
        "Module",
        "Module.Linear.forward.0",
        "module.fc.Linear.forward.0",
        "Module.fc.Linear.forward",
        "Module.fc.Linear.forward.01",
        "Module.fc.Linear.0",
        "Module..Linear.forward.0",
        "Module.fc..forward.0",
    ] {
        assert_eq!(ModuleName::parse(text), None, "{text}");
    }
    assert_eq!(ModuleName::new("Module.fc.B", ModulePass::Forward(0)).to_string(), "Module.fc.B.forward.0");
}

#[test]
fn records_are_of_one_kind() {
    assert!(matches!(record("Torch.relu.0.forward"), RecordName::Api(_)));
    assert!(matches!(record("Module.a.B.forward.0"), RecordName::Module(_)));
    assert!(matches!(record("Module.a.B.parameters_grad"), RecordName::Module(_)));
    assert!(matches!(record("Module.a.B.forward.0.debug"), RecordName::Saved(_)));
    assert!(matches!(record("Module.a.0.forward"), RecordName::Api(_)));
    let RecordName::Saved(saved) = record("x.y.2.debug") else { panic!("a saved variable") };
    assert_eq!((saved.name(), saved.index()), ("x.y", 2));
    assert_eq!(saved.gradient().to_string(), "x.y_grad.2.debug");
    assert_eq!(record("x.2"), RecordName::Other("x.2"));
}

#[test]
fn parts_of_a_name_are_told_for_every_form() {
    let parts = |text| {
        let name = RecordName::parse(text);
        (name.stem(), name.function(), name.index(), name.direction(), name.is_parameter_gradient())
    };
    let (forward, backward) = (Some(Direction::Forward), Some(Direction::Backward));
    assert_eq!(parts("Torch.exp.3.forward"), ("Torch.exp", "exp", Some(3), forward, false));
    assert_eq!(parts("my.ops.exp.0.backward"), ("my.ops.exp", "exp", Some(0), backward, false));
    assert_eq!(parts("Module.a.B.backward.1"), ("Module.a.B", "", Some(1), backward, false));
    assert_eq!(parts("Module.a.B.parameters_grad"), ("Module.a.B", "", None, backward, true));
    assert_eq!(parts("x.y.2.debug"), ("x.y", "", Some(2), None, false));
    assert_eq!(parts("Torch.exp.forward.x"), ("Torch.exp", "exp", None, forward, false));
    assert_eq!(parts("exp"), ("exp", "", None, None, false));
    let operation = |text| RecordName::parse(text).operation();
    assert_eq!(operation("my.ops.exp.0.backward"), "exp");
    assert_eq!(operation("Module.a.B.parameters_grad"), "B");
    assert_eq!((operation("x.y.2.debug"), operation("Torch.exp")), ("", "exp"));
    let forward_of = |text| RecordName::parse(text).forward().map(|name| name.to_string());
    assert_eq!(forward_of("Torch.exp.3.backward").unwrap(), "Torch.exp.3.forward");
    assert_eq!(forward_of("Module.a.B.backward.1").unwrap(), "Module.a.B.forward.1");
    for none in ["Torch.exp.3.forward", "Module.a.B.parameters_grad.1", "x.0.debug", "exp.backward"] {
        assert_eq!(forward_of(none), None, "{none}");
    }
}

#[test]
fn names_tell_by_their_first_segment_whether_they_are_of_modules_or_of_communication() {
    for (name, of_module, of_communication) in [
        ("Module.a.B.forward.0", true, false),
        ("Cell.a.0.forward", true, false),
        ("Modules.a.B.forward.0", false, false),
        ("Distributed.all_reduce.0.forward", false, true),
        ("Distributed", false, false),
        ("MyDistributed.send.0.forward", false, false),
    ] {
        assert_eq!((is_of_module(name), is_of_communication(name)), (of_module, of_communication), "{name}");
    }
}

#[test]
fn directories_carry_step_and_rank() {
    assert_eq!((Step(7).to_string(), Step::of_dir("step7")), ("step7".to_owned(), Some(Step(7))));
    assert_eq!((Rank(Some(3)).to_string(), Rank::of_dir("rank3")), ("rank3".to_owned(), Some(Rank(Some(3)))));
    assert_eq!((Rank(None).to_string(), Rank::of_dir("rank")), ("rank".to_owned(), Some(Rank(None))));
    for text in ["", "step", "step-1", "step07", "rank1", "Step1", "step1 "] {
        assert_eq!(Step::of_dir(text), None, "{text}");
    }
    assert!(Step::is_meant_by("step_3") && !Step::is_meant_by("rank_3"));
    for text in ["", "ran", "rank01", "rank4294967296", "rank_1", "proc12"] {
        assert_eq!(Rank::of_dir(text), None, "{text}");
    }
}

#[test]
fn numbers_of_key_data_are_read_as_python_reads_them() {
    for (text, value) in [
        ("0", Some(0)),
        ("007", Some(7)),
        (" 7 ", Some(7)),
        ("-3", Some(-3)),
        ("+3", Some(3)),
        ("1_000", Some(1000)),
        ("", None),
        ("_1", None),
        ("1__0", None),
        ("1_", None),
        ("0x1", None),
        ("- 1", None),
        ("²", None),
        ("1.5", None),
        ("9223372036854775808", None),
    ] {
        let number = key_data_dir(&format!("rank{text}"), "rank");
        assert_eq!(number, Some(value.ok_or(NoNumber)), "{text:?}");
    }
    assert_eq!(key_data_dir("run1", "rank"), None);
}

#[test]
fn scope_ends_are_full_names_of_known_prefixes() {
    let prefixes = ["Torch", "Tensor"].map(str::to_owned);
    let is_api_scope_end = |name: &str| is_api_scope_end(name, &prefixes);
    for prefix in &prefixes {
        assert!(is_api_scope_end(&format!("{prefix}.f.0.forward")));
        assert!(!is_module_scope_end(&format!("{prefix}.f.forward.0")));
    }
    for name in ["Torch.a.b.007.backward", "Torch..0.forward", "Tensor.__add__.3.forward"] {
        assert!(is_api_scope_end(name), "{name}");
    }
    for name in [
        "",
        "relu",
        "Torch.0.forward",
        "Torch.relu.forward",
        "Torch.relu.0",
        "Torch.relu..forward",
        "Torch.relu.x.forward",
        "Torch.relu.0.forward.0",
        "MindSpeed.f.0.forward",
        "MyOps.f.0.forward",
        "torch.relu.0.forward",
        "Module.a.0.forward",
        "Torch.a\nb.0.forward",
    ] {
        assert!(!is_api_scope_end(name), "{name}");
    }
    for name in ["Module.a.B.forward.0", "Cell.a.B.backward.12", "Module..forward.0"] {
        assert!(is_module_scope_end(name), "{name}");
    }
    for name in [
        "",
        "Module",
        "Module.forward.0",
        "Module.a.B.forward",
        "Module.a.B.parameters_grad",
        "Torch.a.forward.0",
        "Modules.a.B.forward.0",
        "Module.a\n.B.forward.0",
    ] {
        assert!(!is_module_scope_end(name), "{name}");
    }
}

/// An identifier; not a word that ends records.
fn word() -> impl Strategy<Value = String> {
    "[A-Za-z_][A-Za-z0-9_]{0,8}".prop_filter("a word of names", |word| {
        Direction::from_word(word).is_none() && word != "debug" && word != "parameters_grad"
    })
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![word(), (0u32..20).prop_map(|index| index.to_string())], 1..5)
        .prop_map(|segments| segments.join("."))
}

fn direction() -> impl Strategy<Value = Direction> {
    prop::sample::select(Direction::ALL)
}

/// The text of an API call's name, and its parts.
fn api_name() -> impl Strategy<Value = (String, u64, Direction)> {
    (word(), path(), word(), any::<u64>(), direction())
        .prop_map(|(start, rest, api, index, direction)| (format!("{start}.{rest}.{api}"), index, direction))
}

fn module_name() -> impl Strategy<Value = (String, ModulePass)> {
    let pass = prop_oneof![
        (direction(), any::<u64>()).prop_map(|(direction, index)| ModulePass::of(direction, index)),
        prop::option::of(any::<u64>()).prop_map(ModulePass::ParametersGrad),
    ];
    (prop::sample::select(ModuleKind::ALL), path(), word(), pass)
        .prop_map(|(kind, qualified, class, pass)| (format!("{kind}.{qualified}.{class}"), pass))
}

proptest! {
    #[test]
    fn records_read_back(
        (api, call, direction) in api_name(),
        (module, pass) in module_name(),
        saved in path(),
        index in any::<u64>(),
    ) {
        for name in [
            RecordName::Api(ApiName::new(&api, call, direction)),
            RecordName::Module(ModuleName::new(&module, pass)),
            RecordName::Saved(SavedName::new(&saved, index)),
        ] {
            let text = name.to_string();
            prop_assert_eq!(RecordName::parse(&text), name);
        }
    }

    #[test]
    fn whatever_is_read_is_written_the_same(text in "(Module\\.)?[a-b.]{0,6}(forward|debug|parameters_grad|[.0-9]){0,6}(\\.pt)?") {
        prop_assert_eq!(RecordName::parse(&text).to_string(), text.as_str());
    }

    #[test]
    fn names_of_calls_can_end_scopes((api, index, direction) in api_name(), (module, pass) in module_name()) {
        let stem = format!("Torch.{}", ApiName::new(&api, index, direction).api());
        let name = ApiName::new(&stem, index, direction).to_string();
        prop_assert!(is_api_scope_end(&name, &["Torch".to_owned()]) && !is_api_scope_end(&name, &[]));
        let is_call = !matches!(pass, ModulePass::ParametersGrad(_));
        prop_assert_eq!(is_module_scope_end(&ModuleName::new(&module, pass).to_string()), is_call);
    }
}
