import { z } from "zod";
import { slotStates } from "../../model/queue.ts";
import { partitionView, queueChange, queuePosition, queueSpec, queueView, slotView } from "../queue-views.ts";
import { group } from "../route.ts";
import { more, name, text, whole, wholeText } from "../shapes.ts";

const byName = z.strictObject({ name });
const audit = { reason: text.min(1), by: name.exactOptional() };
const onePartition = z.strictObject({ ...audit, key: text.exactOptional() });
const page = z.strictObject({ above: text.exactOptional(), limit: wholeText.exactOptional() });

/** Queues: what waits, what runs, why, and the limits that operators set. */
export const queues = group({
  "queues.list": {
    method: "GET",
    path: "/v1/queues",
    role: "reader",
    repeat: "read",
    summary: "Lists queues by name: slots held, waiting runs, limits in effect, pauses; above continues a listing",
    query: page,
    answer: z.strictObject({ queues: z.array(queueView), more }),
  },
  "queues.keys": {
    method: "GET",
    path: "/v1/queues/{name}/keys",
    role: "reader",
    repeat: "read",
    summary: "Lists the keys of a queue that have runs, by key; above continues a listing",
    params: byName,
    query: page,
    answer: z.strictObject({ keys: z.array(partitionView), more }),
    errors: ["TAPE_QUEUE_UNKNOWN"],
  },
  "queues.runs": {
    method: "GET",
    path: "/v1/queues/{name}/runs",
    role: "reader",
    repeat: "read",
    summary: "Lists runs that hold a slot of a queue (HELD) or wait for one (QUEUED), of each key in their order",
    params: byName,
    query: z.strictObject({
      key: text.exactOptional(),
      state: z.enum(slotStates).extract(["QUEUED", "HELD"]).exactOptional(),
      limit: wholeText.exactOptional(),
    }),
    answer: z.strictObject({ runs: z.array(slotView), more }),
    errors: ["TAPE_QUEUE_UNKNOWN"],
  },
  "runs.queue": {
    method: "GET",
    path: "/v1/runs/{id}/queue",
    role: "reader",
    repeat: "read",
    summary: "Reads where a run is in its queue, and every reason why it does not start yet",
    params: z.strictObject({ id: name }),
    answer: z.strictObject({ position: queuePosition.exactOptional() }),
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "queues.define": {
    method: "PUT",
    path: "/v1/queues/{name}",
    role: "worker",
    repeat: "key",
    summary: "Defines a queue or changes its definition; limits that an operator has set stay in effect",
    params: byName,
    body: z.strictObject({ spec: queueSpec }),
    answer: z.strictObject({ name, version: whole, replaced: queueSpec.exactOptional(), fresh: z.boolean() }),
    errors: ["TAPE_QUEUE_CHANGED", "TAPE_TOO_LARGE"],
  },
  "queues.pause": {
    method: "POST",
    path: "/v1/queues/{name}/pause",
    role: "operator",
    repeat: "key",
    manual: true,
    summary: "Pauses a queue, or one key of it: nothing starts. Runs that hold slots continue",
    params: byName,
    body: onePartition,
    answer: queueView,
    errors: ["TAPE_QUEUE_UNKNOWN"],
  },
  "queues.resume": {
    method: "POST",
    path: "/v1/queues/{name}/resume",
    role: "operator",
    repeat: "key",
    manual: true,
    summary: "Resumes a paused queue, or one key of it",
    params: byName,
    body: onePartition,
    answer: queueView,
    errors: ["TAPE_QUEUE_UNKNOWN"],
  },
  "queues.set": {
    method: "PUT",
    path: "/v1/queues/{name}/override",
    role: "operator",
    repeat: "key",
    manual: true,
    summary: "Sets limits of a queue until they are reset; null: no limit. A lower limit evicts no run",
    params: byName,
    body: z.strictObject({ change: queueChange, ...audit }),
    answer: queueView,
    errors: ["TAPE_QUEUE_UNKNOWN"],
  },
  "queues.reset": {
    method: "DELETE",
    path: "/v1/queues/{name}/override",
    role: "operator",
    repeat: "key",
    manual: true,
    summary: "Restores the limits of the queue's definition",
    params: byName,
    query: z.strictObject(audit),
    answer: queueView,
    errors: ["TAPE_QUEUE_UNKNOWN"],
  },
});
