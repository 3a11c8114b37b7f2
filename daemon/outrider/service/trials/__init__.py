"""The canary trial of a daemon: registered beforehand, kept in the journal, ended in time."""
