"""Every program of the pages on PyTorch and TensorFlow runs, where these are installed."""

import re
from importlib.metadata import entry_points
from importlib.util import find_spec

import pytest
from conftest import ROOT

pytestmark = pytest.mark.filterwarnings("ignore")


def programs(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.M)


@pytest.mark.parametrize(
    ("page", "package"), [("docs/torch.md", "torch"), ("docs/tensorflow.md", "tensorflow")]
)
def test_programs_of_a_page_run(page: str, package: str) -> None:
    found = programs(page)
    assert found
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: hlo-oracle[{package}]")
    for program in found:
        if not entry_points(group="torch_dynamo_backends", name="hlo_oracle"):
            program = program.replace('backend="hlo_oracle"', "backend=ho.torch.backend")
        exec(compile(program, page, "exec"), {})
