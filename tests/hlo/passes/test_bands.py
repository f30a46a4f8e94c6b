"""Bands of rows have the bits of the whole, whatever windows, strides, dilations and padding do."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import hlo
import interp
from fuzz.draw.choices import Choices, examples
from fuzz.draw.values import arguments
from hlo.bit_equality import differences
from hlo.passes import run
from hlo.passes.bands.regions import Regions
from hlo.passes.bands.tiling import in_bands, trips
from hlo.passes.rewriting import array

_LAYOUTS = {"b01f": (0, 1, 2, 3), "bf01": (0, 2, 3, 1)}  # where images, rows, columns, features are
_TYPES = ("f32", "bf16", "f64", "c64", "s8", "u32")


class _Chain:
    """Draw layers, each of what the one before gives."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._kind = choices.choice(_TYPES)
        self._layout = choices.choice(sorted(_LAYOUTS))
        self._lines: list[str] = []
        self._rows, self._features = choices.integer(4, 11), choices.integer(1, 2)
        self._value = self._add("parameter(0)")

    def text(self) -> str:
        """Return the module."""
        kind, body = self._kind, "".join(f"  {line}\n" for line in self._lines[:-1])
        parameters = "".join(f"  {name} = {kind}[] parameter({n})\n" for n, name in enumerate("ab"))
        combiner = f"sum {{\n{parameters}  ROOT r = {kind}[] add(a, b)\n}}\n"
        return f"HloModule chain\n{combiner}ENTRY main {{\n{body}  ROOT {self._lines[-1]}\n}}\n"

    def convolution(self) -> None:
        """Draw a convolution with a constant kernel."""
        size, window = self._window()
        kernel = self._kernel((self._choices.integer(1, 3), size, 1, self._features))
        window["rhs_reversal"] = self._choices.choice(("0", "1"))
        self._value = self._convolved(kernel, window, {"rhs_reversal": "0"})

    def pooling(self) -> None:
        """Draw sums over windows that begin with a number of their own."""
        _, window = self._window()
        init = self._constant(np.asarray(self._choices.integer(0, 2)))
        columns = {key: ["0_0" if key == "pad" else "1"] * 4 for key in window}
        for key, value in window.items():
            columns[key][_LAYOUTS[self._layout][1]] = value
        text = " ".join(f"{key}={'x'.join(values)}" for key, values in columns.items())
        text = f"reduce-window({self._value}, {init}), window={{{text}}}, to_apply=sum"
        self._value = self._add(text)

    def bias(self) -> None:
        """Add a number to each feature, and multiply by the value."""
        row = self._constant(np.arange(1, self._features + 1))
        feature = _LAYOUTS[self._layout][3]
        each = self._add(f"broadcast({row}), dimensions={{{feature}}}")
        biased = self._add(f"add({self._value}, {each})")
        self._value = self._add(f"multiply({biased}, {self._value})")

    def residual(self) -> None:
        """Add a convolution of the value to it."""
        before = self._value
        kernel = self._kernel((self._features, 3, 1, self._features))
        after = self._convolved(kernel, {"size": "3", "stride": "1", "pad": "1_1"})
        self._value = self._add(f"add({before}, {after})")

    def _constant(self, values: np.ndarray) -> str:
        """Write numbers."""
        literal = str(values.tolist()).replace("[", "{").replace("]", "}")
        if self._kind == "c64":
            literal = re.sub(r"-?\d+", r"(\g<0>, 1)", literal)
        return self._add(f"constant({literal})", ",".join(map(str, values.shape)))

    def _add(self, text: str, dims: str | None = None) -> str:
        """Write an instruction, of the dims of the value if nothing else is said."""
        name = f"v{len(self._lines)}"
        if dims is None:
            sizes = dict(
                zip(_LAYOUTS[self._layout], (2, self._rows, 2, self._features), strict=True)
            )
            dims = ",".join(str(sizes[d]) for d in range(4))
        self._lines.append(f"{name} = {self._kind}[{dims}] {text}")
        return name

    def _kernel(self, shape: tuple[int, ...]) -> str:
        """Draw a kernel, output features first."""
        low = 0 if self._kind == "u32" else -2
        drawn = [self._choices.integer(low, 3) for _ in range(math.prod(shape))]
        self._features = shape[0]
        return self._constant(np.reshape(drawn, shape))

    def _convolved(
        self, kernel: str, rows: dict[str, str], columns: dict[str, str] | None = None
    ) -> str:
        """Write a convolution by windows over rows; over columns they are single elements."""
        other = {"size": "1", "stride": "1", "pad": "0_0", "rhs_dilate": "1"} | (columns or {})
        window = " ".join(f"{key}={value}x{other[key]}" for key, value in rows.items())
        labels = f"{self._layout}_o01i->{self._layout}"
        return self._add(
            f"convolution({self._value}, {kernel}), window={{{window}}}, dim_labels={labels}"
        )

    def _window(self) -> tuple[int, dict[str, str]]:
        """Draw windows over rows, and note how many there are."""
        size, stride = self._choices.integer(1, 3), self._choices.integer(1, 2)
        dilation = self._choices.integer(1, 2)
        low, high = self._choices.integer(-1, 3), self._choices.integer(0, 3)
        extent = (size - 1) * dilation + 1
        if self._rows + low + high < extent:
            low = high = extent
        self._rows = (self._rows + low + high - extent) // stride + 1
        keys = {"size": size, "stride": stride, "pad": f"{low}_{high}", "rhs_dilate": dilation}
        return size, {key: str(value) for key, value in keys.items()}


def _case(choices: Choices) -> tuple[hlo.Module, tuple[object, ...], Choices]:
    chain = _Chain(choices)
    for _ in range(choices.integer(2, 3)):
        choices.choice((chain.convolution, chain.convolution, chain.pooling, chain.residual))()
        if choices.boolean():
            chain.bias()
    module = hlo.parse(chain.text())
    hlo.verify(module)
    return module, arguments(choices, module), choices


def test_every_bit_is_kept() -> None:
    """Programs in bands keep every bit, also where bands overlap and where rows under a window are
    all padding."""
    bands = 0
    for module, values, choices in examples(_case, 24, "bands"):
        regions, root = Regions(module), module.entry.root_instruction
        expected = interp.evaluate(module, *values)
        for dimension, rows in enumerate(array(root.shape).dims):
            region = regions.region(root, dimension, choices.integer(1, rows))
            if region is None or not region.windowed:
                continue
            bands += trips(region) > 1
            banded = in_bands(module, regions, region)
            hlo.verify(banded)
            assert hlo.parse(hlo.format(banded)) == banded
            for made in (banded, run(banded, "after_bands")):
                found = differences(expected, interp.evaluate(made, *values))
                assert not found, f"{found[0]}\n{hlo.format(module)}"
    assert bands > 20


_CHAIN = """HloModule chain
ENTRY main {{
  x = {kind}[1,9,4,1] parameter(0)
  weights = {kind}[1,3,1,1] parameter(1)
  kernel = {kind}[1,3,1,1] {kernel}
  c = {kind}[1,9,4,1] convolution(x, kernel),
    window={{size=3x1 pad=1_1x0_0{window}}}, dim_labels=b01f_o01i->b01f
  ROOT d = {kind}[1,7,4,1] convolution(c, weights),
    window={{size=3x1}}, dim_labels=b01f_o01i->b01f
}}
"""


@pytest.mark.parametrize(
    ("kind", "kernel", "window", "windowed"),
    [
        ("f32", "constant({{{{1}},{{2}},{{3}}}})", "", 2),
        ("s32", "negate(weights)", "", 2),
        # Zeros are no factors of an infinity that is not met in padding.
        ("f32", "constant({{{{1}},{{inf}},{{3}}}})", "", 1),
        ("f32", "negate(weights)", "", 1),
        ("f8e8m0fnu", "constant({{{{1}},{{2}},{{4}}}})", "", 1),  # has no zero
        ("f32", "constant({{{{1}},{{2}},{{3}}}})", " lhs_dilate=2x1", 0),
    ],
)
def test_what_is_computed_by_bands(kind: str, kernel: str, window: str, windowed: int) -> None:
    text = _CHAIN.format(kind=kind, kernel=kernel, window=window)
    if "lhs_dilate" in window:
        text = text.replace("c = f32[1,9,", "c = f32[1,17,").replace(
            "d = f32[1,7,", "d = f32[1,15,"
        )
    module = hlo.parse(text)
    hlo.verify(module)
    regions = Regions(module)
    region = regions.region(module.entry.root_instruction, 1, 2)
    assert region is not None
    assert region.windowed == max(1, windowed)
    assert "x" not in region.members
    assert regions.region(module.entry.root_instruction, 3, 1) is None  # features


@pytest.mark.parametrize(("kind", "zero"), [("f32", "-0"), ("c64", "(-0, -0)")])
def test_sums_of_negative_zeros(kind: str, zero: str) -> None:
    """A sum is -0 only if all addends are: in padding there are none."""
    module = hlo.parse(f"""HloModule sums
sum {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT r = {kind}[] add(a, b)
}}
ENTRY main {{
  x = {kind}[4] parameter(0)
  zero = {kind}[] constant({zero})
  s = {kind}[4] reduce-window(x, zero), window={{size=2 pad=1_0}}, to_apply=sum
  ROOT t = {kind}[4] reduce-window(s, zero), window={{size=2 pad=0_1}}, to_apply=sum
}}
""")
    regions = Regions(module)
    region = regions.region(module.entry.root_instruction, 0, 1)
    assert region is not None and region.windowed == 2
    values = np.zeros(4, np.float32 if kind == "f32" else np.complex64)
    values.view(np.float32)[:] = -0.0
    expected, made = (
        np.asarray(interp.evaluate(m, values)) for m in (module, in_bands(module, regions, region))
    )
    assert np.signbit(expected.view(np.float32)).all()
    assert not differences(expected, made)


def test_what_is_needed_elsewhere_stays_whole() -> None:
    """A value that something else reads is not computed again by bands."""
    text = _CHAIN.format(kind="s32", kernel="negate(weights)", window="")
    module = hlo.parse(
        text.replace("ROOT d", "d").replace(
            "\n}\n", "\n  ROOT t = (s32[1,7,4,1], s32[1,9,4,1]) tuple(d, c)\n}\n"
        )
    )
    result = module.entry.instructions[-2]
    regions = Regions(module)
    region = regions.region(result, 1, 3)
    assert region is not None and list(region.members) == ["d"]
    banded = in_bands(module, regions, region)
    values = arguments(examples(lambda c: c, 1, "whole")[0], module)
    assert not differences(interp.evaluate(module, *values), interp.evaluate(banded, *values))
