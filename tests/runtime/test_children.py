"""Child processes: their last words, their end, signals that must not reach them."""

import os
import signal
import time

from onboard.runtime.children import Child, describe_exit


def test_the_last_line_of_a_child_that_failed_is_its_complaint() -> None:
    child = Child("x", ["-c", "import sys; sys.stderr.write('first\\nsecond\\n'); sys.exit(3)"])
    child.wait(20)
    assert child.exit_code == 3
    assert child.complaint() == "second"
    child.close()


def test_a_silent_end_is_described() -> None:
    child = Child("x", ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
    child.wait(20)
    assert child.complaint() == "it ended with signal SIGKILL"
    child.close()


def test_a_stopped_child_is_killed_for_certain() -> None:
    child = Child("x", ["-c", "import time; time.sleep(60)"])
    os.kill(child.pid, signal.SIGSTOP)
    child.kill()
    assert child.exit_code == -signal.SIGKILL
    child.close()
    child.close()


def test_a_child_lives_in_a_session_of_its_own() -> None:
    child = Child("x", ["-c", "import time; time.sleep(60)"])
    time.sleep(0.05)
    assert os.getsid(child.pid) == child.pid
    child.close()
    assert child.exit_code == -signal.SIGKILL


def test_exit_codes_in_words() -> None:
    assert describe_exit(None) == "no exit code, it still runs"
    assert describe_exit(2) == "exit code 2"
    assert describe_exit(-9) == "signal SIGKILL"
