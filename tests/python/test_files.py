"""Tensor files: what other libraries write is read bit by bit, and what is written here they read back."""

from __future__ import annotations

import collections
import os
import pickle
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from msprobe import _native
from msprobe.core.common.exceptions import CodedException, FileCheckException, TensorFileError
from msprobe.core.tensor import save_npy, save_pt
from tests.python.samples import (
    FLOAT8,
    NUMPY_DTYPES,
    NUMPY_LAYOUTS,
    SHAPE,
    TORCH_DTYPES,
    TORCH_LAYOUTS,
    numpy_bytes,
    numpy_values,
    torch_bytes,
    torch_values,
)

SAFETENSORS_DTYPES = [dtype for dtype in TORCH_DTYPES if dtype != "complex128"]
KINDS = {"normal": TORCH_DTYPES, "nan": ["float16", "bfloat16", "float32", "float64", *FLOAT8, "complex64"]}
ZIP = [pytest.param(True, id="zip"), pytest.param(False, id="legacy")]


def sample(dtype: str) -> Any:
    return torch_values(dtype, "normal").reshape(SHAPE)


def read(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    return {name: _native.read_tensor(path, name) for name in _native.tensor_names(path)}


def described(tensor: Any) -> tuple[str, list[int], bytes]:
    return str(tensor.dtype).removeprefix("torch."), list(tensor.shape), torch_bytes(tensor)


class TestReading:
    @pytest.mark.parametrize("zipped", ZIP)
    @pytest.mark.parametrize("dtype", TORCH_DTYPES)
    def test_torch_bare_in_every_layout(self, tmp_path: Path, dtype: str, zipped: bool) -> None:
        for layout, view in TORCH_LAYOUTS.items():
            path = tmp_path / f"{layout}.pt"
            tensor = view(sample(dtype))
            torch.save(tensor, path, _use_new_zipfile_serialization=zipped)
            assert read(path) == {"": described(tensor)}

    @pytest.mark.parametrize("zipped", ZIP)
    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_torch_nested(self, tmp_path: Path, protocol: int, zipped: bool) -> None:
        shared = sample("float32")
        tree = {
            "model": collections.OrderedDict([("w", shared), ("b.c", sample("bfloat16"))]),
            "list": [sample("int8"), {"deep": (sample("complex64"), 1, "text", None)}],
            "tied": shared.t(),
            7: sample("bool"),
            "step": 12,
            "parameter": torch.nn.Parameter(sample("float16")),
            "numpy": np.arange(6, dtype="float64").reshape(2, 3),
        }
        torch.save(tree, tmp_path / "a.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
        assert read(tmp_path / "a.pt") == {
            "model.w": described(shared),
            "model.b.c": described(sample("bfloat16")),
            "list.0": described(sample("int8")),
            "list.1.deep.0": described(sample("complex64")),
            "tied": described(shared.t()),
            "7": described(sample("bool")),
            "parameter": described(sample("float16")),
            "numpy": ("float64", [2, 3], np.arange(6.0).tobytes()),
        }

    @pytest.mark.parametrize("zipped", ZIP)
    def test_torch_state_dict_and_optimizer(self, tmp_path: Path, zipped: bool) -> None:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.randn(5, 4)).sum().backward()
        optimizer.step()
        path = tmp_path / "ckpt.pth"
        torch.save(model.state_dict(), path, _use_new_zipfile_serialization=zipped)
        assert read(path) == {name: described(tensor) for name, tensor in model.state_dict().items()}
        checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
        torch.save(checkpoint, path, _use_new_zipfile_serialization=zipped)
        expected = {f"model.{name}": described(tensor) for name, tensor in model.state_dict().items()}
        for index, state in optimizer.state_dict()["state"].items():
            expected |= {f"optimizer.state.{index}.{key}": described(value) for key, value in state.items()}
        assert read(path) == expected

    @pytest.mark.parametrize("layout", NUMPY_LAYOUTS)
    @pytest.mark.parametrize("dtype", NUMPY_DTYPES)
    def test_numpy(self, tmp_path: Path, dtype: str, layout: str) -> None:
        array = NUMPY_LAYOUTS[layout](numpy_values(dtype, "normal").reshape(SHAPE))
        expected = {"": (dtype, list(array.shape), numpy_bytes(array))}
        np.save(tmp_path / "a.npy", array)
        assert read(tmp_path / "a.npy") == expected
        for version in [(1, 0), (2, 0), (3, 0)]:
            with (tmp_path / "v.npy").open("wb") as out:
                np.lib.format.write_array(out, array, version=version)
            assert read(tmp_path / "v.npy") == expected

    def test_safetensors(self, tmp_path: Path) -> None:
        tensors = {dtype: sample(dtype) for dtype in SAFETENSORS_DTYPES}
        tensors |= {"zero_d": torch.tensor(1.5), "empty": torch.empty(0, 3), "层.权重": sample("float32")}
        safetensors.torch.save_file(tensors, tmp_path / "a.safetensors", metadata={"format": "pt"})
        assert read(tmp_path / "a.safetensors") == {name: described(t) for name, t in tensors.items()}

    def test_content_decides_not_the_name(self, tmp_path: Path) -> None:
        torch.save(torch.ones(2), tmp_path / "torch.npy")
        np.save(tmp_path / "numpy.npy", np.ones(2, "f4"))
        (tmp_path / "numpy.npy").rename(tmp_path / "numpy.pt")
        assert read(tmp_path / "torch.npy") == read(tmp_path / "numpy.pt")


class TestWriting:
    @pytest.mark.parametrize("layout", TORCH_LAYOUTS)
    @pytest.mark.parametrize("dtype", TORCH_DTYPES)
    def test_pt(self, tmp_path: Path, dtype: str, layout: str) -> None:
        path = tmp_path / "a.pt"
        for kind in ["normal", "nan"] if dtype in KINDS["nan"] else ["normal"]:
            tensor = TORCH_LAYOUTS[layout](torch_values(dtype, kind).reshape(SHAPE))
            save_pt(path, tensor)
            for options in [{"weights_only": True}, {"weights_only": True, "mmap": True}]:
                assert described(torch.load(path, **options)) == described(tensor)
            assert read(path) == {"": described(tensor)}

    @pytest.mark.parametrize("layout", TORCH_LAYOUTS)
    @pytest.mark.parametrize("dtype", TORCH_DTYPES)
    def test_npy_from_torch(self, tmp_path: Path, dtype: str, layout: str) -> None:
        tensor = TORCH_LAYOUTS[layout](sample(dtype))
        save_npy(tmp_path / "a.npy", tensor)
        assert read(tmp_path / "a.npy") == {"": described(tensor)}
        if dtype in NUMPY_DTYPES:
            loaded = np.load(tmp_path / "a.npy")
            assert (loaded.dtype.name, list(loaded.shape), loaded.tobytes()) == described(tensor)
            assert np.load(tmp_path / "a.npy", mmap_mode="r").tobytes() == torch_bytes(tensor)

    @pytest.mark.parametrize("layout", NUMPY_LAYOUTS)
    @pytest.mark.parametrize("dtype", NUMPY_DTYPES)
    def test_from_numpy(self, tmp_path: Path, dtype: str, layout: str) -> None:
        array = NUMPY_LAYOUTS[layout](numpy_values(dtype, "normal").reshape(SHAPE))
        save_npy(str(tmp_path / "a.npy"), array)
        loaded = np.load(tmp_path / "a.npy")
        assert (loaded.dtype, loaded.shape, loaded.tobytes()) == (
            np.dtype(dtype),
            array.shape,
            numpy_bytes(array),
        )
        save_pt(str(tmp_path / "a.pt"), array)
        assert described(torch.load(tmp_path / "a.pt")) == (dtype, list(array.shape), numpy_bytes(array))

    def test_npy_is_what_numpy_writes(self, tmp_path: Path) -> None:
        for dtype in NUMPY_DTYPES:
            array = numpy_values(dtype, "normal").reshape(SHAPE)
            np.save(tmp_path / "numpy.npy", array)
            save_npy(tmp_path / "ours.npy", array)
            assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()

    def test_dict(self, tmp_path: Path) -> None:
        tensors = {
            f"{dtype}.{layout}": view(sample(dtype))
            for dtype in TORCH_DTYPES
            for layout, view in TORCH_LAYOUTS.items()
        }
        tensors["numpy"] = np.arange(3.0)[::-1]
        tensors["层.权重"] = torch.tensor(2)
        save_pt(tmp_path / "a.pt", tensors)
        for options in [{}, {"mmap": True}]:
            loaded = torch.load(tmp_path / "a.pt", weights_only=True, **options)
            assert list(loaded) == list(tensors)
            assert loaded.pop("numpy").tolist() == [2.0, 1.0, 0.0]
            assert all(described(loaded[name]) == described(tensors[name]) for name in loaded)
        save_pt(tmp_path / "a.pt", {})
        assert torch.load(tmp_path / "a.pt", weights_only=True) == {}
        assert _native.tensor_names(tmp_path / "a.pt") == []

    def test_state_dicts_load_into_modules(self, tmp_path: Path) -> None:
        source, twin = torch.nn.Linear(5, 4), torch.nn.Linear(5, 4)
        save_pt(tmp_path / "a.pt", source.state_dict())
        twin.load_state_dict(torch.load(tmp_path / "a.pt", weights_only=True))
        assert torch.equal(source.weight, twin.weight)

    def test_large(self, tmp_path: Path) -> None:
        tensor = torch.arange(3_000_000, dtype=torch.float32).reshape(3000, 1000).t()
        save_pt(tmp_path / "a.pt", tensor)
        assert torch.equal(torch.load(tmp_path / "a.pt"), tensor)
        save_npy(tmp_path / "a.npy", tensor)
        assert np.array_equal(np.load(tmp_path / "a.npy"), tensor.numpy())


class TestWholeOrNotAtAll:
    @pytest.mark.parametrize("save", [save_npy, save_pt])
    def test_missing_directory(self, tmp_path: Path, save: Any) -> None:
        path = tmp_path / "nowhere" / "a"
        with pytest.raises(FileNotFoundError) as raised:
            save(path, np.ones(3))
        assert raised.value.filename == str(path)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("save", [save_npy, save_pt])
    def test_a_directory_in_the_way(self, tmp_path: Path, save: Any) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "keep").touch()
        with pytest.raises(OSError, match="directory") as raised:
            save(tmp_path / "a", np.ones(3))
        assert raised.value.filename == str(tmp_path / "a")
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    @pytest.mark.parametrize("save", [save_npy, save_pt])
    def test_a_disk_that_fills_up_on_the_way(self, tmp_path: Path, save: Any) -> None:
        save(tmp_path / "a", np.ones(3))
        before = (tmp_path / "a").read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large") as raised:
                save(tmp_path / "a", np.ones(1_000_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert raised.value.filename == str(tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    @pytest.mark.parametrize("save", [save_npy, save_pt])
    def test_a_tensor_that_cannot_be_written(self, tmp_path: Path, save: Any) -> None:
        with pytest.raises(TypeError, match="unsupported dtype"):
            save(tmp_path / "a", np.array(["text"]))
        assert list(tmp_path.iterdir()) == []

    def test_the_old_file_stays_until_the_new_one_is_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "a.pt"
        save_pt(path, {"old": np.ones(3)})
        with pytest.raises(TypeError):
            save_pt(path, {"fine": np.ones(3), "bad": "text"})
        assert _native.tensor_names(path) == ["old"]
        with path.open("rb") as still_open:
            save_pt(path, {"new": np.zeros(3)})
            assert b"old" in still_open.read()
        assert _native.tensor_names(path) == ["new"]
        assert [found.name for found in tmp_path.iterdir()] == ["a.pt"]


class Hostile:
    def __init__(self, marker: Path) -> None:
        self.command = f"touch {marker}"

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


class TestErrors:
    def test_missing_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a.pt"
        for call in (lambda: _native.tensor_names(path), lambda: _native.read_tensor(path, "w")):
            with pytest.raises(TensorFileError, match="cannot open") as raised:
                call()
            error = raised.value
            assert isinstance(error, (FileCheckException, CodedException))
            assert (error.code, error.path, error.tensor) == (0, str(path), None)
            assert error.hint == "check the path for a spelling mistake"
            assert str(error).endswith(f"\nhint: {error.hint}")
            assert str(path) in str(error)

    def test_truncated_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npy"
        np.save(path, np.ones(100))
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(TensorFileError, match="truncated") as raised:
            _native.tensor_names(path)
            _native.read_tensor(path, "")
        assert raised.value.hint is not None
        assert "cut short" in raised.value.hint

    def test_one_tensor_of_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a.pt"
        torch.save({"sparse": torch.eye(3).to_sparse(), "dense": torch.eye(3)}, path)
        names = _native.tensor_names(path)
        assert "dense" in names
        assert _native.read_tensor(path, "dense") == described(torch.eye(3))
        (other,) = {name for name in names if name.startswith("sparse")}
        with pytest.raises(TensorFileError) as raised:
            _native.read_tensor(path, other)
        assert (raised.value.path, raised.value.tensor) == (str(path), other)
        assert raised.value.hint is not None

    def test_no_such_tensor(self, tmp_path: Path) -> None:
        save_pt(tmp_path / "a.pt", {"w": np.ones(2)})
        with pytest.raises(KeyError, match="has no tensor"):
            _native.read_tensor(tmp_path / "a.pt", "v")

    @pytest.mark.parametrize("zipped", ZIP)
    @pytest.mark.parametrize("nested", [False, True], ids=["bare", "nested"])
    def test_hostile_pickles_are_refused_not_run(self, tmp_path: Path, zipped: bool, nested: bool) -> None:
        marker, path = tmp_path / "marker", tmp_path / "a.pt"
        hostile: Any = Hostile(marker)
        if nested:
            hostile = {"w": torch.ones(3), "list": [hostile]}
        torch.save(hostile, path, _use_new_zipfile_serialization=zipped)
        with pytest.raises(TensorFileError, match="system") as raised:
            for name in _native.tensor_names(path):
                _native.read_tensor(path, name)
        assert raised.value.path == str(path)
        assert not marker.exists()
        # The file is what it pretends to be: an unpickler that trusts it runs it.
        torch.load(path, weights_only=False)
        assert marker.exists()

    def test_a_plain_pickle_is_no_tensor_file(self, tmp_path: Path) -> None:
        marker, path = tmp_path / "marker", tmp_path / "a.pkl"
        path.write_bytes(pickle.dumps(Hostile(marker)))
        with pytest.raises(TensorFileError):
            _native.tensor_names(path)
        assert not marker.exists()
