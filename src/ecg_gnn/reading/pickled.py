"""What a pickle would call, told from its bytes: nothing is loaded here."""

import pickletools
import re

from ecg_gnn.system.checks import InputError

_NAMED = ("GLOBAL", "INST")
_COMPUTED = ("STACK_GLOBAL", "EXT1", "EXT2", "EXT4")


def check_pickle(source: str, content: bytes, harmless: re.Pattern[str]) -> None:
    """Refuse a pickle that names a class or a function that is not ``harmless``.

    Others may only read a pickle that has passed: loading one runs what it names.
    """
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name in _NAMED:
            name = str(argument).replace(" ", ".")
        elif opcode.name in _COMPUTED:
            name = "a name that is put together while loading"
        else:
            continue
        if not harmless.fullmatch(name):
            raise InputError(
                f"{source}: must hold plain values (got {name}, which is never loaded: "
                "it could run code)"
            )
