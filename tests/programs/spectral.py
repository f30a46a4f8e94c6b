"""Fourier transforms and complex arithmetic."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.fft as sfft
import jax.scipy.signal as signal
from jax import Array

from programs.function import of


@of("c64[128]")
def transform(x: Array) -> Array:
    return jnp.fft.fft(x)


@of("f32[8,100]")
def real_transform(x: Array) -> Array:
    return jnp.fft.rfft(x)


@of("c64[8,33]")
def inverse_real_transform(x: Array) -> Array:
    return jnp.fft.irfft(x)


@of("f32[16,16]")
def transform_of_an_image(x: Array) -> Array:
    return jnp.abs(jnp.fft.fft2(x))


@of("c64[4,8,8]")
def transform_of_a_volume_and_back(x: Array) -> Array:
    return jnp.fft.ifftn(jnp.fft.fftn(x))


@of("f32[256]")
def low_pass(x: Array) -> Array:
    spectrum = jnp.fft.rfft(x)
    return jnp.fft.irfft(jnp.where(jnp.arange(129) < 20, spectrum, 0))


@of("f32[100]", "f32[30]")
def convolution_by_transform(x: Array, y: Array) -> Array:
    return signal.fftconvolve(x, y)


@of("f32[200]")
def power_spectrum(x: Array) -> Array:
    return jnp.abs(jnp.fft.rfft(x - x.mean())) ** 2 / 200


@of("f32[256]")
def spectrogram(x: Array) -> Array:
    return jnp.abs(signal.stft(x, nperseg=32)[2])


@of("f32[64]")
def cosine_transform(x: Array) -> Array:
    return sfft.dct(x)


@of("f32[64]")
def autocorrelation(x: Array) -> Array:
    spectrum = jnp.fft.rfft(x, 128)
    found = jnp.fft.irfft(spectrum * jnp.conj(spectrum))[:64]
    return found / found[0]


@of("f32[64]")
def spectral_derivative(x: Array) -> Array:
    return jnp.fft.ifft(1j * jnp.fft.fftfreq(64) * jnp.fft.fft(x)).real


@of("f32[64]")
def gradient_of_a_spectral_loss(x: Array) -> Array:
    return jax.grad(lambda x: jnp.log(jnp.abs(jnp.fft.rfft(x)) + 1).sum())(x)


@of("f32[128]")
def analytic_envelope(x: Array) -> Array:
    weights = jnp.concatenate([jnp.ones(1), 2 * jnp.ones(63), jnp.ones(1), jnp.zeros(63)])
    return jnp.abs(jnp.fft.ifft(jnp.fft.fft(x) * weights))


@of("c64[256]", "c64[256]")
def complex_arithmetic(x: Array, y: Array) -> tuple[Array, ...]:
    return x * y + jnp.conj(x), x / y, jnp.abs(x), jnp.angle(x * y), 1 / x


@of("c64[256]")
def complex_functions(x: Array) -> tuple[Array, ...]:
    return jnp.exp(x), jnp.log(x), jnp.sqrt(x), jnp.sin(x), jnp.tanh(x), x**2


@of("c64[256]", "c64[256]")
def complex_powers(x: Array, y: Array) -> tuple[Array, Array]:
    return x**y, jnp.power(x, 0.5)


@of("c128[64]")
def wide_complex_functions(x: Array) -> tuple[Array, ...]:
    return jnp.exp(x), jnp.log(x), jnp.sqrt(x), jnp.cos(x), x * x / (1 + x)


@of("f32[256]:angles", "f32[256]:positive")
def polar_to_cartesian_and_back(angle: Array, radius: Array) -> tuple[Array, Array]:
    z = radius * jnp.exp(1j * angle)
    return jnp.abs(z), jnp.angle(z)


@of("c64[12,12]", "c64[12,12]")
def complex_products(x: Array, y: Array) -> tuple[Array, Array]:
    return x @ y, jnp.vdot(x, y)


@of("c64[16,3]")
def quantum_state(x: Array) -> tuple[Array, Array]:
    psi = x / jnp.linalg.norm(x, axis=0)
    hadamard = jnp.array([[1, 1], [1, -1]]) / jnp.sqrt(2)
    turned = jnp.einsum("ab,bcd->acd", hadamard, psi.reshape(2, 8, 3)).reshape(16, 3)
    return turned, jnp.abs(turned) ** 2


@of("f32[6]", "c64[40]")
def polynomial_on_complex_points(coefficients: Array, z: Array) -> Array:
    return jnp.polyval(coefficients, z)


@of("f32[128]")
def windowed_transform_and_back(x: Array) -> tuple[Array, Array, Array]:
    n = jnp.arange(32)
    window = (0.5 - 0.5 * jnp.cos(2 * jnp.pi * n / 32)).astype(x.dtype)
    places = jnp.arange(0, 97, 16)[:, None] + n
    found = jnp.fft.rfft(x[places] * window)
    back = jnp.fft.irfft(found) * window
    return jnp.zeros_like(x).at[places].add(back), jnp.abs(found), jnp.angle(found)


@of("f32[64]")
def haar_wavelets(x: Array) -> tuple[Array, ...]:
    found = []
    for _ in range(4):
        found.append((x[0::2] - x[1::2]) * 0.70710678)
        x = (x[0::2] + x[1::2]) * 0.70710678
    return (*found, x)


@of("c64[40]", "c64[4]")
def moebius_map(z: Array, m: Array) -> tuple[Array, ...]:
    w = (m[0] * z + m[1]) / (m[2] * z + m[3])
    return w, jnp.abs(w), jnp.angle(w), jnp.conj(z) / jnp.abs(z)
