"""Generators, hashes, codes, calendars and arithmetic that overflows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of

State = tuple[Array, ...]
_U32 = jnp.uint32


def _rotated(x: Array, by: int) -> Array:
    return (x << by) | (x >> (32 - by))


@of("u32[2]", "u32[8,2]")
def threefry_by_hand(key: Array, counters: Array) -> Array:
    keys = jnp.concatenate([key, (key[0] ^ key[1] ^ _U32(0x1BD11BDA))[None]])
    a, b = counters[:, 0] + keys[0], counters[:, 1] + keys[1]
    for n in range(5):
        for by in ((13, 15, 26, 6), (17, 29, 16, 24))[n % 2]:
            a = a + b
            b = a ^ _rotated(b, by)
        a = a + keys[(n + 1) % 3]
        b = b + keys[(n + 2) % 3] + _U32(n + 1)
    return jnp.stack([a, b], 1)


@of("u32[2]", "u32[6,4]")
def philox_by_hand(key: Array, counters: Array) -> Array:
    def product(a: int, b: Array) -> tuple[Array, Array]:
        al, ah, bl, bh = _U32(a & 0xFFFF), _U32(a >> 16), b & 0xFFFF, b >> 16
        middle = ah * bl + ((al * bl) >> 16)
        other = al * bh + (middle & 0xFFFF)
        return ah * bh + (middle >> 16) + (other >> 16), _U32(a) * b

    a, b, c, d = counters.T
    for _ in range(10):
        (h0, l0), (h1, l1) = product(0xD2511F53, a), product(0xCD9E8D57, c)
        a, b, c, d = h1 ^ b ^ key[0], l1, h0 ^ d ^ key[1], l0
        key = key + jnp.array([0x9E3779B9, 0xBB67AE85], _U32)
    return jnp.stack([a, b, c, d], 1)


@of("u64[4]")
def permuted_congruential_numbers(state: Array) -> tuple[Array, Array]:
    def step(s: Array, _: None) -> tuple[Array, Array]:
        x = ((s >> jnp.uint64(18)) ^ s) >> jnp.uint64(27)
        turn = (s >> jnp.uint64(59)).astype(_U32)
        x = x.astype(_U32)
        out = (x >> turn) | (x << ((-turn) & 31))
        return s * jnp.uint64(6364136223846793005) + jnp.uint64(1442695040888963407), out

    return lax.scan(step, state, None, length=10)


@of("u32[24]")
def twisted_and_tempered(state: Array) -> tuple[Array, Array]:
    """The recurrence and the tempering of MT19937, for a shorter state."""

    def step(s: Array, _: None) -> tuple[Array, Array]:
        y = (s[0] & _U32(0x80000000)) | (s[1] & _U32(0x7FFFFFFF))
        new = s[15] ^ (y >> 1) ^ jnp.where(y & 1 == 1, _U32(0x9908B0DF), _U32(0))
        out = new ^ (new >> 11)
        out = out ^ ((out << 7) & _U32(0x9D2C5680))
        out = out ^ ((out << 15) & _U32(0xEFC60000))
        return jnp.concatenate([s[1:], new[None]]), out ^ (out >> 18)

    return lax.scan(step, state, None, length=40)


@of("s32[16]:below1000")
def sequences_of_halton_and_sobol(n: Array) -> State:
    def radical(n: Array, base: int) -> Array:
        def step(carry: State, _: None) -> tuple[State, None]:
            n, f, total = carry
            return (n // base, f / base, total + f / base * (n % base)), None

        start = n, jnp.ones(n.shape), jnp.zeros(n.shape)
        return lax.scan(step, start, None, length=10)[0][2]

    gray = n ^ (n >> 1)
    bits = (gray[:, None] >> jnp.arange(10)) & 1
    directions = jnp.array([1, 3, 5, 15, 17, 51, 85, 255, 257, 771], jnp.int32)
    masks = bits * (directions << (10 - 1 - jnp.arange(10)))
    sobol = lax.reduce(masks, jnp.int32(0), lax.bitwise_xor, (1,))
    return radical(n, 2), radical(n, 3), sobol


@of("u32[2]")
def normals_by_rejection(key: Array) -> tuple[Array, Array]:
    """Marsaglia's polar method: each pair is drawn until it lies in the circle."""

    def draw(key: Array) -> tuple[Array, Array]:
        def again(state: State) -> State:
            key, _, n = state
            key, sub = jax.random.split(key)
            return key, jax.random.uniform(sub, (2,), minval=-1, maxval=1), n + 1

        def outside(state: State) -> Array:
            s = (state[1] ** 2).sum()
            return (s >= 1) | (s == 0)

        _, p, n = lax.while_loop(outside, again, (key, jnp.ones(2), jnp.int32(0)))
        s = (p**2).sum()
        return p * jnp.sqrt(-2 * jnp.log(s) / s), n

    return jax.vmap(draw)(jax.random.split(jax.random.wrap_key_data(key), 6))


@of("u32[2]", "f32[8]:fraction")
def table_of_aliases_and_a_reservoir(key: Array, weights: Array) -> State:
    p = weights / weights.sum() * 8

    def pair(state: State, _: None) -> tuple[State, None]:
        p, alias, done = state
        low = jnp.argmin(jnp.where(done, jnp.inf, p))
        high = jnp.argmax(jnp.where(done, -jnp.inf, p))
        kept = p.at[high].add(p[low] - 1)
        return (
            jnp.where(low == high, p, kept),
            alias.at[low].set(high),
            done.at[low].set(True),
        ), None

    start = p, jnp.arange(8), jnp.zeros(8, bool)
    (p, alias, _), _ = lax.scan(pair, start, None, length=8)
    one, two, three = jax.random.split(jax.random.wrap_key_data(key), 3)
    at = jax.random.randint(one, (20,), 0, 8)
    drawn = jnp.where(jax.random.uniform(two, (20,)) < p[at], at, alias[at])

    def keep(kept: Array, x: tuple[Array, Array]) -> tuple[Array, None]:
        k = jax.random.randint(x[1], (), 0, x[0] + 1)
        return jnp.where(k < 4, kept.at[jnp.minimum(k, 3)].set(x[0]), kept), None

    kept, _ = lax.scan(keep, jnp.arange(4), (jnp.arange(4, 30), jax.random.split(three, 26)))
    return alias, drawn, kept


@of("s32[20]")
def days_to_dates_and_back(days: Array) -> State:
    z = days % 3000000 - 1000000 + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    d, m = doy - (153 * mp + 2) // 5 + 1, jnp.where(mp < 10, mp + 3, mp - 9)
    y = yoe + era * 400 + (m <= 2)
    early = y - (m <= 2)
    again = 365 * (early % 400) + (early % 400) // 4 - (early % 400) // 100
    again = again + (153 * (m + jnp.where(m > 2, -3, 9)) + 2) // 5 + d - 1 + early // 400 * 146097
    return y, m, d, (z - 719468 + 4) % 7, again - z, lax.rem(days, 7), lax.div(days, -7)


@of("s64[12]")
def clocks_and_leap_years(seconds: Array) -> State:
    days, rest = jnp.divmod(seconds, 86400)
    year = 1970 + days % 400
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    a, b = year % 19, year // 100
    moon = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    return rest // 3600, rest // 60 % 60, rest % 60, leap, moon, jnp.sign(seconds) * days


@of("u8[40]")
def checksums_with_tables(data: Array) -> State:
    n = jnp.arange(256, dtype=_U32)
    for _ in range(8):
        n = jnp.where(n & 1 == 1, (n >> 1) ^ _U32(0xEDB88320), n >> 1)
    crc, _ = lax.scan(
        lambda c, b: (n[(c ^ b) & 255] ^ (c >> 8), None), _U32(0xFFFFFFFF), data.astype(_U32)
    )
    fnv, _ = lax.scan(
        lambda h, b: ((h ^ b) * _U32(16777619), None), _U32(2166136261), data.astype(_U32)
    )
    a = (1 + data.astype(_U32).cumsum()) % 65521
    return ~crc, fnv, a[-1] | (a.sum() % 65521 << 16)


@of("u32[16]")
def compression_of_sha256(block: Array) -> Array:
    k = (jnp.abs(jnp.sin(jnp.arange(1.0, 65.0))) * 1e9).astype(_U32)

    def right(x: Array, by: int) -> Array:
        return _rotated(x, 32 - by)

    def extend(w: Array, _: None) -> tuple[Array, Array]:
        s0 = right(w[1], 7) ^ right(w[1], 18) ^ (w[1] >> 3)
        s1 = right(w[14], 17) ^ right(w[14], 19) ^ (w[14] >> 10)
        return jnp.concatenate([w[1:], (w[0] + s0 + w[9] + s1)[None]]), w[0]

    def turn(v: Array, x: tuple[Array, Array]) -> tuple[Array, None]:
        a, b, c, d, e, f, g, h = v
        s1 = right(e, 6) ^ right(e, 11) ^ right(e, 25)
        t1 = h + s1 + ((e & f) ^ (~e & g)) + x[0] + x[1]
        s0 = right(a, 2) ^ right(a, 13) ^ right(a, 22)
        t2 = s0 + ((a & b) ^ (a & c) ^ (b & c))
        return jnp.stack([t1 + t2, a, b, c, d + t1, e, f, g]), None

    _, words = lax.scan(extend, block, None, length=64)
    start = block[:8] ^ _U32(0x6A09E667)
    return start + lax.scan(turn, start, (words, k))[0]


@of("u32[16]")
def quarters_of_chacha(state: Array) -> Array:
    def quarter(s: Array, at: tuple[int, ...]) -> Array:
        a, b, c, d = (s[n] for n in at)
        for by, other in ((16, 12), (8, 7)):
            a = a + b
            d = _rotated(d ^ a, by)
            c = c + d
            b = _rotated(b ^ c, other)
        return s.at[jnp.array(at)].set(jnp.stack([a, b, c, d]))

    def double(_: int, s: Array) -> Array:
        for n in range(4):
            s = quarter(s, (n, n + 4, n + 8, n + 12))
        for n in range(4):
            s = quarter(s, (n, (n + 1) % 4 + 4, (n + 2) % 4 + 8, (n + 3) % 4 + 12))
        return s

    return state + lax.fori_loop(0, 4, double, state)


@of("u32[12]", "u32[12]")
def places_on_curves_that_fill_space(x: Array, y: Array) -> State:
    x, y = x & 0xFFFF, y & 0xFFFF

    def step(carry: State, k: Array) -> tuple[State, None]:
        x, y, d = carry
        s = _U32(1) << k
        rx, ry = (x & s > 0).astype(_U32), (y & s > 0).astype(_U32)
        d = d + s * s * ((3 * rx) ^ ry)
        flip = (ry == 0) & (rx == 1)
        x, y = jnp.where(flip, s - 1 - x, x), jnp.where(flip, s - 1 - y, y)
        return (jnp.where(ry == 0, y, x), jnp.where(ry == 0, x, y), d), None

    (_, _, hilbert), _ = lax.scan(step, (x, y, jnp.zeros_like(x)), jnp.arange(15, -1, -1, _U32))

    def wide(x: Array) -> Array:
        for by, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            x = (x | (x << by)) & _U32(mask)
        return x

    return hilbert, wide(x) | (wide(y) << 1)


@of("u32[20]", "s32[20]")
def tricks_with_single_bits(x: Array, y: Array) -> State:
    back = x
    for by, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        back = ((back >> by) & _U32(mask)) | ((back & _U32(mask)) << by)
    gray = x ^ (x >> 1)
    plain = gray
    for by in (1, 2, 4, 8, 16):
        plain = plain ^ (plain >> by)
    return (
        (back >> 16) | (back << 16),
        plain - x,
        lax.population_count(x & -x),
        lax.clz(x),
        lax.population_count(y),
        jnp.where(y & (y - 1) == 0, 1, 0),
        (y ^ (y >> 31)) - (y >> 31),
        lax.shift_right_arithmetic(y, 40 + 0 * y),
        lax.shift_left(y, y),
    )


@of("f32[24]")
def floats_stepped_and_rounded_by_bits(x: Array) -> State:
    bits = lax.bitcast_convert_type(x, jnp.int32)
    up = lax.bitcast_convert_type(jnp.where(bits >= 0, bits + 1, bits - 1), jnp.float32)
    unsigned = lax.bitcast_convert_type(x, _U32)
    near = (unsigned + 0x7FFF + ((unsigned >> 16) & 1)) >> 16
    narrow = lax.bitcast_convert_type(near.astype(jnp.uint16), jnp.bfloat16)
    exponent = ((unsigned >> 23) & 255).astype(jnp.int32) - 127
    return up, jnp.nextafter(x, jnp.float32(0)), narrow, exponent, jnp.spacing(x), jnp.signbit(x)


@of("u32[6]", "u32[6]")
def products_of_numbers_with_many_limbs(a: Array, b: Array) -> Array:
    a, b = a & 0xFFFF, b & 0xFFFF
    low = jnp.zeros(12, _U32)
    for n in range(6):
        row = a[n] * b
        low = low.at[n : n + 6].add(row & 0xFFFF).at[n + 1 : n + 7].add(row >> 16)

    def carry(c: Array, x: Array) -> tuple[Array, Array]:
        x = x + c
        return x >> 16, x & 0xFFFF

    return lax.scan(carry, _U32(0), low)[1]


@of("u64[10]", "u64[10]")
def roots_primes_and_inverses(n: Array, m: Array) -> State:
    odd = m | jnp.uint64(1)
    inverse = odd
    for _ in range(5):
        inverse = inverse * (jnp.uint64(2) - odd * inverse)

    def digit(carry: State, k: Array) -> tuple[State, None]:
        root, rest = carry
        tried = root | (jnp.uint64(1) << k)
        good = tried * tried <= n
        return (jnp.where(good, tried, root), rest), None

    (root, _), _ = lax.scan(digit, (n * 0, n), jnp.arange(31, -1, -1, dtype=jnp.uint64))
    small = (n % jnp.uint64(65521)).astype(jnp.int64)

    def power(carry: State, bit: Array) -> tuple[State, None]:
        base, out = carry
        out = jnp.where(bit == 1, out * base % 65521, out)
        return (base * base % 65521, out), None

    bits = (65519 >> jnp.arange(16)) & 1
    (_, inv), _ = lax.scan(power, (small, small * 0 + 1), bits)
    return odd * inverse, root, inv * small % 65521


@of("s16[20]", "s16[20]", "s8[20]", "s8[20]")
def saturated_sums_and_fixed_points(a: Array, b: Array, c: Array, d: Array) -> State:
    wide = a.astype(jnp.int32) + b
    total = jnp.clip(wide, -32768, 32767).astype(jnp.int16)
    product = (a.astype(jnp.int32) * b + (1 << 14)) >> 15
    wrapped = a + b
    spilled = ((a ^ wrapped) & (b ^ wrapped)) < 0
    return total, product.astype(jnp.int16), spilled, c * d, c // d, lax.div(c, d), abs(c), -c


@of("u8[24]")
def letters_in_base_64_and_utf8(data: Array) -> State:
    x = data.reshape(8, 3).astype(jnp.int32)
    whole = (x[:, 0] << 16) | (x[:, 1] << 8) | x[:, 2]
    codes = (whole[:, None] >> jnp.array([18, 12, 6, 0])) & 63
    letters = jnp.select(
        [codes < 26, codes < 52, codes < 62, codes == 62],
        [codes + 65, codes + 71, codes - 4, jnp.full_like(codes, 43)],
        47,
    )
    length = jnp.where(
        data < 128, 1, jnp.where(data >> 5 == 6, 2, jnp.where(data >> 4 == 14, 3, 4))
    )
    digits = jnp.where(data & 15 < 10, (data & 15) + 48, (data & 15) + 87)
    return letters.astype(jnp.uint8), length, digits, ((data[::-1] * 2) % 9 + data // 2).sum()


@of("u32[10,10]")
def life_of_cells_in_words(words: Array) -> Array:
    """Conway's game, 32 cells in each word, neighbours counted by adders of bits."""

    def step(_: int, w: Array) -> Array:
        rows = [jnp.roll(w, by, 0) for by in (-1, 0, 1)]
        cells = [(r << 1) | (jnp.roll(r, 1, 1) >> 31) for r in rows]
        cells += [(r >> 1) | (jnp.roll(r, -1, 1) << 31) for r in rows]
        cells += [rows[0], rows[2]]
        one, two, four = (jnp.zeros_like(w) for _ in range(3))
        for c in cells:
            carry = one & c
            one = one ^ c
            four = four | (two & carry)
            two = two ^ carry
        return two & ~four & (one | w)

    return lax.fori_loop(0, 4, step, words)
