import { z } from "zod";
import { group } from "../route.ts";
import { flagText, more, name, namesText, record, text, value, wholeText } from "../shapes.ts";
import { leaseView, termView } from "../views.ts";

const byName = z.strictObject({ name });
const audit = z.strictObject({ reason: text.min(1), by: name.exactOptional() });

/** Leases: holders, terms and operator actions. */
export const leases = group({
  "leases.list": {
    method: "GET",
    path: "/v1/leases",
    role: "reader",
    repeat: "read",
    summary: "Lists leases of runs, items and names, newest first; kind=name lists named leases by name, from above on",
    query: z.strictObject({
      held: flagText.exactOptional(),
      limit: wholeText.exactOptional(),
      kind: z.literal("name").exactOptional(),
      names: namesText.exactOptional(),
      prefix: text.exactOptional(),
      above: text.exactOptional(),
    }),
    answer: z.strictObject({ leases: z.array(leaseView), more }),
  },
  "leases.get": {
    method: "GET",
    path: "/v1/leases/{name}",
    role: "reader",
    repeat: "read",
    summary: "Reads a named lease: holder, token, remaining time, progress",
    params: byName,
    answer: leaseView,
    errors: ["TAPE_LEASE_NOT_FOUND"],
  },
  "leases.terms": {
    method: "GET",
    path: "/v1/leases/{name}/terms",
    role: "reader",
    repeat: "read",
    summary: "Reads the term history of a named lease, oldest first",
    params: byName,
    answer: z.strictObject({ terms: z.array(termView) }),
    errors: ["TAPE_LEASE_NOT_FOUND"],
  },
  "leases.follow": {
    method: "GET",
    path: "/v1/leases/{name}/stream",
    role: "reader",
    repeat: "read",
    summary: "Streams records of a named lease's journal from a seq on, one per line",
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
    summary: "Lists processes that reported within the last minute, with their reactors and singletons",
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
    summary: "Fences the holder of a named lease and releases the lease, so that a standby can acquire it",
    params: byName,
    body: z.strictObject({ ...audit.shape, onlyStale: z.boolean().exactOptional() }),
    answer: z.strictObject({}),
    errors: ["TAPE_LEASE_NOT_FOUND"],
  },
  "leases.pause": {
    method: "POST",
    path: "/v1/leases/{name}/pause",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Pauses a lease: fences its holder at once and refuses acquires until the lease is resumed",
    params: byName,
    body: audit,
    answer: z.strictObject({}),
  },
  "leases.resume": {
    method: "POST",
    path: "/v1/leases/{name}/resume",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Resumes a paused lease",
    params: byName,
    body: audit,
    answer: z.strictObject({}),
  },
});
