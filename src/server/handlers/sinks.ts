import type { CallOf } from "../../protocol/contract.ts";
import type { sinks as routes } from "../../protocol/routes/sinks.ts";
import { fenceOf } from "../../protocol/shapes.ts";
import { auditInfoOf, type Call, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";

export function sinkHandlers({ store: { read, fenced }, operators }: ServerDeps): HandlersOf<typeof routes> {
  const changing =
    (to: "pause" | "resume" | "forget") =>
    async ({ params: { name }, body }: CallOf<"sinks.pause">, who: Call) => {
      await operators.of(who.tenant).changeSink(name, { to }, auditInfoOf(who, body));
      return {};
    };
  return {
    async "sinks.list"({ query }, { tenant }) {
      return listed("sinks", await read.sinks(tenant, query));
    },
    async "sinks.deadLetters"({ params: { name }, query }, { tenant }) {
      return listed("letters", await read.deadLetters(tenant, name, query));
    },
    async "sinks.replay"({ params: { name }, body }, who) {
      const audit = auditInfoOf(who, body);
      return { letters: await who.intake.settleLetters(who.tenant, name, "REPLAY", body.events, audit) };
    },
    async "sinks.discard"({ params: { name }, body }, who) {
      const audit = auditInfoOf(who, body);
      return { letters: await who.intake.settleLetters(who.tenant, name, "DISCARDED", body.events, audit) };
    },
    "sinks.pause": changing("pause"),
    "sinks.resume": changing("resume"),
    "sinks.forget": changing("forget"),
    async "sinks.rewind"({ params: { name }, body }, who) {
      const change = { to: "rewind", event: body.event } as const;
      await operators.of(who.tenant).changeSink(name, change, auditInfoOf(who, body));
      return {};
    },
    async "store.checkpoint"({ body: { fence, text } }, { tenant }) {
      await fenced.checkpoint(fenceOf(tenant, fence), text);
      return {};
    },
    async "store.deadLetter"({ body: { fence, letter } }, { tenant }) {
      await fenced.deadLetter(fenceOf(tenant, fence), letter);
      return {};
    },
    async "store.letterSent"({ body: { fence, event } }, { tenant }) {
      await fenced.letterSent(fenceOf(tenant, fence), event);
      return {};
    },
    async "store.subjects"({ body: { journals } }, { tenant }) {
      return { subjects: await read.subjects(tenant, journals) };
    },
  };
}
