import { z } from "zod";
import type { Credential } from "./credential.ts";
import { mayDo, type Role, roles } from "./roles.ts";

const name = z.string().min(1).max(512);

/** The senders that may answer a gate. Every given condition must hold. */
export const approversShape = z.strictObject({
  /** Through a server: the token has the permissions of this role. */
  role: z.enum(roles).exactOptional(),
  /** One of these tokens by id, or one of the names in `by`. */
  tokens: z.array(name).min(1).max(100).exactOptional(),
  /** The sender's name: through a server the token's, otherwise the one that the program gives. Only ids are unique. */
  by: z.array(name).min(1).max(100).exactOptional(),
  /** Excludes the starter of the run, of its parent and of the run it was forked from. */
  not: z.literal("starter").exactOptional(),
  /** Lets the token that started the run answer, although the gate binds an effect call. */
  self: z.literal(true).exactOptional(),
  /** The tool `signal` of MCP clients may answer the gate. */
  agents: z.literal(true).exactOptional(),
});
/** The conditions on the sender of a gate's answer. */
export type Approvers = z.infer<typeof approversShape>;

/** The sender of a signal: a credential, or a program that opened the store and gives a name. */
export interface Sender {
  readonly by?: string | undefined;
  readonly via?: Credential | undefined;
}

/** What a gate requires of its answers. A bound gate approves one effect call. */
export interface GuardedGate {
  readonly approvers: Approvers | undefined;
  readonly bound: boolean;
}

/** Why a sender may not answer a gate. */
export interface ApprovalRefusal {
  readonly code: "TAPE_NOT_APPROVER" | "TAPE_SELF_APPROVAL";
  readonly why: string;
}

/** The form in which a run records its starter; undefined: the sender is anonymous. */
export function starterOf({ by, via }: Sender): string | undefined {
  if (via?.token !== undefined) return `token:${via.token}`;
  return by === undefined ? undefined : `name:${by}`;
}

/** Why this sender may not answer the gate; undefined: it may. `starters` of the run's root; undefined: unknown. */
export function approvalRefusal(
  { approvers = {}, bound }: GuardedGate,
  sender: Sender,
  starters: readonly string[] | undefined,
): ApprovalRefusal | undefined {
  const why = whyNotApprover(approvers, sender, starters);
  if (why !== undefined) return { code: "TAPE_NOT_APPROVER", why };
  // Only a token is proof of who sent it: without one, `bound` alone excludes no sender.
  const excluded = approvers.not === "starter" || (bound && approvers.self !== true && sender.via?.token !== undefined);
  const asStarter = starterOf(sender);
  if (!excluded || asStarter === undefined || starters?.includes(asStarter) !== true) return undefined;
  return { code: "TAPE_SELF_APPROVAL", why: "the run's starter may not answer the gate" };
}

function whyNotApprover(
  approvers: Approvers,
  sender: Sender,
  starters: readonly string[] | undefined,
): string | undefined {
  const { via, by } = sender;
  const role = via?.role as Role | undefined;
  if (approvers.role !== undefined && role !== undefined && !mayDo(role, approvers.role)) {
    return `the gate requires the role ${approvers.role}, this token has ${role}`;
  }
  if (approvers.tokens !== undefined || approvers.by !== undefined) {
    const senderName = via === undefined ? by : via.name;
    const isToken = via?.token !== undefined && approvers.tokens?.includes(via.token) === true;
    const isNamed = senderName !== undefined && approvers.by?.includes(senderName) === true;
    if (!isToken && !isNamed) return "the gate's approvers do not include this sender";
  }
  if (approvers.not === undefined) return undefined;
  // If the starter is unknown, for example because a schedule started the run, an operator decides.
  if (starters === undefined && role !== undefined && !mayDo(role, "operator")) {
    return "the run's starter is unknown, so the gate requires the role operator";
  }
  if (starterOf(sender) !== undefined) return undefined;
  return "the run's starter may not answer the gate, and this sender is anonymous";
}
