import { brief, formatNumber, plural, unwrap } from "../format.ts";
import { Json } from "../ui/json.tsx";

/** A message as the server sends it; parts of kinds that the page does not know are shown as JSON. */
export interface Message {
  readonly role: string;
  readonly parts: readonly Part[];
  readonly cut?: true;
}

export interface Part {
  readonly type: string;
  readonly text?: string;
  /** The length of a text that is cut or hidden. */
  readonly cut?: number;
  readonly id?: string;
  readonly name?: string;
  readonly output?: unknown;
  readonly mediaType?: string;
  readonly bytes?: number;
}

export function messagesOf(value: unknown): readonly Message[] {
  const messages = unwrap(value);
  return Array.isArray(messages) ? (messages as Message[]) : [];
}

export const messageOf = (value: unknown): Message | undefined => unwrap(value) as Message | undefined;

const roles: Readonly<Record<string, string>> = {
  system: "System",
  user: "User",
  assistant: "Model",
  tool: "Tool",
};

/** `answered`: ids of calls that have a card, which shows the result. */
export function MessageBubble({
  message,
  answered,
}: {
  readonly message: Message;
  readonly answered: ReadonlySet<string>;
}) {
  const { role, parts, cut } = message;
  // Calls and the results of known calls are on their cards.
  const shown = parts.filter(
    ({ type, id }) => type !== "tool_call" && !(type === "tool_result" && answered.has(id ?? "")),
  );
  if (shown.length === 0 && cut !== true) return null;
  return (
    <div className={`bubble ${roles[role] === undefined ? "user" : role}`}>
      <span className="bubble-role">{roles[role] ?? role}</span>
      {cut === true && <p className="muted small">Left out: the request was too long to be noted.</p>}
      {shown.map((part, k) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of a recorded message never change
        <PartView key={k} part={part} />
      ))}
    </div>
  );
}

function PartView({ part }: { readonly part: Part }) {
  const { type, text = "", cut } = part;
  if (type === "text" || type === "reasoning") {
    if (text === "" && cut === undefined) return null;
    const rest =
      cut === undefined
        ? ""
        : text === ""
          ? `${formatNumber(cut)} characters, hidden`
          : `of ${formatNumber(cut)} characters`;
    const body = (
      <>
        {text !== "" && <p className="said">{text}</p>}
        {rest !== "" && <p className="muted small">{rest}</p>}
      </>
    );
    return type === "text" ? (
      body
    ) : (
      <details>
        <summary className="muted small">Reasoning</summary>
        {body}
      </details>
    );
  }
  if (type === "file") {
    const { name, mediaType, bytes } = part;
    const facts = [name, mediaType, bytes === undefined ? undefined : plural(bytes, "byte")];
    return <p className="muted">File {facts.filter((fact) => fact !== undefined).join(", ")}</p>;
  }
  if (type === "tool_result")
    return (
      <p className="muted">
        Result of {part.name ?? part.id}: {brief(part.output, 400)}
      </p>
    );
  return <Json value={part} label={`Part ${type}`} />;
}
