"""Attributes that are words of a list. Source: the enums of XLA's ``xla_data.proto``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlo.text.suggestion import suggestion


@dataclass(frozen=True, slots=True)
class Words:
    """Words of a list, in any case; ``spelled`` in the case that XLA prints."""

    spelled: Callable[[str], str]
    allowed: frozenset[str]

    def read(self, text: str) -> str:
        word = self.spelled(text)
        if word not in self.allowed:
            hint = suggestion(word, self.allowed) or f": one of {', '.join(sorted(self.allowed))}"
            raise ValueError(f"expected a known name, not {text[:40]!r}{hint}")
        return word


def _words(spelled: Callable[[str], str], names: str) -> Words:
    return Words(spelled, frozenset(names.split()))


PRECISION = _words(str.lower, "default high highest packed_nibble")
DISTRIBUTION = _words(str.lower, "rng_invalid rng_uniform rng_normal")
ALGORITHM = _words(
    str.lower,
    "rng_default rng_three_fry rng_philox dot_unset dot_any_f8_any_f8_f32"
    " dot_any_f8_any_f8_f32_fast_accum dot_f16_f16_f16 dot_f16_f16_f32 dot_bf16_bf16_bf16"
    " dot_bf16_bf16_f32 dot_bf16_bf16_f32_x3 dot_bf16_bf16_f32_x6 dot_bf16_bf16_f32_x9"
    " dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3 dot_f32_f32_f32 dot_f64_f64_f64",
)
API = _words(
    str.upper,
    "API_VERSION_UNSPECIFIED API_VERSION_ORIGINAL API_VERSION_STATUS_RETURNING"
    " API_VERSION_STATUS_RETURNING_UNIFIED API_VERSION_TYPED_FFI",
)
SCHEDULE = _words(str.upper, "SCHEDULE_NONE SCHEDULE_LATEST SCHEDULE_EARLIEST")
PADDING = _words(str.upper, "PADDING_INVALID PADDING_VALID PADDING_SAME")
