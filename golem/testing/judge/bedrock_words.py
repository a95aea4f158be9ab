"""How Bedrock puts what is wrong with a request. Pure.

``{"message": …}`` with the type of the error in a header. Its validation names the place in dots
(``messages.0.content.0``), a model's own refusals name the field to remove. The texts are the
service's own where they are on record (§1.5 of the wire formats, and recorded answers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from golem.testing.judge.findings import JSON, Violation

UNREADABLE: Final = "The request body could not be parsed as JSON."
TYPES: Final[Mapping[int, str]] = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
"""The type of an error by its status, as the service's model has it."""


class Findings:
    """Collects the violations of one request, in Bedrock's words."""

    def __init__(self) -> None:
        self.found: list[Violation] = []

    def add(self, rule: str, place: str, text: str) -> None:
        """Note a violation."""
        self.found.append(Violation(rule, place, text, failed(text)))

    # --- what the service's own validation says

    def constraint(self, rule: str, place: str, value: object, constraint: str) -> None:
        """A member that breaks what the service's model says of it."""
        text = (
            f"1 validation error detected: Value '{str(value)[:80]}' at '{place}' failed to satisfy"
            f" constraint: Member must {constraint}"
        )
        self.add(rule, place, text)

    def missing(self, place: str) -> None:
        """A required member is not there."""
        self.constraint("required_member", place, None, "not be null")

    def unknown(self, place: str) -> None:
        """A member that the service does not know."""
        self.add("unknown_member", place, f"Unexpected field '{place}'.")

    def wrong_type(self, place: str, wanted: str) -> None:
        """A member of another type than ``a string``, ``an array`` or the like."""
        self.add("member_type", place, f"The value at {place} must be {wanted}.")

    def blank(self, kind: str, place: str) -> None:
        """A text that says nothing, in a block of `kind`."""
        text = (
            f"The text field in the {kind} object at {place} is blank. Add text to the text field,"
            " and try again."
        )
        self.add("blank_text", place, text)

    # --- what one model refuses and another takes

    def no_field(self, rule: str, place: str, name: str) -> None:
        """A member that the model does not have."""
        text = f"This model doesn't support the {name} field. Remove {name} and try again."
        self.add(rule, place, text)

    def no_block(self, place: str, kind: str) -> None:
        """A kind of block that the model does not take."""
        text = (
            f"This model doesn't support the {kind} content block that you provided. Update the"
            " content block and try again."
        )
        self.add("block_kind", place, text)


def failed(message: str, kind: str | None = None) -> JSON:
    """The body of an error answer; the status tells its type, unless there is a `kind`."""
    return {"message": message, **({"__type": kind} if kind else {})}


def refused_key(key: str) -> Violation:
    """The answer to a wrong key, or to none."""
    if key:
        text = "Authentication failed: Please make sure your API Key is valid."
    else:
        text = "Missing Authentication Token"
    return Violation("key", "", text, failed(text), 403)
