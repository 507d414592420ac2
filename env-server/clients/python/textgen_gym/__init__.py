"""Clients of textgen's environment server."""
from .connection import Connection, Keys
from .errors import (ConfigMismatch, EpisodeAborted, InvalidRequest, RewardUnavailable, TextGenAuthError, TextGenError, TextGenProtocolError,
                     TextGenTimeout, TextGenUnavailable, WrongState)
from .wire import pb

__version__ = "0.1.0"
__all__ = ["ConfigMismatch", "Connection", "EpisodeAborted", "InvalidRequest", "Keys", "RewardUnavailable", "TextGenAuthError", "TextGenError",
           "TextGenProtocolError", "TextGenTimeout", "TextGenUnavailable", "WrongState", "pb"]
