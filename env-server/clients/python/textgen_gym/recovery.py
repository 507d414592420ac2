"""Bringing episodes back on a new session, without I/O: a generator of requests that takes their answers. Sync and async clients drive it."""
from dataclasses import dataclass

from . import errors
from .wire import pb

CHUNK = 1024  # items of one message


@dataclass
class Log:
    """All that makes an episode again."""
    slot: int
    episode: int
    seed: int
    split: int
    sample: int
    tokens: bytes  # u32
    rewards: bytes  # f64, NaN where there was none
    reset_digest: int
    digest: int


def recover(logs, can_restore, deterministic, left_ms):
    """Yields requests, is sent {slot: result} for each. Returns {slot: why} of the episodes that cannot go on. left_ms() is the time that is left."""
    failed = {}
    for at in range(0, len(logs), CHUNK):
        some = logs[at:at + CHUNK]
        if can_restore:
            yield from _restore(some, failed)
        elif deterministic:
            yield from _replay(some, failed, left_ms)
        else:
            failed.update((e.slot, "its rewards are not deterministic") for e in some)
    return failed


def _restore(some, failed):
    batch = pb.RestoreBatch()
    for e in some:
        batch.items.add(slot=e.slot, episode=e.episode, seed=e.seed, split=e.split, sample=e.sample, tokens=e.tokens, rewards=e.rewards,
                        reset_digest=e.reset_digest, state_digest=e.digest)
    found = yield batch
    for e in some:
        r = found[e.slot]
        if r.code != errors.OK:
            failed[e.slot] = r.message or "the server could not restore it"
        elif r.state_digest != e.digest:
            failed[e.slot] = "the restored episode has another digest"


def _replay(some, failed, left_ms):
    """For servers without Restore: reset to the same sample, then all tokens in one step."""
    batch = pb.ResetBatch()
    for e in some:
        batch.items.add(slot=e.slot, episode=e.episode, seed=e.seed, split=e.split, has_sample=True, sample=e.sample)
    found = yield batch
    for e in some:
        r = found[e.slot]
        if r.code != errors.OK or r.state_digest != e.reset_digest:
            failed[e.slot] = r.message or "the new server starts it differently"
    some = [e for e in some if e.slot not in failed and e.tokens]
    if not some:
        return
    batch = pb.StepBatch(deadline_ms=left_ms())
    for e in some:
        batch.items.add(slot=e.slot, episode=e.episode, step=0, tokens=e.tokens)
    found = yield batch
    for e in some:
        if found[e.slot].state_digest != e.digest:
            failed[e.slot] = found[e.slot].message or "the replayed episode has another digest"
