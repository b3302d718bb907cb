"""Type hashes as Cyclone 0.10.2 has them; with another hash the robot's process may crash."""

import hashlib
from typing import Any

import pytest

from onboard.runtime import idl, wire

# The first two were read off the robot's version; the others were computed with 0.10.2's stock types.
TYPE_MAPS = {
    "LowState": "f02e596f4b722f64bc5797b6e51a592b",
    "LowCmd": "8cc5c5b69bc998e85203003c8f45ae1c",
    "ImuState": "a3d62349725c01f252aa2f264fc62331",
    "Request": "0bc23fa01c14160c3835ab3c46eeda27",
    "Response": "2622be598ba169d05b22b076c87a5df0",
}
TYPE_INFORMATION = {
    "LowState": "7b19e65f98539386ba336a72a7f667f3",
    "LowCmd": "c2717957e94136d41e8c3926b3fe3c71",
    "ImuState": "9c4773e61c84f0bdaf66de276eb61a93",
    "Request": "37b71922a7f7971211038b5369e6edf6",
    "Response": "e7e2d492aecc75c553bc90a868c858b3",
}


def type_data(name: str) -> tuple[bytes, bytes]:
    description: Any = getattr(idl, name).__idl__
    description.populate()
    description.fill_type_data()
    information, type_map = description._xt_bytedata
    return information, type_map


@pytest.mark.parametrize("name", TYPE_MAPS)
def test_type_hashes_are_the_robots(name: str) -> None:
    information, type_map = type_data(name)
    assert hashlib.md5(type_map).hexdigest() == TYPE_MAPS[name]
    assert hashlib.md5(information).hexdigest() == TYPE_INFORMATION[name]


@pytest.mark.parametrize(
    ("name", "typename"),
    [
        ("LowState", "unitree_hg.msg.dds_.LowState_"),
        ("LowCmd", "unitree_hg.msg.dds_.LowCmd_"),
        ("ImuState", "unitree_hg.msg.dds_.IMUState_"),
        ("Request", "unitree_api.msg.dds_.Request_"),
        ("Response", "unitree_api.msg.dds_.Response_"),
    ],
)
def test_type_names_are_the_vendors(name: str, typename: str) -> None:
    assert getattr(idl, name).__idl_typename__ == typename


def test_an_empty_message_has_the_length_of_the_layout() -> None:
    assert len(idl.LowState().serialize()) == wire.LOW_STATE.itemsize
    assert len(idl.LowCmd().serialize()) == wire.LOW_CMD.itemsize
    assert len(idl.GroundTruth().serialize()) == wire.GROUND_TRUTH.itemsize
    assert len(idl.BmsState().serialize()) == idl.BATTERY_BYTES


def test_the_batterys_charge_is_read_from_its_bytes() -> None:
    assert idl.state_of_charge(idl.BmsState(soc=77, soh=99).serialize()) == 77
    assert idl.state_of_charge(b"\0" * 12) is None
