"""Is the operation named into which a fault was put? Real trainings, collected and compared."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .faults import check, score
from .faults.faults import all_cases
from .faults.generate import COMBINATIONS, generate
from .faults.score import Score

KEYS = [
    f"{case.name}-{level}-{task}"
    for level, task in COMBINATIONS
    for case in all_cases()
    if level in case.levels and task in case.tasks
]
# Of 30 faults, 28 have to be named right.
MOST = 28 / 30


class Corpus:
    """The dumps of all cases, and what the comparison said about them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries = {f"{e['case']}-{e['level']}-{e['task']}": e for e in generate(root)}
        self._scores: dict[str, Score] | None = None

    @property
    def scores(self) -> dict[str, Score]:
        if self._scores is None:
            done = score.score(self.root, list(self.entries.values()), score.binary())
            self._scores = {one.key: one for one in done}
        return self._scores


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    root = tmp_path_factory.mktemp("faults")
    yield Corpus(root)
    # More than a gigabyte, which pytest would keep for three more runs.
    shutil.rmtree(root)


def test_cases_are_many_and_of_many_models() -> None:
    faults = [case for case in all_cases() if case.is_fault]
    assert len(faults) >= 40
    for model in ("bert", "gpt2", "llama", "convnet", "former", "split"):
        assert sum(case.model == model for case in faults) >= 3
    assert sum(case.expected.direction == "backward" for case in faults) >= 8


@pytest.mark.parametrize("key", KEYS)
def test_corpus_is_what_it_says(corpus: Corpus, key: str) -> None:
    """Up to the injected place the two sides are the same, and there they are not."""
    ok, text = check.report(corpus.root, corpus.entries[key])
    assert ok, text


@pytest.mark.parametrize("case", ["clean_bert_threads", "clean_former_threads"])
def test_threads_change_bits(corpus: Corpus, case: str) -> None:
    """Otherwise these pairs would show nothing that identical runs do not."""
    entry = corpus.entries[f"{case}-mix-tensor"]
    golden, target = (
        corpus.root / entry[side] / "step0/rank/dump_tensor_data" for side in ("golden", "target")
    )
    names = sorted(path.name for path in golden.iterdir())
    assert names == sorted(path.name for path in target.iterdir())
    assert any((golden / name).read_bytes() != (target / name).read_bytes() for name in names)


@pytest.mark.parametrize("key", KEYS)
def test_verdict(corpus: Corpus, key: str) -> None:
    one = corpus.scores[key]
    assert one.ok, f"{one.wrong}\nexpected {one.entry['expected']}\ngot {one.verdict}"


@pytest.mark.parametrize("case", ["clean_bert_sdpa", "clean_bert_shifted", "clean_gpt2_identity"])
def test_other_calls_are_incomplete_unless_they_are_expected(corpus: Corpus, case: str) -> None:
    entry = corpus.entries[f"{case}-mix-statistics"]
    verdict = score.compare(corpus.root, entry, score.binary(), []).verdict
    assert verdict["status"] == "incomplete"
    assert verdict["incomplete"]["unpaired"]["count"] > 0


@pytest.mark.parametrize("level, task", COMBINATIONS)
def test_most_faults_are_named(corpus: Corpus, level: str, task: str) -> None:
    faults = [one for one in _of(corpus, level, task) if one.entry["is_fault"]]
    assert len(faults) >= 30
    assert sum(one.ok for one in faults) >= MOST * len(faults), score.table(
        [one for one in faults if not one.ok]
    )


@pytest.mark.parametrize("level, task", COMBINATIONS)
def test_no_false_alarm(corpus: Corpus, level: str, task: str) -> None:
    alarms = [one for one in _of(corpus, level, task) if not one.entry["is_fault"] and not one.ok]
    assert not alarms, score.table(alarms)


def _of(corpus: Corpus, level: str, task: str) -> list[Any]:
    return [one for one in corpus.scores.values() if (one.entry["level"], one.entry["task"]) == (level, task)]
