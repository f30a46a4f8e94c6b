"""Prices, risks and tests of hypotheses, as banks and statisticians write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jax.scipy import special, stats

from programs.function import of

State = tuple[Array, ...]


def _call(s: Array, k: Array, t: Array, v: Array) -> Array:
    d = (jnp.log(s / k) + 0.5 * v * v * t) / (v * jnp.sqrt(t))
    return s * stats.norm.cdf(d) - k * stats.norm.cdf(d - v * jnp.sqrt(t))


@of("f32[8]:positive", "f32[8]:positive", "f32[8]:fraction")
def volatility_implied_by_a_price(s: Array, t: Array, v: Array) -> State:
    price = _call(s, jnp.ones(8), t, 0.1 + v / 2)

    def step(v: Array, _: None) -> tuple[Array, Array]:
        vega = jax.vmap(jax.grad(_call, 3))(s, jnp.ones(8), t, v)
        off = _call(s, jnp.ones(8), t, v) - price
        return jnp.clip(v - off / jnp.maximum(vega, 1e-6), 1e-3, 3.0), off

    return lax.scan(step, jnp.full(8, 0.3), None, length=5)


@of("f32[]:positive", "f32[]:fraction", "f32[]:fraction")
def american_put_in_a_binomial_tree(strike: Array, v: Array, rate: Array) -> tuple[Array, Array]:
    n = 16

    def price(v: Array) -> Array:
        up = jnp.exp((0.1 + v) * jnp.sqrt(1 / n))
        grow = jnp.exp(0.1 * rate / n)
        p = (grow - 1 / up) / (up - 1 / up)

        def step(values: Array, k: Array) -> tuple[Array, None]:
            spot = up ** (2.0 * jnp.arange(n + 1) - k)
            held = (p * jnp.roll(values, -1) + (1 - p) * values) / grow
            return jnp.maximum(held, strike - spot), None

        end = jnp.maximum(strike - up ** (2.0 * jnp.arange(n + 1) - n), 0)
        return lax.scan(step, end, jnp.arange(n - 1.0, -1.0, -1.0))[0][0]

    return jax.value_and_grad(price)(v)


@of("u32[2]", "f32[5]:fraction")
def stochastic_volatility_by_full_truncation(key: Array, p: Array) -> tuple[Array, Array]:
    def step(carry: State, key: Array) -> tuple[State, None]:
        x, v = carry
        a, b = random.normal(key, (2, 64))
        b = -0.7 * a + jnp.sqrt(1 - 0.49) * b
        root = jnp.sqrt(jnp.maximum(v, 0) / 20)
        x = x - jnp.maximum(v, 0) / 40 + root * a
        return (x, v + p[0] * (p[1] / 10 - jnp.maximum(v, 0)) / 20 + p[2] * root * b), None

    start = jnp.zeros(64), jnp.full(64, 0.04)
    (x, v), _ = lax.scan(step, start, random.split(random.wrap_key_data(key), 8))
    return jnp.maximum(jnp.exp(x) - 1, 0).mean(), v


@of("f32[40,5]")
def early_exercise_by_regression(noise: Array) -> tuple[Array, Array]:
    paths = jnp.exp(jnp.cumsum(0.1 * noise, 1))
    cash = jnp.maximum(1.05 - paths[:, -1], 0)
    for t in (3, 2, 1):
        now = jnp.maximum(1.05 - paths[:, t], 0)
        basis = jnp.stack([jnp.ones(40), paths[:, t], paths[:, t] ** 2], 1)
        weight = (now > 0).astype(jnp.float32)[:, None] * basis
        c = jnp.linalg.solve(weight.T @ basis + 1e-3 * jnp.eye(3), weight.T @ (0.99 * cash))
        cash = jnp.where((now > basis @ c) & (now > 0), now, 0.99 * cash)
    return cash.mean(), cash


@of("f32[6]:fraction", "f32[6]")
def discount_factors_by_bootstrap(rates: Array, bump: Array) -> tuple[Array, Array]:
    def factors(rates: Array) -> Array:
        def step(sum_: Array, r: Array) -> tuple[Array, Array]:
            d = (1 - r * sum_) / (1 + r)
            return sum_ + d, d

        return lax.scan(step, jnp.float32(0), rates / 10)[1]

    return jax.jvp(factors, (rates,), (bump,))


@of("f32[5]", "f32[5,5]:definite")
def portfolio_on_the_frontier(mu: Array, sigma: Array) -> State:
    ones = jnp.ones(5)
    inverse = jnp.linalg.solve(sigma, jnp.stack([mu, ones], 1))
    a, b, c = mu @ inverse[:, 0], ones @ inverse[:, 0], ones @ inverse[:, 1]
    w = inverse @ jnp.linalg.solve(
        jnp.array([[a, b], [b, c]]), jnp.stack([jnp.float32(0.1), c / c])
    )
    risk = jnp.sqrt(w @ sigma @ w)
    return w, risk, w * (sigma @ w) / risk


@of("f32[200]")
def value_at_risk_and_shortfall(returns: Array) -> State:
    var = jnp.quantile(returns, 0.05)
    tail = returns <= var
    shortfall = jnp.sum(jnp.where(tail, returns, 0)) / tail.sum()
    third = stats.norm.ppf(0.05)
    skew = jnp.mean(((returns - returns.mean()) / returns.std()) ** 3)
    return var, shortfall, third + (third**2 - 1) * skew / 6


@of("f32[60]:hundredths", "f32[3]:fraction")
def likelihood_of_garch_and_gradient(returns: Array, p: Array) -> tuple[Array, Array]:
    def loss(p: Array) -> Array:
        a, b = 0.3 * p[1], 0.6 * p[2]

        def step(h: Array, r: Array) -> tuple[Array, Array]:
            h = 1e-5 * p[0] + a * r * r + b * h
            return h, jnp.log(h) + r * r / h

        return lax.scan(step, returns.var(), returns)[1].mean()

    return jax.value_and_grad(loss)(p)


@of("f32[30,3]", "f32[3,3]:definite")
def student_copula(u: Array, sigma: Array) -> Array:
    scale = jnp.sqrt(jnp.diag(sigma))
    low = jnp.linalg.cholesky(sigma / scale / scale[:, None])
    z = jax.scipy.linalg.solve_triangular(low, u.T, lower=True)
    joint = -3.5 * jnp.log1p((z**2).sum(0) / 4) - jnp.log(jnp.diag(low)).sum()
    return joint + 2.5 * jnp.log1p(u**2 / 4).sum(1)


@of("f32[24]", "f32[24]", "f32[24]:positive", "f32[24]:fraction")
def log_densities_of_many_families(x: Array, m: Array, s: Array, p: Array) -> State:
    return (
        stats.t.logpdf(x, 1 + 3 * s, m, s),
        stats.gamma.logpdf(s, 1 + p, scale=2.0),
        stats.beta.logpdf(p, 0.5 + s, 1.5),
        stats.laplace.logpdf(x, m, s),
        stats.logistic.logpdf(x, m, s),
        stats.pareto.logpdf(1 + s, 2.0),
        stats.chi2.logpdf(s, 3.0),
        stats.truncnorm.logpdf(x, -1.0, 2.0),
        stats.gennorm.logpdf(x, 1 + p),
    )


@of("s32[20]:below12", "f32[20]:positive", "f32[20]:fraction")
def log_masses_of_counts(k: Array, rate: Array, p: Array) -> State:
    return (
        stats.nbinom.logpmf(k, 1 + rate, p),
        stats.binom.logpmf(k, 12, p),
        stats.geom.logpmf(k, p),
        stats.betabinom.logpmf(k, 12, rate, 1 + p),
        jnp.where(k == 0, jnp.log(p + (1 - p) * jnp.exp(-rate)), stats.poisson.logpmf(k, rate)),
    )


@of("f32[16]:angles", "f32[]:positive")
def von_mises_and_its_gradient(x: Array, kappa: Array) -> tuple[Array, Array]:
    def loss(kappa: Array) -> Array:
        return -stats.vonmises.logpdf(x - jnp.pi, kappa).sum()

    return jax.value_and_grad(loss)(kappa)


@of("f32[30]", "f32[25]")
def welch_test_with_its_probability(a: Array, b: Array) -> State:
    va, vb = a.var(ddof=1) / 30, b.var(ddof=1) / 25
    t = (a.mean() - b.mean()) / jnp.sqrt(va + vb)
    df = (va + vb) ** 2 / (va**2 / 29 + vb**2 / 24)
    return t, df, special.betainc(df / 2, 0.5, df / (df + t * t))


@of("s32[4,3]:below40")
def independence_by_chi_squared(table: Array) -> State:
    table = table.astype(jnp.float32) + 1
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    score = ((table - expected) ** 2 / expected).sum()
    g = 2 * (table * jnp.log(table / expected)).sum()
    return score, special.gammaincc(3.0, score / 2), special.gammaincc(3.0, g / 2)


@of("f32[5,12]")
def variances_between_and_within(x: Array) -> State:
    means = x.mean(1)
    between = 12 * ((means - x.mean()) ** 2).sum() / 4
    within = ((x - means[:, None]) ** 2).sum() / 55
    f = between / within
    return f, special.betainc(27.5, 2.0, 55 / (55 + 4 * f))


@of("f32[15]", "f32[12]")
def rank_sums_of_two_samples(a: Array, b: Array) -> State:
    ranks = stats.rankdata(jnp.round(jnp.concatenate([a, b]), 1))
    u = ranks[:15].sum() - 120
    order = jnp.sort(jnp.concatenate([a, b]))
    fa = jnp.searchsorted(jnp.sort(a), order, side="right") / 15
    fb = jnp.searchsorted(jnp.sort(b), order, side="right") / 12
    return u, (u - 90) / jnp.sqrt(420.0), jnp.abs(fa - fb).max()


@of("f32[20]", "f32[20]")
def concordant_pairs(a: Array, b: Array) -> tuple[Array, Array]:
    x, y = jnp.round(a * 2), jnp.round(b * 2)
    product = jnp.sign(x[:, None] - x) * jnp.sign(y[:, None] - y)
    ties = lambda z: (z[:, None] != z).sum()  # noqa: E731
    return product.sum() / jnp.sqrt(1.0 * ties(x) * ties(y)), (product < 0).sum()


@of("u32[2]", "f32[25]")
def intervals_by_bootstrap(key: Array, x: Array) -> tuple[Array, Array]:
    picks = random.randint(random.wrap_key_data(key), (50, 25), 0, 25)
    medians = jnp.median(x[picks], axis=1)
    return jnp.percentile(medians, jnp.array([2.5, 50.0, 97.5])), medians.std()


@of("u32[2]", "f32[20]", "s32[20]:below2")
def difference_under_permutations(key: Array, x: Array, group: Array) -> tuple[Array, Array]:
    def gap(group: Array) -> Array:
        n = jnp.maximum(group.sum(), 1)
        return (x * group).sum() / n - (x * (1 - group)).sum() / jnp.maximum(20 - n, 1)

    keys = random.split(random.wrap_key_data(key), 30)
    drawn = jax.vmap(lambda k: gap(random.permutation(k, group)))(keys)
    return gap(group), jnp.mean(jnp.abs(drawn) >= jnp.abs(gap(group)))


@of("f32[40,3]", "f32[40]:fraction")
def logistic_regression_by_weights(x: Array, u: Array) -> tuple[Array, Array]:
    y = (u < 0.5).astype(jnp.float32)

    def step(w: Array, _: None) -> tuple[Array, Array]:
        p = jax.nn.sigmoid(x @ w)
        h = (x.T * (p * (1 - p))) @ x + 1e-3 * jnp.eye(3)
        new = w + jnp.linalg.solve(h, x.T @ (y - p))
        return new, -jnp.mean(y * jnp.log(p) + (1 - y) * jnp.log1p(-p))

    return lax.scan(step, jnp.zeros(3), None, length=4)


@of("f32[50]", "f32[3]")
def mixture_by_expectation(x: Array, mu: Array) -> State:
    def step(carry: State, _: None) -> tuple[State, Array]:
        mu, s, w = carry
        logs = stats.norm.logpdf(x[:, None], mu, s) + jnp.log(w)
        r = jax.nn.softmax(logs, axis=1)
        n = r.sum(0) + 1e-6
        mu = (r * x[:, None]).sum(0) / n
        s = jnp.sqrt((r * (x[:, None] - mu) ** 2).sum(0) / n + 1e-4)
        return (mu, s, n / 50), special.logsumexp(logs, axis=1).sum()

    return lax.scan(step, (mu, jnp.ones(3), jnp.ones(3) / 3), None, length=5)


@of("f32[30]:fraction", "f32[30]:fraction")
def ranking_and_calibration(score: Array, u: Array) -> State:
    y = (u < score).astype(jnp.float32)
    order = jnp.argsort(-score)
    hits = jnp.cumsum(y[order])
    falls = jnp.cumsum(1 - y[order])
    area = jnp.trapezoid(hits / hits[-1], falls / falls[-1])
    bins = jnp.clip((score * 5).astype(jnp.int32), 0, 4)
    count = jnp.zeros(5).at[bins].add(1)
    off = jnp.zeros(5).at[bins].add(score - y) / jnp.maximum(count, 1)
    return area, jnp.sum(count * jnp.abs(off)) / 30, jnp.mean((score - y) ** 2)


@of("f32[25]:positive", "s32[25]:below2", "f32[25,2]")
def survival_and_proportional_hazards(t: Array, seen: Array, x: Array) -> State:
    order = jnp.argsort(t)
    d = seen[order]
    at_risk = 25 - jnp.arange(25)
    curve = jnp.cumprod(1 - d / at_risk)

    def loss(w: Array) -> Array:
        eta = (x @ w)[order]
        logs = lax.cumlogsumexp(eta, reverse=True)
        return -jnp.sum(d * (eta - logs))

    return curve, jax.grad(loss)(jnp.ones(2)), jax.hessian(loss)(jnp.ones(2))
