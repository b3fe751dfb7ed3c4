use msprobe_report::console::{Remembered, Silent};

use super::*;

fn tree(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    fs::create_dir(&data).unwrap();
    for file in files {
        let path = data.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"").unwrap();
    }
    (root, data)
}

fn places(found: &[(ArrayPlace, PathBuf)]) -> Vec<([i64; 4], &str)> {
    let name =
        |path: &'_ PathBuf| -> &'_ str { path.file_name().unwrap().to_str().unwrap().to_owned().leak() };
    found
        .iter()
        .map(|(place, path)| ([place.step, place.rank, place.micro_step, place.id], name(path)))
        .collect()
}

#[test]
fn names_say_the_place() {
    let (_root, data) = tree(&[
        "k/step10/rank0/micro_step0/k.npy",
        "k/step2/rank1/micro_step11/k.11.npy",
        "k/step2/rank1/micro_step11/k.2.npy",
        "k/step2/rank1/micro_step11/k.json",
        "k/step2/rank1/micro_step11/k_7.npy",
        "k/step2/notes/k.npy",
        "k/other/rank0/micro_step0/k.npy",
        "k/step3",
        "only_json/step0/rank0/micro_step0/only_json.json",
        "file.npy",
    ]);
    let found = find_arrays(&data, &Silent).unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), ["k"]);
    let expected = vec![
        ([2, 1, 11, 0], "k_7.npy"),
        ([2, 1, 11, 2], "k.2.npy"),
        ([2, 1, 11, 11], "k.11.npy"),
        ([10, 0, 0, 0], "k.npy"),
    ];
    assert_eq!(places(&found["k"]), expected);
}

#[test]
fn a_rank_without_micro_steps_is_flat() {
    let (_root, data) = tree(&[
        "k/step0/rank0/k.0.npy",
        "k/step0/rank0/k.1.npy",
        "k/step0/rank0/k_5.npy",
        "k/step0/rank0/k.json",
        "k/step0/rank0/micro_step3/k.npy",
        "k/step0/rank0/micro_step_x.npy",
        "top_5/step0/rank0/top_5.npy",
    ]);
    let found = find_arrays(&data, &Silent).unwrap();
    let expected = vec![
        ([0, 0, 0, 0], "k.0.npy"),
        ([0, 0, 0, 0], "micro_step_x.npy"),
        ([0, 0, 0, 1], "k.1.npy"),
        ([0, 0, 0, 5], "k_5.npy"),
        ([0, 0, 3, 0], "k.npy"),
    ];
    assert_eq!(places(&found["k"]), expected);
    assert_eq!(places(&found["top_5"]), [([0, 0, 0, 0], "top_5.npy")], "the key itself has no number");
}

#[test]
fn files_of_one_place_are_all_there() {
    let (_root, data) = tree(&["d/step0/rank0/micro_step0/d.b.npy", "d/step0/rank0/micro_step0/d.a.npy"]);
    let found = find_arrays(&data, &Silent).unwrap();
    assert_eq!(places(&found["d"]), [([0, 0, 0, 0], "d.a.npy"), ([0, 0, 0, 0], "d.b.npy")]);
}

#[test]
fn numbers_behind_the_key_are_ids() {
    let (_root, data) = tree(&[
        "response/step0/rank0/micro_step0/response0.npy",
        "response/step0/rank0/micro_step0/response1.npy",
        "response/step0/rank1/response12.npy",
        "k2/step0/rank0/micro_step0/k2.npy",
        "k2/step0/rank0/micro_step0/k21.npy",
    ]);
    let found = find_arrays(&data, &Silent).unwrap();
    assert_eq!(
        places(&found["response"]),
        [([0, 0, 0, 0], "response0.npy"), ([0, 0, 0, 1], "response1.npy"), ([0, 1, 0, 12], "response12.npy")]
    );
    assert_eq!(places(&found["k2"]), [([0, 0, 0, 0], "k2.npy"), ([0, 0, 0, 1], "k21.npy")]);
}

#[test]
fn what_is_passed_over_is_said() {
    let (_root, data) = tree(&[
        "k/step0/rank0/micro_step0/k.npy",
        "k/step0/rank0/micro_step0/k.json",
        "k/step0/rank0/micro_step0/k.npy.part",
        "k/step0/rank0/micro_step0/.hidden",
        "k/step0/notes/k.npy",
        "k/other/rank0/micro_step0/k.npy",
        "only_json/step0/rank0/micro_step0/only_json.json",
        "file.npy",
    ]);
    let mut unread = find_everything(&data, &Silent).unwrap().unread;
    unread.sort();
    let said: Vec<&str> = unread.iter().map(|text| text.rsplit_once("/data/").unwrap().1).collect();
    assert_eq!(
        said,
        [
            "file.npy: it is no directory of a key",
            "k/other: it is no directory of a step",
            "k/step0/notes: it is no directory of a rank",
            "k/step0/rank0/micro_step0/k.npy.part: it is no .npy file",
            "only_json: there is no array in it",
        ]
    );
}

#[test]
fn names_without_a_number_end_it() {
    for (file, message) in [
        ("k/stepX/rank0/k.npy", "parse step number error"),
        ("k/step0/rank/k.npy", "parse rank number error"),
        ("k/step0/rank0/micro_step_1/k.npy", "parse nicro_step number error"),
        ("k/step99999999999999999999/rank0/k.npy", "parse step number error"),
    ] {
        let (_root, data) = tree(&[file]);
        let notes = Remembered::default();
        let error = find_arrays(&data, &notes).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (Code::BrokenJson, message));
        assert!(notes.said(|_| true)[0].starts_with("the name of "));
    }
}

#[test]
fn the_data_directory_itself() {
    let (root, data) = tree(&[]);
    assert!(find_arrays(&data, &Silent).unwrap().is_empty());
    let missing = find_arrays(&root.path().join("none"), &Silent).unwrap_err();
    assert!(missing.message.ends_with("none does not exist.") && missing.hint.unwrap().contains("dump_path"));
    let link = root.path().join("link");
    std::os::unix::fs::symlink(&data, &link).unwrap();
    assert!(find_arrays(&link, &Silent).unwrap_err().message.ends_with("is a soft link."));
    let file = root.path().join("file");
    fs::write(&file, b"").unwrap();
    assert!(find_arrays(&file, &Silent).unwrap_err().message.contains("should be a directory"));
}

#[test]
fn ids_of_file_names() {
    for (stem, id) in [
        ("k", 0),
        ("k.5", 5),
        ("0", 0),
        ("12", 12),
        ("k.5.x", 0),
        ("k.", 0),
        ("k.-1", 0),
        ("", 0),
        ("k5", 5),
        ("k5x", 0),
        ("other5", 0),
    ] {
        assert_eq!(array_id(stem, "k", true), id, "{stem}");
    }
    assert_eq!((array_id("a_b_12", "k", true), array_id("a_b_12", "k", false)), (12, 0));
    assert_eq!((array_id("a.b_12", "k", true), array_id("_12", "k", true)), (0, 0));
    assert_eq!(array_id("k.99999999999999999999", "k", true), 0);
    assert_eq!((array_id("5", "", false), array_id("k5", "k5", false)), (5, 0));
}
