"""Sound: spectrograms, filters, codecs, pitch."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from programs.everyday_torch.function import of


@of("f32[2,40]")
def spectrogram(x: Any) -> Any:
    window = torch.hann_window(16)
    s = torch.stft(x, 16, 4, window=window, center=True, return_complex=True)
    return s.abs() ** 2, s.angle()


@of("f32[1,64]")
def log_mel_spectrogram(x: Any) -> Any:
    power = torch.stft(x, 16, 8, window=torch.hann_window(16), return_complex=True).abs().pow(2)
    hz = torch.linspace(0, 8000, 9)
    mel = 2595 * torch.log10(1 + hz / 700)
    points = torch.linspace(0.0, float(2595 * math.log10(1 + 8000 / 700)), 6)
    up = (mel[:, None] - points[:-2]) / (points[1:-1] - points[:-2])
    down = (points[2:] - mel[:, None]) / (points[2:] - points[1:-1])
    bank = torch.minimum(up, down).clamp(min=0)
    return torch.log(bank.T @ power + 1e-6)


@of("f32[1,48]")
def there_and_back(x: Any) -> Any:
    w = torch.hann_window(16)
    s = torch.stft(x, 16, 4, window=w, return_complex=True)
    return torch.istft(s, 16, 4, window=w, length=48)


@of("f32[2,30]:unit")
def companding_by_mu_law(x: Any) -> Any:
    mu = torch.tensor(255.0, dtype=x.dtype)
    y = x.sign() * torch.log1p(mu * x.abs()) / torch.log1p(mu)
    back = y.sign() * (torch.exp(y.abs() * torch.log1p(mu)) - 1.0) / mu
    return y, back


@of("f32[4,25]")
def cepstral_coefficients(x: Any) -> Any:
    n, k = torch.arange(25.0), torch.arange(13.0)[:, None]
    dct = torch.cos(math.pi / 25 * (n + 0.5) * k) * math.sqrt(2 / 25)
    dct[0] *= 1 / math.sqrt(2)
    return x @ dct.T.to(x.dtype)


@of("f32[20]")
def filter_of_second_order(x: Any) -> Any:
    y1 = y2 = x1 = x2 = torch.zeros((), dtype=x.dtype)
    out = []
    for t in range(20):
        y = 0.2 * x[t] + 0.3 * x1 + 0.1 * x2 + 0.5 * y1 - 0.2 * y2
        x1, x2, y1, y2 = x[t], x1, y, y1
        out.append(y)
    return torch.stack(out)


@of("f32[1,1,32]", "f32[1,1,7]")
def convolution_by_transforms(x: Any, k: Any) -> Any:
    n = 38
    return torch.fft.irfft(torch.fft.rfft(x.float(), n) * torch.fft.rfft(k.float(), n), n)


@of("f32[64]")
def pitch_by_autocorrelation(x: Any) -> Any:
    x = x.float() - x.float().mean()
    spectrum = torch.fft.rfft(x, 128)
    r = torch.fft.irfft(spectrum * spectrum.conj(), 128)[:64]
    return r / r[0], r[8:40].argmax() + 8


@of("f32[1,2,24]", "f32[2,4,4]")
def upsampling_of_a_vocoder(x: Any, w: Any) -> Any:
    y = F.conv_transpose1d(F.leaky_relu(x, 0.1), w, stride=2, padding=1)
    return torch.tanh(y)


@of("f32[2,4,20]", "f32[8,4,3]", "f32[4,4,1]", "f32[4,4,1]")
def gated_dilated_convolution(x: Any, w: Any, skip: Any, out: Any) -> Any:
    a, b = F.conv1d(F.pad(x, (4, 0)), w, dilation=2).chunk(2, 1)
    z = torch.tanh(a) * torch.sigmoid(b)
    return x + F.conv1d(z, out), F.conv1d(z, skip)


@of("f32[3,50]", "f32[3,50]")
def signal_to_noise_ratio(x: Any, y: Any) -> Any:
    x, y = x - x.mean(-1, keepdim=True), y - y.mean(-1, keepdim=True)
    scale = (x * y).sum(-1, keepdim=True) / (y.pow(2).sum(-1, keepdim=True) + 1e-8)
    noise = x - scale * y
    return 10 * torch.log10((scale * y).pow(2).sum(-1) / (noise.pow(2).sum(-1) + 1e-8))


@of("f32[6,8]", "f32[5,8]")
def nearest_codes(x: Any, codes: Any) -> Any:
    d = x.pow(2).sum(1, keepdim=True) - 2 * x @ codes.T + codes.pow(2).sum(1)
    chosen = d.argmin(1)
    quantised = codes[chosen]
    return x + (quantised - x).detach(), F.mse_loss(x, quantised), torch.cdist(x, codes)


@of("f32[1,40]")
def resampling_by_a_windowed_sinc(x: Any) -> Any:
    t = torch.arange(10)[:, None] * 4.0 - torch.arange(40.0) + 0.5
    k = torch.sinc(t / 4) * torch.cos(t / 40 * math.pi / 2).clamp(min=0) ** 2
    return x @ k.T.to(x.dtype) / 4
