"""Declared state."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from ._offcut import apply
from ._reduction import _dumps, exact


class State:
    """A state whose fields are merged by the reducers that its schema declares.

    The schema is a dict, or YAML as text; docs/state.md has the reducers by the names of OpenArmature, LangGraph,
    Agentflow and sherma. An update applies to all of its fields or to none. A mistake in the schema is a SettingsError, one in
    an update a ValueError; both begin with its code, such as `reducer_error`, unless JSON can't say the value.
    """

    def __init__(self, schema: Mapping[str, Any] | str, value: Mapping[str, Any] | None = None):
        """Begins without fields, where reducers start from the schema's defaults, or with the `value` of an earlier state."""
        self._schema = schema if isinstance(schema, str) else _dumps(schema)
        self._lock = threading.Lock()
        self._text = apply(self._schema, None if value is None else exact(value), "[]")

    def apply(self, *updates: Mapping[str, Any]) -> dict[str, Any]:
        """Applies the updates in their order, or none of them, and returns the new value."""
        with self._lock:
            self._text = apply(self._schema, self._text, exact(list(updates)))
            return self.value

    def __getstate__(self) -> dict[str, Any]:
        # Locks are neither copied nor pickled.
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    @property
    def value(self) -> dict[str, Any]:
        """The fields that were set."""
        value: dict[str, Any] = json.loads(self._text)
        return value
