"""Public interface for plugins; nothing else of Outrider is public.

Adapters subclass `Adapter`, policies subclass `Policy`; both build their settings records with
`msgspec` annotations and are found by the entry points ``outrider.adapters`` and
``outrider.policies``. A `Lever` is declared by its adapter.
"""

from outrider.api.adapter import (
    Adapter,
    AdapterSettings,
    Batch,
    FoundSystem,
    InProgress,
    PlannedStarts,
    WaitingReason,
    removing_most,
)
from outrider.api.broker import (
    ReceivedMessage,
    acknowledge_message,
    backoff,
    connected,
    probe_topic,
    receive_messages,
)
from outrider.api.capabilities import (
    Decides,
    Groups,
    Learns,
    Listens,
    Orders,
    Plans,
    Prediction,
    Predicts,
    Ranks,
)
from outrider.api.estimator import RunTimeEstimate, RunTimeEstimator
from outrider.api.lever import Lever, Undo, UndoLog
from outrider.api.policy import Policy, PolicySettings
from outrider.api.queue import Queue
from outrider.api.reader import LogReader, ReaderOptions, Reading, log_name_of
from outrider.api.site_view import SiteView
from outrider.api.window_policy import WINDOW_FEATURES, Observation, WindowPolicy, observe_window
from outrider.model import events
from outrider.model.decisions import (
    COMPLETED_RUN,
    EVICTED_RUN,
    NO_MACHINE,
    NOWHERE,
    PREEMPT,
    REMOVED_RUN,
    RESUME,
    SHRINK,
    START,
    Choice,
    DecisionRow,
    Move,
    Outcome,
)
from outrider.model.deployment import BrokerSettings, HelperUnit, ServiceNeeds
from outrider.model.errors import (
    ConfigurationError,
    MissingPackageError,
    OutriderError,
    PeerError,
    PluginError,
    TraceError,
    nearest,
)
from outrider.model.events import NamedEvent
from outrider.model.jobs import RUNNING, SUSPENDED_STATE, Job, JobSpec
from outrider.model.machines import (
    Clause,
    ClusterSpec,
    MachineSpec,
    OpeningHours,
    Resources,
    SiteHabits,
)
from outrider.model.settings import build, describe
from outrider.model.utility import TimeUtility

__all__ = [
    "COMPLETED_RUN",
    "EVICTED_RUN",
    "NOWHERE",
    "NO_MACHINE",
    "PREEMPT",
    "REMOVED_RUN",
    "RESUME",
    "RUNNING",
    "SHRINK",
    "START",
    "SUSPENDED_STATE",
    "WINDOW_FEATURES",
    "Adapter",
    "AdapterSettings",
    "Batch",
    "BrokerSettings",
    "Choice",
    "Clause",
    "ClusterSpec",
    "ConfigurationError",
    "Decides",
    "DecisionRow",
    "FoundSystem",
    "Groups",
    "HelperUnit",
    "InProgress",
    "Job",
    "JobSpec",
    "Learns",
    "Lever",
    "Listens",
    "LogReader",
    "MachineSpec",
    "MissingPackageError",
    "Move",
    "NamedEvent",
    "Observation",
    "OpeningHours",
    "Orders",
    "Outcome",
    "OutriderError",
    "PeerError",
    "PlannedStarts",
    "Plans",
    "PluginError",
    "Policy",
    "PolicySettings",
    "Prediction",
    "Predicts",
    "Queue",
    "Ranks",
    "ReaderOptions",
    "Reading",
    "ReceivedMessage",
    "Resources",
    "RunTimeEstimate",
    "RunTimeEstimator",
    "ServiceNeeds",
    "SiteHabits",
    "SiteView",
    "TimeUtility",
    "TraceError",
    "Undo",
    "UndoLog",
    "WaitingReason",
    "WindowPolicy",
    "acknowledge_message",
    "backoff",
    "build",
    "connected",
    "describe",
    "events",
    "log_name_of",
    "nearest",
    "observe_window",
    "probe_topic",
    "receive_messages",
    "removing_most",
]
