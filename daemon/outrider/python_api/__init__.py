"""The Python API: functions of `import outrider` for scripts and notebooks.

It uses the same packages as the commands, and returns exactly their figures.
"""
