"""Run emitted C99 on emulated microcontrollers: bits, instructions, and bytes of memory."""
