"""What keeps an operator from being checked."""

from __future__ import annotations

from typing import ClassVar

from msprobe.core.common.exceptions import CodedException


class ApiAccuracyCheckerException(CodedException):
    """An operator that cannot be made from its record, or run."""

    PARSE_JSON_FAILED = 0
    UNSUPPORTED_TYPE = 1
    WRONG_VALUE = 2
    API_WRONG = 3

    err_strs: ClassVar[dict[int, str]] = {
        PARSE_JSON_FAILED: "[msprobe] Api Accuracy Checker parse json failed: ",
        UNSUPPORTED_TYPE: "[msprobe] Api Accuracy Checker get unsupported type: ",
        WRONG_VALUE: "[msprobe] Api Accuracy Checker get wrong value: ",
        API_WRONG: "[msprobe] Api Accuracy Checker something wrong with api: ",
    }


def missing(what: str) -> ApiAccuracyCheckerException:
    """A record without something it must have."""
    return ApiAccuracyCheckerException(
        ApiAccuracyCheckerException.PARSE_JSON_FAILED, f"check_and_get_from_json_dict failed: {what}"
    )
