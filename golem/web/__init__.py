"""What puts a run behind an HTTP endpoint: event streams in the protocols that browsers read.

On anyio and msgspec alone; any server and any framework.
"""

from golem.web.agui import agui as agui
from golem.web.chat_chunks import chat_chunks as chat_chunks
from golem.web.chat_chunks import chat_completion as chat_completion
from golem.web.disclosure import guarded as guarded
from golem.web.disclosure import verbatim as verbatim
from golem.web.frames import Encoder as Encoder
from golem.web.frames import EncoderFactory as EncoderFactory
from golem.web.frames import Frame as Frame
from golem.web.frames import Numbered as Numbered
from golem.web.from_agui import answers_from_agui as answers_from_agui
from golem.web.from_agui import messages_from_agui as messages_from_agui
from golem.web.from_chat import messages_from_chat as messages_from_chat
from golem.web.from_ui import answers_from_ui as answers_from_ui
from golem.web.from_ui import messages_from_ui as messages_from_ui
from golem.web.golem_events import golem_events as golem_events
from golem.web.replay import MemoryReplay as MemoryReplay
from golem.web.replay import Replay as Replay
from golem.web.replay import RunRecord as RunRecord
from golem.web.replay_sqlite import SQLiteReplay as SQLiteReplay
from golem.web.sse import HEADERS as HEADERS
from golem.web.sse import EventStream as EventStream
from golem.web.sse import sse as sse
from golem.web.ui_messages import ui_messages as ui_messages
