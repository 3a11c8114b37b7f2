"""HTCondor's Python bindings, imported in the one order in which ClassAds evaluate.

``htcondor2`` comes first: it registers the functions (``split``, ``stringListMember``, ...)
without which every real job's ``Requirements`` is an error and no match is ever found, silently.
On import it also sets ``CONDOR_CONFIG=/dev/null`` where no pool is configured. Everything here
takes the bindings from this module, never from the packages themselves.

Raises:
    MissingPackageError: on import, where the bindings are not installed.
"""

from outrider.api import MissingPackageError

try:
    import htcondor2
    from classad2 import ClassAd, ClassAdException, ExprTree, quote
except ImportError as error:
    raise MissingPackageError(
        f"needs HTCondor's Python bindings ({error}): pip install 'outrider[htcondor]'"
    ) from error

AdType = htcondor2.AdType
DaemonType = htcondor2.DaemonType
HTCondorException = htcondor2.HTCondorException
JobAction = htcondor2.JobAction
JobStatus = htcondor2.JobStatus
SubmitResult = htcondor2.SubmitResult

__all__ = [
    "AdType",
    "ClassAd",
    "ClassAdException",
    "DaemonType",
    "ExprTree",
    "HTCondorException",
    "JobAction",
    "JobStatus",
    "SubmitResult",
    "htcondor2",
    "quote",
]
