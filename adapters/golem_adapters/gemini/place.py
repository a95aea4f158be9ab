"""Where a Gemini model lies: its server, its project and location, its name in an address. Pure.

But for the two environment variables that may name project and location.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from golem_adapters._toolkit.endpoint import beneath

_WORD: Final = re.compile(r"[A-Za-z0-9:._-]+")
_VERSIONED: Final = re.compile(r"/v[0-9]+((alpha|beta)[0-9]*)?$")


def word(value: str, what: str) -> str:
    """`value`, which stands in an address; ValueError for one that cannot."""
    if _WORD.fullmatch(value) is None:
        raise ValueError(f"{value!r} cannot be a {what}")
    return value


def versioned(base_url: str, version: str) -> str:
    """`base_url` with the version of the API at its end, where it has none."""
    if _VERSIONED.search(urlsplit(base_url).path.rstrip("/")):
        return base_url
    return beneath(base_url, f"/{version}")


def asking(url: str, query: str) -> str:
    """`url` with `query` behind what it asks already."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=f"{parts.query}&{query}" if parts.query else query))


class Place:
    """Where in Google Cloud a model lies; nowhere at AI Studio."""

    __slots__ = ("location", "project")

    def __init__(self, project: str = "", location: str = "") -> None:
        self.project = project
        self.location = location

    @classmethod
    def found(cls, project: str | None, location: str | None) -> Place:
        """The place that was given, else the one that the environment names."""
        project = project or os.environ.get("GOOGLE_CLOUD_PROJECT") or ""
        location = location or os.environ.get("GOOGLE_CLOUD_LOCATION") or "global"
        return cls(project and word(project, "project"), word(location, "location"))

    @property
    def address(self) -> str:
        """Google's own server for the location."""
        region = "" if self.location == "global" else f"{self.location}-"
        return f"https://{region}aiplatform.googleapis.com"

    def resource(self, model: str, *, vertex: bool) -> str:
        """The name of `model` in an address."""
        if not vertex:
            return model if "/" in model else f"models/{model}"
        if model.startswith("projects/"):
            return model
        if not model.startswith(("publishers/", "endpoints/")):
            model = f"publishers/google/models/{model.removeprefix('models/')}"
        if not self.project:
            return model
        return f"projects/{self.project}/locations/{self.location}/{model}"
