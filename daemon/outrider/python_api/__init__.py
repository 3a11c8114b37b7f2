"""The Python API: what `import outrider` gives to scripts and notebooks.

It calls the rooms that the commands call, and gives their figures to the last digit.
"""
