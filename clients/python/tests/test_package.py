"""What is shipped, and what is written about it."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import Daemon

import sluice

ROOT = Path(__file__).parents[1]
DOCS = ROOT.parents[1] / "docs" / "clients.md"


def test_the_wheel_has_all_modules_and_their_types(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(ROOT)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("sluice_client-*-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    shipped = {name for name in names if ".dist-info/" not in name}
    assert shipped == {f"sluice/{file.name}" for file in (ROOT / "src" / "sluice").iterdir() if file.is_file()}
    assert "sluice/py.typed" in shipped


def test_the_documentation_runs(daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SLUICE_SERVER", daemon.url)
    monkeypatch.setenv("SLUICE_TOKEN", daemon.keys["root"])
    monkeypatch.setenv("ANNS_TOKEN", daemon.keys["ann"])
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(DOCS), "exec"), names)
    client = names["client"]
    assert isinstance(client, sluice.Client)
    client.close()
    printed = capsys.readouterr().out
    assert "1 leave.md created None" in printed
    assert "evidence ['leave.md', 'trains.md']" in printed
    assert printed.count("Thirty days a year.") == 3


def test_methods_that_the_documentation_names_exist() -> None:
    table = re.findall(r"^\| (`[a-z]\w*`[^|]*) \|", DOCS.read_text(), re.MULTILINE)
    named = {name for row in table for name in re.findall(r"`(\w+)`", row)}
    public = {name for name in dir(sluice.Client) if not name.startswith("_")} - {"send", "close"}
    assert named == public
