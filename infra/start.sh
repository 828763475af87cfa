#!/bin/sh
# Starts the process of a role, in the place of this shell: its signals are the process's own.
set -eu
cd "$(dirname "$0")/.."

role=${1:-}
# The role's name in releases before 1.0.
[ "$role" = metrics ] && role=insights
[ $# -gt 0 ] && shift
case "$role" in
  api | relay | outcomes | publisher | webhooks | media | insights | reports | standalone | admin | doctor) main=services/$role/main.ts ;;
  projections) main=projections/main.ts ;;
  secret-key)
    # Makes the installation's key under the folder given, once; run again it changes nothing.
    KEYS=${1:-/keys} exec node --input-type=module -e \
      "const { secretKeyOf } = await import('#runtime/identity/secret-key.ts'); secretKeyOf(process.env.KEYS);"
    ;;
  *)
    echo "usage: start.sh api|relay|projections|outcomes|publisher|webhooks|media|insights|reports|standalone|admin|doctor [arguments], or secret-key [folder]" >&2
    exit 64
    ;;
esac

# A key in a file keeps it out of the container's definition.
if [ -z "${SECRET_KEY:-}" ] && [ -n "${SECRET_KEY_FILE:-}" ]; then
  SECRET_KEY=$(cat "$SECRET_KEY_FILE")
  export SECRET_KEY
fi
exec node "$main" "$@"
