"""Every exception msprobe raises on purpose. One tree: catching ``CodedException`` catches them all."""

from __future__ import annotations

import os
from typing import ClassVar


class CodedException(Exception):
    """An error with a number that scripts can test; ``str()`` is the number's meaning and the details."""

    err_strs: ClassVar[dict[int, str]] = {}

    def __init__(self, code: int, error_info: str = "") -> None:
        super().__init__(code, error_info)
        self.code = code
        self.error_info = error_info

    def __str__(self) -> str:
        return self.err_strs.get(self.code, "") + self.error_info


class MsprobeException(CodedException):
    """Wrong use of the tool."""

    INVALID_PARAM_ERROR = 0
    OVERFLOW_NUMS_ERROR = 1
    RECURSION_LIMIT_ERROR = 2
    INTERFACE_USAGE_ERROR = 3
    UNSUPPORTED_TYPE_ERROR = 4

    err_strs: ClassVar[dict[int, str]] = {
        INVALID_PARAM_ERROR: "[msprobe] 无效参数：",
        OVERFLOW_NUMS_ERROR: "[msprobe] 超过预设溢出次数 当前溢出次数：",
        RECURSION_LIMIT_ERROR: "[msprobe] 递归调用超过限制：",
        INTERFACE_USAGE_ERROR: "[msprobe] Invalid interface usage: ",
        UNSUPPORTED_TYPE_ERROR: "[msprobe] Unsupported type: ",
    }


class ScopeException(CodedException):
    """A ``scope`` or ``list`` that cannot be."""

    INVALID_API_STR = 0
    INVALID_SCOPE = 1
    ARG_CONFLICT = 2

    err_strs: ClassVar[dict[int, str]] = {
        INVALID_API_STR: "[msprobe] Invalid api_list: ",
        INVALID_SCOPE: "[msprobe] Invalid scope: ",
        ARG_CONFLICT: "[msprobe] Scope and api_list conflict: ",
    }


class FileCheckException(CodedException):
    """A file or path that cannot be used."""

    INVALID_FILE_ERROR = 0
    FILE_PERMISSION_ERROR = 1
    SOFT_LINK_ERROR = 2
    ILLEGAL_PATH_ERROR = 3
    ILLEGAL_PARAM_ERROR = 4
    FILE_TOO_LARGE_ERROR = 5

    err_strs: ClassVar[dict[int, str]] = {
        INVALID_FILE_ERROR: "[msprobe] 无效文件： ",
        FILE_PERMISSION_ERROR: "[msprobe] 文件权限错误： ",
        SOFT_LINK_ERROR: "[msprobe] 检测到软链接： ",
        ILLEGAL_PATH_ERROR: "[msprobe] 非法文件路径： ",
        ILLEGAL_PARAM_ERROR: "[msprobe] 非法打开方式： ",
        FILE_TOO_LARGE_ERROR: "[msprobe] 文件过大： ",
    }


class ParseJsonException(CodedException):
    """A dump.json that the pre-check cannot use."""

    UnexpectedNameStruct = 0
    InvalidDumpJson = 1

    err_strs: ClassVar[dict[int, str]] = {
        UnexpectedNameStruct: "[msprobe] Unexpected name in json: ",
        InvalidDumpJson: "[msprobe] Invalid dump.json format: ",
    }


class ApiAccuracyCheckerException(CodedException):
    """What the MindSpore pre-check cannot use."""

    ParseJsonFailed = 0
    UnsupportType = 1
    WrongValue = 2
    ApiWrong = 3

    err_strs: ClassVar[dict[int, str]] = {
        ParseJsonFailed: "[msprobe] Api Accuracy Checker parse json failed: ",
        UnsupportType: "[msprobe] Api Accuracy Checker get unsupported type: ",
        WrongValue: "[msprobe] Api Accuracy Checker get wrong value: ",
        ApiWrong: "[msprobe] Api Accuracy Checker something wrong with api: ",
    }


class TensorFileError(FileCheckException):
    """A tensor file, or one tensor of it, that cannot be read."""

    def __init__(
        self,
        message: str,
        path: str | os.PathLike[str],
        tensor: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(self.INVALID_FILE_ERROR, message)
        self.path = os.fspath(path)
        self.tensor = tensor
        self.hint = hint

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\nhint: {self.hint}" if self.hint else text


class CompareException(CodedException):
    """A comparison that cannot be made.

    For paths that are missing or must not be used, ``code`` is one of ``FileCheckException`` (3: illegal).
    """

    NONE_ERROR = 0
    INVALID_PATH_ERROR = 1
    OPEN_FILE_ERROR = 2
    CLOSE_FILE_ERROR = 3
    READ_FILE_ERROR = 4
    WRITE_FILE_ERROR = 5
    INVALID_FILE_ERROR = 6
    PERMISSION_ERROR = 7
    INDEX_OUT_OF_BOUNDS_ERROR = 8
    NO_DUMP_FILE_ERROR = 9
    INVALID_DATA_ERROR = 10
    INVALID_PARAM_ERROR = 11
    INVALID_DUMP_RATIO = 12
    INVALID_DUMP_FILE = 13
    UNKNOWN_ERROR = 14
    INVALID_DUMP_MODE = 15
    PARSE_FILE_ERROR = 16
    INVALID_COMPARE_MODE = 17
    OVER_SIZE_FILE_ERROR = 18
    INVALID_SUMMARY_MODE = 19
    INVALID_TASK_ERROR = 20
    DETACH_ERROR = 21
    INVALID_OBJECT_TYPE_ERROR = 22
    INVALID_CHAR_ERROR = 23
    RECURSION_LIMIT_ERROR = 24
    INVALID_ATTRIBUTE_ERROR = 25
    OUTPUT_HOOK_ERROR = 26
    INPUT_HOOK_ERROR = 27
    FUNCTION_CALL_ERROR = 28
    FORWARD_DATA_COLLECTION_ERROR = 29
    BACKWARD_DATA_COLLECTION_ERROR = 30
    INVALID_KEY_ERROR = 31
    MISSING_HEADER_ERROR = 32
    MERGE_COMPARE_RESULT_ERROR = 33
    NAMES_STRUCTS_MATCH_ERROR = 34
    INVALID_STATE_ERROR = 35
    INVALID_API_NAME_ERROR = 36
    CROSS_FRAME_ERROR = 37

    def __init__(self, code: int, error_info: str = "", hint: str | None = None) -> None:
        super().__init__(code, error_info)
        # What a pickled exception is made of again.
        self.args = (code, error_info, hint)
        self.hint = hint

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\nhint: {self.hint}" if self.hint else text
