"""Densities of torch.distributions, special functions, elementary functions at many places."""

from __future__ import annotations

from typing import Any

import torch
from torch import distributions as D
from torch import special
from torch.autograd import grad

from programs.everyday_torch.function import of


@of("f32[10]", "f32[10]", "f32[10]:positive")
def of_the_whole_line(x: Any, m: Any, s: Any) -> Any:
    families = (D.Normal, D.Laplace, D.Cauchy, D.Gumbel)
    return [f(m, s, validate_args=False).log_prob(x) for f in families]


@of("f32[10]:positive", "f32[10]:positive", "f32[10]:positive")
def of_positive_numbers(x: Any, a: Any, b: Any) -> Any:
    families = (D.Gamma, D.LogNormal, D.Weibull, D.Pareto)
    return [f(a, b, validate_args=False).log_prob(x + 4) for f in families]


@of("f32[10]:fraction", "f32[10]:positive", "f32[10]:positive")
def of_fractions(x: Any, a: Any, b: Any) -> Any:
    x = x.clamp(0.01, 0.99)
    return (
        D.Beta(a, b, validate_args=False).log_prob(x),
        D.Beta(a, b).mean,
        D.Beta(a, b, validate_args=False).entropy(),
    )


@of("f32[8]:positive", "s64[8]:below9", "f32[8]")
def of_counts(rate: Any, k: Any, logits: Any) -> Any:
    k = k.to(rate.dtype)
    return (
        D.Poisson(rate, validate_args=False).log_prob(k),
        D.Binomial(8, logits=logits, validate_args=False).log_prob(k),
        D.NegativeBinomial(3.0, logits=logits, validate_args=False).log_prob(k),
        D.Geometric(logits=logits, validate_args=False).log_prob(k),
    )


@of("f32[6,4]:fraction", "f32[4]:positive", "f32[6,4]")
def of_simplices_and_categories(x: Any, a: Any, logits: Any) -> Any:
    p = (x + 0.1) / (x + 0.1).sum(-1, keepdim=True)
    one = D.Categorical(logits=logits, validate_args=False)
    other = D.Categorical(logits=logits.flip(0), validate_args=False)
    return (
        D.Dirichlet(a, validate_args=False).log_prob(p),
        one.entropy(),
        D.kl_divergence(one, other),
    )


@of("f32[6]", "f32[6]", "f32[6]:positive", "f32[6]:positive")
def divergences(m: Any, n: Any, s: Any, t: Any) -> Any:
    normal = D.kl_divergence(
        D.Normal(m, s, validate_args=False), D.Normal(n, t, validate_args=False)
    )
    gamma = D.kl_divergence(D.Gamma(s, t, validate_args=False), D.Gamma(t, s, validate_args=False))
    return (
        normal,
        gamma,
        D.Normal(m, s, validate_args=False).cdf(n),
        D.Normal(m, s, validate_args=False).entropy(),
    )


@of("f32[5,3]", "f32[3,3]:definite")
def multivariate_normal(x: Any, cov: Any) -> Any:
    return D.MultivariateNormal(torch.zeros(3), cov.float(), validate_args=False).log_prob(
        x.float()
    )


@of("f32[8]", "f32[8]:positive", "f32[8]:positive")
def students_t_and_others(x: Any, df: Any, s: Any) -> Any:
    t = D.StudentT(df + 1, torch.zeros_like(s), s, validate_args=False)
    return (
        t.log_prob(x),
        D.HalfNormal(s, validate_args=False).log_prob(x.abs()),
        D.VonMises(x, s, validate_args=False).log_prob(x + 1),
    )


@of("f32[12]")
def mixture_and_transformed(x: Any) -> Any:
    weights = D.Categorical(logits=torch.zeros(3, dtype=x.dtype), validate_args=False)
    parts = D.Normal(
        torch.tensor([-1.0, 0, 1]).to(x.dtype), torch.ones(3, dtype=x.dtype), validate_args=False
    )
    mixed = D.MixtureSameFamily(weights, parts, validate_args=False)
    squashed = D.TransformedDistribution(
        D.Normal(0.0, 1.0), D.SigmoidTransform(), validate_args=False
    )
    return mixed.log_prob(x), squashed.log_prob(x.float().sigmoid())


@of("f32[30]:scaled3")
def elementary_functions(x: Any) -> Any:
    return (
        x.exp(),
        x.expm1(),
        x.sin(),
        x.cos(),
        x.tan(),
        x.atan(),
        x.sinh(),
        x.cosh(),
        x.asinh(),
        x.exp2(),
    )


@of("f32[30]:magnitude")
def elementary_functions_of_magnitudes(x: Any) -> Any:
    return (
        x.log(),
        x.log1p(),
        x.log2(),
        x.log10(),
        x.sqrt(),
        x.rsqrt(),
        x.reciprocal(),
        (x + 1).acosh(),
        x**1.7,
        x**-0.5,
    )


@of("f32[30]:unit")
def elementary_functions_of_units(x: Any) -> Any:
    return (
        x.asin(),
        x.acos(),
        x.atanh(),
        x.erf(),
        x.erfc(),
        x.erfinv(),
        torch.sinc(x),
        x.logit(eps=0.01),
    )


@of("f32[25]:magnitude", "f32[25]:positive")
def gammas(x: Any, y: Any) -> Any:
    return (
        x.lgamma(), x.digamma(), torch.polygamma(1, y), torch.mvlgamma(y + 2, 3),
        special.gammainc(y, x), special.gammaincc(x, y), special.zeta(y + 1.5, x + 0.5),
    )  # fmt: skip


@of("f32[25]:scaled3")
def special_functions(x: Any) -> Any:
    return (
        special.i0(x), special.i0e(x), special.i1(x), special.i1e(x), special.ndtr(x),
        special.log_ndtr(x), special.erfcx(x), special.expit(x),
    )  # fmt: skip


@of("f32[20]", "f32[20]")
def of_two_numbers(x: Any, y: Any) -> Any:
    return (
        torch.atan2(x, y), torch.hypot(x, y), torch.logaddexp(x, y), torch.logaddexp2(x, y),
        torch.fmod(x, y), torch.remainder(x, y), torch.copysign(x, y),
        torch.fmax(x, y), x.abs() ** y,
    )  # fmt: skip


@of("f32[20]:scaled30", "f32[20]:scaled30")
def of_two_large_numbers(x: Any, y: Any) -> Any:
    return (
        torch.logaddexp(x, y),
        torch.hypot(x, y),
        torch.div(x, y, rounding_mode="floor"),
        x // y,
        torch.xlogy(x.abs(), y.abs()),
    )


@of("f32[20]:hundredths")
def of_numbers_near_zero(x: Any) -> Any:
    return (
        x.expm1() / x,
        x.log1p() - x,
        1 - x.cos(),
        x.tanh() - x,
        x.sin() / x,
        (1 + x * x).sqrt() - 1,
    )


@of("f32[20]", "f32[20]")
def gradients_of_functions(x: Any, up: Any) -> Any:
    many = (
        torch.lgamma,
        torch.erf,
        torch.sinc,
        torch.atan,
        special.i0,
        special.ndtr,
        torch.expm1,
        torch.rsqrt,
    )
    out = []
    for f in many:
        z = (x.abs() + 0.1).detach().requires_grad_()
        out.append(grad(f(z), z, up)[0])
    return out


@of("f32[20]:scaled5")
def roundings(x: Any) -> Any:
    return (
        x.round(),
        x.floor(),
        x.ceil(),
        x.trunc(),
        x.frac(),
        x.round(decimals=1),
        x.sign(),
        torch.frexp(x),
    )


@of("f32[20]:positive", "f32[20]:positive")
def black_scholes(s: Any, k: Any) -> Any:
    d1 = (torch.log(s / k) + (0.02 + 0.5 * 0.04)) / 0.2
    call = s * special.ndtr(d1) - k * 0.9802 * special.ndtr(d1 - 0.2)
    return call, special.ndtr(d1), call - s + k * 0.9802
