"""The helper of sites without slurmdbd: updates jobs for a daemon that may not itself.

It runs as `SlurmUser`, begun by systemd when the daemon connects (``outrider-slurm.socket``), and
knows a closed list of requests.
"""
