"""Accept Ctrl-C in a fork server that has imported the other modules that it preloads."""

from fuzz.worker_pool.held_interrupts import accept

accept()
