import { useState } from "react";
import { ApiError, call, type Gate } from "../api.ts";
import { ReasonDialog } from "../ui/reason-dialog.tsx";
import { enteredValue, fieldsOf, initialTexts } from "./form-fields.ts";
import { type JsonSchema, problemsOf } from "./json-schema.ts";
import { ValueInputs } from "./value-inputs.tsx";

export interface GateDialogProps {
  readonly gate: Gate;
  readonly run: string;
  /** What a process reports about the values of this gate. */
  readonly schema: JsonSchema | undefined;
  /** Approve and reject set the property `approved`; other gates have one answer. */
  readonly answer: "Approve" | "Reject" | "Answer";
  readonly onClose: () => void;
}

/**
 * Asks for the value of a signal. Where a process has reported the gate's schema, the value is a form or checked JSON, and
 * a value that does not fit is not sent.
 */
export function GateDialog({ gate, run, schema, answer, onClose }: GateDialogProps) {
  const fields = schema && fieldsOf(schema)?.filter(({ name }) => !isFilledIn(name, schema, answer));
  const [texts, setTexts] = useState(() => initialTexts(fields ?? []));
  const [text, setText] = useState(answer === "Answer" ? "" : JSON.stringify({ approved: answer === "Approve" }));
  const send = async (reason: string, key: string): Promise<void> => {
    const entered = fields === undefined ? jsonOf(text) : enteredValue(fields, texts);
    const value = withReason(fields === undefined ? entered : withAnswer(entered, answer), reason, schema);
    const problems = schema === undefined ? [] : problemsOf(schema, value);
    if (problems.length > 0)
      throw invalid(problems.join("; "), "Nothing was sent. Correct the value and send it again.");
    await sendSignal(gate, run, { value, key });
  };
  return (
    <ReasonDialog
      title={`${answer} ${gate.name}`}
      label={answer}
      danger={answer === "Reject"}
      onClose={onClose}
      run={send}
    >
      {fields === undefined ? (
        <label>
          Value sent to the run, as JSON
          <textarea rows={3} className="mono" value={text} onChange={(event) => setText(event.target.value)} />
        </label>
      ) : (
        <ValueInputs {...{ fields, texts }} onChange={(name, next) => setTexts({ ...texts, [name]: next })} />
      )}
      {schema !== undefined && fields === undefined && (
        <details>
          <summary>What the gate accepts</summary>
          <pre className="mono small">{JSON.stringify(schema, null, 2)}</pre>
        </details>
      )}
    </ReasonDialog>
  );
}

const isApproval = (schema: JsonSchema | undefined): boolean =>
  schema === undefined || schema.properties?.approved?.type === "boolean";

/** The buttons of a gate: without a schema it is taken for an approval, which is what most gates are. */
export const answersOf = (schema: JsonSchema | undefined): readonly GateDialogProps["answer"][] =>
  isApproval(schema) ? ["Approve", "Reject"] : ["Answer"];

const reasonNames = ["reason", "note"];
const takesReason = (name: string, schema: JsonSchema): boolean =>
  reasonNames.includes(name) && schema.properties?.[name]?.type === "string";

/** The button and the reason of the dialog give these properties. */
const isFilledIn = (name: string, schema: JsonSchema, answer: GateDialogProps["answer"]): boolean =>
  (answer !== "Answer" && name === "approved") || takesReason(name, schema);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const withAnswer = (value: unknown, answer: GateDialogProps["answer"]): unknown =>
  answer === "Answer" || !isObject(value) ? value : { approved: answer === "Approve", ...value };

/** The reason goes with the value, where the gate accepts it. */
function withReason(value: unknown, reason: string, schema: JsonSchema | undefined): unknown {
  if (!isObject(value)) return value;
  const named = schema && reasonNames.find((name) => takesReason(name, schema));
  if (named !== undefined) return { [named]: reason, ...value };
  return schema?.additionalProperties === false ? value : { note: reason, ...value };
}

async function sendSignal(
  { name, binds }: Gate,
  run: string,
  { value, key }: { readonly value: unknown; readonly key: string },
): Promise<void> {
  const body = { name, value, key: `page-${key}`, ...(binds === null ? {} : { binds }), mustMatch: true as const };
  await call("runs.signal", { params: { id: run }, body });
}

const invalid = (detail: string, next: string): ApiError =>
  new ApiError({ status: 0, code: "TAPE_BAD_GATE_VALUE", detail, next });

function jsonOf(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : String(error), 'Put text in quotes: "like this".');
  }
}
