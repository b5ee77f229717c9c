"""Distinguish a user's code from that of libraries, which counts by name only."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from importlib import metadata
from importlib.util import find_spec

LIBRARIES = tuple(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib"))


def is_library(module: str, package: str) -> bool:
    """Return whether a module is library code, seen from the user's `package`.

    A deployed bundle is installed beside the libraries. So all packages of the wheel that contains `package` are user
    code, even if they are installed.
    """
    top = module.split(".")[0]
    if top in ("", "__main__", package):
        return False
    if top == "headrace" or top in sys.stdlib_module_names:
        return True
    if not _is_installed(top):
        return False
    return not _is_installed(package) or top not in _packages_beside(package)


@cache
def _is_installed(package: str) -> bool:
    """Return whether a top-level package is among the installed packages, whether it is imported or not."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):  # ValueError: a module that was made in memory
        return False
    locations = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    return any(os.path.realpath(location).startswith(LIBRARIES) for location in locations if location)


@cache
def _packages_beside(package: str) -> frozenset[str]:
    """Return the packages that were installed from the same wheel as `package`."""
    wheels = metadata.packages_distributions()
    own = set(wheels.get(package, ()))
    return frozenset(name for name, owners in wheels.items() if own & set(owners))
