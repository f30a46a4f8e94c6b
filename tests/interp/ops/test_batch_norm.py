"""Batch normalisation: exact where every step is, and XLA's answers elsewhere."""

import numpy as np

from interp.ops.batch_norm import batch_norm_grad, batch_norm_inference, batch_norm_training


def test_numbers_without_rounding() -> None:
    x = np.array([[1.0, 8.0], [3.0, 8.0]], np.float32)
    scale, offset = np.array([2, 3], np.float32), np.array([10, 20], np.float32)
    y, mean, variance = batch_norm_training(x, scale, offset, epsilon=0.25, feature_index=1)
    assert mean.tolist() == [2, 8]
    assert variance.tolist() == [1, 0]
    assert y[:, 1].tolist() == [20, 20]  # (8 - 8) * 2 * 3 + 20
    again = batch_norm_inference(
        x[:, 1:], scale[1:], offset[1:], mean[1:] - 1, variance[1:], epsilon=0.25, feature_index=1
    )
    assert again.tolist() == [[26], [26]]  # (8 - 7) * 2 * 3 + 20
    gradients = batch_norm_grad(
        x[:, 1:] - 1, scale[1:], mean[1:], variance[1:], x[:, :1], epsilon=0.25, feature_index=1
    )
    # n (y n - sum y) with y = 1, 3, and (x - mean) sum(y (x - mean)) / (variance + epsilon) = 16
    assert gradients[0].tolist() == [[3 * (-2 - 16)], [3 * (2 - 16)]]
    assert [part.tolist() for part in gradients[1:]] == [[-8], [4]]


def test_epsilon_is_an_f32() -> None:
    zero = np.zeros(1)
    y = batch_norm_inference(zero, zero + 1, zero, zero - 1, zero, epsilon=0.1, feature_index=0)
    assert y[0] == 1 / np.sqrt(float(np.float32(0.1)))


def test_features_of_nothing() -> None:
    x = np.zeros((0, 3), np.float32)
    one = np.ones(3, np.float32)
    with np.errstate(invalid="ignore"):
        y, mean, variance = batch_norm_training(x, one, one, epsilon=0.1, feature_index=1)
    assert y.shape == (0, 3)
    assert np.isnan(mean).all()  # 0 / 0
    assert np.isnan(variance).all()
    empty = batch_norm_training(x, one[:0], one[:0], epsilon=0.1, feature_index=0)
    assert [part.shape for part in empty] == [(0, 3), (0,), (0,)]


def test_as_xla_does() -> None:
    """Recorded: jaxlib 0.10.2 on the CPU, default_rng(0).standard_normal(3, 4, 2) as f32."""
    x = np.random.default_rng(0).standard_normal((3, 4, 2)).astype(np.float32)
    scale, offset = np.array([0.5, -2], np.float32), np.array([1, 3], np.float32)
    y, mean, variance = batch_norm_training(x, scale, offset, epsilon=1e-3, feature_index=2)
    assert np.allclose(y[0, 0], RECORDED[0], rtol=1e-5)
    assert np.allclose([mean, variance], RECORDED[1:3], rtol=1e-5)
    g = x[::-1]
    dx, dscale, doffset = batch_norm_grad(
        x, scale, mean, variance, g, epsilon=1e-3, feature_index=2
    )
    assert np.allclose(dx[0, 0], RECORDED[3], rtol=1e-5)
    assert np.allclose([dscale, doffset], RECORDED[4:], rtol=1e-5)


RECORDED = [
    [1.269310712814331, 3.725184679031372],
    [-0.35748550295829773, 0.12920862436294556],
    [0.8038496375083923, 0.5183814167976379],
    [-0.24634499847888947, 0.7775635123252869],
    [5.686416149139404, 5.471303462982178],
    [-4.289825916290283, 1.5505032539367676],
]
