#!/usr/bin/env bash
# Installs PostgreSQL's programs where there are none, with Debian's packages.
# No server is started: each test starts its own (store/postgres/postgrestest).
set -euo pipefail
if [ -n "${POSTGRES_URL:-}" ] || command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
	exit 0
fi
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo -n)
mkdir -p /etc/postgresql-common 2>/dev/null && echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf || true
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends postgresql >&2 ||
	{ "${as_root[@]}" apt-get update >&2 && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends postgresql >&2; }
