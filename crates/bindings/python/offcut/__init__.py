"""Keeps long tool results out of your agent's context window, and keeps every byte readable.

A result that is too long is stored whole and replaced by a preview and a hint; before a model call, old results are
stored and replaced by hints once the conversation is over the threshold. `Reduction` has the two moments of a loop,
`before_model` and `wrap_tool_call`, and the reader with which the model reads stored content back.
"""

from __future__ import annotations

import os

from ._offcut import OffcutError, SettingsError, StoreError, after_fork, before_fork
from ._reduction import Reduction
from ._state import State

__all__ = ["OffcutError", "Reduction", "SettingsError", "State", "StoreError"]

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=before_fork,
        after_in_parent=lambda: after_fork(False),
        after_in_child=lambda: after_fork(True),
    )
