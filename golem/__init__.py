"""golem: AI agents whose conversations survive whatever happens to the run.

Everything public is named here; adapters for model providers are in ``golem_adapters``.
"""

from golem._run.driver import partial_from as partial_from
from golem.agent import Agent as Agent
from golem.codec import dump_history as dump_history
from golem.codec import dump_message as dump_message
from golem.codec import iter_history as iter_history
from golem.codec import load_history as load_history
from golem.codec import load_message as load_message
from golem.context import RunContext as RunContext
from golem.errors import APIError as APIError
from golem.errors import GolemError as GolemError
from golem.errors import HistoryError as HistoryError
from golem.errors import ModelRetry as ModelRetry
from golem.errors import ProtocolError as ProtocolError
from golem.errors import ProviderError as ProviderError
from golem.errors import RunError as RunError
from golem.errors import ToolCanceled as ToolCanceled
from golem.errors import ToolFailed as ToolFailed
from golem.errors import TransportError as TransportError
from golem.errors import UnsupportedContentError as UnsupportedContentError
from golem.events import Event as Event
from golem.events import UnknownEvent as UnknownEvent
from golem.events import decode_event as decode_event
from golem.events import encode_event as encode_event
from golem.history import Change as Change
from golem.history import HistoryRepair as HistoryRepair
from golem.history import Repairer as Repairer
from golem.history import arepair as arepair
from golem.history import normalize_history as normalize_history
from golem.history import repair as repair
from golem.ids import new_id as new_id
from golem.messages import AssistantMessage as AssistantMessage
from golem.messages import Message as Message
from golem.messages import Native as Native
from golem.messages import Part as Part
from golem.messages import SystemMessage as SystemMessage
from golem.messages import Thinking as Thinking
from golem.messages import ToolCall as ToolCall
from golem.messages import ToolMessage as ToolMessage
from golem.messages import UnknownMembers as UnknownMembers
from golem.messages import UserMessage as UserMessage
from golem.model import Model as Model
from golem.model import Settings as Settings
from golem.result import Partial as Partial
from golem.result import Result as Result
from golem.stream import RunStream as RunStream
from golem.tools import Tool as Tool
from golem.tools import ToolResult as ToolResult
from golem.tools import tool as tool
from golem.usage import Usage as Usage
