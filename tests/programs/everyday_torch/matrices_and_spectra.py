"""Linear algebra, Fourier transforms and complex numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import fft, linalg
from torch.autograd import grad

from programs.everyday_torch.function import of


@of("f32[3,4,4]", "f32[3,4,2]")
def systems_of_equations(a: Any, b: Any) -> Any:
    a, b = a.float() + 4 * torch.eye(4), b.float()
    return linalg.solve(a, b), linalg.inv(a), linalg.det(a), linalg.slogdet(a)


@of("f32[5,5]:definite", "f32[5,2]")
def positive_definite_systems(a: Any, b: Any) -> Any:
    chol = linalg.cholesky(a.float())
    return (
        chol,
        torch.cholesky_solve(b.float(), chol),
        torch.cholesky_inverse(chol),
        torch.logdet(a.float()),
    )


@of("f32[6,3]")
def thin_factors(x: Any) -> Any:
    q, r = linalg.qr(x.float())
    u, s, vh = linalg.svd(x.float(), full_matrices=False)
    return (
        q @ r,
        s,
        u @ torch.diag(s) @ vh,
        linalg.matrix_norm(x.float(), 2),
        linalg.cond(x.float()),
    )


@of("f32[4,4]:definite", "f32[4,4]")
def gradients_of_factors(a: Any, up: Any) -> Any:
    a = a.float().detach().requires_grad_()
    return (
        grad(linalg.cholesky(a), a, up.float()),
        grad(linalg.inv(a), a, up.float()),
        grad(torch.logdet(a), a),
    )


@of("f32[5,5]:definite")
def gradient_of_eigenvalues(a: Any) -> Any:
    a = a.float().detach().requires_grad_()
    return grad(linalg.eigvalsh(a).log().sum(), a), linalg.matrix_power(a.detach(), 4)


@of("f32[3,5]", "f32[5,4]", "f32[4,6]", "f32[3,6]")
def products_of_matrices(a: Any, b: Any, c: Any, d: Any) -> Any:
    return (
        linalg.multi_dot((a, b, c)),
        torch.addmm(d, a, b @ c, beta=0.5, alpha=2),
        torch.tensordot(a, b, 1),
    )


@of("f32[2,3,5]", "f32[2,5,4]", "f32[4]")
def products_of_batches(a: Any, b: Any, v: Any) -> Any:
    return (
        torch.baddbmm(torch.zeros(2, 3, 4, dtype=a.dtype), a, b),
        (a @ b) @ v,
        torch.einsum("bij,bjk,k->bi", a, b, v),
    )


@of("f32[2,4]", "f32[3,4]", "f32[2,3]")
def contractions(a: Any, b: Any, c: Any) -> Any:
    return (
        torch.einsum("ik,jk,ij->", a, b, c), torch.einsum("ij,kj->ik", a, b),
        torch.einsum("ij->ji", a),
        torch.einsum("...i,...i->...", a, a), torch.einsum("ii->i", c @ c.T),
    )  # fmt: skip


@of("f32[4,16]")
def real_transforms(x: Any) -> Any:
    s = fft.rfft(x.float())
    return (
        s,
        fft.irfft(s * torch.exp(-torch.arange(9.0) / 4)),
        fft.fftshift(fft.fft(x.float()).abs()),
    )


@of("f32[6,6]", "f32[3,3]")
def images_filtered_in_frequency(x: Any, k: Any) -> Any:
    y = fft.irfft2(fft.rfft2(x.float()) * fft.rfft2(k.float(), (6, 6)), (6, 6))
    return y, fft.fft2(x.float(), norm="ortho").abs()


@of("f32[15]")
def analytic_signal(x: Any) -> Any:
    s = fft.fft(x.float())
    keep = torch.cat((torch.ones(1), 2 * torch.ones(7), torch.zeros(7)))
    a = fft.ifft(s * keep)
    return a.abs(), a.angle()


@of("f32[12]")
def cosine_transform(x: Any) -> Any:
    v = torch.cat((x[::2], x[1::2].flip(0))).float()
    turn = torch.exp(-1j * torch.pi * torch.arange(12) / 24)
    return 2 * (fft.fft(v) * turn).real


@of("c64[5]", "c64[5]")
def complex_arithmetic(z: Any, w: Any) -> Any:
    return (
        z * w,
        z / w,
        z.abs(),
        z.angle(),
        z.conj() * w.real,
        torch.polar(z.abs(), w.angle()),
        z.sgn(),
    )


@of("c64[6]")
def complex_functions(z: Any) -> Any:
    return z.exp(), z.log(), z.sqrt(), z.sin(), z.tanh(), z**2, torch.reciprocal(z), z.cosh()


@of("c64[3,4]", "c64[4,3]", "c64[3]")
def complex_products(a: Any, b: Any, v: Any) -> Any:
    return a @ b, torch.vdot(v, v), torch.einsum("ij,jk,k->i", a, b, v), linalg.norm(a)


@of("f32[8]", "f32[8]")
def gradient_through_a_transform(x: Any, w: Any) -> Any:
    x = x.float().detach().requires_grad_()
    return grad((fft.rfft(x).abs() * w.float()[:5].abs()).sum(), x)


@of("f32[4,4]", "f32[4]")
def least_squares_and_inverses(a: Any, b: Any) -> Any:
    a, b = a.float() + 3 * torch.eye(4), b.float()
    return (
        linalg.pinv(a) @ b,
        linalg.lu_factor(a)[0],
        linalg.matrix_exp(a / 4),
        linalg.norm(a, "nuc"),
    )


@of("f32[5,5]", "f32[5,3]")
def triangular_systems(a: Any, b: Any) -> Any:
    low = (a.float() + 4 * torch.eye(5)).tril()
    return linalg.solve_triangular(low, b.float(), upper=False), torch.linalg.solve_triangular(
        low.T, b.float(), upper=True
    )


@of("f32[4,3]", "f32[4,3]")
def householder_and_gram(x: Any, y: Any) -> Any:
    v = x[:, 0] + torch.sign(x[0, 0]) * x[:, 0].norm() * torch.eye(4, dtype=x.dtype)[0]
    h = torch.eye(4, dtype=x.dtype) - 2 * torch.outer(v, v) / v.dot(v)
    return h @ x, linalg.vecdot(x, y, dim=0), torch.linalg.cross(x, y)
