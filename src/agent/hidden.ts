import type { Message, Part } from "./conversation.ts";
import type { Turn, TurnCall, TurnGate } from "./turn.ts";

/** Where content is hidden, its length is left. */
export interface HiddenContent {
  readonly hidden: number;
}

/**
 * A turn without what anyone has written in it: roles, names of tools, lengths, tokens, costs, times and outcomes stay.
 * For readers who may see how a run works, but not what it is about.
 */
export function withoutContent(turn: Turn): Turn {
  const { settings: _, error, answer, gates, ...rest } = turn;
  return {
    ...rest,
    messages: turn.messages.map(hiddenMessage),
    ...(answer !== undefined && { answer: hiddenMessage(answer) }),
    ...(error !== undefined && { error: hiddenText }),
    failures: turn.failures.map((failure) => ({ ...failure, error: hiddenText })),
    calls: turn.calls.map(hiddenCall),
    ...(gates !== undefined && { gates: gates.map(hiddenGate) }),
  };
}

const hiddenText = "hidden";

const lengthOf = (value: unknown): number => JSON.stringify(value)?.length ?? 0;
const hidden = (value: unknown): HiddenContent => ({ hidden: lengthOf(value) });

const hiddenMessage = ({ role, parts, cut }: Message): Message => ({
  role,
  parts: parts.map(hiddenPart),
  ...(cut === true && { cut }),
});

function hiddenPart(part: Part): Part {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, text: "", cut: part.cut ?? part.text.length };
    case "tool_call":
      return { type: part.type, id: part.id, name: part.name, input: hidden(part.input) };
    case "tool_result":
      return { type: part.type, id: part.id, ...(part.name && { name: part.name }), output: hidden(part.output) };
    default: {
      const { mediaType, bytes = lengthOf(part.data) } = part;
      return { type: "file", ...(mediaType !== undefined && { mediaType }), bytes };
    }
  }
}

function hiddenCall(call: TurnCall): TurnCall {
  const { effect, approval } = call;
  const shown = { ...call, input: hidden(call.input), ...("output" in call && { output: hidden(call.output) }) };
  if (effect !== undefined) {
    const { value: _, businessKey: __, error, ...rest } = effect;
    shown.effect = { ...rest, ...(error !== undefined && { error: hiddenText }) };
  }
  if (approval !== undefined) shown.approval = hiddenGate(approval);
  return shown;
}

function hiddenGate({ payload: _, value: __, ...gate }: TurnGate): TurnGate {
  return gate;
}
