"""Write the four networks of MLPerf Tiny as HLO, in int8 and in f32, with synthetic weights.

    python examples/tiny/networks.py DIR

The architectures are those of the benchmark (Banbury et al., "MLPerf Tiny Benchmark", 2021); no
trained weights are needed to measure what a network takes: they are drawn from a seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from layers import Network, Value


def anomaly_detection(network: Network) -> Value:
    """Write the autoencoder of ToyADMOS: ten dense layers around a bottleneck of 8."""
    x = network.input(1, 640)
    for features in (*[128] * 4, 8, *[128] * 4):
        x = network.dense(x, features)
    return network.dense(x, 640, has_relu=False)


def keyword_spotting(network: Network) -> Value:
    """Write DS-CNN-S: a convolution, and four pairs of depthwise and pointwise ones."""
    x = network.convolution(network.input(1, 49, 10, 1), 64, (10, 4), (2, 2))
    for _ in range(4):
        x = _separable(network, x, 64)
    return network.softmax(network.dense(network.average_pool(x), 12, has_relu=False))


def visual_wake_words(network: Network) -> Value:
    """Write MobileNetV1, a quarter as wide, for 96 x 96 pixels."""
    x = network.convolution(network.input(1, 96, 96, 3), 8, (3, 3), (2, 2))
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2)]
    for features, stride in (*blocks, (256, 1)):
        x = _separable(network, x, features, stride)
    return network.softmax(network.dense(network.average_pool(x), 2, has_relu=False))


def image_classification(network: Network) -> Value:
    """Write ResNet-8 for CIFAR-10: three residual blocks."""
    x = network.convolution(network.input(1, 32, 32, 3), 16, (3, 3))
    for features, stride in ((16, 1), (32, 2), (64, 2)):
        shortcut = x
        inner = network.convolution(x, features, (3, 3), (stride, stride))
        if stride > 1:
            shortcut = network.convolution(x, features, (1, 1), (stride, stride), has_relu=False)
        x = network.add(network.convolution(inner, features, (3, 3), has_relu=False), shortcut)
    return network.softmax(network.dense(network.average_pool(x), 10, has_relu=False))


def _separable(network: Network, x: Value, features: int, stride: int = 1) -> Value:
    """Write a depthwise convolution and a pointwise one."""
    x = network.convolution(x, x.dims[3], (3, 3), (stride, stride), is_depthwise=True)
    return network.convolution(x, features, (1, 1))


NETWORKS: dict[str, Callable[[Network], Value]] = {
    function.__name__: function
    for function in (anomaly_detection, keyword_spotting, visual_wake_words, image_classification)
}


def text(name: str, *, is_quantised: bool) -> str:
    """Return a network by name as HLO."""
    kind = "int8" if is_quantised else "f32"
    network = Network(f"{name}_{kind}", list(NETWORKS).index(name), is_quantised=is_quantised)
    return network.text(NETWORKS[name](network))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR", help="write the programs here")
    directory: Path = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    for name in NETWORKS:
        for is_quantised in (True, False):
            file = directory / f"{name}.{'int8' if is_quantised else 'f32'}.hlo"
            file.write_text(text(name, is_quantised=is_quantised), "utf-8")
            print(file)


if __name__ == "__main__":
    main()
