//! The real binary: what it prints, where, and how it ends. Recorded under `snapshots/`.
//!
//! Inputs are the fixtures other libraries wrote, named relative to their directory, or files made here, whose
//! directory is shown as `[TMP]`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::fs::{self, File};
use std::io::{BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use insta::assert_snapshot;
use msprobe_tensor::files::{npy, pt_write};
use msprobe_tensor::{DType, TensorView};
use tempfile::TempDir;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

fn hostile() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tensor/tests/hostile/pt")
}

/// The command with nothing from the environment that changes what it says.
fn msprobe(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_msprobe"));
    command.args(args).current_dir(directory).stdin(Stdio::null());
    for variable in ["MSPROBE_LOG_LEVEL", "NO_COLOR", "COLUMNS", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    command
}

fn transcript(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let code = output.status.code().unwrap();
    format!(
        "exit code: {code}\n----- stdout -----\n{}----- stderr -----\n{}",
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// Runs among the fixtures.
fn run(args: &[&str]) -> String {
    transcript(&msprobe(&fixtures(), args).output().unwrap())
}

/// Runs in a directory of its own; `[TMP]` stands for its path in the arguments and in the transcript.
fn run_in(directory: &TempDir, args: &[&str]) -> String {
    let args: Vec<String> =
        args.iter().map(|arg| arg.replace("[TMP]", path_text(directory.path()))).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = msprobe(directory.path(), &args).output().unwrap();
    transcript(&output).replace(path_text(directory.path()), "[TMP]")
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A tensor to be written to a file.
struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensor {
    fn f32(values: &[f32]) -> Tensor {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { dtype: DType::F32, shape: vec![values.len()], bytes }
    }

    fn f64(values: &[f64]) -> Tensor {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { dtype: DType::F64, shape: vec![values.len()], bytes }
    }

    fn i32(values: &[i32]) -> Tensor {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { dtype: DType::I32, shape: vec![values.len()], bytes }
    }

    fn reshaped(self, shape: &[usize]) -> Tensor {
        Tensor { shape: shape.to_vec(), ..self }
    }

    fn view(&self) -> TensorView<'_> {
        TensorView::contiguous(self.dtype, self.shape.clone(), &self.bytes).unwrap()
    }
}

fn write_npy(directory: &TempDir, name: &str, tensor: &Tensor) {
    let mut file = BufWriter::new(File::create(directory.path().join(name)).unwrap());
    npy::write(&mut file, &tensor.view()).unwrap();
}

fn write_pt(directory: &TempDir, name: &str, tensors: &[(&str, &Tensor)]) {
    let views: Vec<(&str, TensorView<'_>)> =
        tensors.iter().map(|(name, tensor)| (*name, tensor.view())).collect();
    let mut file = BufWriter::new(File::create(directory.path().join(name)).unwrap());
    pt_write::write_state_dict(&mut file, &views).unwrap();
}

mod usage {
    use super::*;

    #[test]
    fn help() {
        assert_snapshot!("help", run(&["--help"]));
        assert_snapshot!("help_inspect", run(&["inspect", "--help"]));
        assert_snapshot!("help_inspect_short", run(&["inspect", "-h"]));
        assert_snapshot!("help_diff", run(&["diff", "--help"]));
        assert_snapshot!("help_diff_short", run(&["diff", "-h"]));
    }

    #[test]
    fn version() {
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!("exit code: 0\n----- stdout -----\nmsprobe {version}\n----- stderr -----\n");
        assert_eq!(run(&["--version"]), expected);
    }

    #[test]
    fn wrong_usage() {
        // Nothing asked for is help asked for.
        assert_snapshot!("usage_nothing", run(&[]));
        assert_snapshot!("usage_command", run(&["inspct"]));
        assert_snapshot!("usage_no_file", run(&["inspect"]));
        assert_snapshot!("usage_one_file", run(&["diff", "npy/c_int8.npy"]));
        assert_snapshot!("usage_format", run(&["inspect", "npy/c_int8.npy", "--format", "xml"]));
        assert_snapshot!("usage_flag", run(&["inspect", "npy/c_int8.npy", "--tensors", "w"]));
        assert_snapshot!("usage_top", run(&["diff", "a", "b", "--top", "-1"]));
    }
}

mod inspect {
    use super::*;

    #[test]
    fn every_format() {
        assert_snapshot!("inspect_npy", run(&["inspect", "npy/c_float32.npy"]));
        assert_snapshot!("inspect_npy_scalar", run(&["inspect", "npy/scalar_int64.npy"]));
        assert_snapshot!("inspect_npy_empty", run(&["inspect", "npy/empty.npy"]));
        assert_snapshot!("inspect_pt_bare", run(&["inspect", "pt/bare_bfloat16.pt"]));
        assert_snapshot!("inspect_pt_state_dict", run(&["inspect", "pt/training.pt"]));
        assert_snapshot!("inspect_pt_legacy", run(&["inspect", "pt/legacy_dtypes.pt"]));
        assert_snapshot!("inspect_safetensors", run(&["inspect", "safetensors/every_dtype.safetensors"]));
        assert_snapshot!("inspect_no_tensors", run(&["inspect", "safetensors/no_tensors.safetensors"]));
    }

    #[test]
    fn json_and_csv() {
        for format in ["json", "csv"] {
            let run = |file| run(&["inspect", file, "--format", format]);
            assert_snapshot!(format!("inspect_bare_{format}"), run("npy/scalar_float32.npy"));
            let every_dtype = "safetensors/every_dtype.safetensors";
            assert_snapshot!(format!("inspect_every_dtype_{format}"), run(every_dtype));
            assert_snapshot!(format!("inspect_opaque_{format}"), run("pt/opaque.pt"));
            let no_tensors = "safetensors/no_tensors.safetensors";
            assert_snapshot!(format!("inspect_no_tensors_{format}"), run(no_tensors));
        }
    }

    #[test]
    fn nan_and_inf() {
        let directory = TempDir::new().unwrap();
        let mixed = Tensor::f32(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.5]);
        let infinite = Tensor::f32(&[f32::INFINITY, 2.0]);
        let fine = Tensor::i32(&[1_000_000_007, 3, -5]);
        write_pt(&directory, "a.pt", &[("mixed", &mixed), ("infinite", &infinite), ("fine", &fine)]);
        assert_snapshot!("inspect_nan", run_in(&directory, &["inspect", "[TMP]/a.pt"]));
        assert_snapshot!("inspect_nan_json", run_in(&directory, &["inspect", "a.pt", "--format", "json"]));
        assert_snapshot!("inspect_nan_csv", run_in(&directory, &["inspect", "a.pt", "--format", "csv"]));
    }

    #[test]
    fn partly_unreadable() {
        assert_snapshot!("inspect_partly", run(&["inspect", "safetensors/unknown_dtypes.safetensors"]));
        assert_snapshot!("inspect_opaque", run(&["inspect", "pt/opaque.pt"]));
        let one = ["inspect", "pt/opaque.pt", "--tensor", "after"];
        assert_snapshot!("inspect_readable_of_opaque", run(&one));
    }

    #[test]
    fn names_from_a_hostile_hand() {
        let directory = TempDir::new().unwrap();
        let one = Tensor::f32(&[1.0]);
        let names = ["权重", "line\nbreak", "\u{1b}[31mred", "quote\",comma", ""];
        let tensors: Vec<(&str, &Tensor)> = names.iter().map(|name| (*name, &one)).collect();
        write_pt(&directory, "a.pt", &tensors);
        assert_snapshot!("inspect_names", run_in(&directory, &["inspect", "a.pt"]));
        assert_snapshot!("inspect_names_csv", run_in(&directory, &["inspect", "a.pt", "--format", "csv"]));
        let missing = ["inspect", "a.pt", "--tensor", "\u{1b}[31mblue\n"];
        assert_snapshot!("inspect_names_missing", run_in(&directory, &missing));
        let similar = ["inspect", "a.pt", "--tensor", "[31m"];
        assert_snapshot!("inspect_names_similar", run_in(&directory, &similar));
    }

    #[test]
    fn one_tensor() {
        let file = "pt/training.pt";
        let named = |name| run(&["inspect", file, "--tensor", name]);
        assert_snapshot!("tensor_found", named("model.1.weight"));
        assert_snapshot!("tensor_part_of_names", named("weight"));
        assert_snapshot!("tensor_same_last_part", named("module.model.0.exp_avg"));
        assert_snapshot!("tensor_unlike_any", named("lm_head"));
        let several = ["inspect", file, "--tensor", "rng_state", "--tensor", "model.0.bias"];
        assert_snapshot!("tensor_several", run(&several));
        assert_snapshot!("tensor_of_bare", run(&["inspect", "npy/c_int8.npy", "--tensor", "w"]));
    }

    #[test]
    fn what_cannot_be_read() {
        let directory = TempDir::new().unwrap();
        let run = |args: &[&str]| run_in(&directory, args);
        assert_snapshot!("missing", run(&["inspect", "[TMP]/nowhere.pt"]));
        assert_snapshot!("directory", run(&["inspect", "[TMP]"]));
        fs::write(directory.path().join("notes.txt"), "dear diary").unwrap();
        assert_snapshot!("text_file", run(&["inspect", "notes.txt"]));
        fs::write(directory.path().join("empty.pt"), "").unwrap();
        assert_snapshot!("empty_file", run(&["inspect", "empty.pt"]));
        write_npy(&directory, "a.npy", &Tensor::f32(&[1.0, 2.0, 3.0, 4.0]));
        write_pt(&directory, "a.pt", &[("w", &Tensor::f32(&[1.0, 2.0, 3.0, 4.0]))]);
        for name in ["a.npy", "a.pt"] {
            let path = directory.path().join(name);
            let whole = fs::read(&path).unwrap();
            fs::write(&path, &whole[..whole.len() - 5]).unwrap();
            assert_snapshot!(format!("truncated_{name}"), run(&["inspect", name]));
        }
    }

    #[test]
    fn code_in_a_file_is_refused() {
        for name in ["code_os_system", "code_in_build", "code_legacy"] {
            let output = msprobe(&hostile(), &["inspect", &format!("{name}.pt")]).output().unwrap();
            assert_snapshot!(name, transcript(&output));
        }
    }
}

mod diff {
    use super::*;

    /// `a.pt` and `b.pt`, which differ in every way two files can.
    fn different() -> TempDir {
        let directory = TempDir::new().unwrap();
        let same = Tensor::f32(&[1.0, f32::NAN, f32::INFINITY]);
        let plain = Tensor::f32(&[1.0, 2.0, 3.0]);
        let far = Tensor::f32(&[1.0, 2.0, 3.5]);
        let close = Tensor::f32(&[1.0, 2.0005, 3.0]);
        let wide = Tensor::f64(&[1.0, 2.0, 3.0]);
        let nan = Tensor::f32(&[1.0, f32::NAN, 3.0]);
        let infinite = Tensor::f32(&[1.0, 2.0, f32::NEG_INFINITY]);
        let square = Tensor::f32(&[1.0, 2.0, 3.0, 4.0]).reshaped(&[2, 2]);
        let flat = Tensor::f32(&[1.0, 2.0, 3.0, 4.0]);
        let turned = Tensor::f32(&[1.0, 2.0, 3.0, -4.0]).reshaped(&[2, 2]);
        let target = [
            ("same", &same),
            ("close", &close),
            ("far", &far),
            ("dtype", &plain),
            ("nan", &nan),
            ("inf", &plain),
            ("shape", &square),
            ("matrix", &turned),
            ("only_a", &plain),
        ];
        let golden = [
            ("only_b", &plain),
            ("matrix", &square),
            ("shape", &flat),
            ("inf", &infinite),
            ("nan", &plain),
            ("dtype", &wide),
            ("far", &plain),
            ("close", &plain),
            ("same", &same),
        ];
        write_pt(&directory, "a.pt", &target);
        write_pt(&directory, "b.pt", &golden);
        directory
    }

    #[test]
    fn same() {
        let files = ["diff", "pt/training.pt", "pt/legacy_training.pt"];
        assert_snapshot!("diff_same", run(&files));
        assert_snapshot!("diff_same_json", run(&[&files[..], &["--format", "json", "--top", "1"]].concat()));
        assert_snapshot!("diff_same_csv", run(&[&files[..], &["--format", "csv", "--top", "1"]].concat()));
        assert_snapshot!("diff_empty", run(&["diff", "npy/empty.npy", "npy/empty_f.npy"]));
        let nothing = "safetensors/no_tensors.safetensors";
        assert_snapshot!("diff_no_tensors", run(&["diff", nothing, nothing]));
    }

    #[test]
    fn different_in_every_way() {
        let directory = different();
        let run = |args: &[&str]| run_in(&directory, &[&["diff", "[TMP]/a.pt", "[TMP]/b.pt"], args].concat());
        assert_snapshot!("diff_all", run(&[]));
        assert_snapshot!("diff_all_json", run(&["--format", "json"]));
        assert_snapshot!("diff_all_csv", run(&["--format", "csv"]));
        assert_snapshot!("diff_top", run(&["--top", "3"]));
        assert_snapshot!("diff_top_zero", run(&["--top", "0"]));
        assert_snapshot!("diff_top_plenty", run(&["--top", "100", "--tensor", "far"]));
        for name in ["same", "close", "far", "dtype", "nan", "inf", "shape", "matrix", "only_a", "only_b"] {
            assert_snapshot!(format!("diff_one_{name}"), run(&["--tensor", name]));
        }
        assert_snapshot!("diff_two", run(&["--tensor", "close", "--tensor", "far"]));
    }

    #[test]
    fn lone_tensors_are_paired_whatever_their_names_and_formats() {
        let directory = TempDir::new().unwrap();
        let (a, b) = (Tensor::f32(&[1.0, 2.0, 0.0]), Tensor::f32(&[1.0, 2.0, 3.0]));
        write_npy(&directory, "a.npy", &a);
        write_pt(&directory, "b.pt", &[("weight", &b)]);
        write_pt(&directory, "c.pt", &[("bias", &a)]);
        assert_snapshot!("diff_bare_to_named", run_in(&directory, &["diff", "a.npy", "b.pt"]));
        assert_snapshot!("diff_two_names", run_in(&directory, &["diff", "c.pt", "b.pt"]));
        assert_snapshot!("diff_formats_same", run_in(&directory, &["diff", "a.npy", "c.pt"]));
    }

    #[test]
    fn unreadable() {
        assert_snapshot!("diff_opaque", run(&["diff", "pt/opaque.pt", "pt/opaque.pt"]));
        assert_snapshot!("diff_missing_a", run(&["diff", "nowhere.pt", "pt/empty.pt"]));
        assert_snapshot!("diff_missing_b", run(&["diff", "pt/empty.pt", "nowhere.pt"]));
        let hostile = path_text(&hostile()).to_owned();
        let shown = run(&["diff", "npy/c_int8.npy", &format!("{hostile}/code_os_system.pt")]);
        assert_snapshot!("diff_hostile", shown.replace(&hostile, "[HOSTILE]"));
    }
}

mod streams {
    use super::*;

    #[test]
    fn no_escape_codes_without_a_terminal() {
        let diff = ["diff", "npy/c_float32.npy", "npy/c_float64.npy"];
        let plain = msprobe(&fixtures(), &diff).output().unwrap();
        for (variable, value) in [("NO_COLOR", "1"), ("NO_COLOR", ""), ("TERM", "xterm-256color")] {
            for args in [&diff[..], &["inspect", "nowhere"], &["--help"], &["wrong"]] {
                let output = msprobe(&fixtures(), args).env(variable, value).output().unwrap();
                assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{args:?}");
            }
            let output = msprobe(&fixtures(), &diff).env(variable, value).output().unwrap();
            assert_eq!(output.stdout, plain.stdout);
        }
    }

    #[test]
    fn the_log_follows_its_variable() {
        let log = |level: &str| {
            let mut command = msprobe(&fixtures(), &["inspect", "npy/c_int8.npy"]);
            let output = command.env("MSPROBE_LOG_LEVEL", level).output().unwrap();
            assert_eq!(output.status.code(), Some(0));
            (output.stdout, String::from_utf8(output.stderr).unwrap())
        };
        let (stdout, debug) = log("0");
        let stamp = r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d+\) ";
        insta::with_settings!({filters => vec![(stamp, "[TIME] ([PID]) ")]}, {
            assert_snapshot!("log_debug", debug);
        });
        for level in ["1", "2", "3", "4", "", "loud"] {
            assert_eq!(log(level), (stdout.clone(), String::new()), "{level}");
        }
    }

    #[test]
    fn errors_are_said_even_when_the_log_is_silent() {
        let mut command = msprobe(&fixtures(), &["inspect", "nowhere.npy"]);
        let output = command.env("MSPROBE_LOG_LEVEL", "4").output().unwrap();
        assert_snapshot!("error_in_silence", transcript(&output));
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let directory = TempDir::new().unwrap();
        let one = Tensor::f32(&[1.0]);
        let names: Vec<String> = (0..5000).map(|index| format!("layers.{index}.weight")).collect();
        let tensors: Vec<(&str, &Tensor)> = names.iter().map(|name| (name.as_str(), &one)).collect();
        write_pt(&directory, "many.pt", &tensors);
        for args in [&["inspect", "many.pt"][..], &["diff", "many.pt", "many.pt"]] {
            for format in ["text", "json", "csv"] {
                let mut command = msprobe(directory.path(), &[args, &["--format", format]].concat());
                let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
                drop(child.stdout.take());
                let mut stderr = String::new();
                child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
                let code = child.wait().unwrap().code();
                assert_eq!((code, stderr.as_str()), (Some(0), ""), "{args:?} {format}");
            }
        }
    }

    #[test]
    fn a_full_disk_is_a_failure() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = msprobe(&fixtures(), &["inspect", "npy/c_int8.npy"]);
        let child = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        assert_snapshot!("disk_full", transcript(&child.wait_with_output().unwrap()));
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let run = |threads: &str| {
            let mut command = msprobe(&fixtures(), &["inspect", "pt/training.pt", "--format", "csv"]);
            command.env("RAYON_NUM_THREADS", threads).output().unwrap().stdout
        };
        assert_eq!(run("1"), run("7"));
    }
}
