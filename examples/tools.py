"""Tools: typed functions, checked arguments, corrections, failures, context. Needs no network."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from golem import (
    Agent,
    AssistantMessage,
    ModelRetry,
    RunContext,
    ToolCall,
    ToolFailed,
    ToolMessage,
    tool,
)
from golem.testing import Scripted, ScriptedModel


class Shop(Struct):
    """What the tools need: the run's `deps`."""

    stock: dict[str, int]
    customer: str


class Order(Struct):
    """What the shop answers; it becomes JSON for the model."""

    item: str
    count: int
    shipping: str


@tool(retries=1)
def order(
    ctx: RunContext[Shop],
    item: str,
    count: Annotated[int, msgspec.Meta(ge=1, le=10)] = 1,
    shipping: Literal["standard", "express"] = "standard",
) -> Order:
    """Order something for the customer.

    Args:
        ctx: Not shown to the model.
        item: What to order, in the singular.
        count: How many of it.
        shipping: How fast it has to be.
    """
    left = ctx.deps.stock.get(item)
    if left is None:
        known = ", ".join(ctx.deps.stock)
        raise ModelRetry(f"there is no {item!r}, only: {known}")
    if left < count:
        raise ToolFailed(f"only {left} left of {item!r}")
    ctx.deps.stock[item] = left - count
    return Order(item, count, shipping)


async def whoami(ctx: RunContext[Shop]) -> str:
    """Who the customer is."""
    await asyncio.sleep(0)  # an async function runs in the run's own task
    return ctx.deps.customer


def asks(id_: str, name: str, args: str) -> ToolCall:
    """A call as a model would ask for it."""
    return ToolCall.of(id_, name, args)


SCRIPT: list[Scripted] = [
    AssistantMessage(
        tool_calls=(
            asks("c1", "whoami", "{}"),
            asks("c2", "order", '{"item": "teapot", "count": "two"}'),  # not a number
            asks("c3", "order", '{"item": "kettle"}'),  # not in stock: the tool refuses
            asks("c4", "order", '{"item": "cup", "count": 5}'),  # too many: a definitive failure
        )
    ),
    AssistantMessage(
        tool_calls=(asks("c5", "order", '{"item": "teapot", "count": 2, "shipping": "express"}'),)
    ),
    "Two teapots are on their way.",
]


async def main() -> None:
    """One run that meets every way a call can end in a result."""
    print("what the model sees:", msgspec.json.encode(order.spec.schema).decode())
    agent = Agent[Shop](ScriptedModel(SCRIPT), tools=[order, whoami], parallel_tool_calls=True)
    shop = Shop(stock={"teapot": 3, "cup": 2}, customer="Ada")
    result = await agent.run("Two teapots and five cups, please.", deps=shop)
    for message in result.messages:
        if isinstance(message, ToolMessage):
            mark = "FAILED " if message.failed else ""
            print(f"  {message.tool_call_id} {message.tool_name:7} {mark}{message.content}")
    print(result.output, f"({result.tool_calls} executions, stock: {shop.stock})")


if __name__ == "__main__":
    asyncio.run(main())
