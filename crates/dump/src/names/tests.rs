//! Names, to text and back.

use proptest::prelude::*;

use super::*;

fn record(text: &str) -> RecordName {
    let name: RecordName = text.parse().unwrap();
    assert_eq!(name.to_string(), text);
    name
}

#[test]
fn apis_have_four_parts() {
    let name: ApiName = "Functional.linear.12.forward".parse().unwrap();
    assert_eq!((name.prefix(), name.api(), name.index()), ("Functional", "linear", 12));
    assert_eq!(name.direction(), Direction::Forward);
    assert_eq!(name.with_direction(Direction::Backward).to_string(), "Functional.linear.12.backward");
    // Custom APIs are called after their module.
    let name: ApiName = "torch.nn.functional.relu.0.backward".parse().unwrap();
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
        let error = text.parse::<ApiName>().unwrap_err();
        assert_eq!(error.text, text);
    }
    assert!(ApiName::new("Torch", "linalg.norm", 0, Direction::Forward).is_err());
}

#[test]
fn modules_have_a_path_and_a_class() {
    let name: ModuleName = "Module.layers.0.fc1.Linear.backward.3".parse().unwrap();
    assert_eq!((name.kind(), name.qualified(), name.class()), (ModuleKind::Module, "layers.0.fc1", "Linear"));
    assert_eq!(name.pass(), ModulePass::Backward(3));
    let gradients = name.with_pass(ModulePass::ParametersGrad(None)).to_string();
    assert_eq!(gradients, "Module.layers.0.fc1.Linear.parameters_grad");
    assert_eq!(gradients.parse::<ModuleName>().unwrap().pass(), ModulePass::ParametersGrad(None));
    // As 26 writes them.
    let name: ModuleName = "Cell.fc.Dense.parameters_grad.2".parse().unwrap();
    assert_eq!((name.kind(), name.pass()), (ModuleKind::Cell, ModulePass::ParametersGrad(Some(2))));
    // A child of a list of models, and of a Sequential.
    let name: ModuleName = "Module.0.1.Tanh.forward.0".parse().unwrap();
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
        assert!(text.parse::<ModuleName>().is_err(), "{text}");
    }
    assert!(ModuleName::new(ModuleKind::Module, "fc", "a.B", ModulePass::Forward(0)).is_err());
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
    let error = "x.2".parse::<RecordName>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"x.2\" is not the name of a record, which has the form \
         Prefix.api.0.forward, Module.name.Class.forward.0 or name.0.debug"
    );
}

#[test]
fn tensor_files_are_called_after_records() {
    let place = |text: &str| {
        let name: TensorFileName = text.parse().unwrap();
        assert_eq!(name.to_string(), text);
        (name.record().to_string(), name.place().clone())
    };
    let value = |category, path: &str| TensorPlace::Value { category, path: path.to_owned() };
    for (text, expected, expected_place) in [
        (
            "Functional.linear.0.forward.input.0.1.1.0.pt",
            "Functional.linear.0.forward",
            value(Category::Input, "0.1.1.0"),
        ),
        ("myops.probe.3.forward.kwargs.extra.pt", "myops.probe.3.forward", value(Category::Kwargs, "extra")),
        (
            "Module.a.0.Net.backward.7.output.1.0.forward.input.0.npy",
            "Module.a.0.Net.backward.7",
            value(Category::Output, "1.0.forward.input.0"),
        ),
        (
            "Module.fc1.Linear.forward.0.parameters.weight.pt",
            "Module.fc1.Linear.forward.0",
            value(Category::Parameters, "weight"),
        ),
        (
            "Module.fc1.Linear.parameters_grad.weight.pt",
            "Module.fc1.Linear.parameters_grad",
            TensorPlace::Gradient { parameter: "weight".into() },
        ),
        (
            "Module.p.ParameterList.parameters_grad.0.pt",
            "Module.p.ParameterList.parameters_grad",
            TensorPlace::Gradient { parameter: "0".into() },
        ),
        (
            "Module.p.ParameterList.parameters_grad.0.1.pt",
            "Module.p.ParameterList.parameters_grad.0",
            TensorPlace::Gradient { parameter: "1".into() },
        ),
        ("x.0.debug.pt", "x.0.debug", TensorPlace::Saved { path: None }),
        (
            "nest_grad.0.debug.b.0.forward.input.0.pt",
            "nest_grad.0.debug",
            TensorPlace::Saved { path: Some("b.0.forward.input.0".into()) },
        ),
    ] {
        assert_eq!(place(text), (expected.to_owned(), expected_place));
    }
    let hostile = format!("{}.pt", "..0.forward.input".repeat(100_000));
    for text in [
        "",
        "pt",
        ".pt",
        "a.pt",
        "Torch.relu.0.forward.pt",
        "Torch.relu.0.forward.input.pt",
        "Torch.relu.0.forward.input.0.bin",
        "Torch.relu.0.forward.middle.0.pt",
        "Torch.relu.0.forward.input..pt.gz",
        "Module.fc.Linear.parameters_grad.pt",
        "Module.fc.Linear.parameters_grad.a.b.c.pt",
        &hostile,
    ] {
        assert!(text.parse::<TensorFileName>().is_err(), "{text:.100}");
    }
}

#[test]
fn places_belong_to_kinds_of_records() {
    let records = ["Torch.relu.0.forward", "Module.a.B.forward.0", "Module.a.B.parameters_grad", "x.0.debug"];
    let places = [
        TensorPlace::Value { category: Category::Input, path: "0".into() },
        TensorPlace::Gradient { parameter: "weight".into() },
        TensorPlace::Saved { path: None },
    ];
    let fits = records.map(|text| {
        places.clone().map(|place| TensorFileName::new(record(text), place, TensorFormat::Pt).is_ok())
    });
    let [value, gradient, saved] = [[true, false, false], [false, true, false], [false, false, true]];
    assert_eq!(fits, [value, value, gradient, saved]);
    let dotted = TensorPlace::Gradient { parameter: "a.b".into() };
    assert!(TensorFileName::new(record(records[2]), dotted, TensorFormat::Pt).is_err());
}

#[test]
fn directories_carry_step_and_rank() {
    assert_eq!((Step(7).to_string(), "step7".parse()), ("step7".to_owned(), Ok(Step(7))));
    assert_eq!((Rank(Some(3)).to_string(), "rank3".parse()), ("rank3".to_owned(), Ok(Rank(Some(3)))));
    assert_eq!((Rank(None).to_string(), "rank".parse()), ("rank".to_owned(), Ok(Rank(None))));
    for text in ["", "step", "step-1", "step07", "rank1", "Step1", "step1 "] {
        assert!(text.parse::<Step>().is_err(), "{text}");
    }
    for text in ["", "ran", "rank01", "rank4294967296", "rank_1", "proc12"] {
        assert!(text.parse::<Rank>().is_err(), "{text}");
    }
}

#[test]
fn scope_ends_are_full_names_of_known_prefixes() {
    for prefix in SCOPE_PREFIXES {
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

fn api_name() -> impl Strategy<Value = ApiName> {
    (word(), path(), word(), any::<u64>(), direction()).prop_map(|(start, rest, api, index, direction)| {
        ApiName::new(format!("{start}.{rest}"), api, index, direction).unwrap()
    })
}

fn module_name() -> impl Strategy<Value = ModuleName> {
    let pass = prop_oneof![
        (direction(), any::<u64>()).prop_map(|(direction, index)| ModulePass::of(direction, index)),
        prop::option::of(any::<u64>()).prop_map(ModulePass::ParametersGrad),
    ];
    (prop::sample::select(ModuleKind::ALL), path(), word(), pass)
        .prop_map(|(kind, qualified, class, pass)| ModuleName::new(kind, qualified, class, pass).unwrap())
}

fn record_name() -> impl Strategy<Value = RecordName> {
    prop_oneof![
        api_name().prop_map(RecordName::Api),
        module_name().prop_map(RecordName::Module),
        (path(), any::<u64>()).prop_map(|(name, index)| RecordName::Saved(SavedName::new(name, index))),
    ]
}

proptest! {
    #[test]
    fn records_read_back(name in record_name()) {
        prop_assert_eq!(name.to_string().parse::<RecordName>(), Ok(name));
    }

    #[test]
    fn tensor_files_read_back(
        record in record_name(),
        category in prop::sample::select(Category::ALL),
        path in "[a-z.0-9]{1,20}",
        bare in any::<bool>(),
        parameter in word(),
        format in prop::sample::select(TensorFormat::ALL),
    ) {
        let place = match &record {
            RecordName::Saved(_) => TensorPlace::Saved { path: (!bare).then_some(path) },
            RecordName::Module(module) if matches!(module.pass(), ModulePass::ParametersGrad(_)) => {
                TensorPlace::Gradient { parameter }
            }
            _ => TensorPlace::Value { category, path },
        };
        let name = TensorFileName::new(record, place, format).unwrap();
        prop_assert_eq!(name.to_string().parse::<TensorFileName>(), Ok(name));
    }

    #[test]
    fn whatever_is_read_is_written_the_same(text in "(Module\\.)?[a-b.]{0,6}(forward|debug|parameters_grad|[.0-9]){0,6}(\\.pt)?") {
        if let Ok(name) = text.parse::<RecordName>() {
            prop_assert_eq!(name.to_string(), text.as_str());
        }
        if let Ok(name) = text.parse::<TensorFileName>() {
            prop_assert_eq!(name.to_string(), text.as_str());
        }
    }

    #[test]
    fn names_of_calls_can_end_scopes(name in api_name(), module in module_name()) {
        let known = ApiName::new("Torch", name.api(), name.index(), name.direction()).unwrap();
        prop_assert!(is_api_scope_end(&known.to_string()));
        let is_call = !matches!(module.pass(), ModulePass::ParametersGrad(_));
        prop_assert_eq!(is_module_scope_end(&module.to_string()), is_call);
    }
}
