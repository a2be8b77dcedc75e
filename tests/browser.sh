#!/bin/sh
# Bring the browser for tests/test_annotate.py where it is absent and may be installed; elsewhere
# that one test is skipped.
command -v chromium >/dev/null && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0
echo "installing chromium for the test of the labelling page"
{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
    chromium fonts-dejavu-core; } >/dev/null 2>&1 </dev/null || echo "not possible here; it will be skipped"
