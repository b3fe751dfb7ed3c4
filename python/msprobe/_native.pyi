"""The Rust core. Only ``msprobe`` itself calls it; the public names are in ``msprobe.core``."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, ClassVar, Literal, Protocol, final

from msprobe.core.compare.options import Options
from msprobe.core.framework import Adapter, Framework
from msprobe.core.tensor import Described

_Path = str | PathLike[str]
# Config has an attribute of the name list.
_Names = list[str]
_Numbers = list[int]

__version__: str

def run_cli(argv: Sequence[str]) -> int: ...

@final
class Config:
    @property
    def task(self) -> str: ...
    @property
    def file_task(self) -> str: ...
    @property
    def level(self) -> str: ...
    @property
    def dump_path(self) -> str: ...
    @property
    def rank(self) -> _Numbers: ...
    @property
    def step(self) -> _Numbers: ...
    @property
    def scope(self) -> _Names: ...
    @property
    def list(self) -> _Names: ...
    @property
    def tensor_list(self) -> _Names | None: ...
    @property
    def data_mode(self) -> _Names: ...
    @property
    def summary_mode(self) -> str: ...
    @property
    def overflow_nums(self) -> int: ...
    @property
    def check_mode(self) -> str | None: ...
    @property
    def file_format(self) -> str | None: ...
    @property
    def enable_dataloader(self) -> bool: ...
    @property
    def async_dump(self) -> bool: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def is_deterministic(self) -> bool | None: ...
    @property
    def has_flight_recorder(self) -> bool: ...
    @property
    def input_gradients(self) -> bool: ...
    @property
    def sketch(self) -> bool: ...
    @property
    def online_run_ut(self) -> bool: ...
    @property
    def online_run_ut_recompute(self) -> bool: ...
    @property
    def nfs_path(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def tls_path(self) -> str: ...
    def wants_parameter(self, name: str) -> bool: ...
    def wants_step(self, step: int) -> bool: ...
    def ends_before(self, step: int) -> bool: ...
    def wants_rank(self, rank: int | None) -> bool: ...
    def with_dump_path(self, dump_path: str) -> Config: ...

def resolve_config(
    text: str, overrides_json: str, framework: Framework
) -> tuple[Config | None, list[tuple[str, str]], tuple[str, int | None, str] | None]: ...

@final
class GradientProbe:
    """Records gradients step by step, of any framework. Nothing raises because of a value or of the disk."""

    def __new__(cls, config: Config) -> GradientProbe: ...
    def begin(self, rank: int, step: int) -> GradientStep | None: ...
    def flush(self) -> None: ...
    def take_failure(self) -> str | None: ...

@final
class GradientStep:
    """A step of a gradient probe."""

    @property
    def csv_path(self) -> Path: ...
    @property
    def replaces(self) -> bool: ...
    def add(self, position: int, name: str, gradient: Described) -> str | None: ...
    def finish(self) -> None: ...

@final
class ApiCall:
    """A call of a wrapped function that has begun."""

@final
class ModuleCall:
    """A call of a module that has begun."""

@final
class ApiBackward:
    """The hook of an autograd node."""

    def __call__(self, grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> None: ...

@final
class ParameterHook:
    """The hook of a parameter's gradient."""

    def __call__(self, grad: Any) -> None: ...

@final
class LeafHook:
    """The hook of a tensor in a saved variable."""

    def __call__(self, grad: Any) -> None: ...

@final
class Kind:
    """How a value is encoded."""

    NULL: ClassVar[Kind]
    BOOL: ClassVar[Kind]
    INT: ClassVar[Kind]
    FLOAT: ClassVar[Kind]
    STR: ClassVar[Kind]
    SEQUENCE: ClassVar[Kind]
    NAMED_TUPLE: ClassVar[Kind]
    MAPPING: ClassVar[Kind]
    DATACLASS: ClassVar[Kind]
    TENSOR: ClassVar[Kind]
    SPECIAL_TENSOR: ClassVar[Kind]
    ARRAY: ClassVar[Kind]
    SIZE: ClassVar[Kind]
    DTYPE: ClassVar[Kind]
    SLICE: ClassVar[Kind]
    ELLIPSIS: ClassVar[Kind]
    RARE: ClassVar[Kind]

@final
class Collector:
    """A run that is being collected. No method raises because of a value that cannot be recorded."""

    def __new__(cls, config: Config, adapter: Adapter) -> Collector: ...
    # Functions
    def add_api(self, stem: str) -> int: ...
    def api_begin(
        self, api: int, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> ApiCall | None: ...
    def api_end(self, call: ApiCall, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None: ...
    def api_fail(self, call: ApiCall) -> None: ...
    def api_skip(self, api: int) -> None: ...
    def api_backward(self, call: ApiCall) -> ApiBackward: ...
    def watch_compiled(self) -> None: ...
    def watch_function_gradients(self, autograd: ModuleType) -> None: ...
    def collective_begun(
        self, call: ApiCall, args: tuple[Any, ...], kwargs: dict[str, Any], with_output: bool
    ) -> None: ...
    def collective_end(
        self, call: ApiCall, args: tuple[Any, ...], kwargs: dict[str, Any], is_last: bool
    ) -> None: ...
    def border_backward(
        self, api: int, index: int, serial: int | None, gradients: tuple[Any, ...]
    ) -> None: ...
    # Steps
    def open_step(
        self, dump_path: _Path, step: int, rank: int | None
    ) -> tuple[str | None, tuple[int, int] | None]: ...
    def has_step(self) -> bool: ...
    def flush(self) -> str | None: ...
    def unmeasured(self) -> str | None: ...
    def take_unmatched(self) -> list[str]: ...
    def end_step(self) -> None: ...
    def is_on_disk(self) -> bool: ...
    def check_flight(self, step: int) -> None: ...
    def write_flight(self, has_crashed: bool) -> int: ...
    def flight_holding(self) -> tuple[int, int, int]: ...
    def failure(self) -> str | None: ...
    def is_over(self) -> bool: ...
    def report(self, phase: str, name: str, error: BaseException) -> None: ...
    def set_phase(self, phase: str | None) -> None: ...
    def save_variable(self, variable: Any, name: str, save_backward: bool) -> None: ...

@final
class Modules:
    """All hooked modules of a run: their calls, and the gradients of their outputs, inputs and parameters.

    `window.open` says whether anything is recorded; `autograd` is `msprobe.pytorch.hooks.autograd`, or None
    where `backward_begin`, `backward_gradient` and `backward_end` tell of backward passes.
    """

    def __new__(cls, collector: Collector, window: Any, autograd: Any) -> Modules: ...
    def add(self, stem: str) -> int: ...
    def begin(self, module: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ModuleCall: ...
    def end(
        self,
        call: ModuleCall,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
        parameters: Mapping[str, Any],
        hooks: dict[str, ParameterHook],
        frame: FrameType,
    ) -> None: ...
    def leave(self, call: ModuleCall) -> None: ...
    def backward_begin(self, call: ModuleCall, outputs: int, inputs: int) -> None: ...
    def backward_gradient(self, call: ModuleCall, of_output: bool, position: int, grad: Any) -> None: ...
    def backward_end(self, call: ModuleCall) -> None: ...
    def boundary(self, tensor: Any) -> Boundary | None: ...
    def reset(self) -> None: ...

@final
class Boundary:
    """Where a tensor lies on the border of a module call."""

    @property
    def kind(self) -> Literal["input", "output"]: ...
    @property
    def serial(self) -> int: ...
    def attach(self, callback: Callable[[list[Any]], None]) -> None: ...

@final
class WatchedCall:
    """A module call, as a sink is told of it."""

    @property
    def number(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def inputs(self) -> int: ...
    @property
    def begin_sequence(self) -> int: ...

class _Sink(Protocol):
    """Who is told by a gradient watch; see `crates/python/src/collect/gradient_sink.rs`."""

    def module_backward_begin(self, call: WatchedCall, since: int) -> None: ...
    def module_output_grad(self, call: int, position: int, grad: Any) -> None: ...
    def module_input_grad(self, call: int, position: int, grad: Any) -> None: ...
    def module_backward_complete(self, call: int) -> None: ...
    def failed(self, error: BaseException) -> None: ...

@final
class WatchEntry:
    """A module call that is running."""

@final
class GradientWatch:
    """Watches module calls for any sink; that of a collector is part of `Modules`."""

    def __new__(cls, autograd: Any, sink: _Sink) -> GradientWatch: ...
    def enter(self, args: tuple[Any, ...]) -> WatchEntry | None: ...
    def leave(self, entry: WatchEntry | None, call: int, output: Any) -> None: ...
    def boundary(self, tensor: Any) -> Boundary | None: ...

@final
class Intercepted:
    """A builtin function or method whose calls can be had go to a wrapper; the object stays what it is."""

    def __new__(cls, function: Any) -> Intercepted: ...
    @property
    def function(self) -> Callable[..., Any]: ...
    @property
    def original(self) -> Callable[..., Any]: ...
    def wrap(self, wrapper: Callable[..., Any]) -> None: ...
    def set(self, is_on: bool) -> None: ...

def set_intercepted(functions: Sequence[Intercepted], is_on: bool) -> None: ...
def statistics(tensor: Described) -> dict[str, Any]: ...
def crc32(tensor: Described) -> int: ...
def sketch(tensor: Described) -> str: ...
def sketch_tables() -> tuple[list[bool], list[int]]: ...
def sketch_cuts(shape: Sequence[int]) -> tuple[int, list[int], int] | None: ...
def md5(tensor: Described) -> bytes: ...
def hash128(tensor: Described) -> int: ...
def compare_pair(target: Described, golden: Described) -> dict[str, Any] | None: ...
def write_npy(path: _Path, tensor: Described) -> None: ...
def write_pt(path: _Path, tensor: Described) -> None: ...
def write_pt_dict(path: _Path, tensors: Sequence[tuple[str, Described]]) -> None: ...
def tensor_names(path: _Path) -> list[str]: ...
def read_tensor(path: _Path, name: str) -> tuple[str, list[int], bytes]: ...

# Comparison. `log` is called with the name of a logger's method and a text. Raises CompareException, or
# RuntimeError for broken JSON, after logging it. A comparison answers with the paragraph of its verdict and
# the files it wrote.
def compare_files(
    target: _Path, golden: _Path, suffix: str, options: Options, log: Callable[[str, str], None]
) -> tuple[str, list[Path]]: ...
def find_dump(path: _Path, log: Callable[[str, str], None]) -> Path: ...
def compare_dumps(
    target: _Path, golden: _Path, options: Options, log: Callable[[str, str], None]
) -> tuple[str, list[Path]]: ...
def compare_ranks(
    target: _Path, golden: _Path, options: Options, log: Callable[[str, str], None]
) -> tuple[str, list[Path]]: ...
def compare_graphs(
    target: _Path,
    golden: _Path,
    ranks: Sequence[int],
    steps: Sequence[int],
    output: _Path,
    log: Callable[[str, str], None],
) -> list[Path]: ...
def compare_common_dirs(
    target: _Path,
    golden: _Path,
    names: Sequence[tuple[str, str]],
    output: _Path,
    log: Callable[[str, str], None],
) -> list[Path]: ...

# Answers with the lines of the verdict. Raises RuntimeError where there is nothing to compare, and
# FileCheckException for a path that cannot be used.
def compare_gradients(
    path1: _Path,
    path2: _Path,
    output: _Path,
    ranks: bool,
    first: float,
    fall: float,
    floor: float | None,
    total_fall: float | None,
    noise: Sequence[_Path],
    pictures: str,
    html: bool,
    log: Callable[[str, str], None],
) -> str: ...
def merge_tables(
    input_dir: _Path, output_dir: _Path, config: _Path, log: Callable[[str, str], None]
) -> Path: ...
def make_directory(path: _Path) -> None: ...

@final
class KeyDataEntry:
    """A value being saved."""

    def add(self, name: str, label: str, tensor: Described, held: bool) -> None: ...
    def finish(self, grouping: str) -> None: ...

@final
class KeyDataWriter:
    """Writes key data on a thread of its own."""

    def __new__(cls, own_dtype: bool, own_arithmetic: bool, names_dtype: bool) -> KeyDataWriter: ...
    def begin(self, directory: str, key: str) -> KeyDataEntry | None: ...
    def flush(self) -> None: ...
    def take_failure(self) -> str | None: ...

# Key data of reinforcement learning. An array has step, rank, micro_step, id and path.
KEY_DATA_HEADERS: list[str]

def key_data_level(kind: str, path: _Path) -> list[tuple[int, str]]: ...
def find_key_data(
    dir: _Path, log: Callable[[str, str], None]
) -> dict[str, list[tuple[int, int, int, int, str]]]: ...
def compare_key_arrays(
    first: Described, second: Described
) -> tuple[float, float, float, int | None, float, float]: ...
def compare_key(
    key: str,
    first: Sequence[tuple[int, int, int, int, str]],
    second: Sequence[tuple[int, int, int, int, str]],
    table: _Path,
    log: Callable[[str, str], None],
) -> None: ...
def compare_key_data(
    dir1: _Path,
    dir2: _Path,
    output: _Path,
    num_processes: int,
    tolerance: str | None,
    noise: Sequence[_Path],
    log: Callable[[str, str], None],
) -> str: ...

# Pre-check of single operators. What goes wrong with files is raised as FileCheckException, RuntimeError or
# ParseJsonException, as scripts know them.

@final
class PrecheckCase:
    """One API of a dump that is to be checked: what was recorded of it, and what is decided before it
    runs."""

    @property
    def full_name(self) -> str:
        """``Torch.exp.0``."""
    @property
    def kind(self) -> str:
        """``Torch``; empty where the name has too few or too many segments."""
    @property
    def name(self) -> str:
        """``exp``, or ``a.b`` of a name with four segments."""
    @property
    def seed(self) -> int:
        """Of 63 bits, made of ``full_name`` alone: the same inputs whatever ran before."""
    @property
    def forward(self) -> dict[str, Any] | None:
        """The forward entry as it stands in the dump; None if MindSpore recorded only a backward one."""
    @property
    def backward(self) -> dict[str, Any] | None:
        """The backward entry."""
    @property
    def skip(self) -> str | None:
        """Why it is not run at all, as the message of its rows says it."""
    @property
    def backward_message(self) -> str:
        """Why its backward is not run, without the text about several outputs; empty if it is run.

        Texts follow each other without a separator, so that of several outputs is appended to this."""
    @property
    def stack(self) -> list[str]:
        """Lines of ``stack.json`` that called it, innermost first; empty if there are none."""

@final
class PrecheckPlan:
    """The APIs of a dump in their order.

    ``api_info`` is dump.json; ``api_names`` are black and white lists of bare names. ``filter_api`` leaves
    out APIs
    whose arguments an earlier one had. Raises ParseJsonException for what is no dump and ValueError with
    the text
    ``api name contains special characters, please check!`` for a name that could be code of a sheet.
    """

    def __new__(
        cls,
        api_info: _Path,
        framework: Literal["pytorch", "mindspore"] = "pytorch",
        filter_api: bool = False,
        white_list: Sequence[str] = ...,
        black_list: Sequence[str] = ...,
    ) -> PrecheckPlan: ...
    def __len__(self) -> int: ...
    @property
    def data_dir(self) -> Path | None:
        """Where files of tensors are; None for a dump of statistics (also of MindSpore: task decides)."""
    @property
    def framework(self) -> str:
        """What the dump was made with: pytorch, mindspore, mindtorch."""
    @property
    def notes(self) -> list[tuple[str, str]]:
        """What is to be logged: method of a logger and text."""
    def names(self) -> list[str]:
        """Full names in order."""
    def case(self, position: int) -> PrecheckCase: ...
    def split(self, count: int) -> list[list[int]]:
        """Positions in so many blocks as the files of ``multi_run_ut`` had them; the last takes the rest."""
    def write_parts(self, count: int, directory: _Path) -> list[Path]:
        """``temp_part{i}.json`` in the directory, each a block and all backward entries (for scripts)."""

@final
class PrecheckOutcome:
    """What was found of one API: its rows. Small, and goes between processes as JSON."""

    @property
    def full_name(self) -> str: ...
    @property
    def forward(self) -> str:
        """``pass``, ``Warning``, ``error``, ``SKIP`` or a space (MindSpore: an empty text)."""
    @property
    def backward(self) -> str: ...
    @property
    def wants_data_saved(self) -> bool:
        """Whether its inputs and outputs are to be kept with ``-save_error_data``."""
    def rows(self) -> tuple[list[str], list[list[str]]]:
        """The row of the result and those of the details, as they are written."""
    def to_json(self) -> str: ...
    @staticmethod
    def from_json(text: str) -> PrecheckOutcome: ...

# A leaf is a ``Described`` (``describe(tensor)`` of a CPU tensor or numpy array), None, bool, int, float,
# str, or any
# other object, of which only the type counts (a dict: its keys too).
_Leaf = Any

def precheck_compare(
    full_name: str,
    bench: Sequence[_Leaf],
    device: Sequence[_Leaf],
    bench_gradients: Sequence[_Leaf] | None = None,
    device_gradients: Sequence[_Leaf] | None = None,
    backward_message: str = "",
    *,
    precision: int = 14,
    strict: bool = False,
    notes: Mapping[str, Any] | None = None,
) -> PrecheckOutcome:
    """The outputs of one PyTorch API on the device against those of the bench.

    Gradients are None where there was no backward run; ``backward_message`` then tells why, or is empty
    where none was
    recorded. ``notes`` are facts for the page and the summary: ``inputs`` (texts such as ``float16(3,
    4)``), ``place``
    (line of the user's code), ``seconds``. Raises IndexError ``list index out of range`` where the device
    has fewer
    outputs than the bench (with ``strict`` this is an error row instead).
    """

def precheck_skip(
    full_name: str, message: str, *, failed: bool = False, notes: Mapping[str, Any] | None = None
) -> PrecheckOutcome:
    """The rows of a PyTorch API that was not run, or that raised. ``failed``: it crashed, hung or ran out
    of memory,
    and is counted as an error in the summary though its rows say SKIP."""

def precheck_compare_mindspore(
    full_name: str,
    forward: tuple[Sequence[_Leaf], Sequence[_Leaf]] | None,
    backward: tuple[Sequence[_Leaf], Sequence[_Leaf]] | None,
    forward_failure: str | None = None,
    backward_failure: str | None = None,
    *,
    notes: Mapping[str, Any] | None = None,
) -> PrecheckOutcome:
    """Pairs of (bench, tested) leaves of a MindSpore API; a failure makes its direction SKIP. Leaves of
    bfloat16 may be
    torch tensors. Python numbers are allowed: their type is what is shown."""

@final
class PrecheckTable:
    """The two csv files of a check. Rows of one API are appended at once, under a lock, and never half:
    what an
    interrupted run left of one is cut off when it is resumed.

    ``resume`` is the result csv of an earlier run. Raises ValueError with the reference's text for a wrong
    name.
    ``stamp`` is made of the clock where it is None.
    """

    def __new__(
        cls,
        out_path: _Path,
        framework: Literal["pytorch", "mindspore"] = "pytorch",
        resume: _Path | None = None,
        stamp: str | None = None,
    ) -> PrecheckTable: ...
    @property
    def result_path(self) -> Path: ...
    @property
    def details_path(self) -> Path: ...
    @property
    def stamp(self) -> str: ...
    def is_done(self, full_name: str) -> bool: ...
    def add(self, outcome: PrecheckOutcome) -> None: ...
    def finish(
        self, command: str, api_info: _Path, device: str, interrupted: bool = False
    ) -> tuple[str, int, list[Path]]:
        """Ends the run: the paragraph for people, the exit code, and the files (csv, page)."""

# Which direction of a list of leaves overflows: max +inf, min -inf, or a NaN; None where a bool is among
# them.
def precheck_overflows(values: Sequence[_Leaf]) -> bool | None: ...

# Level (``info``, ``warning``, ``error``) and text of section 6 for an API that ran. ``strict``: "normal"
# only where
# something overflowed.
def precheck_overflow_message(
    full_name: str,
    bench: Sequence[_Leaf] | None,
    device: Sequence[_Leaf] | None,
    device_overflows: bool | None,
    strict: bool = False,
) -> tuple[str, str]: ...

# The same for an exception that its run raised.
def precheck_overflow_failure(full_name: str, error: str) -> tuple[str, str]: ...

# Final compare of two checks; answers with the paragraph, the exit code and the files.
def compare_prechecks(
    npu_csv: _Path, gpu_csv: _Path, out_path: _Path, strict: bool, log: Callable[[str, str], None]
) -> tuple[str, int, list[Path]]: ...

# Writes the script of one operator and its data beside it; answers with the path of the script.
def generate_operator_script(
    config: _Path,
    out_path: _Path,
    framework: Literal["pytorch", "mindspore"],
    log: Callable[[str, str], None],
) -> Path: ...

# The bare name's standard: binary_consistency, absolute_threshold, ulp_compare, thousandth_threshold,
# accumulative_error_compare, benchmark.
def precheck_standard(name: str) -> str: ...
