#!/usr/bin/env bash
# Builds dist/: for each architecture a static archive and an SBOM, and SHA256SUMS of all. The same commit and Go
# give the same bytes anywhere: release/check.sh builds twice and compares.
set -euo pipefail
unset GOAMD64 GOARM64 GOEXPERIMENT GOFLAGS # of whoever builds: they change the bytes
cd "$(dirname "$0")/.."
out=${1:-dist}
go=${GO:-go}
version=${VERSION:-$(git describe --tags --always --dirty)}
made=$(git log -1 --format=%ct)
rm -rf "$out" && mkdir -p "$out"
out=$(cd "$out" && pwd)

# licences writes the licence files of every module in the program: most ask for that.
licences() {
    # shellcheck disable=SC2016
    GOARCH=$1 $go list -deps -f '{{with .Module}}{{if .Version}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/sluice | sort -u |
        while read -r module number directory; do
            files=$(find "$directory" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort)
            [[ $files || -f release/licences/${module//\//_} ]] || { echo "$module $number has no licence file: add release/licences/${module//\//_}" >&2; exit 1; }
            printf '\n==== %s %s\n\n' "$module" "$number"
            cat ${files:-release/licences/${module//\//_}}
        done
    printf '\n==== Go %s\n\n' "$($go env GOVERSION)"
    cat "$($go env GOROOT)/LICENSE"
}

for arch in amd64 arm64; do
    name=sluice-$version-linux-$arch
    stage=$out/$name
    mkdir -p "$stage/docs"
    CGO_ENABLED=0 GOOS=linux GOARCH=$arch $go build -trimpath -buildvcs=false \
        -ldflags "-s -w -buildid= -X main.commit=$version" -o "$stage/sluice" ./cmd/sluice
    licences "$arch" >"$stage/LICENCES-OF-MODULES"
    cp LICENSE NOTICE README.md release/sluice.service docker/sluice.yaml docker/alerts.yml "$stage/"
    cp -r docs/*.md docs/formats "$stage/docs/"
    GOFLAGS=-trimpath $go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -licenses -noserial \
        -notimestamp -std -version "$version" -output "$out/$name.cdx.json" "$stage/sluice" 2>"$out/sbom.log" || { cat "$out/sbom.log" >&2; exit 1; }
    find "$stage" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
    chmod 755 "$stage/sluice"
    tar --sort=name --mtime="@$made" --owner=0 --group=0 --numeric-owner --format=ustar -C "$out" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
    rm -r "$stage" "$out/sbom.log"
done
(cd "$out" && sha256sum -- *.tar.gz *.cdx.json >SHA256SUMS && cat SHA256SUMS)
