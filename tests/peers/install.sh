#!/bin/bash
# Fetches the real programs that the tests run against, through this machine's own apt. Idempotent.
# What cannot be had is named with its reason and is no error here: the tests that need it skip
# with a reason, or fail where CI=true. What would be a service if it were installed stays below
# $OUTRIDER_PEERS, so that none starts on this machine because of us.
set -uo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export OUTRIDER_PEERS=${OUTRIDER_PEERS:-/var/tmp/outrider-peers}
export DEBIAN_FRONTEND=noninteractive
# Lists are refreshed at most once a run, and only when something has to be fetched.
lists_are_fresh=no

say() { printf '  %-12s %s\n' "$1" "$2"; }

reason_against_apt() {
    command -v apt-get >/dev/null || { echo "this system has no apt"; return; }
    [ "$(id -u)" = 0 ] || echo "not root (uid $(id -u)), so apt may install nothing"
}

refreshed_lists() {
    [ $lists_are_fresh = no ] || return 0
    lists_are_fresh=yes
    apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 update >/dev/null 2>&1
}

# Runs apt-get quietly; on failure `reason` says why.
quiet_apt() {
    local said
    reason=$(reason_against_apt)
    [ -z "$reason" ] || return 1
    refreshed_lists
    said=$(apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 "$@" 2>&1) && return
    reason=$(grep -m1 '^E:' <<<"$said" || tail -n 1 <<<"$said")
    return 1
}

# Programs that start no service go into the system.
installed() {
    local name=$1 program=$2 package=$3 reason
    if command -v "$program" >/dev/null || quiet_apt install --no-install-recommends "$package"; then
        say "$name" "$(command -v "$program")"
    else
        say "$name" "not here: $reason"
        return 1
    fi
}

# fetched NAME PACKAGE [PROGRAM]: these would start as services if they were installed; unpacked,
# they are only programs.
fetched() {
    local name=$1 package=$2 wanted=${3:-$2} reason
    local folder=$OUTRIDER_PEERS/$package
    local program=$folder/usr/bin/$wanted
    if [ ! -x "$program" ] && ! program=$(PATH=$PATH:/usr/sbin command -v "$wanted"); then
        program=$folder/usr/bin/$wanted
        { has_libraries "$package" && unpacked "$folder" "$package"; } ||
            { say "$name" "not here: $reason" && return 1; }
    fi
    say "$name" "$program"
}

# Slurm's programs and plugins come in several packages that look for each other.
fetched_slurm() {
    local reason="" package folder=$OUTRIDER_PEERS/slurm
    local packages=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins)
    if [ ! -x "$folder/usr/sbin/slurmctld-wlm" ]; then
        for package in "${packages[@]}"; do
            has_libraries "$package" || { say Slurm "not here: $reason" && return 1; }
        done
        unpacked "$folder" "${packages[@]}" || { say Slurm "not here: $reason" && return 1; }
    fi
    say Slurm "$folder"
}

# What a whole site under systemd is made of, still packed: it is installed in containers alone,
# whose root is this machine's own, so what these packages need and is not here comes along.
kept_packages() {
    local reason="" folder=$OUTRIDER_PEERS/service-packages needed
    local packages=(munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins mosquitto)
    if [ ! -d "$folder" ]; then
        rm -rf "$folder.new"
        mkdir -p "$folder.new" || { say "a site" "not here: cannot write there" && return 1; }
        refreshed_lists
        mapfile -t needed < <(apt-get -s --no-install-recommends install "${packages[@]}" 2>/dev/null |
            awk '$1 == "Inst" { print $2 }' | grep -vxF "$(printf '%s\n' "${packages[@]}")")
        (cd "$folder.new" && quiet_apt -o APT::Sandbox::User=root download "${packages[@]}" "${needed[@]}" ||
            { say "a site" "not here: $reason" && exit 1; }) || return 1
        mv "$folder.new" "$folder"
    fi
    # for the tests' own package of OpenPBS, which is built for Debian 12; other releases lack this
    if ! ls "$folder"/libical3_*.deb >/dev/null 2>&1 && apt-cache show libical3 >/dev/null 2>&1; then
        (cd "$folder" && quiet_apt -o APT::Sandbox::User=root download libical3) || true
    fi
    say "a site" "$folder"
}

# Slurm's accounting and a database below it, with those of their libraries that are not here:
# nothing of them goes into the system.
fetched_slurmdbd() {
    local reason="" folder=$OUTRIDER_PEERS/slurmdbd libraries
    local packages=(slurmdbd slurm-wlm-mysql-plugin mariadb-server-core)
    if [ ! -x "$folder/usr/sbin/slurmdbd" ]; then
        refreshed_lists
        mapfile -t libraries < <(apt-cache depends "${packages[@]}" 2>/dev/null |
            awk '$1 == "Depends:" && $2 ~ /^lib/ { print $2 }' | sort -u |
            while read -r library; do dpkg -s "$library" >/dev/null 2>&1 || echo "$library"; done)
        unpacked "$folder" "${packages[@]}" "${libraries[@]}" ||
            { say slurmdbd "not here: $reason" && return 1; }
    fi
    say slurmdbd "$folder"
}

NEWER_SLURM_PROGRAMS="bin/s(acct|acctmgr|batch|cancel|control|diag|info|prio|queue|run|share)|\
sbin/slurm.*"

# Slurm and its slurmdbd of a newer Debian. Its programs are told where their libraries are, the C
# library too: nothing of them goes into the system, and no other program finds them.
fetched_newer_slurm() {
    local release=$1 suite=$2 folder=$OUTRIDER_PEERS/slurm-$1 uri libraries loader reason=""
    local packages=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins
        slurmdbd slurm-wlm-mysql-plugin)
    if [ ! -x "$folder/usr/sbin/slurmctld-wlm" ]; then
        reason=$(reason_against_apt)
        [ -z "$reason" ] || { say "Slurm $release" "not here: $reason" && return 1; }
        mkdir -p "$OUTRIDER_PEERS"
        exec 8>"$folder.lock"
        flock 8 # two checkouts may fetch at once: the second waits and finds it done
    fi
    if [ ! -x "$folder/usr/sbin/slurmctld-wlm" ]; then
        uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
            grep -v security | sed -n 1p)
        rm -rf --one-file-system "$folder.new"
        mmdebstrap --variant=extract --include="${packages[*]}" \
            --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
            --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
            "$suite" "$folder.new" "$uri" >"$folder.log" 2>&1 ||
            { say "Slurm $release" "not here: $(grep -m1 '^E:' "$folder.log")" && return 1; }
        (
            cd "$folder.new/usr" || exit 1
            find bin sbin ! -type d | grep -vE "^($NEWER_SLURM_PROGRAMS)$" | xargs rm -f
            mapfile -t programs < <(find bin sbin -type f)
            libraries=$(dirname lib/*/slurm-wlm)
            loader=$(echo "$libraries"/ld-linux-*.so.*)
            places=$folder/usr/$libraries:$folder/usr/$libraries/slurm-wlm # of the final folder
            patchelf --force-rpath --set-rpath "$places" "${programs[@]}" "$libraries"/slurm-wlm/*.so &&
                patchelf --set-interpreter "$folder/usr/$loader" "${programs[@]}"
        ) >>"$folder.log" 2>&1 ||
            { say "Slurm $release" "not here: patchelf failed, see $folder.log" && return 1; }
        rm -rf --one-file-system "$folder"
        mv "$folder.new" "$folder" # renamed at the very end: a folder that exists is whole
    fi
    say "Slurm $release" "$folder"
}

# The libraries a package depends on start nothing: they go into the system.
has_libraries() {
    local libraries
    reason=$(reason_against_apt)
    [ -z "$reason" ] || return 1
    refreshed_lists
    mapfile -t libraries < <(apt-cache depends "$1" | awk '$1 == "Depends:" && $2 ~ /^lib/ { print $2 }')
    [ "${#libraries[@]}" = 0 ] || quiet_apt install --no-install-recommends "${libraries[@]}"
}

# unpacked FOLDER PACKAGE...: Debian's packages, all of them whole or none at all. Their programs
# are then in usr/bin, where tests look, also those that Debian has in usr/sbin.
unpacked() {
    local folder=$1 package
    shift
    rm -rf "$folder.new"
    mkdir -p "$folder.new/usr/bin" || { reason="cannot write below $OUTRIDER_PEERS" && return 1; }
    pushd "$folder.new" >/dev/null || return 1
    if quiet_apt -o APT::Sandbox::User=root download "$@"; then
        for package in ./*.deb; do
            dpkg-deb -x "$package" . && rm "$package" || reason="$package could not be unpacked"
        done
        for package in "$@"; do
            [ -x "usr/bin/$package" ] || [ ! -x "usr/sbin/$package" ] ||
                ln -s "../sbin/$package" "usr/bin/$package"
        done
        if [ -z "$reason" ]; then
            rm -rf "$folder"
            mv "$folder.new" "$folder" || reason="cannot write below $OUTRIDER_PEERS"
        fi
    fi
    popd >/dev/null || return 1
    [ -z "$reason" ]
}

bootstrapped_htcondor() {
    local said
    if said=$("$HERE/htcondor_pool.sh" bootstrap 2>&1); then
        say HTCondor "$OUTRIDER_PEERS/htcondor"
    else
        say HTCondor "not here: $(tail -n 1 <<<"$said" | sed 's/^htcondor_pool.sh: //')"
    fi
}

installed systemd systemd-analyze systemd && installed iproute2 ip iproute2 &&
    fetched nspawn systemd-container systemd-nspawn
installed Chromium chromium chromium
installed strace strace strace
fetched Prometheus prometheus
fetched Alertmanager prometheus-alertmanager
fetched Mosquitto mosquitto && installed "its clients" mosquitto_pub mosquitto-clients
fetched_slurm && fetched_slurmdbd
kept_packages
installed mmdebstrap mmdebstrap mmdebstrap && {
    bootstrapped_htcondor
    installed patchelf patchelf patchelf && fetched_newer_slurm 24.11 trixie
}
exit 0 # what is missing was said; the tests decide what it means
