"""The `onboard` command: finds the verb and runs its module, importing nothing else."""

import contextlib
import importlib
import os
import sys

from onboard.configs.errors import OnboardError, one_line

VERBS = {
    "demo": "watch a trained policy walk a simulated G1 over real DDS",
    "sim": "start a simulated G1 that speaks the robot's DDS topics",
    "check": "before a run: is policy, network and computer fit for it",
    "run": "run a policy on a robot, real or simulated",
    "status": "follow a run: mode, events, timing, joints, health of every process",
    "try": "run a policy in the in-process simulator, faster than real time",
    "bench": "play excitation signals on a hanging robot and record them",
    "ab": "compare a policy with and without its residual: keep or drop",
    "policy": "show or check what a policy expects",
    "log": "look into rollout files, plot or recover them",
    "fit": "the delta that makes the simulator behave like a recorded robot",
}

EXTRAS = {"mujoco": "sim", "matplotlib": "analysis", "scipy": "analysis", "unitree_sdk2py": "sdk"}
"""Packages that only some verbs need, and the extra that brings each."""

USAGE = """usage: onboard VERB [options]

{verbs}

onboard VERB --help explains a verb. Example: onboard demo --json out.json
"""


def main(argv: list[str] | None = None) -> int:
    """Run one verb; errors that the program raises on purpose become one line on standard error."""
    arguments = sys.argv[1:] if argv is None else argv
    verb = arguments[0] if arguments else "--help"
    if verb in {"-h", "--help", "help"}:
        sys.stdout.write(_usage())
        return 0 if arguments else 2
    if verb in {"-V", "--version"}:
        from onboard import __version__

        sys.stdout.write(f"onboard {__version__}\n")
        return 0
    if verb not in VERBS:
        sys.stderr.write(f"onboard: no verb '{verb}'; there are: {', '.join(VERBS)}\n")
        return 2
    try:
        module = importlib.import_module(f"onboard.cli.{'try_' if verb == 'try' else verb}")
        code: int = module.run(arguments[1:])
    except OnboardError as error:
        sys.stderr.write(f"onboard {verb}: {error}\n")
        return error.exit_code
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        sys.stderr.write(
            f"onboard {verb}: needs {error.name}; install it with: pip install 'onboard[{extra}]'\n"
        )
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`onboard log info FILE | head`); nothing to report.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        # What the file system refuses on the way to a file, such as a name that is too long.
        sys.stderr.write(f"onboard {verb}: {one_line(str(error))}; name another file\n")
        return 2
    return code


def _usage() -> str:
    width = max(map(len, VERBS))
    return USAGE.format(verbs="\n".join(f"  {verb:<{width}}  {text}" for verb, text in VERBS.items()))


if __name__ == "__main__":
    sys.exit(main())
