"""Which settings record a policy has: what stands in `Policy[...]` among its bases."""

from typing import Any, TypeVar, get_args, get_origin


def declare_settings(policy: type[Any], generic: type[Any], record: type[Any]) -> None:
    """Set `settings_type` of a class that names its settings record among its bases.

    Args:
        policy: the class that is being defined.
        generic: `Policy`, whose one type variable is the settings record.
        record: the base of all settings records.

    Raises:
        TypeError: what it names is no such record, or `settings_type` says another one.
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
            f"{where}: the settings are {named!r}; right would be a subclass of "
            f"{record.__name__}, as in class {policy.__name__}({generic.__name__}[MySettings])"
        )
    if own is not None and own is not named:
        raise TypeError(
            f"{where}: settings_type is {own.__name__}, its bases say {named.__name__}; right "
            "would be one of them, once"
        )
    if not issubclass(named, inherited):
        raise TypeError(
            f"{where}: {named.__name__} is no {inherited.__name__}, which the methods that it "
            f"inherits read; right would be a subclass of {inherited.__name__}"
        )
    policy.settings_type = named


def _named(policy: type[Any], generic: type[Any]) -> Any:
    """What stands for the settings in the bases of a class: a record, a type variable or None."""
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
