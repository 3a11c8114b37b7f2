"""An environment of Gymnasium: `import outrider_lab.gym` registers ``Outrider-v0``.

An agent selects the next job out of a window of the queue; all else is a replay: docs/gymnasium.md.
"""

from outrider.model.errors import MissingPackageError

try:
    import gymnasium
except ImportError as error:
    raise MissingPackageError(
        "gymnasium is not installed here; use pip install 'outrider[gym]'"
    ) from error

from outrider_lab.gym.environment import REWARDS, OutriderEnv

ENV_ID = "Outrider-v0"

gymnasium.register(ENV_ID, entry_point=f"{OutriderEnv.__module__}:{OutriderEnv.__name__}")

__all__ = ["ENV_ID", "REWARDS", "OutriderEnv"]
