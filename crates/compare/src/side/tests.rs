use super::*;
use crate::console::Silent;

fn side(text: &str) -> Result<Side, crate::error::CompareError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dump.json");
    std::fs::write(&path, text).unwrap();
    read_side(&path, Which::Target, &Silent)
}

fn names(side: &Side) -> Vec<&str> {
    side.rows.iter().map(|row| &*row.name).collect()
}

#[test]
fn rows_come_as_arguments_parameters_results() {
    let side = side(
        r#"{"task": "statistics", "data": {"Module.fc.Linear.forward.0": {
            "input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 1.0},
                           {"type": "int", "value": 3}, null, [], {"a": null}],
            "input_kwargs": {"k": {"type": "slice", "value": [0, 1, null]}},
            "output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [], "data_name": "x.y.pt"}],
            "parameters": {"weight": {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1]}}},
            "Module.fc.Linear.parameters_grad": {"weight": [{"type": "torch.Tensor", "dtype": "d", "shape": [1]}]}}}"#,
    )
    .unwrap();
    assert_eq!(
        names(&side),
        [
            "Module.fc.Linear.forward.0.input.0",
            "Module.fc.Linear.forward.0.input.1",
            "Module.fc.Linear.forward.0.input.2",
            "Module.fc.Linear.forward.0.input.4.a",
            "Module.fc.Linear.forward.0.input.k",
            "Module.fc.Linear.forward.0.parameters.weight",
            "x.y",
            "Module.fc.Linear.parameters_grad.weight",
        ]
    );
    assert_eq!(side.rows[0].shape, ValueShape::Sizes([2, 3].into()));
    assert_eq!(&*side.rows[1].dtype, "<class 'int'>");
    assert_eq!(side.rows[1].md5.as_deref(), Some("6dd28e9b"));
    assert_eq!(side.rows[4].shape, ValueShape::Tuple([3].into()));
    assert!(side.rows[1].shape.is_scalar() && side.rows[6].shape.is_scalar());
    assert_eq!(side.rows[2].shape, ValueShape::Unknown);
    assert_eq!(side.records[1].rows, 7..8);
}

#[test]
fn sketches_are_read_or_left_out() {
    let value = |sketch: &str| {
        format!(r#"{{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "sketch": {sketch}}}"#)
    };
    let values: Vec<String> =
        [r#""1hDzXdaet8pWo""#, r#""1hDzXdaet8pWs""#, r#""1h""#, r#""9x""#, "7", "null"].map(value).into();
    let text = format!(
        r#"{{"task": "statistics", "data": {{"T.a.0.forward": {{"output": [{}]}}}}}}"#,
        values.join(",")
    );
    let side = side(&text).unwrap();
    let read: Vec<bool> = side.rows.iter().map(|row| row.sketch.is_some()).collect();
    assert_eq!(read, [true, true, false, false, false, false]);
    let digests: std::collections::HashSet<u64> = side.rows.iter().map(|row| row.digest).collect();
    assert_eq!(digests.len(), 6);
}

#[test]
fn a_repeated_record_counts_as_its_last_value_at_its_first_place() {
    let side = side(
        r#"{"task": "statistics", "data": {"T.a.0.forward": {"output": [null]}, "T.b.0.forward": {"output": [null]},
            "T.a.0.forward": {"output": [null, null]}}}"#,
    )
    .unwrap();
    assert_eq!(names(&side), ["T.a.0.forward.output.0", "T.a.0.forward.output.1", "T.b.0.forward.output.0"]);
}

#[test]
fn layers_may_be_called_like_the_words_of_row_names() {
    let side = side(
        r#"{"task": "statistics", "data": {"Module.output.input.Linear.forward.0": {"input_args": [null], "output": [null]},
            "Module.debug.Linear.forward.0": {"input_args": [null], "output": [null]}}}"#,
    )
    .unwrap();
    assert_eq!(side.rows.len(), 4);
    assert_eq!(side.rows[3].role, Role::Output);
}

#[test]
fn what_cannot_be_compared_is_refused_with_its_number() {
    let code = |text: &str| match side(text) {
        Ok(side) => side.fault.unwrap().code as u16,
        Err(error) => error.code as u16,
    };
    assert_eq!(code("{"), 0);
    assert_eq!(code(r#"{"data": {}}"#), 20);
    assert_eq!(code(r#"{"task": "statistics"}"#), 10);
    assert_eq!(code(r#"{"task": "statistics", "data": []}"#), 10);
    assert_eq!(code(r#"{"task": "statistics", "data": {"T.a.0": {"output": [null]}}}"#), 36);
    let nested = format!("{}null{}", "[".repeat(12), "]".repeat(12));
    let deep = format!(r#"{{"task": "statistics", "data": {{"T.a.0.forward": {{"output": {nested}}}}}}}"#);
    assert_eq!(code(&deep), 24);
}
