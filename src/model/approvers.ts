import { z } from "zod";
import type { Credential } from "./credential.ts";
import { mayDo, type Role, roles } from "./roles.ts";

const name = z.string().min(1).max(512);

/** Who may answer a gate: all that is given must hold. */
export const approversShape = z.strictObject({
  /** Through a server: a token that may do what this role may. */
  role: z.enum(roles).exactOptional(),
  /** One of these tokens, by id, or `by` one of these names. */
  tokens: z.array(name).min(1).max(100).exactOptional(),
  /** The sender's name: the token's through a server, else what the program says. Names are not unique; ids are. */
  by: z.array(name).min(1).max(100).exactOptional(),
  /** Not whoever started the run, or the run that it is a child or a fork of. */
  not: z.literal("starter").exactOptional(),
});
/** Who may resolve a gate. */
export type Approvers = z.infer<typeof approversShape>;

/** Who sends a signal: a credential, or a program with the store itself that says who it is. */
export interface Sender {
  readonly by?: string | undefined;
  readonly via?: Credential | undefined;
}

/** How a sender is remembered as the starter of a run. undefined: nobody said who it is. */
export function starterOf({ by, via }: Sender): string | undefined {
  if (via?.token !== undefined) return `token:${via.token}`;
  return by === undefined ? undefined : `name:${by}`;
}

/** Why this sender may not answer the gate; undefined: it may. `starters`: of the run's root; absent: unknown. */
export function whyNotApprover(
  approvers: Approvers,
  sender: Sender,
  starters: readonly string[] | undefined,
): string | undefined {
  const { via, by } = sender;
  const role = via?.role as Role | undefined;
  if (approvers.role !== undefined && role !== undefined && !mayDo(role, approvers.role)) {
    return `it needs the role ${approvers.role}, and this token has ${role}`;
  }
  if (approvers.tokens !== undefined || approvers.by !== undefined) {
    const named = via === undefined ? by : via.name;
    const isToken = via?.token !== undefined && approvers.tokens?.includes(via.token) === true;
    const isNamed = named !== undefined && approvers.by?.includes(named) === true;
    if (!isToken && !isNamed) return "it is for others by name";
  }
  if (approvers.not === undefined) return undefined;
  const me = starterOf(sender);
  // Of a run that nobody is known to have started, a schedule's for example, an operator decides.
  if (starters === undefined && role !== undefined && !mayDo(role, "operator")) {
    return "nobody knows who started the run, so it needs the role operator";
  }
  if (me === undefined) return "who started the run may not answer it, and this sender does not say who it is";
  return starters?.includes(me) === true ? "who started the run may not answer it" : undefined;
}
