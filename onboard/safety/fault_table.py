"""The list of faults as text for the documentation: `python -m onboard.safety.fault_table docs/safety.md`."""

import sys
from collections.abc import Mapping
from pathlib import Path

from onboard.configs.faults import Fault, load_faults
from onboard.safety.table import with_table

BEGIN = "<!-- faults: written by `python -m onboard.safety.fault_table docs/safety.md` -->"
END = "<!-- end of faults -->"


def fault_table(faults: Mapping[str, Fault]) -> str:
    """One Markdown row a fault."""
    lines = [
        "| name | fault | noticed by | tier | within | the log says | exit code | injected | near miss |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, fault in faults.items():
        limit = "" if fault.limit_ms is None else f"{fault.limit_ms:g} ms"
        code = "goes on" if fault.exit_code is None else str(fault.exit_code)
        how = f"{fault.where}, `{fault.sim}`" if fault.sim else fault.where
        near = f"`{fault.near}`" if fault.near else ""
        cells = (name, fault.what, fault.noticed_by, fault.tier, limit, fault.log, code, how, near)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    text = page.read_text(encoding="utf-8")
    page.write_text(with_table(text, fault_table(load_faults()), BEGIN, END), encoding="utf-8")
