#!/bin/bash
# `make demo` and `make test` on a fresh machine: what a stranger sees who clones the repository.
#
#   fresh_machine.sh                    `make demo` until its page answers, then every test
#   fresh_machine.sh all [WORDS...]     the same with these folders, files, options of pytest only
#   fresh_machine.sh demo               the demo alone
#   fresh_machine.sh test [WORDS...]    `make test` alone
#
# The machine is a minimal Debian root that holds python3, python3-venv, make, git and nothing else,
# made anew in each call and removed at its end. Only what is committed is tried: the root holds a
# clone. Each step runs in a mount and pid namespace of its own, so that its end is the end of every
# process that it started, and nothing that it mounts is seen outside. The network is this machine's
# own: packages come from the apt sources, and Python packages from the indexes, that are set up here.
#
# It needs root, mmdebstrap, unshare and git, and says what it lacks. Limits, in seconds:
# ROOT_WITHIN_S, DEMO_WITHIN_S, TEST_WITHIN_S. Exit codes: 0 all passed, 1 something failed or took
# too long, 3 it could not be tried here. The last line says which.
set -euo pipefail

REPOSITORY=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PACKAGES=python3,python3-venv,make,git
ROOT_WITHIN_S=${ROOT_WITHIN_S:-900}
DEMO_WITHIN_S=${DEMO_WITHIN_S:-600}
TEST_WITHIN_S=${TEST_WITHIN_S:-5400}
CLONE=/root/outrider # inside
FOLDER=""            # of this call: root/ and logs; set once it is made
VERDICT=""           # the last line
RUNNING=""           # process that waits for the present step, if any

say() { printf 'fresh machine: %s\n' "$*"; }

# The three ways to end; whatever else ends this script is told by `ended`.
cannot() { over 3 "not tried: $*"; }
failed() { over 1 "FAILED: $*"; }
passed() { over 0 "passed: $*"; }

over() {
    VERDICT=${*:2}
    exit "$1"
}

# limited WITHIN_S COMMAND...: run it as pid 1 of namespaces of its own. When the time is over, or
# this script ends, it is killed, and with it everything that it started. Returns 137 in that case.
limited() {
    local code=0
    timeout --signal=KILL --kill-after=1 "$1" \
        unshare --mount --pid --uts --ipc --fork --kill-child --mount-proc -- "${@:2}" </dev/null &
    RUNNING=$!
    wait "$RUNNING" || code=$? # and not in the foreground: a signal is heard at once
    RUNNING=""
    return "$code"
}

ended() {
    local code=$?
    trap - EXIT
    [ -z "$RUNNING" ] || { kill "$RUNNING" && wait "$RUNNING"; } 2>/dev/null || true
    [ -z "$FOLDER" ] || rm -rf --one-file-system "$FOLDER"
    say "${VERDICT:-FAILED: it broke off, with exit code $code}"
    exit "$code"
}

# ---- the root ----------------------------------------------------------------

need() {
    local program
    [ "$(id -u)" = 0 ] || cannot "a root of its own needs root; this is uid $(id -u)"
    for program in mmdebstrap unshare pivot_root git; do
        command -v "$program" >/dev/null || cannot "there is no $program (apt-get install $(package_of "$program"))"
    done
    command -v apt-config >/dev/null || cannot "this machine has no apt whose mirrors could be used"
    unshare --mount --pid --uts --ipc --fork true 2>/dev/null ||
        cannot "this machine allows no namespaces (is it a container without CAP_SYS_ADMIN?)"
}

package_of() { case $1 in unshare | pivot_root) echo util-linux ;; *) echo "$1" ;; esac; }

# Debian's name of this machine's release; its apt sources are for that one.
suite() { sed -n 's/^VERSION_CODENAME=//p' /etc/os-release; }

# How this machine reaches its mirrors: proxies, certificates, whether dates are believed.
apt_settings() {
    apt-config dump Acquire |
        grep -E '^Acquire::([a-z]+::)?(Proxy|Check-|Retries|ForceIPv|CaInfo|CaPath|Verify-)' || true
    echo 'Acquire::Languages "none";'
    echo 'APT::Install-Recommends "false";'
}

made_root() {
    local sources=() file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
        [ ! -s "$file" ] || sources+=("$file")
    done
    [ "${#sources[@]}" -gt 0 ] || cannot "apt has no sources on this machine"
    apt_settings >"$FOLDER/apt.conf"
    limited "$ROOT_WITHIN_S" mmdebstrap --variant=minbase --include="$PACKAGES" \
        --aptopt="$FOLDER/apt.conf" \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        "$(suite)" "$ROOT" "${sources[@]}" >"$FOLDER/root.log" 2>&1 ||
        failed "no root within $ROOT_WITHIN_S s: $(grep -m1 '^E:' "$FOLDER/root.log" || tail -n 1 "$FOLDER/root.log")"
    cp -rn /etc/apt/keyrings /etc/apt/trusted.gpg.d "$ROOT/etc/apt/" 2>/dev/null || true
    cp -rn /usr/share/keyrings "$ROOT/usr/share/" 2>/dev/null || true
    # A plain copy: /etc/resolv.conf is a link into /run on some machines.
    cp --dereference /etc/resolv.conf "$ROOT/etc/resolv.conf"
    echo "127.0.0.1 localhost fresh" >"$ROOT/etc/hosts"
}

# ---- pip, as it is set up here -----------------------------------------------

pip_files() {
    local file
    for file in /etc/pip.conf "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" "$HOME/.pip/pip.conf"; do
        [ ! -f "$file" ] || echo "$file"
    done
    [ ! -f "${PIP_CONFIG_FILE:-}" ] || echo "$PIP_CONFIG_FILE"
}

# Folders and files of this machine that pip is told of: certificates, wheels, an index of files.
# Such an index ("simple") leads to packages that lie beside it, so the folder around it is taken.
pip_paths() {
    {
        pip_files | xargs -r cat
        env | grep '^PIP_' || true
    } | grep -oE '(file://|=[[:space:]]*|[[:space:]])/[^[:space:],]+' | grep -oE '/[^/].*' |
        sed -E 's#/simple/?$##' | sort -u |
        while read -r path; do [ ! -e "$path" ] || echo "$path"; done
}

took_pip_along() {
    local file path index=0
    # All of pip's own files, one after the other: pip reads options of equal name from the last.
    pip_files | while read -r file; do
        index=$((index + 1))
        case $index in
        1) install -D -m 644 "$file" "$ROOT/etc/pip.conf" ;;
        2) install -D -m 644 "$file" "$ROOT/root/.config/pip/pip.conf" ;;
        *) say "pip's further configuration $file is left out" ;;
        esac
    done
    pip_paths >"$FOLDER/paths"
    while read -r path; do
        if [ -d "$path" ]; then mkdir -p "$ROOT$path"; else install -D /dev/null "$ROOT$path"; fi
    done <"$FOLDER/paths"
}

environment() {
    printf '%s\n' PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        USER=root LANG=C.UTF-8 TERM=dumb
    env | grep -iE '^(PIP_[A-Z_]+|(http|https|ftp|all|no)_proxy)=' | grep -v '^PIP_CONFIG_FILE=' || true
}

# ---- one step, as pid 1 of its namespaces ------------------------------------

# enter FOLDER NAME WORDS...: become `inside NAME WORDS...` in the root.
enter() {
    local folder=$1 words
    ROOT=$folder/root
    shift
    hostname fresh
    mount --bind "$ROOT" "$ROOT" # a root has to be a mount point
    mount -t proc proc "$ROOT/proc"
    mount --rbind /sys "$ROOT/sys" # with the control groups that a machine of its own would have
    mount --rbind /dev "$ROOT/dev"
    while read -r path; do mount --bind -o ro "$path" "$ROOT$path"; done <"$folder/paths"
    mapfile -t words < <(environment)
    cp "${BASH_SOURCE[0]}" "$ROOT/root/fresh_machine.sh"
    cd "$ROOT"
    pivot_root . .
    umount --lazy .
    exec env -i "${words[@]}" /bin/bash /root/fresh_machine.sh inside "$@"
}

# `make demo` until its page answers; python asks it, for a fresh machine has no curl.
inside_demo() {
    local began_s=$SECONDS address="" demo
    make demo >/root/demo.out 2>/root/demo.err &
    demo=$!
    until address=$(grep -m1 -oE 'http://127\.0\.0\.1:[0-9]+' /root/demo.out); do
        kill -0 "$demo" 2>/dev/null || {
            tail -n 20 /root/demo.err
            return 1
        }
        sleep 0.2
    done
    python3 - "$address" <<'PYTHON'
import sys
import urllib.request

for path, part in (("/", "Outrider"), ("/readyz", '"ready"'), ("/metrics", "outrider_mode")):
    with urllib.request.urlopen(sys.argv[1] + path, timeout=30) as answer:
        text = answer.read().decode()
    if part not in text:
        sys.exit(f"{path} answers without {part}: {text[:300]}")
PYTHON
    echo "the demo's page answered after $((SECONDS - began_s)) s"
}

inside_test() { make test TESTS="$*"; }

inside() {
    local what=$1
    shift
    cd "$CLONE"
    "inside_$what" "$@"
}

# ---- the whole ---------------------------------------------------------------

# tried WITHIN_S NAME WORDS...: a step, and in words how it ended if it did not end well.
tried() {
    local within_s=$1 code=0
    say "make ${*:2}"
    limited "$within_s" "$BASH" "${BASH_SOURCE[0]}" enter "$FOLDER" "${@:2}" || code=$?
    [ "$code" != 137 ] || failed "make ${*:2} took longer than $within_s s"
    [ "$code" = 0 ] || failed "make ${*:2} ended with $code"
}

main() {
    local what=${1:-all}
    shift || true
    trap ended EXIT
    case $what in
    all | demo | test) ;;
    *) cannot "the first word is all, demo or test, not '$what'" ;;
    esac
    need
    FOLDER=$(mktemp -d "${TMPDIR:-/var/tmp}/outrider-fresh.XXXXXX")
    ROOT=$FOLDER/root
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    say "a minimal Debian $(suite) with $PACKAGES"
    made_root
    took_pip_along
    git clone --quiet --no-hardlinks "$REPOSITORY" "$ROOT$CLONE"
    say "a clone of $(git -C "$ROOT$CLONE" log -1 --format='%h %s')"
    [ -z "$(git -C "$REPOSITORY" status --porcelain)" ] || say "what is not committed is not tried"
    [ "$what" = test ] || tried "$DEMO_WITHIN_S" demo
    [ "$what" = demo ] || tried "$TEST_WITHIN_S" test "$@"
    [ "$what" != all ] || what="demo, then make test"
    passed "make $what${*:+ of $*}"
}

case ${1:-} in
enter | inside) "$@" ;;
*) main "$@" ;;
esac
