"""vLLM's schedulers; the same names in vLLM 0.29 to 0.32. Apart from the others: only an engine's core needs them."""

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

__all__ = ["AsyncScheduler", "Scheduler"]
