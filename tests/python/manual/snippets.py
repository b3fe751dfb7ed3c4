"""The examples of the user's manual as data: keys, values and calls are the manual's, placeholders marked.

Whoever changes one of them changes what users copy. The tests beside run them as they stand.
"""

from __future__ import annotations

from typing import Any

# ---- quick start (older document)

WHOLE_NET: dict[str, Any] = {
    "task": "tensor",
    "dump_path": "./npu_dump",
    "rank": [],
    "step": [],
    "level": "L1",
    "seed": 1234,
    "is_deterministic": False,
    "tensor": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"},
}

OVERFLOW: dict[str, Any] = {
    "task": "overflow_check",
    "dump_path": "./npu_dump",
    "rank": [],
    "step": [],
    "level": "L1",
    "seed": 1234,
    "is_deterministic": False,
    "overflow_check": {"overflow_nums": 3},
}

COMMUNICATION: dict[str, Any] = {
    "task": "tensor",
    "dump_path": "./npu_dump",
    "rank": [],
    "step": [],
    "level": "L1",
    "seed": 1234,
    "is_deterministic": False,
    "tensor": {"scope": [], "list": ["distributed"], "data_mode": ["all"], "summary_mode": "statistics"},
}

# {before}, {first} and {second} stand for the user's own code.
TWO_WINDOWS = """\
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path="./config.json", dump_path="./npu_dump")

{before}
debugger.start()

{first}

debugger.stop()
debugger.start()

{second}

debugger.stop()
debugger.step()
"""

ON_THE_CLASS = (
    TWO_WINDOWS.replace("debugger.start", "PrecisionDebugger.start")
    .replace("debugger.stop", "PrecisionDebugger.stop")
    .replace("debugger.step", "PrecisionDebugger.step")
)

COMPARE = """\
from msprobe.pytorch import compare
input_param={
"npu_json_path": "./npu_dump/dump.json",
"bench_json_path": "./bench_dump/dump.json",
"stack_json_path": "./npu_dump/stack.json",
"is_print_compare_log": True
}
compare(input_param, output_path="./output", stack_mode=True)
"""

COMPARE_RANKS = """\
from msprobe.pytorch import *
compare_distributed('./npu_dump/step0', './gpu_dump/step0', './output')
"""

OVERFLOW_ANALYSIS = ["-f", "pytorch", "run_overflow_check", "-api_info", "./dump.json"]

COMMUNICATION_APIS = [
    "send", "recv", "broadcast", "all_reduce", "reduce", "all_gather", "gather", "isend", "irecv", "scatter",
    "reduce_scatter", "_reduce_scatter_base", "_all_gather_base",
]  # fmt: skip

# The 78 rows of the table; npu_roi_align stands there twice.
NPU_OPERATORS = [
    "one_",
    "npu_sort_v2",
    "npu_transpose",
    "npu_broadcast",
    "npu_dtype_cast",
    "empty_with_format",
    "npu_one_hot",
    "npu_stride_add",
    "npu_ps_roi_pooling",
    "npu_roi_align",
    "npu_nms_v4",
    "npu_iou",
    "npu_nms_with_mask",
    "npu_pad",
    "npu_bounding_box_encode",
    "npu_bounding_box_decode",
    "npu_batch_nms",
    "npu_slice",
    "_npu_dropout",
    "npu_indexing",
    "npu_ifmr",
    "npu_max",
    "npu_scatter",
    "npu_layer_norm_eval",
    "npu_alloc_float_status",
    "npu_confusion_transpose",
    "npu_bmmV2",
    "fast_gelu",
    "npu_sub_sample",
    "npu_deformable_conv2d",
    "npu_mish",
    "npu_anchor_response_flags",
    "npu_yolo_boxes_encode",
    "npu_grid_assign_positive",
    "npu_normalize_batch",
    "npu_masked_fill_range",
    "npu_linear",
    "npu_bert_apply_adam",
    "npu_giou",
    "npu_ciou",
    "npu_diou",
    "npu_sign_bits_pack",
    "npu_sign_bits_unpack",
    "npu_flash_attention",
    "npu_scaled_masked_softmax",
    "npu_rotary_mul",
    "npu_roi_align",
    "npu_roi_alignbk",
    "npu_ptiou",
    "npu_fusion_attention",
    "npu_dropout_with_add_softmax",
    "npu_random_choice_with_mask",
    "npu_rotated_iou",
    "npu_conv2d",
    "npu_conv3d",
    "npu_softmax_cross_entropy_with_logits",
    "npu_all_gather_base_mm",
    "npu_swiglu",
    "npu_rms_norm",
    "npu_mm_reduce_scatter_base",
    "npu_mm_all_reduce_base",
    "npu_conv_transpose2d",
    "npu_convolution",
    "npu_convolution_transpose",
    "npu_min",
    "npu_nms_rotated",
    "npu_reshape",
    "npu_rotated_box_decode",
    "npu_rotated_box_encode",
    "npu_rotated_overlaps",
    "npu_silu",
    "npu_fused_attention_score",
    "npu_multi_head_attention",
    "npu_gru",
    "npu_incre_flash_attention",
    "npu_prompt_flash_attention",
    "npu_lstm",
    "npu_apply_adam",
]

# ---- the toolkit's manual

TEMPLATE = """\
from msprobe.pytorch import PrecisionDebugger

debugger = PrecisionDebugger(config_path='./config.json')
{before}
debugger.start()
{first}
debugger.stop()
debugger.step()
"""

# ---- gradient probe

GRADIENTS: dict[str, Any] = {
    "task": "grad_probe",
    "dump_path": "./dump_path",
    "rank": [],
    "step": [],
    "grad_probe": {"grad_level": "L1", "param_list": [], "bounds": [-1, 0, 1]},
}
GRADIENT_STEPS: list[int | str] = [0, 1, 2, "4-6"]
GRADIENT_HEADERS = {
    "L0": ["param_name", "MD5", "max", "min", "norm", "shape"],
    "L1": ["param_name", "max", "min", "norm", "shape"],
    "L2": [
        "param_name", "(-inf, -1]", "(-1, 0]", "(0, 1]", "(1, inf)", "=0", "max", "min", "norm", "shape",
    ],
}  # fmt: skip

MONITOR = """\
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger("{config_json_path}")
debugger.monitor(model)
"""

COMPARE_GRADIENTS = """\
from msprobe import *
GradComparator.compare_distributed("{first}",
                                    "{second}",
                                    "{output}")
"""

# ---- reinforcement learning

SAVE_ONE = """\
from msprobe.core import SingleSave
SingleSave(dump_path="./dump_path", fmk="pytorch")
SingleSave.save(data={"response": response})
"""

SAVE_SEVERAL = """\
from msprobe.core import SingleSave
SingleSave("./dump_path", fmk="pytorch")
SingleSave.save({
    "prompt": prompt,
    "response": response
    })
"""

SAVE_CONFIG = """\
from msprobe.core import SingleSave
SingleSave("./dump_path")
SingleSave.save_config(data=configurations_json)
"""

COMPARE_KEYS = """\
from msprobe.core import SingleComparator
SingleComparator.compare(
    dir1="dump_path1",
    dir2="dump_path2",
    output_path="output_path")
"""

COMPARE_KEYS_BY_POSITION = """\
from msprobe.core import SingleComparator
SingleComparator.compare(
    "dump_path1",
    "dump_path2",
    "output_path")
"""

COMPARE_STEP = """\
from msprobe.pytorch import *
compare_distributed(
    './dump_path1/step2',
    './dump_path2/step2',
    './output_path')
"""

KEY_HEADERS = [
    "step", "rank", "micro_step", "id", "shape1", "shape2", "相同元素百分比", "首个不匹配元素索引",
    "最大绝对误差", "最大相对误差", "误差在千分之一内元素占比", "误差在百分之一内元素占比",
]  # fmt: skip

RL_DEFAULTS = """\
msprobe_config:
  msprobe: false
  dump_path: "./msprobe_dump"
  key_data_dump: false
  configurations_dump: false
  actor_train_dump: false
  reference_dump: false
  step_start: 0
  step_end: 0
"""

RL_KEY_DATA = """\
msprobe_config:
  msprobe: true
  dump_path: "./msprobe_dump"
  key_data_dump: true
"""

RL_REFERENCE = """\
msprobe_config:
  msprobe: true
  dump_path: "./msprobe_dump"
  reference_dump: true
  step_start: 2
  step_end: 2
"""
