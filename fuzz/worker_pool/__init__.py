"""Worker processes that may crash, hang, take all memory or be killed, without harm."""

from fuzz.worker_pool.outcome import Death, Outcome, Result
from fuzz.worker_pool.pool import WorkerPool

__all__ = ["Death", "Outcome", "Result", "WorkerPool"]
