# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What may go wrong and is told to a person.

    VeoError
    ├── BadConfig           the configuration was refused, whole
    ├── BadScenario         a simulation's scenario was refused, whole
    └── ListenFailed        an address or socket could not be opened

Failures of the driver are no exceptions of the program but readings without a value: see
`gpu.codes`.
"""


class VeoError(Exception):
    """The message names the thing that is wrong and the remedy; nobody needs the traceback."""


class BadConfig(VeoError):
    """Every fault that was found, a sentence each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class BadScenario(VeoError):
    """Every fault of a scenario file, a sentence each."""


class ListenFailed(VeoError):
    """An address or socket could not be opened; the message says which and why."""
