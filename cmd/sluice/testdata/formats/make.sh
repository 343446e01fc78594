#!/usr/bin/env bash
# make.sh PROGRAM ARCHIVE: the data directory that a daemon leaves which wrote a few documents, for TestUpgrade.
# format-1.tar.gz is by the last program with store format 1, format-2.tar.gz by the first release.
set -euo pipefail
program=$1 archive=$2 port=${PORT:-18471}
work=$(mktemp -d)
trap 'kill "$daemon" 2>/dev/null || true; rm -rf "$work"' EXIT
cat >"$work/sluice.yaml" <<YAML
data: $work/data
precision: f32
listen: 127.0.0.1:$port
admin_listen: "off"
audit: {directory: "off"}
demo:
  principals:
    root: {tenant: acme, subject: root, roles: [admin]}
YAML
"$program" serve --config "$work/sluice.yaml" --demo 2>"$work/log" &
daemon=$!
until curl -sf "http://127.0.0.1:$port/healthz" >"$work/out"; do sleep 0.1; done
send() { curl -sf -X "$1" "http://127.0.0.1:$port/v1/collections/docs$2" -H 'X-Sluice-Principal: root' -H 'Content-Type: application/json' -d "$3" >"$work/out" || { cat "$work/log"; exit 1; }; }
send PUT '' '{}'
send POST /documents '{"key": "tides", "format": "markdown", "title": "Tides", "text": "# Tides\n\nSpring tides follow the full moon.\n\n## Harbour\n\nThe harbour gates close at high water.", "readers": ["group:hr"]}'
send POST /documents '{"key": "ropes", "format": "text", "text": "Old ropes of the harbour.", "readers": ["user:bob"]}'
send POST /documents '{"key": "ropes", "format": "text", "text": "New ropes lie on the harbour wall.", "readers": ["user:bob"]}'
send POST /documents '{"key": "buoys", "format": "html", "text": "<h1>Buoys</h1><p>Green buoys mark the harbour mouth.</p>"}'
send POST /documents '{"key": "pilots", "format": "text", "text": "Pilots board outside the harbour.", "readers": ["group:hr"]}'
send POST /documents '{"key": "cranes", "format": "text", "text": "The harbour cranes are red.", "readers": ["group:hr"]}'
send PATCH /documents/pilots/access '{"readers": ["user:bob"]}'
send DELETE /documents/cranes ''
kill -TERM "$daemon" && wait "$daemon"
tar --sort=name --owner=0 --group=0 --numeric-owner -C "$work" -cf - data | gzip -9n >"$archive"
