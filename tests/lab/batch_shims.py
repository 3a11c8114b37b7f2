"""Commands of PBS and HTCondor that run the real jobs of a sweep on this machine.

Only submitting and removing is played; the job's own text is run as the batch system would.
"""

import os
import stat
import sys
from pathlib import Path

QSUB = """\
#!/bin/sh
# qsub FILE: a job script, whose directives are comments to the shell.
cp "$1" "{folder}/job-$$"
setsid sh "{folder}/job-$$" </dev/null >"{folder}/out-$$" 2>&1 &
echo $! >"{folder}/pid-$$"
echo "$$.server"
"""
QDEL = """\
#!/bin/sh
kill -TERM -- "-$(cat "{folder}/pid-${{1%%.*}}")"
"""
CONDOR_SUBMIT = """\
#!{python}
# condor_submit FILE: Executable and Arguments, these in HTCondor's newer quoting.
import os, pathlib, re, shutil, subprocess, sys

folder, number = pathlib.Path("{folder}"), os.getpid()
shutil.copy(sys.argv[-1], folder / f"job-{{number}}")
text = pathlib.Path(sys.argv[-1]).read_text()
executable = re.search("^Executable = (.+)$", text, re.M)[1]
arguments = re.search('^Arguments = "(.+)"$', text, re.M)[1].replace('""', '"')
words = re.findall("'(?:[^']|'')*'|[^ ]+", arguments)
words = [w[1:-1].replace("''", "'") if w.startswith("'") else w for w in words]
with (folder / f"out-{{number}}").open("w") as out:
    job = subprocess.Popen(
        [executable, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
        start_new_session=True,
    )
(folder / f"pid-{{number}}").write_text(str(job.pid))
print(f"1 job(s) submitted to cluster {{number}}.")
"""


def install_shims(folder: Path) -> dict[str, str]:
    """Put the commands into a new folder; returns the environment in which they come first.

    Each job leaves there its text (job-N), what it printed (out-N) and its process (pid-N).
    """
    folder.mkdir()
    for name, text in {
        "qsub": QSUB, "qdel": QDEL, "condor_submit": CONDOR_SUBMIT, "condor_rm": QDEL,
    }.items():  # fmt: skip
        program = folder / name
        program.write_text(text.format(folder=folder, python=sys.executable))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}
