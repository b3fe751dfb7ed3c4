"""What keeps an operator from being checked."""

from __future__ import annotations

from msprobe.core.common.exceptions import ApiAccuracyCheckerException


def missing(what: str) -> ApiAccuracyCheckerException:
    """A record without something it must have."""
    return ApiAccuracyCheckerException(
        ApiAccuracyCheckerException.ParseJsonFailed, f"check_and_get_from_json_dict failed: {what}"
    )


def unsupported(what: object) -> ApiAccuracyCheckerException:
    """A type that one of the frameworks does not have."""
    return ApiAccuracyCheckerException(ApiAccuracyCheckerException.UnsupportType, str(what))
