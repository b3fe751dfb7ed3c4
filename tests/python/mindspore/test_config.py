"""``config.json`` for MindSpore: the recorded cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msprobe.core.common.exceptions import MsprobeException

from .recorded import GOLDEN

CASES = json.loads((GOLDEN / "config_validation" / "cases.json").read_text())
VARIANTS = json.loads((GOLDEN / "graph_l2_config" / "variants.json").read_text())


def resolved(config: dict[str, Any], **arguments: Any) -> Any:
    from msprobe.mindspore.config import resolve
    from msprobe.mindspore.framework import MINDSPORE

    Path("config.json").write_text(json.dumps(config))
    return resolve(MINDSPORE, "config.json", **arguments)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_recorded_configuration(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "raises" in case:
        with pytest.raises(Exception) as caught:
            resolved(case["config"], **case["kwargs"])
        assert type(caught.value) is (MsprobeException if case["raises"] == "MsprobeException" else Exception)
        assert case["message"].rpartition("：")[2] in str(caught.value)
        return
    settings = resolved(case["config"], **case["kwargs"])
    expected = dict(case["ok"])
    if case["kwargs"].get("task"):
        # The reference reads the section of the argument, and then does the task of the file.
        expected.update(task=case["kwargs"]["task"], tensor_list="<absent>")
    native = settings.native
    found = {
        "task": settings.task,
        "level_ori": settings.level,
        "rank": native.rank,
        "step": native.step,
        "list": native.list,
        "scope": native.scope,
        "data_mode": native.data_mode,
        "file_format": settings.file_format,
        "overflow_nums": native.overflow_nums,
        "check_mode": settings.check_mode,
        "summary_mode": settings.summary_mode,
        "async_dump": native.async_dump,
        "tensor_list": "<absent>" if native.tensor_list is None else native.tensor_list,
    }
    assert found == expected
    assert Path(native.dump_path).is_absolute() and Path(native.dump_path).stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("case", VARIANTS, ids=range(len(VARIANTS)))
def test_recorded_files_of_static_graphs(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    from msprobe.mindspore.graph.kernel_dump import write_files

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MS_ACL_DUMP_CFG_PATH", "preset")
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", "")
    if "raises" in case:
        with pytest.raises(Exception) as caught:
            write_files(resolved(case["config"]), case["execution_mode"])
        assert type(caught.value).__name__ == case["raises"]
        assert case["message"] in str(caught.value)
        return
    settings = resolved(case["config"])
    write_files(settings, case["execution_mode"])
    directory = Path(settings.native.dump_path)
    shown = {
        path.name: json.loads(path.read_text().replace(str(directory), "<dump_path>"))
        for path in directory.iterdir()
    }
    assert shown == case["files"]
    for name, value in case["env"].items():
        ours = os.environ.get(name)
        assert (ours and ours.replace(str(directory), "<dump_path>")) == value
    for path in directory.iterdir():
        assert path.stat().st_mode & 0o777 == 0o640
        assert path.read_text().startswith('{\n    "common_dump_settings"')
