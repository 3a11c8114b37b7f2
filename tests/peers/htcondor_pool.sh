#!/bin/bash
# A real HTCondor pool on this machine's loopback, to test against.
#
#   htcondor_pool.sh bootstrap                 make the pristine root folder, once
#   htcondor_pool.sh start RUN [PORT [N [FILE]]]  start a pool of N machines in the folder RUN, with
#                                              the settings of FILE on top
#   htcondor_pool.sh exec RUN USER COMMAND...  run a command inside it, as alice, bob or root
#   htcondor_pool.sh status RUN
#   htcondor_pool.sh stop RUN
#
# Debian's minicondor lives in one pristine root folder below $OUTRIDER_PEERS, with a systemd for the
# tests that boot it (as_a_service/). A pool never
# writes there: what it writes (logs, queue, configuration) are folders of RUN, bound over the
# root in a mount namespace of the pool's own. So each start is a fresh pool, several pools can
# run side by side, and ending one process ends the whole pool, because it is pid 1 of its pid
# namespace. Its users exist only inside. RUN/log and RUN/work are readable from outside.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PEERS=${OUTRIDER_PEERS:-/var/tmp/outrider-peers}
ROOT=$PEERS/htcondor
BOOTED="systemd systemd-sysv dbus iproute2 procps"
SUITE=trixie # the first Debian release that carries HTCondor 23
READY_WITHIN_S=90
STOPPED_WITHIN_S=20

# Folder of RUN -> folder inside the pool. Everything that a pool writes is listed here.
declare -A BINDS=(
    [log]=/var/log/condor
    [spool]=/var/spool/condor
    [lib]=/var/lib/condor
    [config]=/etc/condor/config.d
    [owner]=/etc/condor/owner
    [work]=/home/work
    [run]=/run
    [tmp]=/tmp
)

die() {
    printf 'htcondor_pool.sh: %s\n' "$*" >&2
    exit 1
}

need_root() {
    [ "$(id -u)" = 0 ] || die "HTCondor needs root to run jobs as their users; this is uid $(id -u)"
}

# ---- bootstrap ---------------------------------------------------------------

# The package mirror is whichever one this machine's own apt uses.
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | sed -n 1p
}

is_whole() {
    [ -x "$ROOT/usr/sbin/condor_master" ] && [ -x "$ROOT/lib/systemd/systemd" ]
}

bootstrap() {
    ! is_whole || return 0
    need_root
    command -v mmdebstrap >/dev/null || die "mmdebstrap is not installed (apt-get install mmdebstrap)"
    mkdir -p "$PEERS"
    exec 9>"$PEERS/htcondor.lock"
    flock 9 # two checkouts may bootstrap at once: the second waits and finds it done
    ! is_whole || return 0

    local uri
    uri=$(mirror) || die "apt has no package source that could serve Debian $SUITE"
    rm -rf --one-file-system "$ROOT.new"
    mmdebstrap --variant=minbase --include="minicondor $BOOTED" \
        --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --customize-hook='chroot "$1" useradd --create-home --uid 2001 alice' \
        --customize-hook='chroot "$1" useradd --create-home --uid 2002 bob' \
        --customize-hook='echo "127.0.0.1 localhost pool" >"$1/etc/hosts"' \
        "$SUITE" "$ROOT.new" "$uri" >"$ROOT.log" 2>&1 ||
        die "mmdebstrap failed, see $ROOT.log: $(grep -m1 '^E:' "$ROOT.log" || tail -1 "$ROOT.log")"
    chroot "$ROOT.new" mkdir -p "${BINDS[@]}"
    # Renamed at the very end: a root that exists is whole.
    rm -rf --one-file-system "$ROOT"
    mv "$ROOT.new" "$ROOT"
}

# ---- one pool ----------------------------------------------------------------

# The pid in RUN/pid, if that process is still this pool and not a later one with its number.
pool_pid() {
    local run=$1 pid
    read -r pid 2>/dev/null <"$run/pid" || return 1
    tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "inside $run " || return 1
    printf '%s\n' "$pid"
}

# condor_master as this machine sees it: the only child of unshare(1).
master_pid() {
    local pid child
    pid=$(pool_pid "$1") || return 1
    child=$(<"/proc/$pid/task/$pid/children")
    [ -n "$child" ] && printf '%s\n' "${child%% *}"
}

# Machines m1..mN: the first half of them cluster A, the rest cluster B.
machines_config() {
    local port=$1 count=$2 m cluster
    echo "SHARED_PORT_PORT = $port"
    for ((m = 1; m <= count; m++)); do
        cluster=$([ $((2 * m)) -le "$((count + 1))" ] && echo A || echo B)
        sed -e "s/@machine@/m$m/g" -e "s/@MACHINE@/M$m/g" -e "s/@cluster@/$cluster/g" \
            "$HERE/htcondor/machine.config"
    done
}

start() {
    local run=$1 port=${2:-} count=${3:-4} more=${4:-} folder m
    need_root
    [ -x "$ROOT/usr/sbin/condor_master" ] || die "no pool root in $ROOT: run '$0 bootstrap' first"
    ! pool_pid "$run" >/dev/null || die "a pool is already running in $run"
    for folder in "${!BINDS[@]}"; do
        rm -rf --one-file-system "${run:?}/$folder"
        mkdir -p "$run/$folder"
    done
    chmod 1777 "$run/work" "$run/tmp"
    for ((m = 1; m <= count; m++)); do echo 0 >"$run/owner/m$m"; done
    install -m 755 "$HERE/htcondor/owner_probe.sh" "$run/owner/probe"
    cp "$HERE/htcondor/pool.config" "$run/config/10-pool.config"
    machines_config "${port:-$(python3 "$HERE/../free_port.py")}" "$count" >"$run/config/20-machines.config"
    [ -z "$more" ] || cp "$more" "$run/config/30-more.config"

    setsid unshare --mount --pid --uts --ipc --fork -- \
        "$HERE/htcondor_pool.sh" inside "$run" "$count" </dev/null >"$run/master.out" 2>&1 &
    echo $! >"$run/pid"
    wait_until_ready "$run" "$count" || {
        tail -n 5 "$run/master.out" "$run/log/MasterLog" >&2 2>/dev/null || true
        stop "$run"
        die "the pool in $run did not become ready"
    }
}

# Runs as pid 1 of the new namespaces; nothing it mounts is seen outside.
inside() {
    local run=$1 count=$2 folder m
    hostname pool
    mount --make-rprivate /
    mount --bind "$ROOT" "$ROOT" # HTCondor's starter wants its / to be a mount point
    mount -t proc proc "$ROOT/proc"
    for folder in "${!BINDS[@]}"; do mount --bind "$run/$folder" "$ROOT${BINDS[$folder]}"; done
    for ((m = 1; m <= count; m++)); do mkdir -p "$ROOT/var/lib/condor/execute-m$m"; done
    # Inside, because /var/lock and /var/run are absolute links.
    chroot "$ROOT" sh -c 'mkdir -p /run/condor /run/lock/condor /var/spool/condor/second &&
        chown -R condor:condor /var/log/condor /var/spool/condor /var/lib/condor /run/condor /run/lock/condor'
    exec chroot "$ROOT" /usr/sbin/condor_master -f
}

wait_until_ready() {
    local run=$1 count=$2 deadline=$((SECONDS + READY_WITHIN_S))
    while [ "$SECONDS" -lt "$deadline" ]; do
        pool_pid "$run" >/dev/null || [ "$SECONDS" -lt 5 ] || return 1
        [ "$(inside_exec "$run" root condor_status -af Name 2>/dev/null | wc -l)" -ge "$count" ] &&
            inside_exec "$run" root condor_q -totals >/dev/null 2>&1 && return 0
        sleep 0.2
    done
    return 1
}

inside_exec() {
    local run=$1 user=$2 master
    shift 2
    master=$(master_pid "$run") || return 1
    nsenter --target "$master" --mount --pid --uts --ipc -- \
        chroot --userspec="$user" "$ROOT" \
        /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/work USER="$user" \
        sh -c 'cd /home/work && exec "$@"' sh "$@"
}

stop() {
    local run=$1 master deadline=$((SECONDS + STOPPED_WITHIN_S))
    if master=$(master_pid "$run"); then
        kill -QUIT "$master" # not TERM, which would let the jobs finish first
        while pool_pid "$run" >/dev/null && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.1; done
        # The end of pid 1 of a pid namespace is the end of everything in it.
        ! pool_pid "$run" >/dev/null || kill -KILL "$master"
    fi
    rm -f "$run/pid"
}

status() {
    local run=$1
    pool_pid "$run" >/dev/null || {
        echo "no pool is running in $run"
        exit 3
    }
    inside_exec "$run" root condor_status -af Name State Activity
    inside_exec "$run" root condor_q -allusers -totals
}

verb=${1:-}
shift || true
case $verb in
bootstrap) bootstrap ;;
start | stop | status | inside)
    [ $# -ge 1 ] || die "$verb needs the pool's folder"
    mkdir -p "$1" && run=$(cd "$1" && pwd) && shift
    "$verb" "$run" "$@"
    ;;
exec)
    [ $# -ge 3 ] || die "exec needs the pool's folder, a user and a command"
    run=$(cd "$1" && pwd) && shift
    inside_exec "$run" "$@"
    ;;
*) die "first word must be bootstrap, start, exec, status or stop, not '$verb'" ;;
esac
