"""Any Python object, one step towards plain JSON data.  Nothing here raises, whatever the object does."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import Final

__all__ = ["described", "float_text", "integer_text", "name_text", "opened"]

_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


def opened(value: object) -> object:
    """What a holder holds (a mapping, a sequence, fields, an enum's value); anything else as it is."""
    if value is None or isinstance(value, str | int | float | bytes | bytearray | memoryview):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, dict | list | tuple | AbstractSet):
        return value
    try:
        return _opened(value)
    except Exception:  # noqa: BLE001 (a hostile object must not break the run that is observed)
        return f"<{_type_name(value)}>"


def _opened(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID | PurePath | decimal.Decimal):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    fields = getattr(type(value), "model_fields", None)  # pydantic, without importing it
    if isinstance(fields, Mapping) and not isinstance(value, type):
        extra = getattr(value, "model_extra", None) or {}
        return {**{name: getattr(value, name) for name in fields}, **extra}
    return list(value) if isinstance(value, Sequence) else value


def name_text(key: object) -> str:
    """An object key as text, by the rules of JSON encoders; an integral float counts as the integer."""
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, str):
        return str(key)
    if key is None or isinstance(key, bool):
        return json.dumps(key)
    if isinstance(key, int):
        return integer_text(key)
    if isinstance(key, float):
        return float_text(key)
    return str(key) if isinstance(key, uuid.UUID | PurePath | datetime.date) else described(key)


def integer_text(value: int) -> str:
    """Decimal digits, or hexadecimal ones where the interpreter refuses to make that many decimal ones."""
    try:
        return int.__repr__(value)
    except ValueError:
        return f"<int {value:#x}>"


def float_text(value: float) -> str:
    """As JSON writes it; an integral one as an integer; `<nan>`, `<inf>` and `<-inf>` for what JSON lacks."""
    if math.isnan(value):
        return "<nan>"
    if math.isinf(value):
        return "<inf>" if value > 0 else "<-inf>"
    return int.__repr__(int(value)) if value.is_integer() else float.__repr__(value)


def described(value: object) -> str:
    """Type and repr with addresses removed; an object whose repr fails is known by its type alone."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 (a hostile object must not break the run that is observed)
        return f"<{_type_name(value)}>"
    return f"<{_type_name(value)}: {_ADDRESS.sub('0x', text)}>"


def _type_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
