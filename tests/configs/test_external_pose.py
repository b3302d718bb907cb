import pytest

from onboard.cli.run_options import run_config
from onboard.configs.errors import ConfigError
from onboard.configs.external_pose import pose_address


@pytest.mark.parametrize("text", ["", "dds", "udp:127.0.0.1:9870", "udp:0.0.0.0:1", "udp:9870"])
def test_sources_that_there_are(text: str) -> None:
    assert run_config(policy="p", external_pose=text).external_pose == text


def test_without_an_address_only_this_machine_is_heard() -> None:
    assert pose_address("udp:9870") == ("127.0.0.1", 9870)
    assert pose_address("udp:10.0.0.7:9870") == ("10.0.0.7", 9870)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tcp:127.0.0.1:1", "unknown kind 'tcp'"),
        ("DDS", "unknown kind 'DDS'"),
        ("udp", "invalid literal"),
        ("udp:127.0.0.1:0", "port 0 is not from 1 to 65535"),
        ("udp:127.0.0.1:65536", "port 65536"),
        ("udp:mocap:9870", "Expected 4 octets"),
    ],
)
def test_others_are_refused_with_what_was_expected(text: str, found: str) -> None:
    with pytest.raises(ConfigError, match="expected udp:HOST:PORT") as caught:
        run_config(policy="p", external_pose=text)
    assert str(caught.value).startswith(f"command line: external_pose '{text}': ")
    assert found in str(caught.value)
