import { z } from "zod";
import { group } from "../route.ts";
import { flagText, name, record, text, value, wholeText } from "../shapes.ts";
import { leaseView, termView } from "../views.ts";

const byName = z.strictObject({ name });
const person = z.strictObject({ reason: text.min(1), by: name.exactOptional() });

/** Leases: who holds what, since when and why. */
export const leases = group({
  "leases.list": {
    method: "GET",
    path: "/v1/leases",
    role: "reader",
    repeat: "read",
    summary: "Leases of runs, items and names",
    query: z.strictObject({ held: flagText.exactOptional(), limit: wholeText.exactOptional() }),
    answer: z.strictObject({ leases: z.array(leaseView) }),
  },
  "leases.get": {
    method: "GET",
    path: "/v1/leases/{name}",
    role: "reader",
    repeat: "read",
    summary: "A named lease: its holder, token, remaining time, progress",
    params: byName,
    answer: leaseView,
    errors: ["TAPE_LEASE_NOT_FOUND"],
  },
  "leases.terms": {
    method: "GET",
    path: "/v1/leases/{name}/terms",
    role: "reader",
    repeat: "read",
    summary: "The ledger of a named lease: every term, oldest first",
    params: byName,
    answer: z.strictObject({ terms: z.array(termView) }),
    errors: ["TAPE_LEASE_NOT_FOUND"],
  },
  "leases.follow": {
    method: "GET",
    path: "/v1/leases/{name}/stream",
    role: "reader",
    repeat: "read",
    summary: "Records of a named lease's journal from a seq on, as they come, one a line",
    params: byName,
    query: z.strictObject({ from: wholeText.exactOptional() }),
    answer: record,
    stream: true,
    errors: ["TAPE_LEASE_NOT_FOUND"],
  },
  "processes.list": {
    method: "GET",
    path: "/v1/processes",
    role: "reader",
    repeat: "read",
    summary: "Processes that reported within the last minute, and what each says of its reactors and singletons",
    answer: z.strictObject({
      processes: z.array(z.strictObject({ owner: name, label: name, at: z.number(), agoMs: z.number(), body: value })),
    }),
  },
  "leases.takeover": {
    method: "POST",
    path: "/v1/leases/{name}/takeover",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Fences the holder of a named lease and gives the lease back: a standby takes it",
    params: byName,
    body: z.strictObject({ ...person.shape, onlyStale: z.boolean().exactOptional() }),
    answer: z.strictObject({}),
    errors: ["TAPE_LEASE_NOT_FOUND"],
  },
  "leases.pause": {
    method: "POST",
    path: "/v1/leases/{name}/pause",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Nobody may hold the lease until it is resumed; its holder is fenced at once",
    params: byName,
    body: person,
    answer: z.strictObject({}),
  },
  "leases.resume": {
    method: "POST",
    path: "/v1/leases/{name}/resume",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "The lease may be held again",
    params: byName,
    body: person,
    answer: z.strictObject({}),
  },
});
