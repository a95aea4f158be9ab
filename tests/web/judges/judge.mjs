// Reads event streams with the readers of their protocols and says what these make of them.
// One JSON object a line on stdin ({protocol, body, message?, messages?}), one a line on stdout.
import { createInterface } from 'node:readline';
import { EventType, defaultApplyEvents, parseSSEStream, verifyEvents } from '@ag-ui/client';
import { from, lastValueFrom } from 'rxjs';
import { toArray } from 'rxjs/operators';

const ui = { ui5: await import('ai5'), ui6: await import('ai6'), ui7: await import('ai7') };

function bytes(body) {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(body));
      controller.close();
    },
  });
}

async function readUI(ai, { body, message }) {
  const errors = [];
  const chunks = [];
  const strict = new TransformStream({
    transform(chunk, controller) {
      if (!chunk.success) throw chunk.error;
      chunks.push(chunk.value);
      controller.enqueue(chunk.value);
    },
  });
  const schema = ai.uiMessageChunkSchema;
  const stream = ai.parseJsonEventStream({ stream: bytes(body), schema }).pipeThrough(strict);
  let last = message;
  const onError = error => errors.push({ name: error.name, message: error.message });
  for await (const state of ai.readUIMessageStream({ message, stream, onError })) last = state;
  let invalid = null;
  let model = null;
  if (last) {
    const found = await ai.safeValidateUIMessages({ messages: [last] });
    if (!found.success) invalid = String(found.error);
    model = await ai.convertToModelMessages([last], { ignoreIncompleteToolCalls: true });
  }
  return { errors, chunks, message: last, invalid, model };
}

async function readAGUI({ body, messages = [] }) {
  const events = body
    .split('\n\n')
    .flatMap(block => block.split('\n').filter(line => line.startsWith('data: ')))
    .map(line => JSON.parse(line.slice(6)));
  const errors = [];
  try {
    await lastValueFrom(from(events).pipe(verifyEvents(false), toArray()));
  } catch (error) {
    errors.push({ name: error.name, message: error.message });
    return { errors, events };
  }
  const agent = { agentId: 'a', messages, state: {} };
  const input = { threadId: 't', runId: 'r', messages, state: {}, tools: [], context: [] };
  const known = events.filter(event => event.type in EventType);
  const states = await lastValueFrom(
    defaultApplyEvents(input, from(known), agent, []).pipe(toArray()),
    { defaultValue: [] },
  );
  const last = states.filter(state => state.messages).at(-1);
  return { errors, events, messages: last ? last.messages : messages };
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let found;
  try {
    const ai = ui[asked.protocol];
    found = ai ? await readUI(ai, asked) : await readAGUI(asked);
  } catch (error) {
    found = { errors: [{ name: error.name, message: String(error.message) }] };
  }
  process.stdout.write(JSON.stringify(found) + '\n');
}
