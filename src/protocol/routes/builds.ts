import { z } from "zod";
import { group } from "../route.ts";
import { buildName, journal, more, name, text, whole, wholeText } from "../shapes.ts";

const at = z.number();
/** As in `moveRuns`. */
const maxMoves = 100;
const maxMoveMs = 60_000;
const byBuild = z.strictObject({ build: buildName });

const buildView = z.strictObject({
  build: name,
  workflows: z.array(name),
  current: z.boolean(),
  live: whole,
  firstAt: at,
  seenAt: at,
  /** That report it now. */
  processes: whole,
});

/** Builds: which have live runs, which processes, and which takes new ones. */
export const builds = group({
  "builds.list": {
    method: "GET",
    path: "/v1/builds",
    role: "reader",
    repeat: "read",
    summary: "Lists builds, the newest first, with the exact number of live runs that are pinned to each",
    query: z.strictObject({ build: buildName.exactOptional(), limit: wholeText.exactOptional() }),
    answer: z.strictObject({ builds: z.array(buildView), more }),
  },
  "builds.runs": {
    method: "GET",
    path: "/v1/builds/{build}/runs",
    role: "reader",
    repeat: "read",
    summary: "Lists live runs that are pinned to a build; above continues a listing",
    params: byBuild,
    query: z.strictObject({ above: wholeText.exactOptional(), limit: wholeText.exactOptional() }),
    answer: z.strictObject({ runs: z.array(z.strictObject({ journal, id: name, workflow: name })), more }),
  },
  "builds.drained": {
    method: "GET",
    path: "/v1/builds/{build}/drained",
    role: "reader",
    repeat: "read",
    summary: "Reads whether no live run is pinned to a build",
    params: byBuild,
    answer: z.strictObject({ drained: z.boolean() }),
  },
  "builds.current": {
    method: "POST",
    path: "/v1/builds/{build}/current",
    role: "operator",
    repeat: "key",
    manual: true,
    summary: "Makes a build current: processes of others take no new runs of its pinned workflows",
    params: byBuild,
    body: z.strictObject({ reason: text.min(1), by: name.exactOptional() }),
    answer: buildView.omit({ processes: true }),
    errors: ["TAPE_NOT_FOUND"],
  },
  "builds.move": {
    method: "POST",
    path: "/v1/builds/{build}/move",
    role: "operator",
    repeat: "same",
    manual: true,
    summary: "Moves live runs of a build to another one, whose processes replay them first; above continues",
    params: byBuild,
    body: z.strictObject({
      to: buildName,
      run: name.exactOptional(),
      above: whole.exactOptional(),
      limit: z.int().min(1).max(maxMoves).exactOptional(),
      withinMs: z.int().min(0).max(maxMoveMs).exactOptional(),
      reason: text.min(1),
      by: name.exactOptional(),
    }),
    answer: z.strictObject({
      runs: z.array(
        z.strictObject({
          run: name,
          result: z.enum(["moved", "refused", "held", "waiting"]),
          reason: z.string().exactOptional(),
        }),
      ),
      above: whole.exactOptional(),
    }),
    errors: ["TAPE_NOT_FOUND", "TAPE_RUN_NOT_FOUND", "TAPE_ILLEGAL_TRANSITION"],
  },
});
