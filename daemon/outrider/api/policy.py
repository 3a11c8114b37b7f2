"""Contract of a policy: it decides where a job should run.

A policy is synchronous. It sees a read-only view of the site, draws from the random generator
that it gets, and saves and restores its own state. It never sees a true run time, the next log-in
or anything else in the future. Capabilities other than choosing a machine are declared by further
bases: see `outrider.api.capabilities`.
"""

import random
from abc import ABCMeta
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, get_args, get_origin

import msgspec

from outrider.api.capabilities import Decides, check_declaration
from outrider.api.site_view import Oracle, SiteView
from outrider.model.decisions import NO_MACHINE, NOWHERE, Choice
from outrider.model.jobs import Job

FIRST = "first"
"""Reason of a start that followed only from the job's place in the queue."""


class PolicySettings(msgspec.Struct, frozen=True):
    """Settings of a policy that has none of its own."""


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    SettingsT_co = TypeVar(
        "SettingsT_co", bound=PolicySettings, covariant=True, default=PolicySettings
    )
else:  # at run time the default is not needed, which typing knows from Python 3.13 on
    from typing import TypeVar

    SettingsT_co = TypeVar("SettingsT_co", bound=PolicySettings, covariant=True)


class _CheckedWhenWhole(ABCMeta):
    """Metaclass that checks a policy's declaration once its class is complete.

    `__init_subclass__` comes too early for that. A class that is rejected there does not yet have
    the tables by which an abstract class answers `issubclass`, so it answers from those of a base.
    While anything refers to that class (a notebook keeps its last error), other policies would be
    misidentified.
    """

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> None:
        super().__init__(name, bases, namespace, **options)
        if any(isinstance(base, _CheckedWhenWhole) for base in bases):
            check_declaration(cls)
            declare_settings(cls, Policy, PolicySettings)


class Policy(Generic[SettingsT_co], metaclass=_CheckedWhenWhole):
    """Base class of every policy: subclass it, declare the class variables, write what it decides.

    ``Policy[MySettings]`` among the bases makes `MySettings` the record from which it is built and
    the type of `self.settings`; without brackets a policy has no settings.

    Raises:
        TypeError: when the subclass is defined, if it defines a method of a capability that it
            does not declare, or its settings are no record.

    Class variables:
        name: as in the entry point and on the command line.
        description: one line.
        settings_type: the record of its settings; from the brackets behind `Policy`.
        presets: named settings, such as ``literal`` for a paper's method exactly as printed.
        features: what makes two jobs equal to this policy; names only, for people. `group_key`
            computes the key itself.
        api_version: the version of this contract that it was written against, as a number. Each
            policy declares its own; an inherited one would be that of the Outrider it runs in.
        decides: how it decides; `Ranks` and `Plans` set it.
        needs_oracle: needs the true run times; replay grants it, the daemon refuses.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    settings_type: ClassVar[type[PolicySettings]] = PolicySettings
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    features: ClassVar[tuple[str, ...]] = ()
    api_version: ClassVar[int]
    decides: ClassVar[Decides] = Decides.PER_JOB
    needs_oracle: ClassVar[bool] = False

    reconsider_s: float | None = None
    """Seconds until a deferred job is decided again. None: the site's decision epoch."""
    max_defer_s: float = float("inf")
    """Seconds of deferral after which a job must be started (starvation guard)."""
    oracle: Oracle | None = None
    """True values, for policies that declare `needs_oracle`; set by replay before the run."""
    wants_scores: bool = True
    """False if the scores and the propensity of a `Choice` are not read and may be left out."""

    def __init__(self, settings: SettingsT_co, rng: random.Random) -> None:
        self.settings = settings
        self.rng = rng

    def group_key(self, job: Job, view: SiteView) -> Hashable:
        """Return the key of jobs that look like this one now; equal keys get equal decisions."""
        return ()

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Return where one job should run. At least one machine is free when this is called.

        By default: the tightest machine that suffices, enough for a policy that `Orders` or
            `Ranks`.

        Args:
            job: the job to decide.
            evaluation: what `Groups.evaluate_group` returned for its key in this pass; else None.
            view: the site.
            may_defer: False when the starvation guard demands a start.
        """
        machine = view.tightest(job.spec.cpus)
        return Choice(machine, FIRST if machine != NOWHERE else NO_MACHINE, 1.0)

    def scores(self, key: Hashable, view: SiteView) -> dict[str, float]:
        """Return the present score of every alternative for jobs with this key, for ``explain``."""
        return {}

    def explain(self, job: Job, view: SiteView) -> str:
        """Return one sentence, for the user on call, on the reasons for and against."""
        return self.description

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return what was learned, as plain data (the engine saves the random generator).

        Name clusters by their names: their numbers may differ when it is restored.
        """
        return {}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Resume from what `save` returned.

        Raises:
            ValueError: it does not fit (other settings, another version); nothing has changed,
                and the policy starts without it.
        """


# -- settings declaration --------------------------------------------------------------------------
# Find the settings record of a policy: the argument of `Policy[...]` among its bases.


def declare_settings(policy: type[Any], generic: type[Any], record: type[Any]) -> None:
    """Set `settings_type` of a class that names its settings record among its bases.

    Args:
        policy: the class that is being defined.
        generic: `Policy`, whose one type variable is the settings record.
        record: the base of all settings records.

    Raises:
        TypeError: what it names is not such a record, or `settings_type` names another one.
    """
    ancestors: list[Any] = [base for base in policy.__mro__[1:] if issubclass(base, generic)]
    inherited = ancestors[0].settings_type
    named = _named(policy, generic)
    own = vars(policy).get("settings_type")
    if named is None or isinstance(named, TypeVar):  # nothing new, or left to subclasses
        named = own
    if named is None:
        return
    where = f"class {policy.__name__}"
    if not (isinstance(named, type) and issubclass(named, record)):
        raise TypeError(
            f"{where}: the settings are {named!r}; expected a subclass of "
            f"{record.__name__}, as in class {policy.__name__}({generic.__name__}[MySettings])"
        )
    if own is not None and own is not named:
        raise TypeError(
            f"{where}: settings_type is {own.__name__}, its bases name {named.__name__}; expected "
            "only one of them"
        )
    if not issubclass(named, inherited):
        raise TypeError(
            f"{where}: {named.__name__} is no {inherited.__name__}, which the methods that it "
            f"inherits read; expected a subclass of {inherited.__name__}"
        )
    policy.settings_type = named


def _named(policy: type[Any], generic: type[Any]) -> Any:
    """Return the settings argument in a class's bases: a record, a type variable or None."""
    for alias in vars(policy).get("__orig_bases__", ()):
        origin: Any = get_origin(alias)
        given = get_args(alias)
        if origin is generic:
            return given[0]
        if isinstance(origin, type) and issubclass(origin, generic):
            inner, parameters = _named(origin, generic), getattr(origin, "__parameters__", ())
            if isinstance(inner, TypeVar):
                return dict(zip(parameters, given, strict=True))[inner]
    return None
