"""What the gradient watch of ``msprobe._native`` uses of PyTorch, by these names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

import torch
from torch import Tensor

from msprobe.core.collection.replacing import bare
from msprobe.pytorch.hooks import window

tensor = Tensor
parameter = torch.nn.Parameter
mapping = Mapping
strided = torch.strided

is_grad_enabled: Callable[[], bool] = torch.is_grad_enabled
no_grad = torch.no_grad
unseen = window.unseen
is_mode_enabled = window.is_mode_enabled
next_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr
task: Callable[[], int] = torch._C._current_graph_task_id
will_run: Callable[[Any], bool] = torch._C._will_engine_execute_node
at_end_of_backward: Callable[[Callable[[], None]], None] = (
    torch.autograd.Variable._execution_engine.queue_callback
)

# Calls of the functions themselves would be seen by whoever collects API calls.
is_view: Callable[[Tensor], bool] = bare(Tensor._is_view)
stride: Callable[[Tensor], tuple[int, ...]] = bare(Tensor.stride)
storage_offset: Callable[[Tensor], int] = bare(Tensor.storage_offset)
add: Callable[[Tensor, Tensor], Tensor] = bare(torch._C._VariableFunctions.add)
as_strided: Callable[..., Tensor] = bare(torch._C._VariableFunctions.as_strided)
empty_strided: Callable[..., Tensor] = bare(torch._C._VariableFunctions.empty_strided)
copy: Callable[[Tensor, Tensor], Tensor] = bare(Tensor.copy_)
