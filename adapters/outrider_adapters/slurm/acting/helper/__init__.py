"""Helper for sites without slurmdbd: updates jobs for a daemon without that right.

It runs as `SlurmUser`, started by systemd when the daemon connects (``outrider-slurm.socket``), and
accepts a closed list of requests.
"""
