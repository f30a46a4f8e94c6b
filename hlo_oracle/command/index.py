"""hlo index: a page of what campaigns and reports have found.

DIR is the directory of a campaign (hlo fuzz, hlo triage), the folder of a report, or a directory
with such ones in it. The page has the findings by oracle, each with its reduced program and the
evidence, how many there were over time, and which opcodes and types were drawn (docs/see.md). Times
are those of the files: of a copy without them there is no curve worth looking at.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

import pages
from hlo_oracle import option_types


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand."""
    parser.add_argument(
        "directories",
        type=option_types.path,
        nargs="+",
        metavar="DIR",
        help="of a campaign, or of reports",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=option_types.path,
        required=True,
        metavar="OUT.html",
        help="the page to write",
    )
    parser.add_argument(
        "--json", action="store_true", help="the name of the file and what is on it, as JSON"
    )


def main(options: argparse.Namespace) -> int:
    """Write the page; return the exit status."""
    from fuzz.campaign.overview import overview

    seen = overview(options.directories)
    campaigns, found = ([asdict(one) for one in part] for part in (seen.campaigns, seen.found))
    title = "Found in " + ", ".join(path.resolve().name for path in options.directories)
    pages.index(title, campaigns, found).write(options.output)
    if options.json:
        counts = {"campaigns": len(campaigns), "findings": len(found)}
        print(json.dumps({"file": str(options.output), **counts}))
    else:
        print(options.output)
    return 0
