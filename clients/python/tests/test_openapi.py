"""The daemon against its own description: no 5xx, no answer that is not described."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import HANDBOOK, Daemon

HERE = Path(__file__).parent
TINY = HERE.parents[2] / "model" / "testdata" / "bert_e2e_wordpiece_cased"
SEED = "7"


def test_the_daemon_does_what_its_description_says(tmp_path: Path) -> None:
    with Daemon(tmp_path, model=str(TINY)) as daemon:
        with daemon.client("root") as root:
            root.create_collection("handbook")
            assert len(list(root.ingest("handbook", HANDBOOK))) == len(HANDBOOK)
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml")),
            *("run", str(HERE.parents[2] / "server" / "openapi.json"), "--url", daemon.url),
            *("--header", f"Authorization: Bearer {daemon.keys['root']}"),
            *("--phases", "coverage,fuzzing", "--seed", SEED, "--max-examples", "5", "--suppress-health-check", "all"),
            *("--no-shrink", "--continue-on-failure", "--warnings", "off", "--request-timeout", "60"),
        ]
        environment = os.environ | {"SCHEMATHESIS_HOOKS": "openapi_hooks", "PYTHONPATH": str(HERE)}
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
        assert run.returncode == 0, run.stdout + run.stderr
