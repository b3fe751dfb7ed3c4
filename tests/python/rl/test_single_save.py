"""SingleSave by its rules: counters, layout, values, dtypes, errors."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from msprobe.core import SingleSave
from msprobe.core.common.exceptions import FileCheckException, MsprobeException
from msprobe.core.common.framework_adapter import FmkAdp, HostTensor
from msprobe.core.tensor import describe


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A saver of its own, and where it saves."""
    monkeypatch.setattr(SingleSave, "_instance", None)
    SingleSave(str(tmp_path / "dump"))
    yield tmp_path / "dump"
    SingleSave.flush()


def names(root: Path) -> list[str]:
    SingleSave.flush()
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def place(dump: Path, key: str, step: int = 0, micro_step: int = 0) -> Path:
    return dump / "data" / key / f"step{step}" / "rank0" / f"micro_step{micro_step}"


def figures(path: Path) -> Any:
    SingleSave.flush()
    return json.loads(path.read_text())["data"]


def test_nothing_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, msprobe.core\n"
        "assert 'SingleSave' in dir(msprobe.core) and 'SingleComparator' in msprobe.core.__all__\n"
        "assert 'msprobe.core.single_save' not in sys.modules\n"
        "from msprobe.core import SingleSave\n"
        "assert not {'torch', 'numpy', 'mindspore'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_layout_modes_and_attributes(dump: Path) -> None:
    saver = SingleSave("elsewhere", fmk="mindspore")
    assert saver is SingleSave._instance
    assert not Path("elsewhere").exists()
    assert (saver.dump_path, saver.rank, saver.step_count) == (str(dump), 0, 0)
    assert saver.tag_count == defaultdict(int) and isinstance(saver.tag_count, defaultdict)
    SingleSave.save({"response": torch.tensor([1.0, 2.0])})
    assert names(dump) == [f"data/response/step0/rank0/micro_step0/response.{end}" for end in ("json", "npy")]
    for path in [dump, *dump.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o750 if path.is_dir() else 0o640), path


def test_steps_and_micro_steps(dump: Path) -> None:
    tensor = torch.ones(2)
    SingleSave.save({"k": tensor, "other": tensor})
    SingleSave.save({"k": tensor})
    SingleSave.save({"k": 3})
    SingleSave.save({"k": tensor})
    SingleSave.step()
    SingleSave.save({"k": tensor})
    SingleSave.save_ex({"k": tensor}, micro_batch=7)
    SingleSave.save_ex({"flat": [tensor, tensor]})
    assert SingleSave._instance.tag_count == {"k": 1}
    expected = [f"data/k/step0/rank0/micro_step{n}/k" for n in (0, 1, 3)]
    expected += ["data/other/step0/rank0/micro_step0/other"]
    expected += [f"data/k/step1/rank0/micro_step{n}/k" for n in (0, 7)]
    arrays = [f"{name}.npy" for name in expected]
    arrays += [f"data/flat/step1/rank0/flat.{n}.npy" for n in (0, 1)]
    jsons = [f"{name}.json" for name in expected] + ["data/flat/step1/rank0/flat.json"]
    assert names(dump) == sorted(arrays + jsons)


def test_a_list_of_twelve(dump: Path) -> None:
    SingleSave.save({"k": [torch.full((2,), float(n)) for n in range(12)]})
    at = place(dump, "k")
    assert [record["max"] for record in figures(at / "k.json")] == list(range(12))
    assert [np.load(at / f"k.{n}.npy").tolist() for n in range(12)] == [[n, n] for n in range(12)]


def test_dicts_are_saved_by_their_keys(dump: Path) -> None:
    SingleSave.save({"d": {"b": torch.ones(1), 1: torch.zeros(()), None: torch.ones(2)}, "e": {}, "l": []})
    text = (place(dump, "d") / "d.json").read_text() if names(dump) else ""
    assert list(json.loads(text)["data"]) == ["b", "1", "null"]
    assert {path.name for path in place(dump, "d").iterdir()} == {
        "d.json",
        "d.b.npy",
        "d.1.npy",
        "d.None.npy",
    }
    assert (place(dump, "e") / "e.json").read_text() == '{\n    "data": {}\n}'
    assert (place(dump, "l") / "l.json").read_text() == '{\n    "data": []\n}'
    with pytest.raises(RuntimeError, match=r"^Save json file .*micro_step1/d\.json failed\.$"):
        SingleSave.save({"d": {Path("x"): torch.ones(1)}})


ALL_DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def sample(dtype: str, seed: int = 0) -> torch.Tensor:
    values = torch.randn(7, 5, generator=torch.Generator().manual_seed(seed)) * 50
    return (values.abs() if dtype.startswith("u") else values).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_every_dtype_is_stored_as_float32(dump: Path, dtype: str) -> None:
    tensor = sample(dtype)
    SingleSave.save({"k": tensor})
    stored = np.load(place(dump, "k") / "k.npy") if names(dump) else np.zeros(0)
    expected = (tensor.real if tensor.is_complex() else tensor).float()
    assert stored.dtype == np.dtype("<f4") and stored.flags.c_contiguous
    assert stored.tobytes() == expected.contiguous().numpy().tobytes()
    record = figures(place(dump, "k") / "k.json")
    assert list(record) == ["max", "min", "mean", "norm", "shape"]
    measured = tensor if dtype in ("float16", "bfloat16") else expected
    limit = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 1e-6)
    assert [record["max"], record["min"]] == [float(measured.max()), float(measured.min())]
    assert record["mean"] == pytest.approx(float(measured.mean()), rel=limit, abs=1e-6)
    assert record["norm"] == pytest.approx(float(measured.norm()), rel=limit)
    if dtype in ("float16", "bfloat16"):
        for figure in ("mean", "norm"):
            assert float(torch.tensor(record[figure], dtype=tensor.dtype)) == record[figure]


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_native_dtype_keeps_every_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    monkeypatch.setattr(SingleSave, "_instance", None)
    SingleSave(str(tmp_path / "dump"), native_dtype=True)
    tensor = sample(dtype).t()
    SingleSave.save({"k": [tensor]})
    record = figures(place(tmp_path / "dump", "k") / "k.json")[0]
    assert list(record) == ["max", "min", "mean", "norm", "shape", "dtype"]
    assert (record["shape"], record["dtype"]) == ([5, 7], dtype)
    stored = np.load(place(tmp_path / "dump", "k") / "k.0.npy")
    plain = tensor.contiguous()
    expected = plain.view(torch.int16).numpy() if dtype == "bfloat16" else plain.numpy()
    assert stored.shape == (5, 7) and stored.tobytes() == expected.tobytes()
    assert stored.dtype == (np.dtype("V2") if dtype == "bfloat16" else expected.dtype)


def test_what_float32_cannot_hold(dump: Path) -> None:
    SingleSave.save({"i": torch.tensor([2**24 + 1]), "d": torch.tensor([1e300, 1.0], dtype=torch.float64)})
    SingleSave.flush()
    assert np.load(place(dump, "i") / "i.npy").tolist() == [2.0**24]
    assert np.load(place(dump, "d") / "d.npy").tolist() == [np.inf, 1.0]
    text = (place(dump, "d") / "d.json").read_text()
    assert '"max": Infinity' in text and '"norm": Infinity' in text


def test_views_and_gradients(dump: Path) -> None:
    base = torch.arange(24.0).reshape(2, 3, 4)
    tensors = {
        "transposed": base.permute(2, 0, 1),
        "strided": base[:, ::2, 1:3],
        "broadcast": torch.tensor(2.5).expand(3, 2),
        "gradient": (base * 2).requires_grad_().sum(0),
        "parameter": torch.nn.Parameter(base[0]),
        "scalar": torch.tensor(-3.0),
        "conjugated": torch.tensor([1 + 2j, 3 - 4j]).conj(),
        "negated": torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
    }
    SingleSave.save(tensors)
    SingleSave.flush()
    for key, tensor in tensors.items():
        stored = np.load(place(dump, key) / f"{key}.npy")
        expected = tensor.detach().resolve_conj().resolve_neg()
        expected = expected.real if expected.is_complex() else expected
        np.testing.assert_array_equal(stored, expected.numpy(), err_msg=key)
    scalar = figures(place(dump, "scalar") / "scalar.json")
    assert scalar == {"max": -3.0, "min": -3.0, "mean": -3.0, "norm": 3.0, "shape": []}


def test_what_is_saved_is_what_was_there(dump: Path) -> None:
    tensors = [torch.full((300_000,), float(n)) for n in range(8)]
    SingleSave.save({"k": tensors})
    for tensor in tensors:
        tensor.fill_(-1.0)
    SingleSave.flush()
    for n in range(8):
        stored = np.load(place(dump, "k") / f"k.{n}.npy")
        assert stored.shape == (300_000,) and bool((stored == n).all())


def test_a_tensor_of_a_device_is_copied_once(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came from a device is in memory that only the saver has: it is kept as it is."""
    host = torch.arange(6.0).reshape(2, 3).t()
    monkeypatch.setattr(FmkAdp, "on_host", lambda tensor: HostTensor(describe(tensor), is_own=True))
    SingleSave.save({"k": host})
    SingleSave.flush()
    assert np.load(place(dump, "k") / "k.npy").tolist() == host.tolist()
    with pytest.raises(RuntimeError, match=r"^max\(\): Expected reduction dim"):
        SingleSave.save({"empty": torch.zeros(0, 3)})


def test_order_is_kept_and_files_bear_the_time_of_their_save(dump: Path) -> None:
    for n in range(20):
        SingleSave.save({f"k{19 - n}": torch.full((5000,), float(n))})
    SingleSave.flush()
    times = [(place(dump, f"k{19 - n}") / f"k{19 - n}.npy").stat().st_mtime_ns for n in range(20)]
    assert times == sorted(times)
    at = place(dump, "k0")
    assert (at / "k0.json").stat().st_mtime_ns == (at / "k0.npy").stat().st_mtime_ns


def test_values_that_raise(dump: Path) -> None:
    with pytest.raises(TypeError, match=r"^SingleSave: Unsupported type: <class 'int'>$"):
        SingleSave.save({"k": [torch.ones(1), 3, torch.ones(1)]})
    # What came before is there, without waiting for it.
    assert sorted(path.name for path in place(dump, "k").iterdir()) == ["k.0.npy"]
    assert SingleSave._instance.tag_count["k"] == 0
    with pytest.raises(TypeError, match=r"<class 'list'>$"):
        SingleSave.save({"a": {"x": [torch.ones(1)]}, "later": torch.ones(1)})
    with pytest.raises(RuntimeError, match=r"^max\(\): Expected reduction dim to be specified"):
        SingleSave.save({"empty": torch.ones(0)})
    assert place(dump, "empty").is_dir() and not list(place(dump, "empty").iterdir())
    assert not (dump / "data/later").exists()


@pytest.mark.parametrize("key", ["with space", "中", "a:b", "k\n"])
def test_keys_with_special_characters(dump: Path, key: str) -> None:
    with pytest.raises(FileCheckException) as caught:
        SingleSave.save({key: torch.ones(1)})
    assert caught.value.code == FileCheckException.ILLEGAL_PATH_ERROR
    assert str(caught.value) == (
        f"[msprobe] 非法文件路径： The file path {place(dump, key)} contains special characters."
    )
    assert not (dump / "data").exists()
    with pytest.raises(FileCheckException, match=r"d\.a b\.npy contains special characters\.$"):
        SingleSave.save({"d": {"a b": torch.ones(1)}})


def test_keys_that_lead_elsewhere(dump: Path) -> None:
    with pytest.raises(RuntimeError, match=r"^Save numpy file .*/micro_step0/actor/loss\.npy failed\.$"):
        SingleSave.save({"actor/loss": torch.ones(1)})
    assert (dump / "data/actor/loss/step0/rank0/micro_step0").is_dir()
    with pytest.raises(RuntimeError, match=r"^Save json file .*/micro_step0/actor/list\.json failed\.$"):
        SingleSave.save({"actor/list": []})
    for key in ("../k", "/k", "a/../../../k"):
        with pytest.raises(FileCheckException, match="leads out of"):
            SingleSave.save({key: torch.ones(1)})
    with pytest.raises(FileCheckException) as caught:
        SingleSave.save({"k" * 300: torch.ones(1)})
    assert caught.value.code == FileCheckException.ILLEGAL_PATH_ERROR
    assert str(caught.value).endswith("The file path length exceeds limit.") or "k" * 300 in str(caught.value)


def test_skipped_values_are_warned_about(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SingleSave.save([torch.ones(1)])
    SingleSave.save_ex(None)
    SingleSave.save({5: torch.ones(1)})
    for value in (1, 1.5, "text", None, np.ones(2)):
        SingleSave.save({"k": value})
    printed = capsys.readouterr().out
    assert printed.count("[WARNING] SingleSave data type not valid, should be dict. Skip current") == 2
    assert printed.count("[WARNING] key should be string when save data") == 1
    assert (
        printed.count("[WARNING] value should be (<class 'list'>, <class 'tuple'>, <class 'dict'>) or") == 5
    )
    assert SingleSave._instance.tag_count == {5: 1, "k": 5}
    assert names(dump) == []


def test_saving_again_replaces(dump: Path) -> None:
    SingleSave.save_ex({"k": [torch.zeros(3), torch.zeros(3)]}, micro_batch=0)
    SingleSave.save_ex({"k": [torch.ones(2)]}, micro_batch=0)
    SingleSave.flush()
    at = place(dump, "k")
    assert np.load(at / "k.0.npy").tolist() == [1.0, 1.0]
    assert np.load(at / "k.1.npy").tolist() == [0.0, 0.0, 0.0]
    assert len(figures(at / "k.json")) == 1


class TestConstructor:
    """The first call, and what goes wrong with it."""

    @pytest.fixture(autouse=True)
    def fresh(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SingleSave, "_instance", None)

    def test_a_wrong_framework_leaves_nothing_behind(self, tmp_path: Path) -> None:
        text = r"^init framework adapter error, not in \['pytorch', 'mindspore'\]$"
        with pytest.raises(Exception, match=text) as caught:
            SingleSave(str(tmp_path / "dump"), fmk="jax")
        assert type(caught.value) is Exception
        assert SingleSave._instance is None
        assert SingleSave(str(tmp_path / "dump")).dump_path == str(tmp_path / "dump")

    def test_a_path_is_needed(self) -> None:
        with pytest.raises(TypeError):
            SingleSave()  # type: ignore[call-arg]

    def test_use_before_construction(self) -> None:
        with pytest.raises(AttributeError):
            SingleSave.save({"k": torch.ones(1)})
        with pytest.raises(AttributeError):
            SingleSave.step()
        with pytest.raises(AttributeError):
            SingleSave.flush()
        with pytest.raises(AttributeError):
            SingleSave.save_config({})

    def test_paths_that_cannot_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        (tmp_path / "link").symlink_to(tmp_path)
        for name, code in (("a b", 3), ("link", 2), ("file", 0), ("x" * 300, 3)):
            with pytest.raises(FileCheckException) as caught:
                SingleSave(str(tmp_path / name))
            assert caught.value.code == code, name
            assert SingleSave._instance is None
        with pytest.raises(MsprobeException):
            SingleSave(str(tmp_path / "/".join("x" * 17)))
        assert SingleSave(str(tmp_path / "/".join("y" * 16))).rank == 0


class TestConfig:
    """``configurations.json``."""

    def test_text_and_mode(self, dump: Path) -> None:
        SingleSave.save_config({"b": {"a": "中"}, "a": [1, None, 1.5]})
        path = dump / "configurations.json"
        assert path.read_text() == json.dumps({"b": {"a": "中"}, "a": [1, None, 1.5]}, indent=4)
        assert "\\u4e2d" in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        SingleSave.save_config([1])
        assert names(dump) == ["configurations.json"]
        assert path.read_text() == "[\n    1\n]"

    def test_what_json_cannot_say(self, dump: Path) -> None:
        SingleSave.save_config({"a": 1})
        with pytest.raises(RuntimeError) as caught:
            SingleSave.save_config({"a": torch.float32})
        assert str(caught.value) == f"Save json file {dump}/configurations.json failed."
        assert names(dump) == ["configurations.json"]
        assert json.loads((dump / "configurations.json").read_text()) == {"a": 1}
