"""OpenAI's models at Azure: the wire of `golem_adapters.openai`, Azure's addresses and keys."""
