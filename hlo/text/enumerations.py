"""Read attributes whose value is one of a list of words.

Source: the enums of XLA's ``xla_data.proto``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlo.text.suggestion import suggestion


@dataclass(frozen=True, slots=True)
class Words:
    """Hold an attribute's allowed words; ``spelled`` maps what XLA reads to the case it prints."""

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
_MODES = "cross_replica cross_partition cross_replica_and_partition flattened_id"

# By the names of attributes that are one word.
WORDS = {
    "distribution": _words(str.lower, "rng_invalid rng_uniform rng_normal"),
    "algorithm": _words(
        str.lower,
        "rng_default rng_three_fry rng_philox dot_unset dot_any_f8_any_f8_f32"
        " dot_any_f8_any_f8_f32_fast_accum dot_f16_f16_f16 dot_f16_f16_f32 dot_bf16_bf16_bf16"
        " dot_bf16_bf16_f32 dot_bf16_bf16_f32_x3 dot_bf16_bf16_f32_x6 dot_bf16_bf16_f32_x9"
        " dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3 dot_f32_f32_f32 dot_f64_f64_f64",
    ),
    "api_version": _words(
        str.upper,
        "API_VERSION_UNSPECIFIED API_VERSION_ORIGINAL API_VERSION_STATUS_RETURNING"
        " API_VERSION_STATUS_RETURNING_UNIFIED API_VERSION_TYPED_FFI",
    ),
    "schedule": _words(str.upper, "SCHEDULE_NONE SCHEDULE_LATEST SCHEDULE_EARLIEST"),
    "padding_type": _words(str.upper, "PADDING_INVALID PADDING_VALID PADDING_SAME"),
    "direction": _words(str, "EQ NE LT LE GT GE"),
    "type": _words(str, "FLOAT TOTALORDER SIGNED UNSIGNED"),
    "fft_type": _words(str, "FFT IFFT RFFT IRFFT"),
    "transpose_a": _words(str, "TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT"),
    "kind": _words(str, "kLoop kInput kOutput kCustom"),
    "convolution_kind": _words(str, "unset fprop dgrad wgrad"),
    # In quotes, too, which XLA does not read.
    "mode": _words(str, " ".join(f'{mode} "{mode}"' for mode in _MODES.split())),
}
