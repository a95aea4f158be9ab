"""Passes over stored conversations by the million: JSON Lines, one history a line.

Bytes in, bytes out. `normalize_lines` and `sanitize_lines` are what any engine can carry over its
partitions; `normalize_jsonl` and `sanitize_jsonl` take a file to a file on one machine. What the
passes do to one history is `golem.history`'s; a history of one message a line is read by
`golem.iter_history`. Not part of ``import golem``.
"""

from golem.corpus.files import normalize_jsonl as normalize_jsonl
from golem.corpus.files import sanitize_jsonl as sanitize_jsonl
from golem.corpus.lines import SanitizeOptions as SanitizeOptions
from golem.corpus.lines import normalize_lines as normalize_lines
from golem.corpus.lines import sanitize_lines as sanitize_lines
from golem.corpus.report import CorpusTotal as CorpusTotal
from golem.corpus.report import LineReport as LineReport
from golem.corpus.report import RejectedLine as RejectedLine
from golem.errors import CorpusError as CorpusError
