"""Bessel and Airy functions of ATen: quotients of polynomials and Chebyshev series by ranges.

The formulas and their coefficients are Cephes's, which ATen/native/Math.h has, too. There some
denominators lack their leading coefficient, 1: its values are off by up to 9e-7, those of Airy's
function by 3e-6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import Operation, in_f32, promoted

# Polynomials have their highest power first. P and Q are numerator and denominator: of the
# amplitudes far from 0 (PP, PQ, QP, QQ), of J near 0 (RP, RQ) and of Y near 0 (YP, YQ).
_PP0 = (
    0.0007969367292973471, 0.08283523921074408, 1.239533716464143, 5.447250030587687,
    8.74716500199817, 5.303240382353949, 1.0,
)  # fmt: skip
_PQ0 = (
    0.0009244088105588637, 0.08562884743544745, 1.2535274390105895, 5.470977403304171,
    8.761908832370695, 5.306052882353947, 1.0,
)  # fmt: skip
_QP0 = (
    -0.011366383889846916, -1.2825271867050931, -19.553954425773597, -93.20601521237683,
    -177.68116798048806, -147.07750515495118, -51.41053267665993, -6.050143506007285,
)  # fmt: skip
_QQ0 = (
    1.0, 64.3178256118178, 856.4300259769806, 3882.4018360540163, 7240.467741956525,
    5930.727011873169, 2062.0933166032783, 242.0057402402914,
)  # fmt: skip
_RP0 = (
    -4794432209.782018, 1956174919465.5657, -249248344360967.72, 9708622510473064.0,
)  # fmt: skip
_RQ0 = (
    1.0, 499.563147152651, 173785.4016763747, 48440965.83399621, 11185553704.535683,
    2112775201154.892, 310518229857422.56, 3.1812195594320496e+16, 1.7108629408104315e+18,
)  # fmt: skip
_YP0 = (
    15592.436785523574, -14663929.59039716, 5435264770.518765, -982136065717.9115, 87590639439536.7,
    -3466283033847297.0, 4.4273326857256984e+16, -1.8495080043698668e+16,
)  # fmt: skip
_YQ0 = (
    1.0, 1041.2835366425984, 626107.330137135, 268919633.39381415, 86400248710.3935,
    20297961275010.555, 3171577528429750.5, 2.5059625617265306e+17,
)  # fmt: skip
_PP1 = (
    0.0007621256162081731, 0.07313970569409176, 1.1271960812968493, 5.112079511468076,
    8.424045901417724, 5.214515986823615, 1.0,
)  # fmt: skip
_PQ1 = (
    0.0005713231280725487, 0.06884559087544954, 1.105142326340617, 5.073863861286015,
    8.399855543276042, 5.209828486823619, 1.0,
)  # fmt: skip
_QP1 = (
    0.05108625947501766, 4.982138729512334, 75.82382841325453, 366.7796093601508, 710.8563049989261,
    597.4896124006136, 211.68875710057213, 25.207020585802372,
)  # fmt: skip
_QQ1 = (
    1.0, 74.23732770356752, 1056.4488603826283, 4986.410583376536, 9562.318924047562,
    7997.041604473507, 2826.1927851763908, 336.0936078106983,
)  # fmt: skip
_RP1 = (
    -899971225.7055594, 452228297998.19403, -72749424522181.83, 3682957328638529.0,
)  # fmt: skip
_RQ1 = (
    1.0, 620.8364781180543, 256987.25675774884, 83514679.14319493, 22151159547.97925,
    4749141220799.914, 784369607876235.9, 8.952223361846274e+16, 5.322786203326801e+18,
)  # fmt: skip
_YP1 = (
    1263204747.9017804, -647355876379.1603, 114509511541823.73, -8127702555013251.0,
    2.024394757135949e+17, -7.788771962659501e+17,
)  # fmt: skip
_YQ1 = (
    1.0, 594.3015923461282, 235564.09294306856, 73481194.44597217, 18760131610.870617,
    3882312774962.3857, 620557727146953.8, 6.871410873553005e+16, 3.9727060811656064e+18,
)  # fmt: skip
_K0 = (
    1.374465435613523e-16, 4.25981614279661e-14, 1.0349695257633842e-11, 1.904516377220209e-09,
    2.5347910790261494e-07, 2.286212103119452e-05, 0.001264615411446926, 0.0359799365153615,
    0.3442898999246285, -0.5353273932339028,
)  # fmt: skip
_K0_FAR = (
    5.300433772686263e-18, -1.6475804301524212e-17, 5.2103915050390274e-17, -1.678231096805412e-16,
    5.512055978524319e-16, -1.848593377343779e-15, 6.3400764774050706e-15, -2.2275133269916698e-14,
    8.032890775363575e-14, -2.9800969231727303e-13, 1.140340588208475e-12, -4.514597883373944e-12,
    1.8559491149547177e-11, -7.957489244477107e-11, 3.577397281400301e-10, -1.69753450938906e-09,
    8.574034017414225e-09, -4.660489897687948e-08, 2.766813639445015e-07, -1.8317555227191195e-06,
    1.39498137188765e-05, -0.00012849549581627802, 0.0015698838857300533, -0.0314481013119645,
    2.4403030820659555,
)  # fmt: skip
_K1 = (
    -7.023863479386288e-18, -2.427449850519366e-15, -6.666901694199329e-13, -1.4114883926335278e-10,
    -2.213387630734726e-08, -2.4334061415659684e-06, -0.0001730288957513052, -0.006975723859639864,
    -0.12261118082265715, -0.3531559607765449, 1.5253002273389478,
)  # fmt: skip
_K1_FAR = (
    -5.756744483665017e-18, 1.7940508731475592e-17, -5.689462558442859e-17, 1.838093544366639e-16,
    -6.057047248373319e-16, 2.038703165624334e-15, -7.019837090418314e-15, 2.4771544244813043e-14,
    -8.976705182324994e-14, 3.3484196660784293e-13, -1.2891739609510289e-12, 5.13963967348173e-12,
    -2.1299678384275683e-11, 9.218315187605006e-11, -4.1903547593418965e-10, 2.015049755197033e-09,
    -1.0345762465678097e-08, 5.7410841254500495e-08, -3.5019606030878126e-07, 2.406484947837217e-06,
    -1.936197974166083e-05, 0.00019521551847135162, -0.002857816859622779, 0.10392373657681724,
    2.7206261904844427,
)  # fmt: skip
_AN = (
    0.346538101525629, 12.007595273964581, 76.27960536152345, 168.08922493463058,
    159.75639135016442, 70.53609068404442, 14.026469116338967, 1.0,
)  # fmt: skip
_AD = (
    0.5675945326387702, 14.75625625848472, 84.51389701414746, 177.31808814540045, 164.2346928715297,
    71.47784008255756, 14.095913560783403, 1.0,
)  # fmt: skip
_AFN = (
    -0.1316963234183318, -0.6264565444319123, -0.6931580360369335, -0.2797799815451191,
    -0.04919001326095003, -0.004062659235948854, -0.0001592764962392621, -2.776491081552329e-06,
    -1.6778769848911465e-08,
)  # fmt: skip
_AFD = (
    1.0, 13.356042070655324, 32.682503279522464, 26.736704094149957, 9.187074029072596,
    1.4752914677166642, 0.11568717379518804, 0.004402916416152112, 7.547203482874142e-05,
    4.5185009297058035e-07,
)  # fmt: skip
_AGN = (
    0.01973399320916857, 0.39110302961568827, 1.0657989759959559, 0.9391692298166502,
    0.35146565610554764, 0.06338889196289255, 0.005858041130483885, 0.000282851600836737,
    6.98793669997261e-06, 8.117892395543892e-08, 3.415517847659236e-10,
)  # fmt: skip
_AGD = (
    1.0, 9.30892908077442, 19.835292871831214, 15.564662893286462, 5.476860694229755,
    0.9542936116189619, 0.08645808263523921, 0.004126565238242226, 0.00010125908511650914,
    1.1716673321441352e-06, 4.9183457006293e-09,
)  # fmt: skip


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Evaluate a polynomial by Horner's rule."""
    value = jnp.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        value = value * x + jnp.asarray(c, x.dtype)
    return value


def _series(x: Any, coefficients: Sequence[float]) -> Any:
    """Sum a Chebyshev series at x / 2 by Clenshaw's recurrence, the last coefficient by half."""
    before, last = jnp.zeros_like(x), jnp.zeros_like(x)
    value = jnp.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        before, last = last, value
        value = x * last - before + jnp.asarray(c, x.dtype)
    return 0.5 * (value - before)


def _amplitudes(order: int, x: Any) -> tuple[Any, Any, Any]:
    """Compute the factors of cosine and sine far from 0, and their argument."""
    pp, pq, qp, qq = ((_PP0, _PQ0, _QP0, _QQ0), (_PP1, _PQ1, _QP1, _QQ1))[order]
    w = 25 / (x * x) if order == 0 else 5 / x * (5 / x)
    scale = jnp.asarray(0.797884560802865355879892119868763737, x.dtype)  # √(2/π)
    root = jnp.sqrt(x)
    even = _polynomial(w, pp) / _polynomial(w, pq) * scale / root
    odd = 5 / x * (_polynomial(w, qp) / _polynomial(w, qq)) * scale / root
    turn = (0.785398163397448309615660845819875721, 2.356194490192344928846982537459627163)
    return even, odd, x - jnp.asarray(turn[order], x.dtype)


def _j0(x: Any) -> Any:
    x = jnp.abs(x)
    z = x * x
    zeros = (z - 5.78318596294678452118e00) * (z - 3.04712623436620863991e01)
    near = zeros * _polynomial(z, _RP0) / _polynomial(z, _RQ0)
    near = jnp.where(x < 1e-5, 1 - z / 4, near)
    even, odd, angle = _amplitudes(0, x)
    return jnp.where(x <= 5, near, even * jnp.cos(angle) - odd * jnp.sin(angle))


def _j1(x: Any) -> Any:
    size = jnp.abs(x)
    z = size * size
    near = _polynomial(z, _RP1) / _polynomial(z, _RQ1) * size
    near = near * (z - 1.46819706421238932572e01) * (z - 4.92184563216946036703e01)
    even, odd, angle = _amplitudes(1, size)
    value = jnp.where(size <= 5, near, even * jnp.cos(angle) - odd * jnp.sin(angle))
    return jnp.where(x < 0, -value, value)


def _at_the_edge(x: Any, value: Any, at_zero: float) -> Any:
    """Choose the value at 0 and, of negative numbers, NaN."""
    return jnp.where(x == 0, at_zero, jnp.where(x < 0, jnp.nan, value)).astype(x.dtype)


def _y0(x: Any) -> Any:
    z = x * x
    near = _polynomial(z, _YP0) / _polynomial(z, _YQ0)
    near = near + 0.636619772367581343075535053490057448 * jnp.log(x) * _j0(x)  # 2/π
    even, odd, angle = _amplitudes(0, x)
    far = even * jnp.sin(angle) + odd * jnp.cos(angle)
    return _at_the_edge(x, jnp.where(x <= 5, near, far), -jnp.inf)


def _y1(x: Any) -> Any:
    z = x * x
    near = x * (_polynomial(z, _YP1) / _polynomial(z, _YQ1))
    near = near + 0.636619772367581343075535053490057448 * (_j1(x) * jnp.log(x) - 1 / x)
    even, odd, angle = _amplitudes(1, x)
    far = even * jnp.sin(angle) + odd * jnp.cos(angle)
    return _at_the_edge(x, jnp.where(x <= 5, near, far), -jnp.inf)


def _modified_second(x: Any, order: int, is_scaled: bool) -> Any:
    """Compute K, scaled by the exponential if asked for."""
    near = _series(x * x - 2, (_K0, _K1)[order])
    if order == 0:
        near = near - jnp.log(0.5 * x) * jax.scipy.special.i0(x)
    else:
        near = jnp.log(0.5 * x) * jax.scipy.special.i1(x) + near / x
    far = _series(8 / x - 2, (_K0_FAR, _K1_FAR)[order])
    if is_scaled:
        near = near * jnp.exp(x)
    else:
        far = jnp.exp(-x) * far
    return _at_the_edge(x, jnp.where(x <= 2, near, far / jnp.sqrt(x)), jnp.inf)


def _spherical_j0(x: Any) -> Any:
    taylor = [1 / 6227020800, -1 / 39916800, 1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1]
    apart = jnp.where(x == 0, 1, x)
    far = jnp.where(jnp.isinf(x), 0, jnp.sin(x) / apart)
    return jnp.where(jnp.abs(x) < 0.5, _polynomial(x * x, taylor), far).astype(x.dtype)


def _airy_taylor(x: Any) -> Any:
    """Sum the series of Airy's function at 0 until a term no longer counts."""
    cube = x * x * x
    least = jnp.finfo(x.dtype).eps  # type: ignore[no-untyped-call]

    def step(state: Any) -> Any:
        k, m, n, f, g, goes_on = state
        m, n = m * cube / (k + 1) / (k + 2), n * cube / (k + 2) / (k + 3)
        f, g = jnp.where(goes_on, f + m, f), jnp.where(goes_on, g + n, g)
        return k + 3, m, n, f, g, goes_on & (jnp.abs(m / f) > least)

    one = jnp.ones_like(x)
    start = jnp.ones((), x.dtype), one, x, one, x, jnp.abs(x) <= 2.09
    f, g = lax.while_loop(lambda state: jnp.any(state[5]), step, start)[3:5]
    return 0.355028053887817239260 * f - 0.258819403792806798405 * g


def _airy(x: Any) -> Any:
    size = jnp.abs(x)
    zeta = 2 * size * jnp.sqrt(size) / 3
    inverse = 1 / zeta
    scale, root = jnp.asarray(0.564189583547756286948, x.dtype), jnp.sqrt(jnp.sqrt(size))  # 1/√π
    even = 1 + inverse * inverse * (
        _polynomial(inverse * inverse, _AFN) / _polynomial(inverse * inverse, _AFD)
    )
    odd = inverse * (_polynomial(inverse * inverse, _AGN) / _polynomial(inverse * inverse, _AGD))
    angle = zeta + jnp.asarray(0.25 * jnp.pi, x.dtype)
    swings = scale / root * (jnp.sin(angle) * even - jnp.cos(angle) * odd)
    decays = _polynomial(inverse, _AN) / _polynomial(inverse, _AD)
    decays = scale * decays / (2 * root * jnp.exp(zeta))
    value = jnp.where(x < -2.09, swings, jnp.where(x >= 2.09, decays, _airy_taylor(x)))
    value = jnp.where(x > 103.892, 0, value)
    return jnp.where(jnp.isinf(x), jnp.nan, value).astype(x.dtype)


OPS: dict[str, Operation] = {
    "special_airy_ai": promoted(_airy),
    "special_bessel_j0": promoted(_j0),
    "special_bessel_j1": promoted(_j1),
    "special_bessel_y0": promoted(_y0),
    "special_bessel_y1": promoted(_y1),
    "special_modified_bessel_i0": promoted(in_f32(jax.scipy.special.i0)),
    "special_modified_bessel_i1": promoted(in_f32(jax.scipy.special.i1)),
    "special_modified_bessel_k0": promoted(lambda x: _modified_second(x, 0, False)),
    "special_modified_bessel_k1": promoted(lambda x: _modified_second(x, 1, False)),
    "special_scaled_modified_bessel_k0": promoted(lambda x: _modified_second(x, 0, True)),
    "special_scaled_modified_bessel_k1": promoted(lambda x: _modified_second(x, 1, True)),
    "special_spherical_bessel_j0": promoted(_spherical_j0),
}
