"""Complex algebra, and convolutions and filters by fast Fourier transforms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("f32[60]", "f32[15]")
def convolution_by_padded_transforms(x: Array, h: Array) -> Array:
    n = 128
    return jnp.fft.irfft(jnp.fft.rfft(x, n) * jnp.fft.rfft(h, n), n)[:74]


@of("f32[2,16,16]", "f32[5,5]")
def images_blurred_by_transforms(x: Array, k: Array) -> Array:
    padded = jnp.zeros((16, 16)).at[:5, :5].set(k)
    padded = jnp.roll(padded, (-2, -2), (0, 1))
    return jnp.fft.ifft2(jnp.fft.fft2(x) * jnp.fft.fft2(padded)).real


@of("f32[32]", "f32[32]", "f32[32]")
def gradients_of_a_circular_convolution(x: Array, h: Array, y: Array) -> object:
    def loss(x: Array, h: Array) -> Array:
        z = jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(h), 32)
        return jnp.mean((z - y) ** 2)

    return jax.value_and_grad(loss, (0, 1))(x, h)


@of("f32[48]", "f32[16]")
def deconvolution_by_wiener(x: Array, h: Array) -> Array:
    a, b = jnp.fft.fft(x), jnp.fft.fft(h, 48)
    return jnp.fft.ifft(a * jnp.conj(b) / (jnp.abs(b) ** 2 + 0.1)).real


@of("f32[64]", "f32[64]")
def delay_by_phase_correlation(x: Array, y: Array) -> object:
    cross = jnp.fft.rfft(x) * jnp.conj(jnp.fft.rfft(y))
    r = jnp.fft.irfft(cross / (jnp.abs(cross) + 1e-6))
    return r, jnp.argmax(r)


@of("f32[3,40]")
def spectrogram_with_hann_windows(x: Array) -> object:
    starts = jnp.arange(4) * 8
    frames = jax.vmap(lambda s: lax.dynamic_slice(x, (0, s), (3, 16)))(starts)
    window = 0.5 - 0.5 * jnp.cos(2 * jnp.pi * jnp.arange(16) / 16)
    spec = jnp.fft.rfft(frames * window)
    return jnp.abs(spec), jnp.log1p(jnp.abs(spec) ** 2), jnp.angle(spec)


@of("c64[8]", "c64[8]")
def fields_of_complex_numbers(a: Array, b: Array) -> object:
    return a * b, a / b, jnp.conj(a) - b, jnp.abs(a + b), a * 1j, (a - b) ** 2, 1 / (a * a)


@of("c64[10]")
def elementary_functions_of_complex(z: Array) -> object:
    return jnp.exp(z), jnp.log(z), jnp.sqrt(z), jnp.sin(z), jnp.tanh(z / 2), jnp.angle(z)


@of("c64[5,5]", "c64[5,5]", "c64[5]")
def hermitian_algebra(a: Array, b: Array, x: Array) -> object:
    h = a @ a.conj().T
    return h, jnp.vdot(x, h @ x).real, a @ b - b @ a, jnp.trace(a.conj().T @ b), jnp.kron(x, x)


@of("c64[4,4]", "c64[4]")
def systems_of_complex_numbers(a: Array, b: Array) -> object:
    x = jnp.linalg.solve(a, b)
    return x, jnp.linalg.det(a), jnp.linalg.norm(a @ x - b) < 1e-3, jnp.linalg.inv(a)


@of("f32[12]", "f32[12]")
def gradient_through_complex_moduli(re: Array, im: Array) -> object:
    def loss(re: Array, im: Array) -> Array:
        z = lax.complex(re, im)
        return (jnp.abs(jnp.exp(1j * z) / (1 + z * z))).sum()

    return jax.grad(loss, (0, 1))(re, im)


@of("c64[6]", "c64[20]")
def polynomials_by_horner(c: Array, z: Array) -> object:
    value = jnp.polyval(c, z)
    slope = jnp.polyval(jnp.polyder(c), z)
    return value, z - value / slope


@of("c64[30]:unit", "c64[3]")
def filter_with_complex_poles(x: Array, a: Array) -> Array:
    pole = a / (1 + jnp.abs(a))

    def step(s: Array, x: Array) -> tuple[Array, Array]:
        s = pole * s + x
        return s, s.sum()

    return lax.scan(step, jnp.zeros(3, jnp.complex64), x)[1]


@of("c64[24]")
def transform_by_butterflies(x: Array) -> Array:
    x = x[:16]

    def halves(x: Array) -> Array:
        if len(x) == 1:
            return x
        even, odd = halves(x[::2]), halves(x[1::2])
        w = jnp.exp(-2j * jnp.pi * jnp.arange(len(even)) / len(x)).astype(jnp.complex64)
        return jnp.concatenate([even + w * odd, even - w * odd])

    return halves(x)


@of("f32[20]")
def analytic_signal_and_frequency(x: Array) -> object:
    f = jnp.fft.fft(x)
    gain = jnp.zeros(20).at[0].set(1).at[1:10].set(2).at[10].set(1)
    z = jnp.fft.ifft(f * gain)
    turn = jnp.angle(z[1:] * jnp.conj(z[:-1]))
    return jnp.abs(z), turn / (2 * jnp.pi)


@of("f32[6,10]")
def cosine_transform_and_back(x: Array) -> object:
    y = jax.scipy.fft.dct(x, norm="ortho")
    return y, jax.scipy.fft.idct(jnp.where(jnp.abs(y) > 0.5, y, 0), norm="ortho")


@of("f32[50]", "f32[7]")
def filters_of_scipy(x: Array, h: Array) -> object:
    full = jax.scipy.signal.fftconvolve(x, h, mode="same")
    return full, jax.scipy.signal.convolve(x, h, mode="valid"), jax.scipy.signal.correlate(x, h)


@of("f32[64]")
def density_by_welch(x: Array) -> object:
    return jax.scipy.signal.welch(x, nperseg=16)


@of("c64[2,2]", "c64[8]")
def gates_on_three_qubits(g: Array, psi: Array) -> object:
    u, _ = jnp.linalg.qr(g)
    state = (psi / jnp.linalg.norm(psi)).reshape(2, 2, 2)
    state = jnp.einsum("ij,ajb->aib", u, state)
    return jnp.abs(state) ** 2, jnp.einsum("abc,adc->bd", state, state.conj())
