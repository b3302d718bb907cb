"""Strict YAML to frozen msgspec structs.

Unknown keys, missing keys, wrong lengths and values out of range stop the program with the file,
the key, what was found and what was expected. Overrides from the command line pass the same checks.
"""

import difflib
import itertools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from onboard.configs.errors import ConfigError
from onboard.configs.untrusted import DAMAGED, read_whole

T = TypeVar("T")

CONFIG_ROOT = Path(__file__).parent
"""Folder of the YAML files that ship with the package."""

LARGEST_BYTES = 1 << 20
"""Of one YAML file."""
MOST_VALUES = 100_000
"""In one YAML file, aliases unfolded."""
DEEPEST = 60
"""Levels of nesting."""

_Loader: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PATH = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


Tags = Mapping[str, Callable[[Any], object]]
"""YAML tag to what stands for the node that carries it; the function gets the node's plain list."""


def read_yaml(path: Path, tags: Tags | None = None) -> Any:  # noqa: ANN401 - untyped until `convert` saw it
    """Parse one YAML file without executing any tag.

    Args:
        path: the file.
        tags: known harmless tags on lists and what to make of them; any other tag is refused.

    Raises:
        ConfigError: the file is missing, unreadable or not valid YAML.
    """
    try:
        text = read_whole(path, LARGEST_BYTES).decode("utf-8")
    except OSError as error:
        raise ConfigError(
            f"{path}: can't be read ({error.strerror}); give the path of a YAML file"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}); give a YAML file") from error
    return parse_yaml(text, str(path), tags)


def parse_yaml(text: str, where: str, tags: Tags | None = None) -> Any:  # noqa: ANN401
    """Parse YAML text; `where` names its source in errors, `tags` as for `read_yaml`.

    Raises:
        ConfigError: not valid YAML, a tag that would need executing, a key given twice, or too much of it.
    """
    try:
        data = yaml.load(text, Loader=_loader_with(tags) if tags else _UniqueKeyLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{where}:{line} not valid YAML: {problem}") from error
    except DAMAGED as error:
        raise ConfigError(f"{where}: not valid YAML: {error}") from error
    _check_size(data, where)
    return data


def convert(data: Any, kind: type[T], where: str) -> T:  # noqa: ANN401
    """Check plain data against `kind` and build it.

    Raises:
        ConfigError: names `where`, the key, the value found and what was expected.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_explain(str(error), data, kind)}") from error


def load(path: Path, kind: type[T], overrides: list[str] | None = None) -> T:
    """Read `path` as `kind`, apply `key=value` overrides (dotted keys, YAML values), check the result."""
    data = read_yaml(path)
    if not overrides:
        return convert(data, kind, str(path))
    for override in overrides:
        apply_override(data, override)
    return convert(data, kind, f"{path} with {', '.join(overrides)}")


def apply_override(data: Any, override: str) -> None:  # noqa: ANN401
    """Set one dotted `key=value` in plain data, in place; the value is read as YAML.

    Raises:
        ConfigError: there is no `=`, or the key's parent does not exist.
    """
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"override '{override}': expected key=value, for example limits.rate_margin=2.0")
    *parents, last = key.strip().split(".")
    node = data
    for parent in parents:
        if not isinstance(node, dict) or parent not in node:
            raise ConfigError(f"override '{override}': no key '{parent}'{_suggest(parent, node)}")
        node = node[parent]
    if not isinstance(node, dict):
        raise ConfigError(f"override '{override}': '{'.'.join(parents)}' holds a value, not keys")
    node[last] = parse_yaml(text, f"override '{override}'")


def shipped(folder: str, name: str) -> Path:
    """Path of a shipped YAML file, or of the user's own file where `name` is a path.

    Raises:
        ConfigError: neither exists; the message lists the shipped names.
    """
    own = Path(name)
    if own.suffix in {".yaml", ".yml"} or own.parent != Path():
        return own
    names = sorted(path.stem for path in (CONFIG_ROOT / folder).glob("*.yaml"))
    if name in names:
        return CONFIG_ROOT / folder / f"{name}.yaml"
    raise ConfigError(
        f"'{name[:100]}' is no shipped {folder} configuration; there are: {', '.join(names)}, or give a "
        ".yaml path"
    )


class _UniqueKeyLoader(_Loader):  # type: ignore[valid-type, misc]
    """The safe loader, refusing a mapping that names one key twice (YAML keeps the last silently)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key != "<<" and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key '{key}' stands twice", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _check_size(data: Any, where: str) -> None:  # noqa: ANN401
    """Refuse what is small as text and unfolds without end: aliases of aliases, or of themselves."""
    count, level = 0, [data]
    for _ in range(DEEPEST):
        count += len(level)
        if not level or count > MOST_VALUES:
            break
        below = (
            value
            for node in level
            if isinstance(node, dict | list | tuple | set)
            for value in (node.values() if isinstance(node, dict) else node)
        )
        level = list(itertools.islice(below, MOST_VALUES + 1))
    if level:
        raise ConfigError(
            f"{where}: more than {MOST_VALUES} values or {DEEPEST} levels, aliases unfolded; expected far "
            "less: write it without aliases of aliases"
        )


def _loader_with(tags: Tags) -> type[_UniqueKeyLoader]:
    """The same loader, with a few more tags that it knows; each builds plain data from a list."""

    class TaggedLoader(_UniqueKeyLoader):
        pass

    def constructor(make: Callable[[Any], object]) -> Callable[[Any, yaml.Node], object]:
        return lambda loader, node: make(loader.construct_sequence(node, deep=True))

    for tag, make in tags.items():
        TaggedLoader.add_constructor(tag, constructor(make))
    return TaggedLoader


def _explain(message: str, data: Any, kind: type) -> str:  # noqa: ANN401
    """Turn a msgspec message into key, expectation and value found."""
    match = _PATH.search(message)
    path = match.group("path") if match else ""
    text = message[: match.start()] if match else message
    unknown = re.search(r"unknown field `([^`]*)`", text)
    if unknown:
        name, holder = unknown.group(1), path.lstrip(".") or "the top level"
        known = _field_names(kind, path)
        close = difflib.get_close_matches(name, known, 1)
        hint = (
            f"; did you mean '{close[0]}'?" if close else f"; known keys: {', '.join(known)}" if known else ""
        )
        return f"unknown key '{name}' at {holder}{hint}"
    missing = re.search(r"missing required field `([^`]*)`", text)
    if missing:
        return f"missing key '{missing.group(1)}' at {path.lstrip('.') or 'the top level'}"
    if not path and not text.startswith("Expected"):
        return text  # a rule of the type's own, which says all
    found = _at(data, path)
    shown = "" if found is _ABSENT else f", found {_short(found)}"
    return f"{path.lstrip('.') or 'top level'}: {text}{shown}"


_ABSENT = object()


def _at(data: Any, path: str) -> Any:  # noqa: ANN401
    try:
        for key, index in _STEP.findall(path):
            data = data[int(index)] if index else data[key]
    except (KeyError, IndexError, TypeError, ValueError):
        return _ABSENT  # the message names the place all the same
    return data


def _field_names(kind: Any, path: str) -> list[str]:  # noqa: ANN401
    info: Any = msgspec.inspect.type_info(kind)
    for key, _ in _STEP.findall(path):
        if key and isinstance(info, msgspec.inspect.StructType):
            info = next((f.type for f in info.fields if f.encode_name == key), None)
        elif isinstance(info, msgspec.inspect.DictType):
            info = info.value_type
        elif isinstance(info, msgspec.inspect.ListType | msgspec.inspect.VarTupleType):
            info = info.item_type
    return [f.encode_name for f in info.fields] if isinstance(info, msgspec.inspect.StructType) else []


def _short(value: Any) -> str:  # noqa: ANN401
    text = repr(value)
    if isinstance(value, list | tuple):
        text = f"{len(value)} values {text}"
    return text if len(text) <= 80 else text[:77] + "..."


def _suggest(name: str, node: Any) -> str:  # noqa: ANN401
    names = [str(key) for key in node] if isinstance(node, dict) else []
    close = difflib.get_close_matches(name, names, 1)
    return f"; did you mean '{close[0]}'?" if close else f"; there are: {', '.join(names)}" if names else ""
