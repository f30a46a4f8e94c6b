"""Make the page of a program: its graph, and what it was compiled to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backend_c.profiles.listing import Listing
from backend_c.profiles.profile import Profile
from hlo.module import Module
from pages import layered_layout
from pages.html_file import Page, page
from pages.kernels import compiled_view, kernels
from pages.views import FAMILIES, Data, view

Sources = Mapping[str, Sequence[str]]  # the lines of source files by the names that programs have
# What the code of pages must know of layouts and families.
MEASURES: Data = {
    "row": layered_layout.ROW,
    "height": layered_layout.HEIGHT,
    "families": FAMILIES,
}


def explanation(
    module: Module,
    profile: Profile | None = None,
    sources: Sources | None = None,
    values: Data | None = None,
    targets: Mapping[str, Listing] | None = None,
) -> Page:
    """Make the page of a module; with a profile of it, its kernels are shown.

    ``sources`` are the lines of source files to include; of others the page has names and numbers
    only. ``values`` are those of a run (:class:`pages.values.Observed`), perhaps with the verdict
    on another compiler's results (:func:`pages.values.with_judged`). ``targets`` is the program as
    targets other than OpenMP have it (:func:`backend_c.listing`), by their names, beside the
    profile.
    """
    views = [view("as written", module)]
    data: Data = {"title": module.name, "views": views, "sources": sources or {}, "first": 0}
    if profile is not None:
        views.append(compiled_view(profile))
        data |= {
            "kernels": kernels(profile, targets),
            "compiled": len(views) - 1,
            "first": len(views) - 1,
        }
    if values is not None:
        data["values"] = values
    return page(f"{module.name}: hlo explain", {**data, **MEASURES})
