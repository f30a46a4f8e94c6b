"""Wavelets, spectra, filters, and pictures that are turned, sharpened, measured and compared."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.signal
from jax import Array, lax, random

from programs.function import of

State = tuple[Array, ...]


@of("f32[32]")
def daubechies_by_lifting_and_back(x: Array) -> State:
    r = jnp.sqrt(3.0)

    def ahead(x: Array) -> tuple[Array, Array]:
        s, d = x[::2], x[1::2]
        s = s + r * d
        d = d - r / 4 * s - (r - 2) / 4 * jnp.roll(s, 1)
        s = s - jnp.roll(d, -1)
        return (r - 1) / jnp.sqrt(2.0) * s, (r + 1) / jnp.sqrt(2.0) * d

    def back(s: Array, d: Array) -> Array:
        s, d = s * (r + 1) / jnp.sqrt(2.0), d * (r - 1) / jnp.sqrt(2.0)
        s = s + jnp.roll(d, -1)
        d = d + r / 4 * s + (r - 2) / 4 * jnp.roll(s, 1)
        return jnp.stack([s - r * d, d], 1).reshape(-1)

    s, d = ahead(x)
    ss, sd = ahead(s)
    small = jnp.sign(d) * jnp.maximum(jnp.abs(d) - 0.1, 0)
    return ss, sd, back(back(ss, sd), small)


@of("f32[64]")
def wavelets_of_morlet(x: Array) -> Array:
    w = 2 * jnp.pi * jnp.fft.fftfreq(64)
    scales = 2.0 ** jnp.arange(0.0, 4.0, 0.5)
    bank = jnp.exp(-0.5 * (scales[:, None] * w - 6.0) ** 2) * (w > 0)
    return jnp.abs(jnp.fft.ifft(jnp.fft.fft(x) * bank * jnp.sqrt(scales)[:, None]))


@of("f32[60]", "f32[7]")
def convolution_by_overlapping_blocks(x: Array, h: Array) -> tuple[Array, Array]:
    blocks = x.reshape(6, 10)
    y = jnp.fft.irfft(jnp.fft.rfft(blocks, 16, 1) * jnp.fft.rfft(h, 16), 16, 1)
    at = 10 * jnp.arange(6)[:, None] + jnp.arange(16)
    out = jnp.zeros(66).at[at].add(y)
    return out, out - jnp.convolve(x, h)


@of("f32[128]")
def cepstra_of_mel_bands(x: Array) -> Array:
    x = x - 0.97 * jnp.concatenate([x[:1], x[:-1]])
    at = 16 * jnp.arange(7)[:, None] + jnp.arange(32)
    power = jnp.abs(jnp.fft.rfft(x[at] * jnp.hanning(32))) ** 2
    mel = lambda f: 1127 * jnp.log1p(f / 700)  # noqa: E731
    edges = jnp.linspace(0, mel(4000.0), 10)
    f = mel(jnp.linspace(0, 4000, 17))
    up = (f - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - f) / (edges[2:] - edges[1:-1])[:, None]
    bands = jnp.log(power @ jnp.maximum(0, jnp.minimum(up, down)).T + 1e-6)
    return jax.scipy.fft.dct(bands, norm="ortho")[:, :5]


@of("f32[50]")
def tones_by_goertzel(x: Array) -> Array:
    c = 2 * jnp.cos(2 * jnp.pi * jnp.array([5.0, 7.0, 11.0]) / 50)

    def step(s: tuple[Array, Array], v: Array) -> tuple[tuple[Array, Array], None]:
        return (v + c * s[0] - s[1], s[0]), None

    (a, b), _ = lax.scan(step, (jnp.zeros(3), jnp.zeros(3)), x)
    return a * a + b * b - c * a * b


@of("f32[21]")
def chirp_transform(x: Array) -> tuple[Array, Array]:
    """Bluestein's transform of an odd length, beside that of JAX."""
    n = jnp.arange(21)
    w = jnp.exp(-1j * jnp.pi * (n * n % 42) / 21)
    kernel = jnp.zeros(64, jnp.complex64).at[:21].set(jnp.conj(w))
    kernel = kernel.at[-20:].set(jnp.conj(w[1:])[::-1])
    y = jnp.fft.ifft(jnp.fft.fft(x * w, 64) * jnp.fft.fft(kernel))[:21] * w
    return y, y - jnp.fft.fft(x)


@of("f32[96]", "f32[96]")
def densities_and_coherence(x: Array, y: Array) -> State:
    f, p = jax.scipy.signal.welch(x, nperseg=32)
    _, c = jax.scipy.signal.csd(x, y, nperseg=32)
    _, q = jax.scipy.signal.welch(y, nperseg=32)
    return f, p, jnp.abs(c) ** 2 / (p * q)


@of("f32[40]")
def smoothed_by_polynomials_and_medians(x: Array) -> State:
    a = jnp.vander(jnp.arange(-3.0, 4.0), 3, increasing=True)
    weights = jnp.linalg.solve(a.T @ a, a.T)[0]
    wide = jnp.pad(x, 3, mode="reflect")
    windows = wide[jnp.arange(40)[:, None] + jnp.arange(7)]
    middle = jnp.median(windows, axis=1)
    spread = jnp.median(jnp.abs(windows - middle[:, None]), axis=1)
    hampel = jnp.where(jnp.abs(x - middle) > 1.5 * spread, middle, x)
    return windows @ weights, middle, hampel


@of("f32[48]", "f32[3,2]:unit")
def cascade_of_second_orders(x: Array, poles: Array) -> tuple[Array, Array]:
    def section(x: Array, p: Array) -> Array:
        a1, a2 = p[0], 0.5 * p[1] ** 2

        def step(s: State, v: Array) -> tuple[State, Array]:
            y = v + s[0]
            return (2 * v - a1 * y + s[1], v - a2 * y), y / 4

        return lax.scan(step, (jnp.float32(0), jnp.float32(0)), x)[1]

    y, _ = lax.scan(lambda x, p: (section(x, p), None), x, poles)
    z = jnp.exp(1j * jnp.linspace(0, jnp.pi, 9))[:, None]
    gain = (z + 1) ** 2 / (z * z + poles[:, 0] * z + 0.5 * poles[:, 1] ** 2) / 4
    return y, jnp.abs(gain.prod(1))


@of("f32[30]", "f32[16]")
def resampled_by_phases(x: Array, h: Array) -> Array:
    wide = jnp.zeros(90).at[::3].set(x)
    return jnp.convolve(wide, h, mode="same")[::2]


@of("f32[16,16]:fraction")
def bilateral_filter(x: Array) -> Array:
    wide = jnp.pad(x, 2, mode="edge")
    total, weight = jnp.zeros_like(x), jnp.zeros_like(x)
    for a in range(5):
        for b in range(5):
            part = lax.dynamic_slice(wide, (a, b), (16, 16))
            w = jnp.exp(-((a - 2) ** 2 + (b - 2) ** 2) / 4.0 - (part - x) ** 2 / 0.1)
            total, weight = total + w * part, weight + w
    return total / weight


@of("f32[18,18]:fraction")
def edges_by_canny(x: Array) -> State:
    gx = (x[1:-1, 2:] - x[1:-1, :-2]) * 2 + x[2:, 2:] - x[2:, :-2] + x[:-2, 2:] - x[:-2, :-2]
    gy = (x[2:, 1:-1] - x[:-2, 1:-1]) * 2 + x[2:, 2:] - x[:-2, 2:] + x[2:, :-2] - x[:-2, :-2]
    size = jnp.hypot(gx, gy)
    octant = jnp.round(jnp.arctan2(gy, gx) * 4 / jnp.pi).astype(jnp.int32) % 4
    wide = jnp.pad(size, 1)
    pairs = [((1, 2), (1, 0)), ((2, 2), (0, 0)), ((2, 1), (0, 1)), ((2, 0), (0, 2))]
    tops = [
        (size >= wide[a : a + 16, b : b + 16]) & (size > wide[c : c + 16, d : d + 16])
        for (a, b), (c, d) in pairs
    ]
    thin = jnp.where(jnp.select([octant == k for k in range(4)], tops), size, 0)

    def grow(_: int, strong: Array) -> Array:
        wide = jnp.pad(strong, 1)
        near = lax.reduce_window(wide, False, lax.bitwise_or, (3, 3), (1, 1), "VALID")
        return strong | (near & (thin > 0.5))

    return octant, thin, lax.fori_loop(0, 6, grow, thin > 2)


@of("u8[20,20]")
def threshold_by_otsu(x: Array) -> State:
    counts = jnp.bincount(x.reshape(-1), length=256).astype(jnp.float32)
    w = jnp.cumsum(counts) / 400
    m = jnp.cumsum(counts * jnp.arange(256)) / 400
    between = (m[-1] * w - m) ** 2 / jnp.maximum(w * (1 - w), 1e-6)
    t = jnp.argmax(between)
    return t, x > t, between.max()


@of("f32[12,12]:fraction")
def corners_by_harris(x: Array) -> tuple[Array, Array]:
    gy, gx = jnp.gradient(x)
    box = jnp.ones((3, 3)) / 9
    sums = [jax.scipy.signal.convolve2d(a, box, mode="same") for a in (gx * gx, gy * gy, gx * gy)]
    score = sums[0] * sums[1] - sums[2] ** 2 - 0.05 * (sums[0] + sums[1]) ** 2
    top = lax.reduce_window(score, -jnp.inf, lax.max, (3, 3), (1, 1), "SAME")
    return score, (score == top) & (score > 1e-4)


@of("f32[16,16,3]:fraction", "f32[16,16,3]:fraction", "f32[16,16]:fraction")
def blended_by_pyramids(a: Array, b: Array, mask: Array) -> Array:
    k = jnp.array([1, 4, 6, 4, 1]) / 16

    def down(x: Array) -> Array:
        wide = jnp.pad(x, ((2, 2), (2, 2), (0, 0)), mode="edge")
        rows = sum(k[n] * wide[n : n + x.shape[0]] for n in range(5))
        return sum(k[n] * rows[:, n : n + x.shape[1]] for n in range(5))[::2, ::2]

    up = lambda x: jax.image.resize(x, (2 * x.shape[0], 2 * x.shape[1], 3), "bilinear")  # noqa: E731
    mask = jnp.repeat(mask[..., None], 3, 2)
    fine = mask * (a - up(down(a))) + (1 - mask) * (b - up(down(b)))
    small = down(mask)
    return up(small * down(a) + (1 - small) * down(b)) + fine


@of("f32[10,10]:fraction")
def distances_and_seams(x: Array) -> State:
    solid = x > 0.3
    far = jnp.where(solid, 1e4, 0.0)
    at = jnp.arange(10.0)
    square = (at[:, None] - at) ** 2
    rows = jnp.min(far[None] + square[:, :, None], axis=1)
    both = jnp.min(rows[:, None] + square[None], axis=2)

    def step(cost: Array, row: Array) -> tuple[Array, Array]:
        wide = jnp.pad(cost, 1, constant_values=jnp.inf)
        three = jnp.stack([wide[:-2], wide[1:-1], wide[2:]])
        return row + three.min(0), three.argmin(0) - 1

    energy = jnp.abs(jnp.gradient(x)[0]) + jnp.abs(jnp.gradient(x)[1])
    cost, moves = lax.scan(step, energy[0], energy[1:])
    _, seam = lax.scan(lambda c, m: (c + m[c], c), jnp.argmin(cost), moves, reverse=True)
    return jnp.sqrt(both), cost, seam


@of("f32[8,8,3]:fraction")
def colours_of_other_spaces(x: Array) -> State:
    top, low = x.max(-1), x.min(-1)
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    d = jnp.where(top == low, 1, top - low)
    hue = jnp.select(
        [top == low, top == r, top == g], [0 * r, (g - b) / d % 6, (b - r) / d + 2], (r - g) / d + 4
    )
    linear = jnp.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    m = jnp.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ m.T / jnp.array([0.9505, 1.0, 1.089])
    f = jnp.where(xyz > 0.008856, jnp.cbrt(xyz), 7.787 * xyz + 16 / 116)
    lab = jnp.stack(
        [116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])]
    )
    return hue / 6, jnp.where(top == 0, 0, (top - low) / jnp.where(top == 0, 1, top)), lab


@of("u8[16,16]")
def blocks_as_jpeg_has_them(x: Array) -> tuple[Array, Array]:
    n = jnp.arange(8)
    d = jnp.cos((2 * n + 1) * n[:, None] * jnp.pi / 16) / 2
    d = d.at[0].multiply(jnp.sqrt(0.5))
    blocks = (x.astype(jnp.float32) - 128).reshape(2, 8, 2, 8).transpose(0, 2, 1, 3)
    table = 10 + 4.0 * (n[:, None] + n)
    q = jnp.round((d @ blocks @ d.T) / table)
    back = (d.T @ (q * table) @ d).transpose(0, 2, 1, 3).reshape(16, 16)
    return q.astype(jnp.int16), jnp.clip(jnp.round(back) + 128, 0, 255).astype(jnp.uint8)


@of("u32[2]", "f32[4,12,12]:fraction")
def pictures_cropped_flipped_and_erased(key: Array, x: Array) -> Array:
    def one(key: Array, x: Array) -> Array:
        a, b, c, d = random.split(key, 4)
        wide = jnp.pad(x, 2, mode="reflect")
        at = random.randint(a, (2,), 0, 5)
        x = lax.dynamic_slice(wide, at, (12, 12))
        x = jnp.where(random.bernoulli(b), x[:, ::-1], x)
        corner = random.randint(c, (2,), 0, 8)
        n = jnp.arange(12)
        inside = (n >= corner[:, None]) & (n < corner[:, None] + 4)
        x = jnp.where(inside[0][:, None] & inside[1], x.mean(), x)
        gain = random.uniform(d, minval=0.8, maxval=1.2)
        return jnp.clip((x - x.mean()) * gain + x.mean(), 0, 1)

    keys = random.split(random.wrap_key_data(key), 4)
    found = jax.vmap(one)(keys, x)
    mix = random.beta(keys[0], 0.4, 0.4)
    return mix * found + (1 - mix) * found[::-1]


@of("f32[14,14]:fraction", "f32[3,3]:hundredths")
def picture_seen_from_elsewhere(x: Array, tilt: Array) -> Array:
    h = jnp.eye(3) + tilt / jnp.array([[1, 1, 0.1], [1, 1, 0.1], [10, 10, 1]])
    grid = jnp.stack(jnp.meshgrid(jnp.arange(14.0), jnp.arange(14.0), indexing="ij"), 0)
    at = jnp.einsum("ij,jxy->ixy", h, jnp.concatenate([grid, jnp.ones((1, 14, 14))]))
    return jax.scipy.ndimage.map_coordinates(x, list(at[:2] / at[2]), order=1, mode="nearest")


@of("f32[16,16]:fraction", "f32[16,16]:fraction")
def likeness_of_pictures(a: Array, b: Array) -> State:
    window = jnp.exp(-(jnp.arange(-3.0, 4.0) ** 2) / 4.5)
    window = jnp.outer(window, window) / window.sum() ** 2

    def mean(x: Array) -> Array:
        return jax.scipy.signal.convolve2d(x, window, mode="valid")

    ma, mb = mean(a), mean(b)
    va, vb, ab = mean(a * a) - ma**2, mean(b * b) - mb**2, mean(a * b) - ma * mb
    found = (2 * ma * mb + 1e-4) * (2 * ab + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4))
    noise = -10 * jnp.log10(jnp.mean((a - b) ** 2))
    return found, noise, jax.grad(lambda a: jnp.abs(jnp.diff(a, axis=0)).sum())(a)


@of("f32[12,12]:fraction", "f32[5,5]:fraction")
def sharpened_by_richardson_and_lucy(x: Array, kernel: Array) -> Array:
    kernel = kernel / kernel.sum()
    spread = lambda u, k: jax.scipy.signal.convolve2d(u, k, mode="same")  # noqa: E731

    def step(u: Array, _: None) -> tuple[Array, None]:
        return u * spread(x / (spread(u, kernel) + 1e-6), kernel[::-1, ::-1]), None

    return lax.scan(step, jnp.full((12, 12), 0.5), None, length=3)[0]


@of("f32[16,16]", "s32[2]:below16")
def shift_by_correlated_phases(x: Array, by: Array) -> tuple[Array, Array]:
    y = jnp.roll(x, by, (0, 1))
    cross = jnp.fft.fft2(y) * jnp.conj(jnp.fft.fft2(x))
    peak = jnp.fft.ifft2(cross / (jnp.abs(cross) + 1e-6)).real
    return jnp.stack(jnp.unravel_index(peak.argmax(), (16, 16))), peak


@of("f32[12,12]", "f32[12,12]:hundredths")
def motion_by_lucas_and_kanade(a: Array, change: Array) -> Array:
    gy, gx = jnp.gradient(a)
    box = lambda x: lax.reduce_window(x, 0.0, lax.add, (5, 5), (1, 1), "SAME")  # noqa: E731
    xx, yy, xy = box(gx * gx) + 1e-2, box(gy * gy) + 1e-2, box(gx * gy)
    xt, yt = -box(gx * change), -box(gy * change)
    det = xx * yy - xy * xy
    return jnp.stack([yy * xt - xy * yt, xx * yt - xy * xt]) / det


@of("f32[6,3]", "f32[3]")
def rays_that_march(directions: Array, light: Array) -> State:
    def scene(p: Array) -> Array:
        ball = jnp.linalg.norm(p - jnp.array([0, 0, 3.0])) - 1
        q = jnp.abs(p - jnp.array([1.0, -0.5, 3])) - 0.6
        box = jnp.linalg.norm(jnp.maximum(q, 0)) + jnp.minimum(q.max(), 0)
        return -jax.nn.logsumexp(-8 * jnp.stack([ball, box])) / 8

    def one(d: Array) -> State:
        d = d / 4 + jnp.array([0, 0, 1.0])
        d = d / jnp.linalg.norm(d)

        def step(s: State) -> State:
            return s[0] + scene(s[0] * d), s[1] + 1

        def goes_on(s: State) -> Array:
            return (scene(s[0] * d) > 1e-3) & (s[0] < 10) & (s[1] < 40)

        t, n = lax.while_loop(goes_on, step, (jnp.float32(0), jnp.int32(0)))
        normal = jax.grad(scene)(t * d)
        shade = jnp.maximum(0, normal @ light) / jnp.linalg.norm(light)
        return t, n, jnp.where(t < 10, shade, 0)

    return jax.vmap(one)(directions)
