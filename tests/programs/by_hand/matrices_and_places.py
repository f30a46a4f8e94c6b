"""Factors, functions and gradients of matrices; points, turns and cameras."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jax import Array, lax

from programs.function import of

State = tuple[Array, ...]


@of("f32[4,4]", "f32[4,4]")
def slope_of_an_exponential_of_a_matrix(a: Array, b: Array) -> State:
    return jax.jvp(lambda a: jsl.expm(a / 2), (a,), (b,))


@of("f32[5,5]:definite", "f32[5]")
def gradients_of_a_solution(a: Array, b: Array) -> State:
    return jax.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 3), (0, 1))(a, b)


@of("f32[6,3]", "f32[3]")
def gradients_of_a_qr_factorisation(a: Array, w: Array) -> Array:
    return jax.grad(lambda a: jnp.abs(jnp.linalg.qr(a)[1] @ w).sum())(a)


@of("f64[4,4]:definite")
def second_derivative_of_eigenvalues(a: Array) -> tuple[Array, Array]:
    f = lambda t: jnp.linalg.eigvalsh(a + t * jnp.diag(jnp.arange(4.0)))  # noqa: E731
    return jax.jacfwd(f)(0.0), jax.jacfwd(jax.jacrev(f))(0.0)


@of("f32[5,5]:definite", "f32[5]")
def cholesky_after_an_update(a: Array, x: Array) -> tuple[Array, Array]:
    low = jnp.linalg.cholesky(a)

    def step(carry: State, k: Array) -> tuple[State, None]:
        low, x = carry
        r = jnp.hypot(low[k, k], x[k])
        c, s = r / low[k, k], x[k] / low[k, k]
        below = jnp.arange(5) > k
        column = jnp.where(below, (low[:, k] + s * x) / c, low[:, k]).at[k].set(r)
        x = jnp.where(below, c * x - s * column, x)
        return (low.at[:, k].set(column), x), None

    (new, _), _ = lax.scan(step, (low, x), jnp.arange(5))
    return new, new @ new.T - a


@of("f32[6,6]:definite")
def inverse_by_blocks_and_complement(a: Array) -> State:
    p, q, s = a[:3, :3], a[:3, 3:], a[3:, 3:]
    pi = jnp.linalg.inv(p)
    rest = s - q.T @ pi @ q
    ri = jnp.linalg.inv(rest)
    corner = pi + pi @ q @ ri @ q.T @ pi
    return jnp.block([[corner, -pi @ q @ ri], [-ri @ q.T @ pi, ri]]), jnp.linalg.det(rest)


@of("f32[8,8]", "f32[8]")
def basis_of_arnoldi(a: Array, b: Array) -> tuple[Array, Array]:
    def step(basis: Array, k: Array) -> tuple[Array, Array]:
        w = a @ basis[k]
        h = basis @ w
        w = w - h @ basis
        again = basis @ w
        w = w - again @ basis
        r = jnp.linalg.norm(w)
        return basis.at[k + 1].set(w / r), (h + again).at[k + 1].set(r)

    start = jnp.zeros((6, 8)).at[0].set(b / jnp.linalg.norm(b))
    return lax.scan(step, start, jnp.arange(5))


@of("f32[3,3]", "f32[3,3]:definite")
def equation_of_lyapunov_by_kronecker(a: Array, q: Array) -> tuple[Array, Array]:
    a = a / 4 - 2 * jnp.eye(3)
    k = jnp.kron(jnp.eye(3), a) + jnp.kron(a, jnp.eye(3))
    x = jnp.linalg.solve(k, -q.reshape(-1)).reshape(3, 3)
    return x, a @ x + x @ a.T + q


@of("f32[8]", "f32[8]")
def toeplitz_by_levinson(r: Array, y: Array) -> Array:
    r = r / 8
    r = r.at[0].set(2)
    x = jnp.zeros(8).at[0].set(y[0] / 2)
    f = jnp.zeros(8).at[0].set(0.5)
    for n in range(1, 8):
        e = r[n::-1][:n] @ f[:n]
        g = jnp.roll(f[::-1], n + 1)
        f = (f - e * g) / (1 - e * e)
        back = jnp.roll(f[::-1], n + 1)
        x = x + (y[n] - r[n::-1][:n] @ x[:n]) * back
    return x


@of("f64[10,6]", "f64[6,3]")
def sketched_singular_values(a: Array, sketch: Array) -> tuple[Array, Array]:
    q, _ = jnp.linalg.qr(a @ sketch)
    s = jnp.linalg.svd(q.T @ a, compute_uv=False)
    return s, jnp.linalg.norm(a - q @ (q.T @ a))


@of("f32[4,4]:definite")
def eigenvalues_by_rotations_of_jacobi(a: Array) -> tuple[Array, Array]:
    pairs = jnp.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] * 3)

    def turn(carry: State, pair: Array) -> tuple[State, None]:
        a, v = carry
        p, q = pair
        t = (a[q, q] - a[p, p]) / (2 * jnp.where(a[p, q] == 0, 1e-30, a[p, q]))
        t = jnp.where(t >= 0, 1.0, -1.0) / (jnp.abs(t) + jnp.sqrt(1 + t * t))
        c = 1 / jnp.sqrt(1 + t * t)
        g = jnp.eye(4).at[p, p].set(c).at[q, q].set(c).at[p, q].set(t * c).at[q, p].set(-t * c)
        return (g.T @ a @ g, v @ g), None

    (d, v), _ = lax.scan(turn, (a, jnp.eye(4)), pairs)
    return jnp.diag(d), v


@of("f32[6,4]")
def reflections_of_householder(a: Array) -> tuple[Array, Array]:
    def step(carry: State, k: Array) -> tuple[State, None]:
        r, q = carry
        x = jnp.where(jnp.arange(6) >= k, r[:, k], 0)
        v = x.at[k].add(jnp.sign(x[k]) * jnp.linalg.norm(x))
        v = v / jnp.linalg.norm(v)
        return (r - 2 * jnp.outer(v, v @ r), q - 2 * jnp.outer(q @ v, v)), None

    return lax.scan(step, (a, jnp.eye(6)), jnp.arange(4))[0]


@of("f32[4,4]:definite")
def roots_and_logarithms_of_a_matrix(a: Array) -> State:
    y, z = a / jnp.trace(a), jnp.eye(4)
    for _ in range(6):
        t = 0.5 * (3 * jnp.eye(4) - z @ y)
        y, z = y @ t, t @ z
    s = jnp.linalg.norm(a)
    w, v = jnp.linalg.eigh(a)
    return y * jnp.sqrt(jnp.trace(a)), z / jnp.sqrt(jnp.trace(a)), (v * jnp.log(w)) @ v.T, s


@of("f32[5,5]")
def determinants_minors_and_rank(a: Array) -> State:
    a = a.at[4].set(a[0] + a[1])
    minors = jnp.stack([jnp.linalg.det(a[:k, :k]) for k in range(1, 5)])
    return minors, jnp.linalg.matrix_rank(a), jnp.linalg.cond(a[:4, :4]), jnp.linalg.pinv(a[:4])


@of("f32[6,4]", "f32[6,4]", "f32[6]:fraction")
def quaternions_between_two_turns(a: Array, b: Array, t: Array) -> tuple[Array, Array]:
    a = a / jnp.linalg.norm(a, axis=1, keepdims=True)
    b = b / jnp.linalg.norm(b, axis=1, keepdims=True)
    c = (a * b).sum(1, keepdims=True)
    b, c = jnp.where(c < 0, -b, b), jnp.abs(c)
    angle = jnp.arccos(jnp.clip(c, -1, 1))
    t = t[:, None]
    wide = jnp.sin((1 - t) * angle) / jnp.sin(angle), jnp.sin(t * angle) / jnp.sin(angle)
    mixed = jnp.where(c > 0.9995, a + t * (b - a), wide[0] * a + wide[1] * b)
    w, v = mixed[:, 0], mixed[:, 1:]
    point = jnp.array([1.0, 2.0, 3.0])
    return mixed, point + 2 * jnp.cross(v, jnp.cross(v, point) + w[:, None] * point)


def _hat(w: Array) -> Array:
    return jnp.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


@of("f32[6]", "f32[6]")
def motions_composed_and_their_logarithm(a: Array, b: Array) -> tuple[Array, Array]:
    def motion(x: Array) -> Array:
        w, v = x[:3], x[3:]
        t = jnp.sqrt(w @ w + 1e-12)
        k = _hat(w)
        r = jnp.eye(3) + jnp.sin(t) / t * k + (1 - jnp.cos(t)) / t**2 * k @ k
        j = jnp.eye(3) + (1 - jnp.cos(t)) / t**2 * k + (t - jnp.sin(t)) / t**3 * k @ k
        return jnp.eye(4).at[:3, :3].set(r).at[:3, 3].set(j @ v)

    m = motion(a) @ motion(b)
    angle = jnp.arccos(jnp.clip((jnp.trace(m[:3, :3]) - 1) / 2, -1, 1))
    r = m[:3, :3]
    axis = jnp.stack([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    return m, angle / (2 * jnp.sin(angle)) * axis


@of("f32[4]", "f32[2]:unit")
def arm_that_reaches(angles: Array, goal: Array) -> tuple[Array, Array]:
    def hand(q: Array) -> Array:
        total = jnp.cumsum(q)
        return jnp.stack([jnp.cos(total).sum(), jnp.sin(total).sum()])

    def step(q: Array, _: None) -> tuple[Array, Array]:
        j, e = jax.jacobian(hand)(q), goal * 2 - hand(q)
        move = j.T @ jnp.linalg.solve(j @ j.T + 0.1 * jnp.eye(2), e)
        return q + jnp.clip(move, -0.3, 0.3), jnp.linalg.norm(e)

    return lax.scan(step, angles, None, length=5)


@of("f32[9,2]")
def hull_area_and_inertia(points: Array) -> State:
    """Andrew's chain by a mask: a point is inside if it lies left of no edge."""
    d = points[None] - points[:, None]
    cross = d[:, :, None, 0] * d[:, None, :, 1] - d[:, :, None, 1] * d[:, None, :, 0]
    edge = (cross >= 0).all(2) & ~jnp.eye(9, dtype=bool)
    area = 0.5 * jnp.sum(
        jnp.where(
            edge,
            points[:, None, 0] * points[None, :, 1] - points[:, None, 1] * points[None, :, 0],
            0,
        )
    )
    centred = points - points.mean(0)
    return edge.any(1), area, jnp.linalg.eigvalsh(centred.T @ centred)


@of("f32[7,2]", "f32[20,2]")
def points_in_a_polygon(corners: Array, points: Array) -> tuple[Array, Array]:
    a, b = corners, jnp.roll(corners, -1, 0)
    x, y = points[:, None, 0], points[:, None, 1]
    spans = (a[:, 1] > y) != (b[:, 1] > y)
    at = (b[:, 0] - a[:, 0]) * (y - a[:, 1]) / (b[:, 1] - a[:, 1]) + a[:, 0]
    inside = jnp.sum(spans & (x < at), 1) % 2 == 1
    ab = b - a
    t = jnp.clip(((points[:, None] - a) * ab).sum(-1) / (ab**2).sum(-1), 0, 1)
    far = jnp.linalg.norm(points[:, None] - a - t[..., None] * ab, axis=-1).min(1)
    return inside, jnp.where(inside, -far, far)


@of("f32[6,3,3]", "f32[5,3]")
def rays_that_hit_triangles(triangles: Array, directions: Array) -> tuple[Array, Array]:
    def hit(t: Array, d: Array) -> Array:
        e1, e2 = t[1] - t[0], t[2] - t[0]
        p = jnp.cross(d, e2)
        det = e1 @ p
        s = -t[0]
        u = s @ p / det
        q = jnp.cross(s, e1)
        v, far = d @ q / det, e2 @ q / det
        return jnp.where((u >= 0) & (v >= 0) & (u + v <= 1) & (far > 1e-4), far, jnp.inf)

    far = jax.vmap(jax.vmap(hit, (0, None)), (None, 0))(triangles, directions)
    return far.min(1), jnp.where(jnp.isinf(far.min(1)), -1, far.argmin(1))


@of("f32[12,3]", "f32[12,3]")
def clouds_brought_together(a: Array, b: Array) -> tuple[Array, Array]:
    def step(a: Array, _: None) -> tuple[Array, Array]:
        far = ((a[:, None] - b) ** 2).sum(-1)
        near = b[far.argmin(1)]
        h = (a - a.mean(0)).T @ (near - near.mean(0))
        u, _, vt = jnp.linalg.svd(h)
        d = jnp.sign(jnp.linalg.det(u @ vt))
        r = (u * jnp.stack([jnp.float32(1), jnp.float32(1), d])) @ vt
        return (a - a.mean(0)) @ r + near.mean(0), far.min(1).mean()

    return lax.scan(step, a, None, length=2)


@of("f32[3]:hundredths", "f32[3]", "f32[8,3]", "f32[8,2]")
def cameras_and_their_jacobian(turn: Array, shift: Array, points: Array, seen: Array) -> State:
    def residual(turn: Array, shift: Array, points: Array) -> Array:
        k = _hat(turn)
        moved = points @ (jnp.eye(3) + k + k @ k / 2).T + shift + jnp.array([0, 0, 6.0])
        p = moved[:, :2] / moved[:, 2:]
        r = (p**2).sum(1, keepdims=True)
        off = 500 * p * (1 + 0.1 * r - 0.05 * r * r) - seen
        return off * lax.rsqrt(1 + (off**2).sum(1, keepdims=True) / 100)

    return residual(turn, shift, points), *jax.jacfwd(residual, (0, 1))(turn, shift, points)


@of("f32[5,2]", "f32[9]:grid", "f32[7,2]")
def curves_of_bezier_and_splines(points: Array, t: Array, knots: Array) -> State:
    row = jnp.broadcast_to(points, (9, 5, 2))
    while row.shape[1] > 1:
        row = (1 - t[:, None, None]) * row[:, :-1] + t[:, None, None] * row[:, 1:]
    m = jnp.array([[-1, 3, -3, 1], [3, -6, 3, 0], [-3, 0, 3, 0], [1, 4, 1, 0.0]]) / 6
    at = jnp.minimum((t * 4).astype(jnp.int32), 3)
    u = t * 4 - at
    basis = jnp.stack([u**3, u**2, u, jnp.ones(9)], 1) @ m
    return row[:, 0], (basis[..., None] * knots[at[:, None] + jnp.arange(4)]).sum(1)


@of("f64[8]:angles", "f64[8]:unit")
def ellipsoidal_coordinates(lon: Array, lat: Array) -> State:
    a, e = 6378137.0, 0.0066943799901413165
    lat = 1.5 * lat
    n = a / jnp.sqrt(1 - e * jnp.sin(lat) ** 2)
    x, y, z = (
        n * jnp.cos(lat) * jnp.cos(lon),
        n * jnp.cos(lat) * jnp.sin(lon),
        n * (1 - e) * jnp.sin(lat),
    )
    p = jnp.hypot(x, y)

    def step(_: int, lat: Array) -> Array:
        n = a / jnp.sqrt(1 - e * jnp.sin(lat) ** 2)
        return jnp.arctan2(z + e * n * jnp.sin(lat), p)

    again = lax.fori_loop(0, 5, step, jnp.arctan2(z, p * (1 - e)))
    mercator = jnp.arcsinh(jnp.tan(lat)) - jnp.sqrt(e) * jnp.arctanh(jnp.sqrt(e) * jnp.sin(lat))
    return x, y, z, again - lat, mercator
