"""Equations of motion and fields, stepped in time as solvers and games do."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jax.experimental.ode import odeint

from programs.function import of

State = tuple[Array, ...]


@of("f32[2]", "f32[5]:ascending", "f32[]:positive")
def oscillator_by_odeint(y: Array, t: Array, damping: Array) -> Array:
    def slope(y: Array, t: Array, c: Array) -> Array:
        return jnp.stack([y[1], -y[0] - c * y[1]])

    return odeint(slope, y, t - t[0], damping, mxstep=40)


@of("u32[2]", "f32[20]:positive", "f32[3]:positive")
def mean_reverting_paths_by_euler_and_milstein(key: Array, x: Array, p: Array) -> Array:
    def step(pair: Array, key: Array) -> tuple[Array, Array]:
        dw = 0.1 * random.normal(key, (20,))
        root = jnp.sqrt(jnp.maximum(pair, 0))
        pair = pair + p[0] * (p[1] - pair) * 0.01 + p[2] * root * dw
        pair = pair.at[1].add(0.25 * p[2] ** 2 * (dw**2 - 0.01))
        return pair, pair.mean(1)

    keys = random.split(random.wrap_key_data(key), 15)
    return lax.scan(step, jnp.stack([x, x]), keys)[1]


@of("f64[3]")
def multistep_methods_of_adams(y: Array) -> tuple[Array, Array]:
    def slope(y: Array) -> Array:
        return jnp.array([[-0.5, 2.0, 0.0], [-2.0, -0.5, 0.0], [0.0, 0.1, -1.0]]) @ y

    def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        y, f = carry
        guess = y + 0.05 / 12 * (23 * f[0] - 16 * f[1] + 5 * f[2])
        new = slope(guess)
        y = y + 0.05 / 24 * (9 * new + 19 * f[0] - 5 * f[1] + f[2])
        return (y, jnp.stack([slope(y), f[0], f[1]])), guess - y

    start = jnp.stack([slope(y), slope(y * 0.99), slope(y * 0.98)])
    (y, _), errors = lax.scan(step, (y, start), None, length=20)
    return y, errors


@of("f32[24]", "f32[]:positive")
def heat_by_crank_and_nicolson(u: Array, rate: Array) -> tuple[Array, Array]:
    r = rate / 8
    low = jnp.full(24, -r / 2).at[0].set(0)
    high = jnp.full(24, -r / 2).at[-1].set(0)
    main = jnp.full(24, 1 + r)

    def step(u: Array, _: None) -> tuple[Array, Array]:
        wide = jnp.pad(u, 1)
        right = u + r / 2 * (wide[2:] - 2 * u + wide[:-2])
        u = lax.linalg.tridiagonal_solve(low, main, high, right[:, None])[:, 0]
        return u, u.sum()

    return lax.scan(step, u, None, length=5)


@of("f64[2]", "f64[2]")
def orbit_by_yoshida(q: Array, p: Array) -> tuple[Array, Array]:
    root = 2.0 ** (1 / 3)
    weights = jnp.array([1, -root, 1]) / (2 - root)
    force = jax.grad(lambda q: 1 / jnp.sqrt(q @ q + 0.1))

    def step(state: State, _: None) -> tuple[State, Array]:
        q, p = state
        for w in weights:
            q = q + 0.025 * w * p
            p = p + 0.05 * w * force(q)
            q = q + 0.025 * w * p
        return (q, p), 0.5 * p @ p - 1 / jnp.sqrt(q @ q + 0.1)

    (q, p), energy = lax.scan(step, (q, p), None, length=10)
    return jnp.concatenate([q, p]), energy


_VELOCITIES = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))


@of("f32[9,8,10]:fraction")
def lattice_boltzmann_with_walls(f: Array) -> tuple[Array, Array]:
    c = jnp.array(_VELOCITIES, jnp.float32)
    w = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    wall = jnp.zeros((8, 10), bool).at[:, 0].set(True).at[3:5, 4:6].set(True)
    back = jnp.array([0, 3, 4, 1, 2, 7, 8, 5, 6])

    def step(f: Array, _: None) -> tuple[Array, Array]:
        rho = f.sum(0)
        u = jnp.einsum("kxy,kd->dxy", f, c) / rho
        cu = jnp.einsum("kd,dxy->kxy", c, u)
        rest = rho * w[:, None, None] * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (u**2).sum(0))
        new = jnp.where(wall, f[back], f - (f - rest) / 0.8)
        new = jnp.stack([jnp.roll(new[k], by, (0, 1)) for k, by in enumerate(_VELOCITIES)])
        return new, rho.sum()

    return lax.scan(step, f + 1, None, length=3)


@of("f32[6,6,3]:hundredths")
def cloth_that_falls(offset: Array) -> tuple[Array, Array]:
    grid = jnp.stack(jnp.meshgrid(jnp.arange(6.0), jnp.arange(6.0)), -1)
    x = jnp.concatenate([grid, jnp.zeros((6, 6, 1))], -1) + offset

    def pull(a: Array, b: Array) -> tuple[Array, Array]:
        d = b - a
        r = jnp.linalg.norm(d, axis=-1, keepdims=True)
        move = 0.25 * d * (1 - 1 / r)
        return move, -move

    def step(state: State, _: None) -> tuple[State, None]:
        x, old = state
        x, old = 2 * x - old + jnp.array([0, 0, -0.01]), x
        for axis in (0, 1):
            a = lax.slice_in_dim(x, 0, 5, axis=axis)
            b = lax.slice_in_dim(x, 1, 6, axis=axis)
            up, down = pull(a, b)
            first = [(0, 1), (0, 0)] if axis == 0 else [(0, 0), (0, 1)]
            second = [(1, 0), (0, 0)] if axis == 0 else [(0, 0), (1, 0)]
            x = x + jnp.pad(up, [*first, (0, 0)]) + jnp.pad(down, [*second, (0, 0)])
        return (x.at[0].set(grid_top), old), None

    grid_top = x[0]
    return lax.scan(step, (x, x), None, length=4)[0]


@of("f32[20,2]:fraction")
def densities_and_forces_of_a_fluid(x: Array) -> tuple[Array, Array]:
    d = x[:, None] - x[None]
    d = d - jnp.round(d)
    r = jnp.sqrt((d**2).sum(-1) + 1e-12)
    q = r / 0.2
    kernel = jnp.where(q < 1, 1 - 1.5 * q**2 + 0.75 * q**3, 0.25 * jnp.maximum(2 - q, 0) ** 3)
    rho = kernel.sum(1)
    pressure = 3.0 * ((rho / 2) ** 7 - 1)
    slope = jnp.where(q < 1, -3 * q + 2.25 * q**2, -0.75 * jnp.maximum(2 - q, 0) ** 2)
    push = -(pressure[:, None] / rho[:, None] ** 2 + pressure / rho**2) * slope / r
    return rho, (push[..., None] * d).sum(1)


@of("f64[32]")
def solitons_by_an_integrating_factor(noise: Array) -> Array:
    """Korteweg and de Vries by FFT and Runge and Kutta."""
    x = 2 * jnp.pi * jnp.arange(32) / 32 - jnp.pi
    u = 3 / jnp.cosh(x) ** 2 + 0.01 * noise
    k = jnp.fft.rfftfreq(32, 1 / 32)

    def slope(v: Array, t: Array | float) -> Array:
        e = jnp.exp(1j * k**3 * t)
        u = jnp.fft.irfft(v * e, 32)
        return -3j * k * jnp.conj(e) * jnp.fft.rfft(u * u)

    def step(v: Array, t: Array) -> tuple[Array, None]:
        h = 1e-3
        a = slope(v, t)
        b = slope(v + h / 2 * a, t + h / 2)
        c = slope(v + h / 2 * b, t + h / 2)
        d = slope(v + h * c, t + h)
        return v + h / 6 * (a + 2 * b + 2 * c + d), None

    v, _ = lax.scan(step, jnp.fft.rfft(u), 1e-3 * jnp.arange(4.0))
    return jnp.fft.irfft(v * jnp.exp(1j * k**3 * 4e-3), 32)


@of("f32[12,12]:hundredths", "f32[12,12]:hundredths", "f32[12,12]:hundredths")
def shallow_water_by_lax_and_friedrichs(h: Array, u: Array, v: Array) -> State:
    def mean(x: Array) -> Array:
        return sum(jnp.roll(x, s, a) for s in (1, -1) for a in (0, 1)) / 4

    def across(x: Array, axis: int) -> Array:
        return (jnp.roll(x, -1, axis) - jnp.roll(x, 1, axis)) / 2

    def step(_: int, state: State) -> State:
        h, hu, hv = state
        p = 0.5 * 9.81 * h * h
        cross = hu * hv / h
        return (
            mean(h) - 0.02 * (across(hu, 0) + across(hv, 1)),
            mean(hu) - 0.02 * (across(hu * hu / h + p, 0) + across(cross, 1)),
            mean(hv) - 0.02 * (across(cross, 0) + across(hv * hv / h + p, 1)),
        )

    return lax.fori_loop(0, 5, step, (1 + h, u, v))


@of("f32[40]:hundredths", "s32[]:below40")
def fields_of_maxwell_in_a_cavity(e: Array, source: Array) -> tuple[Array, Array]:
    def step(state: State, n: Array) -> tuple[State, Array]:
        e, h = state
        h = h.at[:-1].add(0.5 * (e[1:] - e[:-1]))
        inside = e.at[1:].add(0.5 * (h[1:] - h[:-1]))
        e = inside.at[source].add(jnp.exp(-(((n - 8) / 4) ** 2)))
        return (e.at[0].set(e[1]), h), e[20]

    (e, _), seen = lax.scan(step, (e, jnp.zeros(40)), jnp.arange(16.0))
    return e, seen


@of("f32[10,10]")
def distances_by_fast_sweeping(speed: Array) -> Array:
    """Eikonal equation: |∇t| = 1 + speed², from one corner."""
    cost = 1 + speed**2

    def relax(t: Array, _: None) -> tuple[Array, None]:
        wide = jnp.pad(t, 1, constant_values=1e3)
        a = jnp.minimum(wide[:-2, 1:-1], wide[2:, 1:-1])
        b = jnp.minimum(wide[1:-1, :-2], wide[1:-1, 2:])
        far = jnp.abs(a - b) >= cost
        inner = jnp.where(far, 0.0, 2 * cost**2 - (a - b) ** 2)
        new = jnp.where(far, jnp.minimum(a, b) + cost, (a + b + jnp.sqrt(inner)) / 2)
        return jnp.minimum(t, new).at[0, 0].set(0), None

    return lax.scan(relax, jnp.full((10, 10), 1e3).at[0, 0].set(0), None, length=24)[0]


@of("f32[16,16]")
def phases_that_separate(u: Array) -> tuple[Array, Array]:
    """Cahn and Hilliard, implicit in the stiff part."""
    k = 2 * jnp.pi * jnp.fft.fftfreq(16)
    square = k[:, None] ** 2 + k**2

    def step(u: Array, _: None) -> tuple[Array, Array]:
        f = jnp.fft.fft2(u**3 - 3 * u)
        v = (jnp.fft.fft2(u) - 0.1 * square * f) / (1 + 0.1 * square * (2 + 0.5 * square))
        u = jnp.fft.ifft2(v).real
        return u, jnp.mean((u**2 - 1) ** 2) / 4

    return lax.scan(step, u / 4, None, length=4)


@of("f32[31]:positive", "f32[2]:fraction")
def put_option_by_finite_differences(noise: Array, p: Array) -> tuple[Array, Array]:
    """An American put: explicit steps of Black and Scholes with early exercise."""
    s = jnp.linspace(0, 3, 31) + 0 * noise
    sigma, rate = 0.1 + 0.2 * p[0], 0.05 * p[1]
    payoff = jnp.maximum(1 - s, 0)

    def step(v: Array, _: None) -> tuple[Array, Array]:
        d1 = (v[2:] - v[:-2]) / 0.2
        d2 = (v[2:] - 2 * v[1:-1] + v[:-2]) / 0.01
        inner = v[1:-1] + 0.01 * (
            0.5 * sigma**2 * s[1:-1] ** 2 * d2 + rate * s[1:-1] * d1 - rate * v[1:-1]
        )
        new = jnp.maximum(v.at[1:-1].set(inner), payoff)
        return new, (new <= payoff).sum()

    return lax.scan(step, payoff, None, length=20)


@of("f32[17,17]", "f32[17,17]")
def poisson_by_two_grids(u: Array, f: Array) -> tuple[Array, Array]:
    def near(u: Array) -> Array:
        return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]

    def smooth(u: Array, f: Array, h: float) -> Array:
        def relax(_: int, u: Array) -> Array:
            new = u[1:-1, 1:-1] / 5 + 0.2 * (near(u) - h * h * f[1:-1, 1:-1])
            return u.at[1:-1, 1:-1].set(new)

        return lax.fori_loop(0, 3, relax, u)

    u = u * 0
    u = smooth(u, f, 1 / 16)
    rest = jnp.zeros_like(u).at[1:-1, 1:-1].set(f[1:-1, 1:-1] - 256 * (near(u) - 4 * u[1:-1, 1:-1]))
    coarse = smooth(jnp.zeros((9, 9)), rest[::2, ::2], 1 / 8)
    fine = jax.image.resize(coarse, (17, 17), "linear")
    return smooth(u + fine, f, 1 / 16), rest


@of("f32[3,8]", "f32[8,3]", "f32[3]")
def gradient_through_a_neural_equation(a: Array, b: Array, y: Array) -> State:
    def loss(a: Array, b: Array, y: Array) -> Array:
        slope = lambda y: jnp.tanh(y @ a) @ b / 4  # noqa: E731

        def step(y: Array, _: None) -> tuple[Array, None]:
            middle = y + 0.05 * slope(y)
            return y + 0.1 * slope(middle), None

        end, _ = lax.scan(jax.checkpoint(step), y, None, length=8)
        return (end**2).sum()

    return jax.grad(loss, (0, 1, 2))(a, b, y)


@of("f32[16]:angles", "f32[16]", "f32[16,16]:fraction")
def phases_of_coupled_oscillators(phase: Array, speed: Array, links: Array) -> tuple[Array, Array]:
    links = (links < 0.3).astype(jnp.float32)

    def step(x: Array, _: None) -> tuple[Array, Array]:
        pull = (links * jnp.sin(x[None] - x[:, None])).sum(1)
        x = jnp.mod(x + 0.05 * (speed + 0.5 * pull), 2 * jnp.pi)
        return x, jnp.abs(jnp.exp(1j * x).mean())

    return lax.scan(step, phase, None, length=10)


@of("u32[2]", "f32[10,3]:fraction")
def langevin_steps_in_a_box(key: Array, x: Array) -> tuple[Array, Array]:
    def energy(x: Array) -> Array:
        d = x[:, None] - x[None]
        d = d - jnp.round(d)
        square = (d**2).sum(-1) + jnp.eye(10)
        return 0.5 * jnp.sum(jnp.exp(-20 * square) * (1 - jnp.eye(10)))

    def step(x: Array, key: Array) -> tuple[Array, Array]:
        value, slope = jax.value_and_grad(energy)(x)
        x = x - 0.01 * slope + 0.02 * random.normal(key, x.shape)
        return x - jnp.floor(x), value

    return lax.scan(step, x, random.split(random.wrap_key_data(key), 4))


@of("f32[4]")
def two_pendulums_and_their_jacobian(y: Array) -> tuple[Array, Array]:
    def slope(y: Array) -> Array:
        a, b, u, v = y
        d, c = a - b, jnp.cos(a - b)
        m = jnp.array([[2.0, 0], [0, 1.0]]) + c * jnp.array([[0, 1.0], [1.0, 0]])
        right = jnp.stack([-(v**2) * jnp.sin(d) - 2 * jnp.sin(a), u**2 * jnp.sin(d) - jnp.sin(b)])
        det = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
        acc = jnp.stack(
            [m[1, 1] * right[0] - m[0, 1] * right[1], m[0, 0] * right[1] - m[1, 0] * right[0]]
        )
        return jnp.concatenate([jnp.stack([u, v]), acc / det])

    def after(y: Array) -> Array:
        return lax.fori_loop(0, 6, lambda _, y: y + 0.02 * slope(y), y)

    return after(y), jax.jacfwd(after)(y)


@of("f32[6,2]", "f32[6,2]")
def discs_that_bounce(x: Array, v: Array) -> State:
    """Impulses between discs that touch and come nearer, and walls of a box."""

    def step(_: int, state: State) -> State:
        x, v = state
        d = x[:, None] - x[None]
        r = jnp.sqrt((d**2).sum(-1) + jnp.eye(6))
        n = d / r[..., None]
        speed = ((v[:, None] - v[None]) * n).sum(-1)
        touch = (r < 0.6) & (speed < 0) & ~jnp.eye(6, dtype=bool)
        v = v - (jnp.where(touch, speed, 0)[..., None] * n).sum(1)
        v = jnp.where(jnp.abs(x) > 2, -jnp.sign(x) * jnp.abs(v), v)
        return x + 0.1 * v, v

    return lax.fori_loop(0, 10, step, (x, v))
