"""Libraries are distinguished from a bundle's own packages, also where the bundle is installed."""

from __future__ import annotations

import pytest

from headrace.signatures import library_code
from headrace.signatures.library_code import is_library


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("json", True),
        ("os.path", True),
        ("pandas.core.frame", True),
        ("headrace.transforms.bronze", True),
        ("headrace_shop.orders", False),
        ("shop.rules", False),
        ("__main__", False),
        ("", False),
    ],
)
def test_library(module, expected):
    assert is_library(module, "shop") is expected


def test_packages_of_a_deployed_wheel_are_the_users(monkeypatch):
    """A bundle with the packages shop and shop_common is installed beside pandas."""
    monkeypatch.setattr(library_code, "_is_installed", {"shop", "shop_common", "pandas"}.__contains__)
    wheels = {"shop": ["shop-bundle"], "shop_common": ["shop-bundle"], "pandas": ["pandas"]}
    monkeypatch.setattr(library_code.metadata, "packages_distributions", lambda: wheels)
    library_code._packages_beside.cache_clear()
    try:
        modules = ("shop.rules", "shop_common.rates", "pandas")
        assert [is_library(module, "shop") for module in modules] == [False, False, True]
    finally:
        library_code._packages_beside.cache_clear()
