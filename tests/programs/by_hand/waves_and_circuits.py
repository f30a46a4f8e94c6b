"""Complex numbers: sets of Julia, circuits of qubits, roots, contours, filters and layers."""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of

State = tuple[Array, ...]


@of("c64[10,10]")
def smooth_counts_of_a_julia_set(z: Array) -> tuple[Array, Array]:
    def step(carry: State, _: None) -> tuple[State, None]:
        z, n = carry
        inside = jnp.abs(z) < 4
        return (jnp.where(inside, z * z + (-0.4 + 0.6j), z), n + inside), None

    (z, n), _ = lax.scan(step, (z, jnp.zeros(z.shape, jnp.int32)), None, length=20)
    return n, n + 1 - jnp.log2(jnp.maximum(jnp.log(jnp.abs(z)), 1e-6))


@of("c64[6,6]")
def basins_of_newton(z: Array) -> tuple[Array, Array]:
    z = lax.fori_loop(0, 10, lambda _, z: z - (z**3 - 1) / (3 * z * z), z)
    roots = jnp.exp(2j * jnp.pi * jnp.arange(3) / 3)
    return jnp.abs(z[..., None] - roots).argmin(-1), z


def _gate(state: Array, gate: Array, *at: int) -> Array:
    n = len(at)
    gate = gate.reshape((2,) * (2 * n))
    state = jnp.tensordot(gate, state, (tuple(range(n, 2 * n)), at))
    return jnp.moveaxis(state, tuple(range(n)), at)


def _turn(t: Array) -> Array:
    c, s = jnp.cos(t / 2), jnp.sin(t / 2)
    return jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])]).astype(jnp.complex64)


_CNOT = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1), (0, 0, 1, 0))


@of("f32[2,3]:angles")
def variational_circuit_and_gradient(angles: Array) -> tuple[Array, Array]:
    cnot = jnp.array(_CNOT, jnp.complex64)

    def energy(angles: Array) -> Array:
        state = jnp.zeros((2, 2, 2), jnp.complex64).at[0, 0, 0].set(1)
        for row in angles:
            for q in range(3):
                state = _gate(state, _turn(row[q]), q)
            state = _gate(_gate(state, cnot, 0, 1), cnot, 1, 2)
        p = jnp.abs(state) ** 2
        z = jnp.array([1.0, -1.0])
        return jnp.einsum("abc,a,b->", p, z, z) + 0.5 * jnp.einsum("abc,c->", p, z)

    return jax.value_and_grad(energy)(angles)


@of("s32[]:below8")
def search_of_grover(marked: Array) -> Array:
    def step(_: int, s: Array) -> Array:
        s = jnp.where(jnp.arange(8) == marked, -s, s)
        return 2 * s.mean() - s

    return lax.fori_loop(0, 2, step, jnp.full(8, 1 / jnp.sqrt(8.0)))


@of("c64[16]")
def fourier_transform_of_qubits(x: Array) -> tuple[Array, Array]:
    state = (x / jnp.linalg.norm(x)).reshape(2, 2, 2, 2)
    h = jnp.array([[1, 1], [1, -1]], jnp.complex64) / jnp.sqrt(2.0)
    for q in range(4):
        state = _gate(state, h, q)
        for k in range(q + 1, 4):
            phase = jnp.diag(jnp.exp(1j * jnp.pi / 2.0 ** (k - q) * jnp.array([0, 0, 0, 1])))
            state = _gate(state, phase.astype(jnp.complex64), q, k)
    out = state.transpose(3, 2, 1, 0).reshape(16)
    return out, out - jnp.fft.ifft(x) * 4 / jnp.linalg.norm(x)


@of("c64[2,2]", "f32[3]:fraction")
def density_through_noisy_channels(a: Array, p: Array) -> State:
    rho = a @ a.conj().T
    rho = rho / jnp.trace(rho)
    x = jnp.array([[0, 1], [1, 0]], jnp.complex64)
    y = jnp.array([[0, -1j], [1j, 0]], jnp.complex64)
    z = jnp.array([[1, 0], [0, -1]], jnp.complex64)
    mixed = (1 - p[0]) * rho + p[0] / 3 * sum(m @ rho @ m.conj().T for m in (x, y, z))
    k0 = jnp.array([[1, 0], [0, 1]]) * jnp.stack([jnp.float32(1), jnp.sqrt(1 - p[1])])
    k1 = jnp.zeros((2, 2)).at[0, 1].set(jnp.sqrt(p[1]))
    damped = k0 @ mixed @ k0.T + k1 @ mixed @ k1.T
    bloch = jnp.stack([jnp.trace(damped @ m).real for m in (x, y, z)])
    w = jnp.linalg.eigvalsh(damped)
    return (
        damped,
        bloch,
        -jnp.sum(w * jnp.log(jnp.maximum(w, 1e-9))),
        jnp.trace(damped @ damped).real,
    )


@of("c64[4,4]", "c64[4]")
def evolution_by_an_exponential(a: Array, psi: Array) -> State:
    h = (a + a.conj().T) / 2
    u = jax.scipy.linalg.expm(-0.5j * h)
    after = u @ psi
    w, v = jnp.linalg.eigh(h)
    other = v @ (jnp.exp(-0.5j * w) * (v.conj().T @ psi))
    return after, jnp.abs(after - other), jnp.vdot(after, h @ after).real


@of("c64[6]")
def all_roots_by_aberth(c: Array) -> tuple[Array, Array]:
    c = jnp.concatenate([jnp.ones(1), c])
    d = c[:-1] * jnp.arange(6, 0, -1)
    z = 1.2 * jnp.exp(2j * jnp.pi * (jnp.arange(6) + 0.3) / 6)

    def step(z: Array, _: None) -> tuple[Array, Array]:
        ratio = jnp.polyval(c, z) / jnp.polyval(d, z)
        apart = z[:, None] - z + jnp.eye(6)
        push = (1 / apart).sum(1) - 1
        move = ratio / (1 - ratio * push)
        return z - move, jnp.abs(move).max()

    return lax.scan(step, z, None, length=6)


@of("f32[5]")
def roots_by_companion(c: Array) -> tuple[Array, Array]:
    z = jnp.roots(jnp.concatenate([jnp.ones(1), c]), strip_zeros=False)
    again = jnp.poly(z).real
    return jnp.sort(jnp.abs(z)), again


@of("c64[3]")
def integrals_around_poles(poles: Array) -> tuple[Array, Array]:
    t = 2 * jnp.pi * jnp.arange(64) / 64
    z = 3 * jnp.exp(1j * t)
    f = jnp.exp(z[:, None] / 4) / (z[:, None] - poles / 2)
    count = (1 / (z[:, None] - poles / 2) * 1j * z[:, None]).sum(0) * (2 * jnp.pi / 64)
    return (f * 1j * z[:, None]).sum(0) * (2 * jnp.pi / 64), count / (2j * jnp.pi)


@of("f32[5]:positive", "f32[16]:positive")
def light_through_thin_layers(depth: Array, wave: Array) -> State:
    index = jnp.array([2.3, 1.38, 2.3, 1.38, 2.3])

    def one(wave: Array) -> State:
        phase = 2 * jnp.pi * index * depth / (1 + wave)
        m = jnp.eye(2, dtype=jnp.complex64)
        for n in range(5):
            c, s = jnp.cos(phase[n]), jnp.sin(phase[n])
            m = m @ jnp.array([[c + 0j, 1j * s / index[n]], [1j * s * index[n], c + 0j]])
        b, c = m @ jnp.array([1.0, 1.52])
        r = (b - c) / (b + c)
        return jnp.abs(r) ** 2, jnp.angle(r), 4 * 1.52 / jnp.abs(b + c) ** 2

    return jax.vmap(one)(wave)


@of("f32[20]:positive", "f32[3]:positive")
def impedances_in_decibels(w: Array, rlc: Array) -> State:
    r, l, c = rlc  # noqa: E741
    s = 1j * w
    z = r + s * l + 1 / (s * c)
    gain = 1 / (s * c) / z
    group = jax.vmap(jax.grad(lambda w: jnp.angle(1 / (1 - w * w * l * c + 1j * w * r * c))))(w)
    return 20 * jnp.log10(jnp.abs(gain)), jnp.unwrap(jnp.angle(gain)), group


@of("f32[4]:positive", "f32[25]")
def analogue_filter_made_digital(p: Array, x: Array) -> tuple[Array, Array]:
    k = jnp.arange(4)
    poles = jnp.exp(1j * jnp.pi * (2 * k + 5) / 8) * (0.5 + p[0] / 8)
    z = (1 + poles / 2) / (1 - poles / 2)
    a = jnp.poly(z).real
    b = jnp.array([1.0, 4, 6, 4, 1]) * a.sum() / 16

    def step(s: Array, x: Array) -> tuple[Array, Array]:
        y = b[0] * x + s[0]
        return jnp.concatenate([s[1:], jnp.zeros(1)]) + b[1:] * x - a[1:] * y, y

    return a, lax.scan(step, jnp.zeros(4), x)[1]


@of("c64[8]", "c64[8]")
def slopes_of_complex_functions(z: Array, w: Array) -> State:
    f = lambda z: jnp.sum(jnp.sin(z) * jnp.conj(w) / (2 + z * z))  # noqa: E731
    g = lambda z: jnp.sum(jnp.abs(jnp.exp(z) - w) ** 2 + jnp.angle(z))  # noqa: E731
    return jax.grad(f, holomorphic=True)(z), jax.grad(g)(z), jax.jvp(jnp.sqrt, (z,), (w,))[1]


@of("c64[5,5]", "c64[5]")
def complex_least_squares_and_norms(a: Array, b: Array) -> State:
    x = jnp.linalg.solve(a.conj().T @ a + jnp.eye(5), a.conj().T @ b)
    sign, log = jnp.linalg.slogdet(a)
    return x, sign, log, jnp.linalg.svd(a, compute_uv=False), jnp.linalg.norm(a, 1)


@of("f32[12]:angles", "f32[12]:positive")
def airfoil_of_joukowski(t: Array, r: Array) -> State:
    z = (0.1 + r / 4) * jnp.exp(1j * t) + (-0.08 + 0.08j) + jnp.exp(1j * t)
    speed = 1 - 1 / z**2 + 0.5j / z
    slope = 1 - 1 / (z * z)
    return z + 1 / z, jnp.abs(speed / slope), 1 - jnp.abs(speed / slope) ** 2


@of("c128[10]")
def logarithm_of_gamma_by_stirling(z: Array) -> State:
    z = z + 3
    w = z + 6
    shift = reduce(lambda a, k: a + jnp.log(z + k), range(6), 0 * z)
    series = 1 / (12 * w) - 1 / (360 * w**3) + 1 / (1260 * w**5)
    found = (w - 0.5) * jnp.log(w) - w + 0.5 * jnp.log(2 * jnp.pi) + series - shift
    return found, jnp.exp(found), jnp.tanh(z), jnp.arctan(z / 3), z**0.3


@of("f32[7,2]", "c64[2,2,2]")
def product_of_matrices_for_each_bit(x: Array, a: Array) -> State:
    """The amplitude of a chain of sites, scaled as it goes."""

    def step(carry: State, row: Array) -> tuple[State, None]:
        v, log = carry
        v = jnp.einsum("i,pij,p->j", v, a, row.astype(jnp.complex64))
        n = jnp.linalg.norm(v)
        return (v / n, log + jnp.log(n)), None

    (v, log), _ = lax.scan(step, (jnp.ones(2, jnp.complex64), jnp.float32(0)), x)
    return v, log


@of("f32[24]")
def packet_that_meets_a_wall(noise: Array) -> tuple[Array, Array]:
    x = jnp.linspace(-6, 6, 24)
    psi = jnp.exp(-((x + 2) ** 2) + 3j * x) * (1 + 0.01 * noise)
    v = jnp.where(jnp.abs(x) < 0.5, 5.0, 0.0)
    dt, dx = 0.02, 12 / 23
    off = jnp.full(24, -0.25j * dt / dx**2)
    main = 1 + 0.5j * dt * (1 / dx**2 + v)

    def step(psi: Array, _: None) -> tuple[Array, Array]:
        wide = jnp.pad(psi, 1)
        right = (2 - main) * psi - off * (wide[2:] + wide[:-2])

        def ahead(carry: State, row: State) -> tuple[State, State]:
            c, d = carry
            low, mid, r = row
            m = mid - low * c
            new = low / m, (r - low * d) / m
            return new, new

        zero = jnp.zeros((), psi.dtype)
        _, (c, d) = lax.scan(ahead, (zero, zero), (off, main, right))

        def back(x: Array, row: State) -> tuple[Array, Array]:
            x = row[1] - row[0] * x
            return x, x

        _, psi = lax.scan(back, zero, (c, d), reverse=True)
        return psi, jnp.sum(jnp.abs(psi) ** 2)

    return lax.scan(step, psi.astype(jnp.complex64), None, length=3)
