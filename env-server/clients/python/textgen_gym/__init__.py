"""Clients of textgen's environment server: gymnasium, stable-baselines3 (textgen_gym.sb3), asyncio (AsyncClient), reward workers (textgen_gym.reward)."""
import gymnasium as _gymnasium

from .aio import AsyncClient
from .connection import Connection
from .env import TextGenEnv
from .errors import (ConfigMismatch, EpisodeAborted, InvalidRequest, RewardUnavailable, TextGenAuthError, TextGenError, TextGenProtocolError,
                     TextGenTimeout, TextGenUnavailable, WrongState)
from .keys import Keys
from .vector import TextGenVectorEnv
from .wire import pb

__version__ = "0.1.0"
__all__ = ["AsyncClient", "ConfigMismatch", "Connection", "EpisodeAborted", "InvalidRequest", "Keys", "RewardUnavailable", "TextGenAuthError",
           "TextGenEnv", "TextGenError", "TextGenProtocolError", "TextGenTimeout", "TextGenUnavailable", "TextGenVectorEnv", "WrongState", "pb"]

_gymnasium.register(id="TextGen-v0", entry_point="textgen_gym.env:TextGenEnv", vector_entry_point="textgen_gym.vector:TextGenVectorEnv")
