"""The pages about policies: complete, and as truthful as the tests."""

import re
from pathlib import Path

import pytest

from onboard.policies.loaders import LOADERS
from onboard.policies.loaders.presets import preset_names
from onboard.policies.terms import CATALOGUE
from tests.policies.test_mistakes import MISTAKES, WITH_NORMALISER

DOCS = Path(__file__).resolve().parents[2] / "docs" / "policies"
PAGES = sorted(DOCS.glob("*.md"))
INDEX = (DOCS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "README.md"], ids=lambda p: p.stem)
def test_every_family_has_its_commands_and_stands_in_the_index(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert f"]({page.name})" in INDEX
    assert "xport" in text
    for command in ("onboard policy check ", "onboard try ", "onboard run "):
        assert command in text


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (DOCS / target).exists(), f"{page.name}: {target}"


def test_every_preset_and_every_term_is_named() -> None:
    text = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in preset_names() if f"`{name}`" not in text and f"preset {name}" not in text] == []
    contract = (DOCS / "contract.md").read_text(encoding="utf-8").replace("`ref_root_*`", "ref_root_")
    missing = [name for name in CATALOGUE if name not in contract and not name.startswith("ref_root_")]
    assert missing == []
    assert all(name in INDEX for name in ("contract.yaml", "deploy.yaml", "metadata"))
    assert set(LOADERS) == {"contract.yaml", "deploy.yaml", "metadata", "holosoma", "preset"}


def test_the_table_of_mistakes_is_that_of_the_tests() -> None:
    rows = dict(re.findall(r"^\| ([^|]+) \| yes[^|]* \| ([^|]+) \|$", INDEX, re.MULTILINE))
    assert list(rows)[: len(MISTAKES)] == list(MISTAKES)
    for name, mistake in MISTAKES.items():
        seen = rows[name].startswith("yes")
        judged = any(policy in WITH_NORMALISER for policy in mistake.policies)
        assert seen == (mistake.says is not None) or (not judged and rows[name].startswith("yes, where"))
