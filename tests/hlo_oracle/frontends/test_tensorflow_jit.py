"""ho.tensorflow.jit: results, variables, and what TensorFlow's page on XLA lists as known issues
(tensorflow.org/xla/known_issues), each of which works here or says what to do.

Without TensorFlow all of it is one skipped line; docs/tensorflow.md says how to run it.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed: hlo-oracle[tensorflow]")

import hlo_oracle as ho  # noqa: E402 (after the skip)
from hlo.errors import Error, Unsupported  # noqa: E402 (after the skip)

pytestmark = pytest.mark.filterwarnings("ignore")
jit = ho.tensorflow.jit


def test_results_have_the_structure_that_the_function_gives_them() -> None:
    def function(x: Any, y: Any) -> Any:
        return {"weights": tf.nn.softmax(x @ y), "all": (tf.reduce_sum(x), x.shape[0])}

    x, y = tf.random.normal((2, 3)), tf.random.normal((3, 4))
    compiled = jit(function)
    expected, actual = function(x, y), compiled(x, y)
    np.testing.assert_allclose(actual["weights"], expected["weights"], rtol=1e-5)
    np.testing.assert_allclose(actual["all"][0], expected["all"][0], rtol=1e-5)
    compiled(x[:1], y)
    assert repr(compiled) == "ho.tensorflow.jit(function): 2 compiled"
    assert compiled.text(x, y).startswith("HloModule")
    assert compiled.executable(x, y).source


def test_a_training_step_assigns_its_variables() -> None:
    x, target = tf.random.normal((8, 3)), tf.random.normal((8, 1))
    start = np.ones((3, 1), np.float32)

    def step(weights: Any, count: Any) -> Callable[..., Any]:
        def train(x: Any, target: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ weights - target) ** 2)
            weights.assign_sub(0.1 * tape.gradient(loss, weights))
            count.assign_add(1)
            return loss

        return train

    mine, eager = ((tf.Variable(start), tf.Variable(0)) for _ in range(2))
    train, expected = jit(step(*mine)), step(*eager)
    for _ in range(3):
        np.testing.assert_allclose(train(x, target), expected(x, target), rtol=1e-4)
    np.testing.assert_allclose(mine[0], eager[0], rtol=1e-4)
    assert mine[1].numpy() == 3


def test_functions_of_keras() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(5, "gelu"), tf.keras.layers.Dense(2)])
    x = tf.random.normal((4, 3))
    expected = model(x)
    np.testing.assert_allclose(jit(model.__call__)(x), expected, rtol=1e-4, atol=1e-5)


def test_random_numbers_follow_the_seed() -> None:
    """XLA ignores seeds of stateful random operations."""

    @jit
    def drawn() -> Any:
        return tf.random.normal((3,)), tf.random.stateless_uniform((2,), seed=(1, 2))

    def series() -> list[Any]:
        tf.random.set_seed(5)
        return [drawn()[0].numpy() for _ in range(2)]

    first, second = series(), series()
    assert np.array_equal(first, second)
    assert not np.array_equal(first[0], first[1])
    assert np.array_equal(drawn()[1], drawn()[1])  # a stateless one has its own seed


def test_assertions_are_checked_before_variables_change() -> None:
    """XLA leaves tf.Assert out."""
    count = tf.Variable(0)

    @jit
    def asserted(x: Any) -> Any:
        tf.debugging.assert_greater(x, 0.0)
        tf.Assert(tf.reduce_sum(x) < 100.0, [x])
        count.assign_add(1)
        return x * 2

    assert asserted(tf.ones(3)).numpy().tolist() == [2, 2, 2]
    for wrong, name in ((-tf.ones(3), "assert_greater"), (100 * tf.ones(3), "Assert")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"{name}.*jit.py:"):
            asserted(wrong)
    assert count.numpy() == 1


def test_sizes_that_are_data() -> None:
    """tf.where, tf.unique and tf.boolean_mask: results of the size that they have."""

    @jit
    def found(x: Any, y: Any) -> Any:
        return tf.where(x > 0), tf.unique(y).y, tf.boolean_mask(x, x > 0)

    x, y = tf.constant([1.0, -1.0, 2.0]), tf.constant([1, 2, 1, 3])
    for actual, expected in zip(found(x, y), ([[0], [2]], [1, 2, 3], [1, 2]), strict=True):
        assert actual.numpy().tolist() == expected


def test_an_array_of_tensors_with_a_size_works() -> None:
    @jit
    def filled(x: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=4, element_shape=())
        for n in tf.range(4):
            array = array.write(n, tf.cast(n, tf.float32) * x)
        return array.stack()

    assert filled(tf.constant(2.0)).numpy().tolist() == [0, 2, 4, 6]


def test_an_array_of_tensors_whose_size_is_an_argument_is_refused() -> None:
    @jit
    def filled(count: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for n in tf.range(count):
            array = array.write(n, 1.0)
        return array.stack()

    with pytest.raises(Unsupported, match="filled: .*an argument decides a shape; give it as a Py"):
        filled(tf.constant(4))


def gradient_of_loop(maximum: int | None) -> Any:
    @jit
    def gradient(x: Any) -> Any:
        def body(n: Any, value: Any) -> Any:
            return n + 1, value * x

        with tf.GradientTape() as tape:
            tape.watch(x)
            start = tf.constant(0), x
            _, value = tf.while_loop(
                lambda n, value: n < 5, body, start, maximum_iterations=maximum
            )
        return tape.gradient(value, x)

    return gradient(tf.constant(1.5))


def test_the_gradient_of_a_loop_needs_its_maximum_of_iterations() -> None:
    assert gradient_of_loop(10).numpy() == 6 * 1.5**5
    with pytest.raises(Unsupported, match="give tf.while_loop maximum_iterations, which its grad"):
        gradient_of_loop(None)


def test_sums_of_segments_are_the_same_each_time() -> None:
    """On GPUs XLA's are not, as atomic additions come in any order."""
    values = tf.constant(np.random.default_rng(0).standard_normal(4096).astype(np.float32))
    segments = tf.constant(np.arange(4096, dtype=np.int32) % 7)
    summed = jit(lambda x, n: tf.math.unsorted_segment_sum(x, n, 7))
    assert len({summed(values, segments).numpy().tobytes() for _ in range(5)}) == 1


def test_what_has_no_hlo_is_named() -> None:
    with pytest.raises(Unsupported, match="AsString.*leave these operations out"):
        jit(lambda x: tf.strings.as_string(x))(tf.ones(2))


_CLUSTERS = """
import tensorflow as tf
@tf.function
def f(x, y):
    return tf.reduce_sum(tf.nn.softmax(x @ y) * tf.tanh(x @ y), 1)
print(f(tf.ones((4, 8)), tf.ones((8, 4))))
"""


def test_a_saved_model(tmp_path: Path) -> None:
    """Its file says what it is, and how to get HLO of it, which is right."""

    class Model(tf.Module):
        def __init__(self) -> None:
            self.weights = tf.Variable(tf.ones((3, 2)))

        @tf.function(input_signature=[tf.TensorSpec((2, 3))])
        def __call__(self, x: Any) -> Any:
            return x @ self.weights

    tf.saved_model.save(Model(), str(tmp_path))
    with pytest.raises(Error, match="a SavedModel of TensorFlow, from before HLO"):
        ho.load(tmp_path / "saved_model.pb")
    model = tf.saved_model.load(str(tmp_path))
    function = ho.tensorflow.jit(model.signatures["serving_default"])
    x = tf.ones((2, 3))
    (result,) = function(x).values()
    assert result.numpy().tolist() == [[3, 3]] * 2
    exact = ho.run(function.text(x), x.numpy(), np.full((3, 2), 2, np.float32))
    assert exact.tolist() == [[6, 6]] * 2
    assert repr(function).startswith("ho.tensorflow.jit(") and repr(jit(model))


def test_clusters_that_tensorflow_dumps_are_judged(tmp_path: Path) -> None:
    flags = {
        "TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1",
        "XLA_FLAGS": f"--xla_dump_to={tmp_path} --xla_dump_hlo_pass_re=.*",
    }
    program = [sys.executable, "-c", _CLUSTERS]
    subprocess.run(program, env=os.environ | flags, check=True, capture_output=True)
    names = [path.name for path in tmp_path.iterdir() if "cluster" in path.name]
    assert names, "TensorFlow clustered nothing"
    command = [sys.executable, "-m", "hlo_oracle.command.main", "check", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "none changed" in done.stdout
