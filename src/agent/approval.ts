import { defined } from "../base/defined.ts";
import type { TapeContext } from "../sdk/context.ts";
import { effect } from "../sdk/effect.ts";
import type { EffectCall } from "../sdk/effect-types.ts";
import { type GateDefinition, gate } from "../sdk/gate.ts";
import type { Schema } from "../sdk/schema.ts";
import type { ToolArgs, ToolPolicy } from "./tool-policy.ts";

/** The answer to a request for approval. */
export interface Approval {
  /** Whether the call may be made. */
  readonly approved: boolean;
  /** The model reads it. */
  readonly reason?: string;
}

const approvalSchema: Schema<Approval> = {
  "~standard": {
    version: 1,
    vendor: "durable-tape",
    validate: (value) => {
      const given = typeof value === "boolean" ? { approved: value } : value;
      const { approved, reason } = (given ?? {}) as Partial<Approval>;
      if (typeof approved !== "boolean") return { issues: [{ message: "an approval is { approved: true | false }" }] };
      if (reason !== undefined && typeof reason !== "string") return { issues: [{ message: "reason is text" }] };
      return { value: { approved, ...defined({ reason }) } };
    },
    jsonSchema: {
      input: () => ({
        type: "object",
        properties: { approved: { type: "boolean" }, reason: { type: "string" } },
        required: ["approved"],
      }),
    },
  },
};

/**
 * The gate at which calls of tools wait. Signal it with the `binds` of the open gate: an approval is for one call.
 *
 * @example
 * await app.signal(runId, toolApproval, { approved: true }, { binds, mustMatch: true });
 */
export const toolApproval: GateDefinition<Approval> = gate("tool approval", { schema: approvalSchema });

/** What the gate shows. */
export interface ApprovalRequest extends ToolArgs {
  /** The name of the tool. */
  readonly tool: string;
  /** Why the model calls it. */
  readonly why?: string;
}

/** Waits for an approval of exactly this call. undefined: the wait has timed out. */
export async function awaitApproval(
  tape: TapeContext,
  call: EffectCall<unknown>,
  payload: ApprovalRequest,
  { approvers, approvalTimeout }: Pick<ToolPolicy, "approvers" | "approvalTimeout">,
): Promise<Approval | undefined> {
  const opened =
    approvers === undefined ? toolApproval : gate(toolApproval.name, { schema: approvalSchema, approvers });
  const answer = await tape.gate(opened, { binds: call, payload, ...defined({ timeout: approvalTimeout }) });
  return answer.status === "received" ? answer.value : undefined;
}

/** A call that an approval is bound to where a framework runs the tool: it is never made. */
export const approvedCall = (tool: string, args: ToolArgs): EffectCall<unknown> =>
  effect(`approval.${tool}`, () => undefined, { semantics: "read" }).with(args);
