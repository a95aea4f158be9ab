"""What a server can do wrong: ``ChatJudge(misbehave=misbehave.cut_at(100))``.

connections   slow, silent and broken ones
refusals      errors and answers of somebody who is not the provider
bodies        bodies that are cut, compressed, endless or not what they should be

Most are functions from the reply that was due to the one that is sent, so they compose:
``together(gzipped(), trickle())``. Those that need the provider's own events are told it by the
judge, as a `Scene`.
"""

from golem.testing.judge.misbehave.bodies import bomb as bomb
from golem.testing.judge.misbehave.bodies import content_type as content_type
from golem.testing.judge.misbehave.bodies import empty as empty
from golem.testing.judge.misbehave.bodies import endless as endless
from golem.testing.judge.misbehave.bodies import ends_at as ends_at
from golem.testing.judge.misbehave.bodies import error_event as error_event
from golem.testing.judge.misbehave.bodies import gzipped as gzipped
from golem.testing.judge.misbehave.bodies import huge_event as huge_event
from golem.testing.judge.misbehave.bodies import invalid_utf8 as invalid_utf8
from golem.testing.judge.misbehave.bodies import replaced as replaced
from golem.testing.judge.misbehave.bodies import twice_done as twice_done
from golem.testing.judge.misbehave.bodies import without_end as without_end
from golem.testing.judge.misbehave.connections import closes as closes
from golem.testing.judge.misbehave.connections import cut_after as cut_after
from golem.testing.judge.misbehave.connections import cut_at as cut_at
from golem.testing.judge.misbehave.connections import drops_request as drops_request
from golem.testing.judge.misbehave.connections import hangs as hangs
from golem.testing.judge.misbehave.connections import huge_head as huge_head
from golem.testing.judge.misbehave.connections import late as late
from golem.testing.judge.misbehave.connections import slow_head as slow_head
from golem.testing.judge.misbehave.connections import stops_reading as stops_reading
from golem.testing.judge.misbehave.connections import trickle as trickle
from golem.testing.judge.misbehave.refusals import html_page as html_page
from golem.testing.judge.misbehave.refusals import out_of_quota as out_of_quota
from golem.testing.judge.misbehave.refusals import quotes_the_key as quotes_the_key
from golem.testing.judge.misbehave.refusals import rate_limited as rate_limited
from golem.testing.judge.misbehave.refusals import redirects as redirects
from golem.testing.judge.misbehave.refusals import status as status
from golem.testing.judge.misbehave.scene import Act as Act
from golem.testing.judge.misbehave.scene import Misbehavior as Misbehavior
from golem.testing.judge.misbehave.scene import Scene as Scene
from golem.testing.judge.misbehave.scene import together as together
