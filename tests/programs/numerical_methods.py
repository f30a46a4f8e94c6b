"""Equations of motion, transforms, filters, quadrature and linear algebra, as in science."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax, random

from programs.function import of


@of("f64[3]:positive")
def stiff_kinetics_by_implicit_euler(y: Array) -> Array:
    """Robertson's three reactions: Newton's method in each step."""

    def slope(y: Array) -> Array:
        a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return jnp.stack([b - a, a - b - c, c])

    def step(y: Array, h: Array) -> tuple[Array, Array]:
        def newton(_: int, new: Array) -> Array:
            jacobian = jnp.eye(3) - h * jax.jacfwd(slope)(new)
            return new - jnp.linalg.solve(jacobian, new - y - h * slope(new))

        y = lax.fori_loop(0, 4, newton, y)
        return y, y

    return lax.scan(step, y / y.sum(), 10.0 ** jnp.arange(-5.0, 1.0))[1]


@of("f32[2]:positive", "f32[]:positive")
def van_der_pol_by_dormand_and_prince(y: Array, mu: Array) -> tuple[Array, Array]:
    """Steps of a pair of orders whose size follows the error, until t is one."""

    def slope(y: Array) -> Array:
        return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        t, h, y = state
        h = jnp.minimum(h, 1 - t)
        a = slope(y)
        b = slope(y + h / 2 * a)
        c = slope(y + h * 3 / 4 * b)
        new = y + h * (2 * a + 3 * b + 4 * c) / 9
        d = slope(new)
        error = h * (-5 * a / 72 + b / 12 + c / 9 - d / 8)
        size = jnp.sqrt(jnp.mean((error / (1e-4 + 1e-3 * jnp.abs(new))) ** 2))
        good = size <= 1
        factor = jnp.clip(0.9 * size ** (-1 / 3), 0.2, 5.0)
        return jnp.where(good, t + h, t), h * factor, jnp.where(good, new, y)

    t, _, y = lax.while_loop(lambda s: s[0] < 1, attempt, (jnp.float32(0), jnp.float32(0.05), y))
    return t, y


@of("f32[4,2]", "f32[4,2]", "f32[4]:positive")
def planets_by_velocity_verlet(x: Array, v: Array, m: Array) -> tuple[Array, Array, Array]:
    def pull(x: Array) -> Array:
        d = x[None] - x[:, None]
        r = jnp.sqrt((d**2).sum(-1) + 1e-2)
        return (m[None, :, None] * d / r[..., None] ** 3).sum(1)

    def step(state: tuple[Array, ...], _: None) -> tuple[tuple[Array, ...], Array]:
        x, v, a = state
        x = x + 0.01 * v + 0.5e-4 * a
        new = pull(x)
        v = v + 0.005 * (a + new)
        return (x, v, new), 0.5 * (m * (v**2).sum(-1)).sum()

    (x, v, _), energy = lax.scan(step, (x, v, pull(x)), None, length=25)
    return x, v, energy


@of("f32[64]:grid", "f32[64]")
def schroedinger_by_split_steps(x: Array, noise: Array) -> tuple[Array, Array]:
    """A wave packet in a well: half a step of the potential, a step of FFTs, half a step."""
    x = 10 * x - 5
    psi = (jnp.exp(-((x + 1) ** 2) + 2j * x) * (1 + 0.01 * noise)).astype(jnp.complex64)
    k = 2 * jnp.pi * jnp.fft.fftfreq(64, 10 / 63)
    half = jnp.exp(-0.5j * 0.02 * (0.5 * x**2)).astype(jnp.complex64)
    drift = jnp.exp(-0.5j * 0.02 * k**2).astype(jnp.complex64)

    def step(psi: Array, _: None) -> tuple[Array, Array]:
        psi = half * jnp.fft.ifft(drift * jnp.fft.fft(half * psi))
        return psi, jnp.sum(jnp.abs(psi) ** 2)

    return lax.scan(step, psi, None, length=10)


@of("f32[32,32]")
def poisson_by_transforms(f: Array) -> Array:
    f = f - f.mean()
    k = 2 * jnp.pi * jnp.fft.fftfreq(32, 1 / 32)
    r = 2 * jnp.pi * jnp.fft.rfftfreq(32, 1 / 32)
    square = k[:, None] ** 2 + r[None] ** 2
    found = jnp.where(square > 0, jnp.fft.rfft2(f) / -jnp.where(square > 0, square, 1), 0)
    return jnp.fft.irfft2(found, (32, 32))


@of("f32[24,24]:hundredths", "f32[24,24]:fraction")
def reaction_and_diffusion(u: Array, v: Array) -> tuple[Array, Array]:
    """The patterns of Gray and Scott."""

    def spread(x: Array) -> Array:
        return sum(jnp.roll(x, by, axis) for by in (1, -1) for axis in (0, 1)) - 4 * x

    def step(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        u, v = state
        reaction = u * v * v
        u = u + 0.16 * spread(u) - reaction + 0.035 * (1 - u)
        return u, v + 0.08 * spread(v) + reaction - 0.1 * v

    return lax.fori_loop(0, 12, step, (1 + u, v / 4))


@of("f64[33]", "f64[33]:positive")
def advection_with_limited_slopes(u: Array, speed: Array) -> Array:
    def step(u: Array, _: None) -> tuple[Array, None]:
        before, after = u - jnp.roll(u, 1), jnp.roll(u, -1) - u
        ratio = before / jnp.where(after == 0, 1e-12, after)
        limit = jnp.maximum(0, jnp.maximum(jnp.minimum(2 * ratio, 1), jnp.minimum(ratio, 2)))
        flux = speed * (u + 0.5 * limit * after)
        return u - 0.1 * (flux - jnp.roll(flux, 1)), None

    return lax.scan(step, u, None, length=6)[0]


@of("f32[40,2]", "f32[2,2]:hundredths", "f32[4,4]:definite", "f32[2,2]:definite")
def kalman_filter_and_smoother(y: Array, tilt: Array, q: Array, r: Array) -> tuple[Array, Array]:
    move = jnp.eye(4) + 0.1 * jnp.eye(4, k=2)
    see = jnp.concatenate([jnp.eye(2) + tilt, jnp.zeros((2, 2))], 1)

    def forward(state: tuple[Array, Array], y: Array) -> tuple[tuple[Array, Array], object]:
        m, p = state
        m, p = move @ m, move @ p @ move.T + 0.01 * q
        gain = jnp.linalg.solve(see @ p @ see.T + r, see @ p).T
        new = m + gain @ (y - see @ m), p - gain @ see @ p
        return new, (m, p, *new)

    def backward(state: tuple[Array, Array], row: tuple[Array, ...]) -> tuple[object, object]:
        m, p = state
        ahead, wide, here, narrow = row
        gain = jnp.linalg.solve(wide, move @ narrow).T
        new = here + gain @ (m - ahead), narrow + gain @ (p - wide) @ gain.T
        return new, new

    last, rows = lax.scan(forward, (jnp.zeros(4), jnp.eye(4)), y)
    return lax.scan(backward, last, jax.tree.map(lambda x: x[:-1], rows), reverse=True)[1]


@of("f32[3]", "f32[3,3]:definite", "f32[2]:positive")
def unscented_transform(mean: Array, covariance: Array, seen: Array) -> tuple[Array, Array]:
    root = jnp.linalg.cholesky(3.0 * covariance)
    points = jnp.concatenate([mean[None], mean + root.T, mean - root.T])
    weights = jnp.array([0.0] + [1 / 6] * 6)
    polar = jnp.stack(
        [jnp.hypot(points[:, 0], points[:, 1]), jnp.arctan2(points[:, 1], points[:, 0])]
    )
    centre = polar @ weights
    off = polar - centre[:, None]
    spread = (weights * off) @ off.T + 0.1 * jnp.eye(2)
    cross = (weights * (points - mean).T) @ off.T
    gain = jnp.linalg.solve(spread, cross.T).T
    return mean + gain @ (seen - centre), covariance - gain @ spread @ gain.T


@of("u32[2]", "f32[]:positive", "f32[]:fraction")
def asian_option_by_antithetic_paths(key: Array, strike: Array, rate: Array) -> tuple[Array, Array]:
    z = random.normal(random.wrap_key_data(key), (100, 12))
    z = jnp.concatenate([z, -z])
    steps = (rate / 10 - 0.02) / 12 + 0.2 * jnp.sqrt(1 / 12) * z
    prices = jnp.exp(jnp.cumsum(steps, 1))
    payoff = jnp.exp(-rate / 10) * jnp.maximum(prices.mean(1) - strike / 2, 0)
    geometric = jnp.maximum(jnp.exp(jnp.log(prices).mean(1)) - strike / 2, 0)
    slope = jnp.cov(payoff, geometric)
    return payoff.mean(), slope[0, 1] / slope[1, 1]


@of("u32[2]", "s8[16,16]:below2")
def ising_sweeps_on_a_chequerboard(key: Array, spins: Array) -> tuple[Array, Array]:
    odd = (jnp.arange(16)[:, None] + jnp.arange(16)) % 2
    spins = 2 * spins.astype(jnp.int32) - 1

    def sweep(spins: Array, key: Array) -> tuple[Array, Array]:
        for parity, half in enumerate(random.split(key)):
            near = sum(jnp.roll(spins, by, axis) for by in (1, -1) for axis in (0, 1))
            chance = jnp.exp(-0.8 * (spins * near).astype(jnp.float32))
            turned = (random.uniform(half, (16, 16)) < chance) & (odd == parity)
            spins = jnp.where(turned, -spins, spins)
        return spins, jnp.abs(spins.mean())

    return lax.scan(sweep, spins, random.split(random.wrap_key_data(key), 8))


@of("u32[2]", "f32[3]", "f32[3,3]:definite")
def hamiltonian_sampler(key: Array, x: Array, precision: Array) -> tuple[Array, Array]:
    def energy(x: Array) -> Array:
        return 0.5 * x @ precision @ x + 0.1 * (x**4).sum()

    def draw(x: Array, key: Array) -> tuple[Array, Array]:
        one, two = random.split(key)
        p = random.normal(one, (3,))

        def leap(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
            x, p = state
            p = p - 0.05 * jax.grad(energy)(x)
            x = x + 0.1 * p
            return x, p - 0.05 * jax.grad(energy)(x)

        y, q = lax.fori_loop(0, 5, leap, (x, p))
        change = energy(x) + 0.5 * p @ p - energy(y) - 0.5 * q @ q
        taken = jnp.log(random.uniform(two)) < change
        return jnp.where(taken, y, x), taken

    def split(x: Array, key: Array) -> tuple[Array, tuple[Array, Array]]:
        x, taken = draw(x, key)
        return x, (x, taken)

    return lax.scan(split, x, random.split(random.wrap_key_data(key), 6))[1]


@of("f64[12]:positive", "f64[]:fraction")
def gauss_legendre_by_golub_and_welsch(scale: Array, shift: Array) -> tuple[Array, Array]:
    """Nodes and weights by eigh of the Jacobi matrix, then the integrals of a few functions."""
    n = jnp.arange(1.0, 12.0)
    beside = n / jnp.sqrt(4 * n**2 - 1)
    nodes, vectors = jnp.linalg.eigh(jnp.diag(beside, 1) + jnp.diag(beside, -1))
    weights = 2 * vectors[0] ** 2
    values = jnp.exp(-scale[:, None] * nodes**2) * jnp.cos(nodes + shift)
    return nodes, values @ weights


@of("f64[9]:ascending", "f64[9]", "f64[30]:unit")
def natural_cubic_spline(xs: Array, ys: Array, x: Array) -> Array:
    h = jnp.diff(xs)
    slopes = jnp.diff(ys) / h
    below = jnp.concatenate([jnp.zeros(1), h[:-1], jnp.zeros(1)])
    middle = jnp.concatenate([jnp.ones(1), 2 * (h[:-1] + h[1:]), jnp.ones(1)])
    above = jnp.concatenate([jnp.zeros(1), h[1:], jnp.zeros(1)])
    right = jnp.concatenate([jnp.zeros(1), 6 * jnp.diff(slopes), jnp.zeros(1)])
    m = lax.linalg.tridiagonal_solve(below, middle, above, right[:, None])[:, 0]
    i = jnp.clip(jnp.searchsorted(xs, x, side="right") - 1, 0, 7)
    a, b = xs[i + 1] - x, x - xs[i]
    cubic = (m[i] * a**3 + m[i + 1] * b**3) / (6 * h[i])
    return (
        cubic + (ys[i] / h[i] - m[i] * h[i] / 6) * a + (ys[i + 1] / h[i] - m[i + 1] * h[i] / 6) * b
    )


@of("f64[16]", "f64[7]:unit")
def chebyshev_series_and_derivative(values: Array, x: Array) -> tuple[Array, Array, Array]:
    n = values.shape[0]
    k = jnp.arange(n)
    angles = jnp.pi * (k + 0.5) / n
    coefficients = 2 / n * jnp.cos(k[:, None] * angles) @ values
    coefficients = coefficients.at[0].divide(2)

    def clenshaw(x: Array) -> Array:
        def step(carry: tuple[Array, Array], c: Array) -> tuple[tuple[Array, Array], None]:
            return (c + 2 * x * carry[0] - carry[1], carry[0]), None

        (a, b), _ = lax.scan(step, (jnp.zeros(()), jnp.zeros(())), coefficients[:0:-1])
        return coefficients[0] + x * a - b

    return coefficients, jax.vmap(clenshaw)(x), jax.vmap(jax.grad(clenshaw))(x)


@of("f32[20,6]", "f32[20]", "f32[6]:positive")
def weighted_least_squares_with_errors(x: Array, y: Array, ridge: Array) -> tuple[Array, ...]:
    q, r = jnp.linalg.qr(jnp.concatenate([x, jnp.diag(jnp.sqrt(ridge))]))
    b = jax.scipy.linalg.solve_triangular(r, q.T @ jnp.concatenate([y, jnp.zeros(6)]))
    rest = y - x @ b
    inverse = jax.scipy.linalg.solve_triangular(r, jnp.eye(6))
    variance = (rest @ rest) / 14
    errors = jnp.sqrt(variance * (inverse**2).sum(1))
    return b, errors, jnp.abs(b / errors)


@of("f32[5,30]", "f32[5,5]:definite")
def whitened_and_independent_components(x: Array, mix: Array) -> tuple[Array, Array]:
    x = mix @ x**3
    x = x - x.mean(1, keepdims=True)
    values, vectors = jnp.linalg.eigh(x @ x.T / 30)
    white = (vectors / jnp.sqrt(values)).T @ x
    w = jnp.ones(5) / jnp.sqrt(5.0)
    for _ in range(4):
        y = jnp.tanh(w @ white)
        w = (white * y).mean(1) - (1 - y**2).mean() * w
        w = w / jnp.linalg.norm(w)
    return w @ white, jnp.abs(w)


@of("f32[40]:positive", "f32[40]:fraction")
def airy_struve_and_elliptic_series(x: Array, m: Array) -> tuple[Array, Array, Array]:
    """Ai by its series, K by the arithmetic and geometric mean, J0 by an integral."""

    def term(k: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
        f, g, a, b = state
        a = a * x**3 / ((3 * k + 2) * (3 * k + 3))
        b = b * x**3 / ((3 * k + 3) * (3 * k + 4))
        return f + a, g + b, a, b

    f, g, _, _ = lax.fori_loop(0, 15, term, (jnp.ones_like(x), x, jnp.ones_like(x), x))

    def mean(state: tuple[Array, Array]) -> tuple[Array, Array]:
        return (state[0] + state[1]) / 2, jnp.sqrt(state[0] * state[1])

    a = jnp.ones_like(m), jnp.sqrt(1 - m)
    for _ in range(5):
        a = mean(a)
    theta = jnp.linspace(0, jnp.pi, 33)
    bessel = jnp.trapezoid(jnp.cos(x[:, None] * jnp.sin(theta)), theta) / jnp.pi
    return 0.355028054 * f - 0.258819404 * g, jnp.pi / 2 / a[0], bessel


@of("c64[24]", "c64[5]")
def zeta_and_gamma_of_complex_numbers(z: Array, w: Array) -> tuple[Array, Array, Array]:
    """Lanczos' approximation of Γ, ζ by alternating terms, and Joukowski's map."""
    numbers = (676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059)
    z = z + 2
    total = 0.99999999999980993 + sum(c / (z + i) for i, c in enumerate(numbers))
    t = z + 3.5
    gamma = jnp.sqrt(2 * jnp.pi) * t ** (z - 0.5) * jnp.exp(-t) * total
    n = jnp.arange(1, 25)
    signs = (-1.0) ** (n - 1)
    eta = (signs * jnp.exp(-(w[:, None] + 2) * jnp.log(n))).sum(-1)
    return gamma, eta / (1 - 2 ** (1 - (w + 2))), (z + 1 / z) / 2


@of("f32[16,16]", "f32[3]:fraction")
def radon_transform_and_back(image: Array, angles: Array) -> tuple[Array, Array]:
    """Rows of a turned image, filtered by a ramp, and smeared back."""
    at = jnp.arange(16.0) - 7.5

    def turned(image: Array, angle: Array) -> Array:
        c, s = jnp.cos(angle), jnp.sin(angle)
        x, y = at[None], at[:, None]
        places = [s * x + c * y + 7.5, c * x - s * y + 7.5]
        return jax.scipy.ndimage.map_coordinates(image, places, order=1, mode="constant")

    angles = jnp.pi * angles
    rows = jax.vmap(lambda a: turned(image, a).sum(0))(angles)
    ramp = jnp.abs(jnp.fft.rfftfreq(16))
    filtered = jnp.fft.irfft(jnp.fft.rfft(rows) * ramp, 16)
    back = jax.vmap(lambda r, a: turned(jnp.tile(r, (16, 1)), -a))(filtered, angles)
    return rows, back.sum(0)
