"""Physics and numerics: fields, particles, equations, derivatives."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from programs.everyday_torch.function import of


@of("f32[6,3]", "f32[6,3]")
def molecular_dynamics(x: Any, v: Any) -> Any:
    def energy(x: Any) -> Any:
        r = x[:, None] - x
        d2 = r.pow(2).sum(-1) + torch.eye(6, dtype=x.dtype)
        s = 1 / (d2 + 0.5) ** 3
        return (4 * (s * s - s)).triu(1).sum()

    force = torch.func.grad(energy)
    for _ in range(2):
        v = v - 0.005 * force(x)
        x = x + 0.01 * v
        v = v - 0.005 * force(x)
    return x, v, energy(x)


@of("f32[8,8]")
def heat_in_a_plate(u: Any) -> Any:
    k = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]], dtype=u.dtype)[None, None]
    for _ in range(3):
        u = u + 0.1 * F.conv2d(F.pad(u[None, None], (1,) * 4, mode="circular"), k)[0, 0]
    return u


@of("f32[16]")
def schroedinger_by_split_steps(x: Any) -> Any:
    psi = torch.complex(x.float(), torch.zeros(16))
    psi = psi / psi.abs().pow(2).sum().sqrt()
    k = torch.fft.fftfreq(16) * 6.2831853
    for _ in range(2):
        psi = torch.fft.ifft(torch.exp(-0.05j * k**2) * torch.fft.fft(psi))
        psi = psi * torch.exp(-0.1j * torch.linspace(-1, 1, 16) ** 2)
    return psi.abs() ** 2


@of("f32[5,2]", "f32[8,2]", "f32[8]", "f32[1,8]")
def residual_of_a_network_for_poisson(x: Any, w: Any, b: Any, v: Any) -> Any:
    def u(x: Any) -> Any:
        return (torch.tanh(x @ w.T + b) @ v.T).squeeze()

    h = torch.vmap(torch.func.hessian(u))(x)
    return h[:, 0, 0] + h[:, 1, 1] - torch.sin(x[:, 0]) * torch.cos(x[:, 1])


@of("f32[3]")
def lorenz_by_runge_kutta(s: Any) -> Any:
    def f(s: Any) -> Any:
        x, y, z = s
        return torch.stack((10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z))

    h = 0.01
    for _ in range(5):
        a = f(s)
        b = f(s + h / 2 * a)
        c = f(s + h / 2 * b)
        s = s + h / 6 * (a + 2 * b + 2 * c + f(s + h * c))
    return s


@of("f32[4,4]", "f32[4,3]")
def rotations_by_quaternions(q: Any, v: Any) -> Any:
    q = q / q.norm(dim=1, keepdim=True)
    w, u = q[:, :1], q[:, 1:]
    t = 2 * torch.linalg.cross(u, v)
    return v + w * t + torch.linalg.cross(u, t)


@of("f32[5,3]", "f32[5,3]")
def rigid_alignment(a: Any, b: Any) -> Any:
    a, b = a.float(), b.float()
    a, b = a - a.mean(0), b - b.mean(0)
    u, s, vt = torch.linalg.svd(a.T @ b)
    d = torch.sign(torch.det(u @ vt))
    return s, (a @ u @ torch.diag(torch.stack((d * 0 + 1, d * 0 + 1, d))) @ vt - b).pow(2).sum()


@of("f32[10]", "f32[10]")
def advection_upwind(u: Any, c: Any) -> Any:
    for _ in range(3):
        left, right = u - u.roll(1), u.roll(-1) - u
        u = u - 0.1 * torch.where(c > 0, c * left, c * right)
    return u


@of("f32[6]:positive", "f32[6]:positive")
def gases_and_radiation(t: Any, v: Any) -> Any:
    van_der_waals = 8 * t / (3 * v + 1) - 3 / v**2
    planck = v**3 / torch.expm1(v / t)
    return van_der_waals, planck, torch.exp(-1 / t) / (1 + torch.exp(-1 / t))


@of("f32[8]:ascending", "f32[8]", "f32[5]:unit")
def interpolation_between_samples(x: Any, y: Any, at: Any) -> Any:
    i = torch.searchsorted(x, at.contiguous()).clamp(1, 7)
    t = (at - x[i - 1]) / (x[i] - x[i - 1])
    return torch.lerp(y[i - 1], y[i], t), torch.cumulative_trapezoid(y, x)


@of("f32[3,3]", "f32[3,3]")
def exponential_of_rotations(a: Any, b: Any) -> Any:
    skew = a.float() - a.float().T
    r = torch.linalg.matrix_exp(skew)
    return r @ r.T, torch.linalg.det(r), r @ b.float()


@of("f32[7,2]", "f32[7]:positive")
def gravity_between_bodies(x: Any, m: Any) -> Any:
    r = x[None] - x[:, None]
    inverse = (r.pow(2).sum(-1) + 0.01).pow(-1.5)
    return torch.einsum("ijk,ij,j->ik", r, inverse, m)
