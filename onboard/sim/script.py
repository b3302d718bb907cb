"""Timed lines: `SECONDS COMMAND`, played on the simulated clock.

```
# walk a little
1.0  press start
5.0  press go
6.0  stick ly 0.5
9.0  sticks centre
```
"""

from pathlib import Path

from onboard.configs.errors import ConfigError
from onboard.sim.console import Action, parse


class Script:
    """Plays lines when their time has come."""

    def __init__(self, lines: list[tuple[float, Action]]) -> None:
        self._lines = lines
        self._next = 0

    @classmethod
    def read(cls, path: Path) -> "Script":
        """Read a script file; every line is checked before anything happens.

        Raises:
            ConfigError: unreadable, a line that is no command, or times that go back.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: can't be read as a simulator script ({error})") from error
        lines: list[tuple[float, Action]] = []
        for number, line in enumerate(text.splitlines(), 1):
            content = line.partition("#")[0].split(maxsplit=1)
            if not content:
                continue
            where = f"{path} line {number}"
            try:
                time_s = float(content[0])
                action = parse(content[1])
            except (ValueError, IndexError):
                raise ConfigError(f"{where}: expected SECONDS COMMAND, found '{line.strip()}'") from None
            except ConfigError as error:
                raise ConfigError(f"{where}: {error}") from None
            if lines and time_s < lines[-1][0]:
                raise ConfigError(
                    f"{where}: {time_s:g} s comes after {lines[-1][0]:g} s; put the lines in order"
                )
            lines.append((time_s, action))
        return cls(lines)

    @property
    def done(self) -> bool:
        """Every line was played."""
        return self._next == len(self._lines)

    def due(self, time_s: float) -> list[Action]:
        """Actions of the lines whose time has come since the last call."""
        first = self._next
        while not self.done and self._lines[self._next][0] <= time_s:
            self._next += 1
        return [action for _, action in self._lines[first : self._next]]
