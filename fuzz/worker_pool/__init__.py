"""Run tasks in a pool of worker processes that may crash, hang, exhaust memory or be killed."""

from fuzz.worker_pool.outcome import Death, Outcome, Result
from fuzz.worker_pool.pool import WorkerPool

__all__ = ["Death", "Outcome", "Result", "WorkerPool"]
